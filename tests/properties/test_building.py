"""Whatever edges are in whatever parts, the folder is that of one file with all of them."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.graph.building import build_graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph

names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Z")), min_size=1, max_size=4
).filter(lambda name: name.lower() != "nan")
ids = st.sampled_from(
    [
        st.integers(0, 9),  # dense
        st.integers(5, 60),  # dense, with holes
        st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),  # far apart
        names,
        names | st.integers(0, 9).map(str),
    ]
)


@st.composite
def edges_in_parts(draw: st.DrawFn) -> list[list[tuple[Any, Any]]]:
    """Draw parts with loops, repeats and both orientations."""
    node = st.sampled_from(draw(st.lists(draw(ids), min_size=1, max_size=12, unique=True)))
    some = st.lists(st.tuples(node, node), max_size=25)
    parts = draw(st.lists(some, min_size=1, max_size=4))
    again = [draw(st.sampled_from(parts)) for _ in range(draw(st.integers(0, 1)))]
    return [*parts, *again, [(draw(node), draw(node))]]


def quoted(field: object) -> str:
    return '"' + str(field).replace('"', '""') + '"'


def write_text(path: Path, rows: list[tuple[Any, Any]]) -> Path:
    text = "source,target\n" + "".join(f"{quoted(u)},{quoted(v)}\n" for u, v in rows)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_parquet(path: Path, rows: list[tuple[Any, Any]]) -> Path:
    kind = pl.String if any(isinstance(end, str) for row in rows for end in row) else pl.Int64
    schema = {"source": kind, "target": kind}
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)
    return path


def described(place: Path) -> dict[str, Any]:
    description: dict[str, Any] = json.loads((place / "graph.json").read_text())
    return description


@given(
    parts=edges_in_parts(),
    directed=st.sampled_from(["refuse", "ignore", "keep"]),
    memory=st.sampled_from([1500, 20_000, 1 << 30]),
    suffix=st.sampled_from([".csv", ".csv.gz", ".parquet"]),
    listed=st.booleans(),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_parts_give_the_bytes_that_one_file_gives(parts, directed, memory, suffix, listed, data):
    rows = [row for part in parts for row in part]
    write = write_parquet if suffix == ".parquet" else write_text
    options: dict[str, Any] = {"directed": directed}
    if listed:
        occurring = sorted({end for row in rows for end in row}, key=str)
        more = ["someone", "else"] if isinstance(occurring[0], str) else [2**40, 2**41]
        options["nodes"] = NodeSet.of(data.draw(st.permutations([*occurring, *more])))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [write(folder / f"{i}{suffix}", part) for i, part in enumerate(parts)]
        built = build_graph(files, folder / "built", memory=memory, **options)
        whole = write(folder / f"whole{suffix}", rows)
        saved = save_graph(read_graph(whole, **options), folder / "saved")
        assert described(built) == described(saved)
        assert open_graph(built, verify=True) == open_graph(saved)
