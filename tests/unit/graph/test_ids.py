"""Ids are integers only if every one is spelt as an integer is; nothing is merged."""

from __future__ import annotations

import gzip

import networkx as nx
import numpy as np
import polars as pl
import pytest

from edgeveil.cli.reading import wanted_nodes
from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.graph.building import build_graph
from edgeveil.graph.lines import is_plain
from edgeveil.graph.node_lists import read_nodes
from edgeveil.graph.nodes import NodeSet, integer_of
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph
from edgeveil.series.history import History
from edgeveil.serve.member import _member

# Spellings that int() takes, or that polars reads as an integer
OTHER = ["007", "+4917", "-0", "1_000", "1e3", "00", "-07", "٧", str(2**63), "7.0", "0x7"]


def write(folder, text, name="edges.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("text", ["0", "7", "-7", str(2**63 - 1), str(-(2**63))])
def test_integer_of_usual_spelling_is_the_integer(text):
    assert integer_of(text) == int(text)


@pytest.mark.parametrize("text", [*OTHER, " 7", "7 ", "7\n", "", "-", "9" * 5000])
def test_integer_of_other_spelling_is_none(text):
    assert integer_of(text) is None


@pytest.mark.parametrize("odd", OTHER)
@pytest.mark.parametrize(
    "lines",
    [
        "7,8\n4917,{odd}\n1000,0\n",
        "{odd},8\n7,4917\n1000,0\n",
        '7,8\n"{odd}",4917\n1000,0\n',
        "7, 8\n4917, {odd}\n1000,  0\n",
        "# c\n7,8\n4917,{odd}\n\n1000,0\n",
        "7\t8\n4917\t{odd}\n1000\t0\n",
        "7 8\n4917  {odd}\n1000 0\n",
        "source,target,weight,at\n7,8,1,2026-01-02 03:04\n4917,{odd},0.5,x\n1000,0,01,y\n",
    ],
)
def test_read_graph_one_odd_id_makes_all_ids_text(tmp_path, lines, odd):
    graph = read_graph(write(tmp_path, lines.format(odd=odd)))
    assert list(graph.nodes) == sorted(["7", "8", "4917", odd, "1000", "0"])
    assert graph.n_edges == 3


def test_read_graph_zeros_in_other_columns_leave_integers(tmp_path):
    text = "7,8,01,2026-01-02 03:04+00:00\n8,-9,007,-0\n"
    graph = read_graph(write(tmp_path, text), columns=(0, 1))
    assert list(graph.nodes) == [-9, 7, 8]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0,10\n100,-1\n", True),
        ("7,8,2026-01-02 03:04+01:00\n", True),
        ("7,0.5\n", True),
        ("00,1\n", False),
        ("-0,1\n", False),
        ("+1,1\n", False),
        ("1, 01\n", False),
        ('1,"01"\n', False),
        ("1,-01", False),
    ],
)
def test_is_plain_at_every_place_of_a_block(text, plain, monkeypatch):
    monkeypatch.setattr("edgeveil.graph.lines._BLOCK", 8)
    for shift in range(8):
        assert is_plain(b"1,2\n" * shift + b"\n" * (shift % 3) + text.encode(), ",") == plain


def test_read_graph_ids_text_keeps_integers_as_text(tmp_path):
    path = write(tmp_path, "7,8\n10,9\n")
    assert list(read_graph(path, ids="text").nodes) == ["10", "7", "8", "9"]
    nodes = write(tmp_path, "7\n8\n9\n10\n", "nodes.txt")
    assert list(read_graph(path, nodes=nodes, ids="text").nodes) == ["7", "8", "9", "10"]
    assert list(read_graph(path, nodes=[7, 8, 9, 10], ids="text").nodes) == ["7", "8", "9", "10"]
    with pytest.raises(ParameterError, match='ids must be "auto" or "text"'):
        read_graph(path, ids="str")


def test_ids_text_holds_for_every_format(tmp_path):
    saved = save_graph(as_graph(np.array([[0, 1], [1, 0]], dtype=bool)), tmp_path / "saved")
    assert list(read_graph(saved, ids="text").nodes) == ["0", "1"]
    market = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"
    assert list(read_graph(write(tmp_path, market, "m.mtx"), ids="text").nodes) == ["0", "1"]
    pl.DataFrame({"a": [7], "b": [8]}).write_parquet(tmp_path / "e.parquet")
    assert list(read_graph(tmp_path / "e.parquet", ids="text").nodes) == ["7", "8"]
    for thing in ([(7, 8)], nx.Graph([(7, 8)]), pl.DataFrame({"a": [7], "b": [8]})):
        assert list(as_graph(thing, ids="text").nodes) == ["7", "8"]
    built = build_graph(write(tmp_path, "7,8\n"), tmp_path / "built", ids="text")
    assert list(open_graph(built).nodes) == ["7", "8"]
    timed = write(tmp_path, "a,b,at\n7,8,2026-01-01\n", "timed.csv")
    history = History.from_edges(
        tmp_path / "h", timed, time="at", periods=["2026-02-01"], ids="text"
    )
    assert list(history.nodes) == ["7", "8"]


