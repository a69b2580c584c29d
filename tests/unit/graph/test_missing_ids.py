"""Missing, repeated and long ids are refused in words; leftover carriage returns are none."""

from __future__ import annotations

import networkx as nx
import polars as pl
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.building import build_graph
from edgeveil.graph.node_lists import read_nodes
from edgeveil.graph.nodes import LONGEST_ID, NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph

MISSING = ["NULL", "None", "null", "NA", "N/A", "\\N", "nan", "NaN", "#N/A"]


@pytest.mark.parametrize("word", MISSING)
def test_missing_id_in_text_is_counted_with_its_lines(tmp_path, word):
    path = tmp_path / "edges.csv"
    path.write_text(f"# c\nann,bob\nbob,{word}\n\nbob,cem\ncem,{word}\n")
    with pytest.raises(InputError, match=r"line 3: an id is .*missing value \(2 lines: 3, 6\)"):
        read_graph(path)
    path.write_text(f"1,2\n2,{word}\n")
    with pytest.raises(InputError, match=r"line 2: an id is .*missing value$"):
        read_graph(path)


@pytest.mark.parametrize("word", MISSING)
def test_missing_id_in_a_table_is_counted_with_its_rows(tmp_path, word):
    table = pl.DataFrame({"a": ["ann", word, word], "b": ["bob", "cem", "dan"]})
    table.write_parquet(tmp_path / "e.parquet")
    for read, thing in ((as_graph, table), (read_graph, tmp_path / "e.parquet")):
        with pytest.raises(InputError, match=r"row 2: .*missing value \(2 rows: 2, 3\)"):
            read(thing)


def test_missing_ids_beyond_ten_are_counted_not_listed(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("ann,bob\n" + "ann,NULL\n" * 12)
    with pytest.raises(InputError, match=r"\(12 lines: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, \.\.\.\)"):
        read_graph(path)


@pytest.mark.parametrize("word", MISSING)
def test_missing_id_in_a_node_list_is_refused_with_lines(tmp_path, word):
    path = tmp_path / "nodes.csv"
    path.write_text(f'id,x\n7,y\n"{word}",y\n"{word}",z\n')
    with pytest.raises(InputError, match=r"line 3: .*missing value \(2 lines: 3, 4\)"):
        read_nodes(path)


def test_repeated_ids_of_a_node_list_are_named():
    with pytest.raises(InputError, match=r"2 node ids occur more than once: 'ann', 'bob'$"):
        NodeSet.of(["ann", "bob", "cem", "bob", "ann"])
    with pytest.raises(InputError, match=r"9 node ids .*: 0, 1, 2, 3, 4, \.\.\.$"):
        NodeSet.of([*range(9), *range(9)])


@pytest.mark.parametrize("ends", ["\r", "\r\r\n", "\r\n", "\r\r\r\n"])
def test_leftover_carriage_returns_end_lines(tmp_path, ends):
    path, nodes = tmp_path / "edges.csv", tmp_path / "nodes.txt"
    for ids in ((1, 2, 3), ("ann", "bob", "cem")):
        first, second, third = ids
        path.write_bytes(f"{first},{second},1{ends}{second},{third},1{ends}".encode())
        nodes.write_bytes(f"{first}{ends}{second}{ends}{third}{ends}".encode())
        graph = read_graph(path, nodes=nodes)
        assert list(graph.nodes) == list(ids)
        assert graph.degrees.tolist() == [1, 2, 1]
        built = build_graph(path, tmp_path / "g", memory=64, overwrite=True)
        assert list(open_graph(built).nodes) == list(ids)


def test_id_longer_than_the_limit_is_refused(tmp_path):
    long, path = "é" * (LONGEST_ID // 2), tmp_path / "edges.csv"
    path.write_text(f"ann,bob\nbob,{long}\n", encoding="utf-8")
    assert long in read_graph(path).nodes
    words = f"longer than {LONGEST_ID} bytes"
    path.write_text(f"ann,bob\nbob,{long}x\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"line 2: an id is {words}"):
        read_graph(path)
    with pytest.raises(InputError, match=f"row 1: the id in column 'b' is {words}"):
        as_graph([("ann", long + "x")])
    with pytest.raises(InputError, match=f"1 node ids are {words}"):
        NodeSet.of(["ann", long + "x"])


def test_missing_id_among_ids_in_memory_is_refused():
    for nodes in (["ann", "NULL"], nx.Graph([("ann", "NULL")])):
        with pytest.raises(InputError, match="1 node id is NaN, NULL or the like, a missing value"):
            as_graph(nodes) if isinstance(nodes, nx.Graph) else read_nodes(nodes)


def test_table_with_decimals_as_ids_is_told_to_cast_them():
    with pytest.raises(InputError, match=r"holds Float64.*cast it to integers"):
        as_graph(pl.DataFrame({"a": [1.0], "b": [2.0]}))
