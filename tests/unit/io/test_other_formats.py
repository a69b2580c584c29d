"""A file of another format is refused with the command that converts it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from edgeveil.errors import InputError
from edgeveil.io import read_graph

EDGES = [("ann", "bob"), ("bob", "cem"), ("cem", "o'neill")]
GRAPH = nx.Graph(EDGES)
WRITERS = {
    "pairs.json": lambda path: Path(path).write_text(json.dumps(EDGES)),
    "records.json": lambda path: Path(path).write_text(
        json.dumps([{"from": u, "to": v} for u, v in EDGES])
    ),
    "lines.jsonl": lambda path: Path(path).write_text(
        "".join(json.dumps({"from": u, "to": v}) + "\n" for u, v in EDGES)
    ),
    "it's.graphml": lambda path: nx.write_graphml(GRAPH, path),
    "friends.gml": lambda path: nx.write_gml(GRAPH, path),
    "friends.gexf": lambda path: nx.write_gexf(GRAPH, path),
}


def refusal(path: Path) -> str:
    with pytest.raises(InputError, match="unknown suffix") as refused:
        read_graph(path)
    return str(refused.value)


@pytest.mark.parametrize("name", WRITERS)
def test_the_command_that_is_named_converts_the_file(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    python, *words = shlex.split(re.split("To convert it.*?: ", refusal(path))[1])
    assert python == "python"
    subprocess.run([sys.executable, *words], check=True, timeout=120)
    [made] = set(tmp_path.iterdir()) - {path}
    assert list(read_graph(made).nodes) == ["ann", "bob", "cem", "o'neill"]


def test_a_spreadsheet_is_converted_by_polars_and_others_are_only_refused(tmp_path):
    (tmp_path / "edges.xlsx").write_bytes(b"PK")
    assert "To convert it, with fastexcel: " in refusal(tmp_path / "edges.xlsx")
    assert f'polars.read_excel("{tmp_path}/edges.xlsx")' in refusal(tmp_path / "edges.xlsx")
    (tmp_path / "edges.bin").write_bytes(b"PK")
    assert "To convert it" not in refusal(tmp_path / "edges.bin")