# -- node lists ---------------------------------------------------------------------------


@pytest.mark.parametrize("odd", OTHER)
def test_read_nodes_one_odd_id_makes_the_list_text(tmp_path, odd):
    path = write(tmp_path, f"id\n7\n{odd}\n4917\n", "nodes.csv")
    assert list(read_nodes(path)) == ["7", odd, "4917"]
    packed = tmp_path / "nodes.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_nodes(packed)) == ["7", odd, "4917"]


def test_read_graph_text_in_list_or_edges_makes_both_text(tmp_path):
    edges = write(tmp_path, "7,8\n8,9\n")
    listed = write(tmp_path, "9\n007\n8\n7\n", "nodes.txt")
    assert list(read_graph(edges, nodes=listed).nodes) == ["9", "007", "8", "7"]
    assert read_graph(edges, nodes=listed).degrees.tolist() == [1, 0, 2, 1]
    pl.DataFrame({"a": ["7", "8"], "b": ["8", "9"]}).write_parquet(tmp_path / "e.parquet")
    listed = write(tmp_path, "9\n10\n8\n7\n", "numbers.txt")
    graph = read_graph(tmp_path / "e.parquet", nodes=listed)
    assert list(graph.nodes) == ["9", "10", "8", "7"]
    assert graph.degrees.tolist() == [1, 0, 2, 1]


def test_as_graph_text_in_list_or_object_makes_both_text():
    for thing, nodes in (
        (nx.Graph([(7, 8)]), ["8", "007", "7"]),
        (nx.Graph([("7", "8")]), [8, 9, 7]),
        (pl.DataFrame({"a": [7], "b": ["8"]}), [8, 9, 7]),
        ([("7", "8")], [8, 9, 7]),
        ([(7, 8)], ["8", "007", "7"]),
    ):
        graph = as_graph(thing, nodes=nodes)
        assert list(graph.nodes) == list(map(str, nodes))
        assert graph.degrees.tolist() == [1, 0, 1]


@pytest.mark.parametrize("thing", [[(7, "7")], nx.Graph([(7, "7")])])
def test_as_graph_integer_and_text_in_python_is_refused(thing):
    with pytest.raises(InputError, match=r"several kinds|all integers or all strings"):
        as_graph(thing)


# -- larger than memory -------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [None, "nodes.txt"])
def test_build_graph_odd_id_in_last_chunk_makes_all_text(tmp_path, nodes, monkeypatch):
    monkeypatch.setattr("edgeveil.graph.lines.HEAD", 64)
    plain = "".join(f"{i},{i + 1}\n" for i in range(200))
    edges = write(tmp_path, plain + "7,007\n+8,8\n")
    write(tmp_path, "".join(f"{i}\n" for i in range(201)) + "007\n+8\n", "nodes.txt")
    listed = tmp_path / nodes if nodes else None
    built = open_graph(build_graph(edges, tmp_path / "g", nodes=listed, memory=64 * 32))
    whole = read_graph(edges, nodes=listed)
    assert {"7", "007", "8", "+8"} <= set(built.nodes)
    assert built.n_nodes == 203
    assert built == whole


def test_build_graph_text_edges_make_integer_list_text(tmp_path):
    pl.DataFrame({"a": ["7"], "b": ["8"]}).write_parquet(tmp_path / "b.parquet")
    parts = [write(tmp_path, "8,9\n", "a.csv"), tmp_path / "b.parquet"]
    built = open_graph(build_graph(parts, tmp_path / "g", nodes=[9, 8, 7, 6]))
    assert list(built.nodes) == ["9", "8", "7", "6"]
    assert built.degrees.tolist() == [1, 2, 1, 0]


# -- words that name a node ---------------------------------------------------------------


def test_node_option_other_spelling_is_another_node(tmp_path):
    numbers, texts = NodeSet.of([7, -3]), NodeSet.of(["7", "007"])
    assert wanted_nodes(numbers, ["7", "-3"], None, "--members") == [7, -3]
    assert wanted_nodes(texts, ["7", "007"], None, "--members") == ["7", "007"]
    assert wanted_nodes(texts, None, write(tmp_path, "7\n"), "--members") == ["7"]
    for odd in ("007", "+7", " 7", "٧"):
        with pytest.raises(UnknownNodeError, match="ids here are integers"):
            wanted_nodes(numbers, [odd], None, "--members")
    with pytest.raises(UnknownNodeError, match="'007' is not one of"):
        wanted_nodes(numbers, None, write(tmp_path, "7\n007\n"), "--members")


def test_service_subject_of_other_spelling_is_another_member():
    assert _member("007", NodeSet.of(["7", "007"])) == ("007", 1)
    assert _member("-3", NodeSet.of([7, -3])) == (-3, 1)
    for odd in ("007", "+7", " 7", "٧"):
        assert _member(odd, NodeSet.of([7, -3])) is None
