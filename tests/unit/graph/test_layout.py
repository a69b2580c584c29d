"""Which columns are the ids and what the first line is: taken where clear, asked where not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from edgeveil.errors import InputError, ReadingWarning
from edgeveil.graph.building import build_graph
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph

EDGES = [("ann", "bob"), ("bob", "cem"), ("cem", "ann")]
TIMES = {
    "a date": "2024-03-01",
    "a time": "2024-03-01T12:00:00Z",
    "seconds": "1711929600",
    "milliseconds": "1711929600000",
    "a German date": "01.03.2024",
}


def write(folder: Path, text: str, name: str = "edges.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def lines(*columns: str, head: str = "", mark: str = ",") -> str:
    """Edges, where u and v stand for their ends."""
    rows = [mark.join({"u": u, "v": v}.get(c, c) for c in columns) for u, v in EDGES]
    return "\n".join([*([head] if head else []), *rows]) + "\n"


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("head", ["", "timestamp,from_user,to_user"])
def test_a_first_column_of_times_is_never_taken_for_members(tmp_path, time, head):
    path = write(tmp_path, lines(time, "u", "v", head=head))
    with pytest.raises(InputError, match=r"Which two are the ids\?.*--columns") as refused:
        read_graph(path)
    assert ("--columns from_user,to_user" in str(refused.value)) == bool(head)
    assert not any(name in str(refused.value) for name in ("ann", "bob", "cem"))
    assert list(read_graph(path, columns=(1, 2)).nodes) == ["ann", "bob", "cem"]
    with pytest.raises(InputError, match="Which two"):
        build_graph(path, tmp_path / "folder")


def test_leading_seconds_are_refused_and_large_ids_are_read(tmp_path):
    path = write(tmp_path, "1711929600 7 8\n1711929601 8 9\n", "edges.txt")
    with pytest.raises(InputError, match="3 columns"):
        read_graph(path)
    large = write(tmp_path, "1711929600 1711929601 3\n1711929601 1711929602 1\n", "ids.txt")
    assert read_graph(large).n_nodes == 3


@pytest.mark.parametrize(
    "text",
    [
        lines("u", "v", "0.5"),
        lines("u", "v", "3", "2024-03-01"),
        lines("u", "v", ""),
        lines("u", "v", "friend", head="source,target,kind"),
        lines("u", "v", "2024-03-01", head="from,to,since"),
        lines("u", "v", "2.5", head="who,whom,weight"),
        "1,2,friend,9\n2,3,colleague,8\n1,3,friend,7\n",
        "1 2 1711929600\n2 3 1711929601\n1 3 1711929602\n",
    ],
)
def test_columns_behind_the_ids_are_ignored(tmp_path, text):
    """They hold weights, kinds or times."""
    assert (graph := read_graph(write(tmp_path, text))).n_nodes == 3
    assert "of 3" in graph.read_report.layout or "of 4" in graph.read_report.layout


@pytest.mark.parametrize(
    "text",
    [
        lines("u", "v", "friend"),
        lines("0", "u", "v", head=",source,target"),  # pandas writes its row numbers
        lines("friend", "u", "v", head="kind,from,to"),
        "0,1,2\n1,2,3\n".replace("0,1", ",source,target\n0,1", 1),
    ],
)
def test_three_ambiguous_columns_are_refused(tmp_path, text):
    with pytest.raises(InputError, match="Which two are the ids"):
        read_graph(write(tmp_path, text))


def test_node_list_makes_a_third_column_unambiguous(tmp_path):
    path = write(tmp_path, lines("u", "v", "friend"))
    assert read_graph(path, nodes=["ann", "bob", "cem"]).n_edges == 3


def test_parquet_and_tables_ask_too(tmp_path):
    u, v = zip(*EDGES, strict=True)
    frame = pl.DataFrame({"kind": ["friend"] * 3, "from": u, "to": v})
    frame.write_parquet(tmp_path / "edges.parquet")
    with pytest.raises(InputError, match="--columns from,to"):
        read_graph(tmp_path / "edges.parquet")
    assert read_graph(tmp_path / "edges.parquet", columns=("from", "to")).n_nodes == 3
    with pytest.raises(InputError, match=r"columns=\('from', 'to'\)"):
        as_graph(pd.DataFrame(frame.to_dict(as_series=False)))
    assert as_graph(frame[["from", "to"]]).n_nodes == 3


def test_suspected_header_warns_without_quoting_it(tmp_path):
    path = write(tmp_path, lines("u", "v", head="user_a,user_b"))
    with pytest.warns(ReadingWarning, match="line 1 .*may be a header") as warned:
        assert read_graph(path).n_nodes == 5
    assert "user_a" not in str(warned[0].message)
    with pytest.warns(ReadingWarning):
        read_graph(path, directed="keep")
    assert read_graph(path, header=True).n_nodes == 3
    assert read_graph(path, header=False).n_nodes == 5
    assert read_graph(path, columns=("user_a", "user_b")).n_nodes == 3


@pytest.mark.parametrize("directed", ["refuse", "keep"])
def test_a_first_edge_of_which_one_end_recurs_is_not_suspected(tmp_path, directed):
    for first in ("dan,ann", "ann,dan"):
        path = write(tmp_path, lines("u", "v", head=first))
        assert read_graph(path, directed=directed).n_nodes == 4


def test_node_list_error_says_line_1_looks_like_a_header(tmp_path):
    nodes = ["ann", "bob", "cem"]
    with pytest.raises(InputError, match=r"line 1: .*looks like a header: say header=True"):
        read_graph(write(tmp_path, lines("u", "v", head="user_a,user_b")), nodes=nodes)
    with pytest.raises(InputError) as refused:
        read_graph(write(tmp_path, lines("u", "v", head="dan,ann")), nodes=nodes)
    assert "header" not in str(refused.value)


def test_what_is_said_of_the_layout_is_not_saved(tmp_path):
    graph = read_graph(write(tmp_path, lines("u", "v", head="source,target")))
    assert graph.read_report.layout.startswith(
        "the first line is a header; ids are in the columns 's"
    )
    again = open_graph(save_graph(graph, tmp_path / "folder"))
    assert (again.read_report, again.read_report.layout) == (graph.read_report, "")
    assert read_graph(write(tmp_path, lines("u", "v"))).read_report.layout == ""
