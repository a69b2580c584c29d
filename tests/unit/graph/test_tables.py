"""Tables with one edge per row, from the real libraries."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph

INTS = {"u": [1, 2, 3], "v": [2, 3, 3], "w": [1.0, 0.5, 2.0]}
NAMES = {"u": ["ann", "bob"], "v": ["bob", "zoë"]}
INT_GRAPH = Graph.from_edges([0, 1], [1, 2], NodeSet.of_ints([1, 2, 3]))
NAME_GRAPH = Graph.from_edges([0, 1], [1, 2], NodeSet.of(["ann", "bob", "zoë"]))
TABLES = [pd.DataFrame, pl.DataFrame, pa.table, lambda data: pa.table(data).to_reader()]


@pytest.mark.parametrize("table", TABLES)
def test_every_arrow_table_is_an_edge_list(table):
    graph = as_graph(table(INTS))
    assert graph == INT_GRAPH
    assert (graph.read_report.self_loops, graph.read_report.weighted) == (1, 2)
    assert as_graph(table(NAMES)) == NAME_GRAPH
    assert as_graph(table(NAMES), directed="ignore") == NAME_GRAPH


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_read_on_the_node_list(table):
    graph = as_graph(table(NAMES), nodes=["zoë", "eve", "bob", "ann"])
    assert [int(d) for d in graph.degrees] == [1, 0, 2, 1]
    with pytest.raises(InputError, match=r"row 2: an edge names a node .* \(1 edge does\)"):
        as_graph(table(NAMES), nodes=["ann", "bob"])


def test_categories_and_narrow_integers_are_ids():
    frame = pl.DataFrame(NAMES, schema={"u": pl.Categorical, "v": pl.String})
    assert as_graph(frame) == NAME_GRAPH
    narrow = pl.DataFrame({"u": [1, 2], "v": [2, 3]}, schema={"u": pl.UInt8, "v": pl.Int16})
    assert as_graph(narrow) == INT_GRAPH
    mixed = as_graph(pl.DataFrame({"u": [1, 2], "v": ["2", "x"]}))
    assert list(mixed.nodes) == ["1", "2", "x"]
    assert as_graph(narrow, nodes=["1", "2", "3"]).nodes.kind == "str"


def test_the_index_of_a_pandas_frame_is_no_weight():
    frame = pd.DataFrame({"u": [1, 2], "v": [2, 3]}, index=[10, 20])
    assert as_graph(frame).read_report.weighted == 0
    table = pa.Table.from_pandas(frame)
    assert table.num_columns == 3
    assert as_graph(table).read_report.weighted == 0


def test_an_adjacency_matrix_in_a_table_is_not_taken_for_edges():
    matrix = nx.to_pandas_adjacency(nx.path_graph(5), dtype=int)
    with pytest.raises(InputError, match=r"looks like an adjacency matrix; pass it as \.to_numpy"):
        as_graph(matrix)
    assert as_graph(matrix.to_numpy()).n_edges == 4


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pd.DataFrame({"u": [1, np.nan], "v": [2, 3]}), "row 2: the id in column 'u' is missing"),
        (pl.DataFrame({"u": [1, 2], "v": [2, None]}), "row 2: the id in column 'v' is missing"),
        (pl.DataFrame({"u": [1], "v": [None]}), "row 1: the id in column 'v' is missing"),
        (pl.DataFrame({"u": ["a"], "v": [""]}), "row 1: the id in column 'v' is empty"),
        (pl.DataFrame({"u": [1.5], "v": [2.0]}), "column 'u' holds Float64"),
        (pl.DataFrame({"u": [[1]], "v": [[2]]}), "column 'u' holds List"),
        (pl.DataFrame({"u": [2**63], "v": [1]}, schema={"u": pl.UInt64, "v": pl.Int64}), "64 bits"),
        (pl.DataFrame({"u": [1]}), "has 1 column, an edge needs two"),
        (pd.Series([1, 2]), "table has 1 column|cannot be read as columns"),
    ],
)
def test_a_bad_table_is_one_sentence(frame, expected):
    with pytest.raises(InputError, match=expected) as caught:
        as_graph(frame)
    assert "\n" not in str(caught.value)


def test_an_empty_table_is_a_graph_without_edges():
    empty = pl.DataFrame({"u": [], "v": []})
    assert as_graph(empty).n_nodes == 0
    assert as_graph(empty, nodes=["a"]) == Graph.from_edges([], [], NodeSet.of(["a"]))
    assert as_graph(empty, nodes=[4]) == Graph.from_edges([], [], NodeSet.of([4]))


def test_parquet_gives_the_first_two_columns_or_those_asked_for(tmp_path):
    path = tmp_path / "edges [1].parquet"
    pl.DataFrame(INTS).write_parquet(path)
    graph = read_graph(path)
    assert graph == INT_GRAPH
    assert graph.read_report.weighted == 2
    pl.DataFrame({"when": [0.5, 1.5], "v": [2, 3], "u": [1, 2]}).write_parquet(path)
    assert read_graph(path, columns=("u", "v")) == INT_GRAPH
    assert read_graph(path, columns=(2, 1)) == INT_GRAPH
    with pytest.raises(InputError, match=r"parquet has no column 'x'; its columns are: when, v, u"):
        read_graph(path, columns=("u", "x"))


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", None])
def test_a_corrupt_parquet_file_is_one_sentence(tmp_path, damage):
    path = tmp_path / "edges.parquet"
    pl.DataFrame(INTS).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    with pytest.raises(InputError, match=r"edges\.parquet is not a readable Parquet file"):
        read_graph(path)


# -- lists of pairs, LazyFrames, addresses ------------------------------------------------


@pytest.mark.parametrize("outer", [list, tuple])
def test_a_list_of_pairs_is_an_edge_list(outer):
    graph = as_graph(outer([(1, 2), (2, 3), (3, 3)]))
    assert graph == INT_GRAPH
    assert graph.read_report.self_loops == 1
    assert graph.read_report.nodes_from_edges
    assert as_graph(outer([("bob", "zoë"), ("ann", "bob")])) == NAME_GRAPH
    assert as_graph(outer([[1, 2], [2, 3], [1, 2]])) == INT_GRAPH
    assert as_graph([(np.int64(1), 2), (2, np.int64(3))]) == INT_GRAPH
    assert as_graph(outer([]), nodes=[1, 2]).n_edges == 0


def test_list_of_pairs_takes_nodes_and_directed():
    graph = as_graph([("ann", "bob")], nodes=["zoë", "bob", "ann"])
    assert [int(d) for d in graph.degrees] == [0, 1, 1]
    with pytest.raises(InputError, match=r"row 2: an edge names a node .* \(1 edge does\)"):
        as_graph([("ann", "bob"), ("bob", "zoë")], nodes=["ann", "bob"])
    arcs = as_graph([("ann", "bob"), ("zoë", "bob")], directed="keep")
    assert arcs.directed
    assert [int(d) for d in arcs.degrees] == [1, 0, 1]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ([[0, 1], [1, 0]], "may be a matrix or 2 edges"),
        ([[0, 1, 0, 0], [1, 0, 0, 1]], "a pair of ids, .* a matrix or an edge_index as a"),
        ([(1, 2), (2, 3, "x")], "entry 2: an edge in a list is a pair"),
        (["ab", "cd"], "a pair of ids"),
        ([(1, 2), ("x", 3)], "mixes ids of several kinds"),
        ([(1.5, 2)], "ids must be integers or text"),
        ([(1, None), (2, 3)], "row 1: the id in column 'b' is missing"),
    ],
)
def test_a_list_that_may_be_something_else_is_refused_in_words(thing, words):
    with pytest.raises(InputError, match=words):
        as_graph(thing)


def test_a_lazy_frame_is_read_when_it_is_needed(tmp_path):
    assert as_graph(pl.LazyFrame(NAMES)) == NAME_GRAPH
    pl.DataFrame(INTS).write_parquet(tmp_path / "edges.parquet")
    lazy = pl.scan_parquet(tmp_path / "edges.parquet")
    assert as_graph(lazy.filter(pl.col("w") < 2)) == INT_GRAPH
    with pytest.raises(InputError, match="the polars LazyFrame cannot be read"):
        as_graph(pl.scan_parquet(tmp_path / "nowhere.parquet"))


@pytest.mark.parametrize("read", [as_graph, read_graph])
@pytest.mark.parametrize(
    "address", ["s3://bucket/edges.parquet", "https://example.org/e.csv", "gs://bucket/folder"]
)
def test_an_address_is_refused_in_one_sentence(read, address):
    for given in (address, Path(address)):  # a path has one slash left
        with pytest.raises(InputError, match=r"^\w+:// is a URL, .* download it first"):
            read(given)
    with pytest.raises(InputError, match=r"the node list cannot be read: \w+:// is a URL"):
        as_graph([(1, 2)], nodes=address)


def test_a_drive_is_no_address():
    with pytest.raises(InputError, match="there is no file"):
        read_graph("C:/edges.csv")
