"""Every format gives back what was written, and no bytes crash the text reader."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import InputError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import MISSING, NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph

networkit = pytest.importorskip("networkit")  # not everywhere: see pyproject.toml

# what a text file cannot hold: line breaks, and blanks that are trimmed; "NA" is no id
names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Z")), min_size=1, max_size=6
).filter(lambda name: name not in MISSING)
plain_names = st.from_regex(r"[a-zA-Z][a-z0-9_.-]{0,8}", fullmatch=True).filter(
    lambda name: name not in MISSING
)
integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 40)


@st.composite
def graphs(draw: st.DrawFn, ids: st.SearchStrategy | None = None) -> Graph:
    """Draw any simple graph, lonely nodes included."""
    if ids is None:
        nodes = NodeSet.range(draw(st.integers(1, 12)))
    else:
        nodes = NodeSet.of(draw(st.lists(ids, min_size=1, max_size=12, unique=True)))
    node = st.integers(0, len(nodes) - 1)
    pairs = np.array(draw(st.lists(st.tuples(node, node), max_size=30)), dtype=np.int64)
    ends = pairs.reshape(-1, 2)
    return Graph.from_edges(ends[:, 0], ends[:, 1], nodes)


def rows(graph: Graph) -> list[tuple[int | str, int | str]]:
    return [
        (graph.nodes[u], graph.nodes[int(v)])
        for u in range(graph.n_nodes)
        for v in graph.neighbours(u)
        if u < v
    ]


def quoted(field: object) -> str:
    return '"' + str(field).replace('"', '""') + '"'


any_graph = graphs() | graphs(integers) | graphs(names)


@given(graph=any_graph, packed=st.booleans(), mark=st.sampled_from(",;\t"))
def test_text_gives_back_what_was_written(graph, packed, mark):
    text = f"source{mark}target\n" + "".join(
        f"{quoted(u)}{mark}{quoted(v)}\n" for u, v in rows(graph)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.csv.gz" if packed else "g.csv")
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        assert read_graph(path, nodes=graph.nodes) == graph


@given(
    graph=graphs() | graphs(integers) | graphs(plain_names),
    blanks=st.lists(st.sampled_from([" ", "  ", "\t", " \t "]), min_size=3, max_size=3),
    between=st.sampled_from(["\n", "\r\n", "\n\n", "\n# x\n", "\n% x y z\n", "\n \n"]),
)
def test_blanks_comments_and_line_ends_do_not_change_the_graph(graph, blanks, between):
    before, inside, after = blanks
    text = "# edges" + "".join(f"{between}{before}{u}{inside}{v}{after}" for u, v in rows(graph))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.txt")
        path.write_bytes(text.encode())
        again = read_graph(path, nodes=graph.nodes, delimiter=" ", header=False)
    assert again == graph


@given(graph=any_graph)
def test_parquet_and_the_folder_give_back_what_was_written(graph):
    u, v = zip(*rows(graph), strict=True) if graph.n_edges else ((), ())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.parquet")
        pl.DataFrame({"u": list(u), "v": list(v)}).write_parquet(path)
        assert read_graph(path, nodes=graph.nodes) == graph
        assert open_graph(save_graph(graph, Path(folder, "g")), verify=True) == graph


@given(graph=graphs())
def test_matrix_files_give_back_what_was_written(graph):
    with tempfile.TemporaryDirectory() as folder:
        scipy.io.savemat(Path(folder, "g.mat"), {"network": graph.adjacency().tocsc()})
        assert read_graph(Path(folder, "g.mat")) == graph
        scipy.io.mmwrite(Path(folder, "g.mtx"), graph.adjacency())
        assert read_graph(Path(folder, "g.mtx")) == graph


@given(graph=any_graph, form=st.sampled_from(["bsr", "coo", "csc", "csr", "dok", "lil"]))
def test_objects_in_memory_give_the_same_graph(graph, form):
    matrix = graph.adjacency()
    assert as_graph(matrix.asformat(form), nodes=graph.nodes) == graph
    assert as_graph(matrix.toarray(), nodes=graph.nodes) == graph
    network = nx.Graph(rows(graph))
    assert as_graph(network, nodes=graph.nodes) == graph
    pairs = sp.triu(matrix).nonzero()
    edges = list(zip(*(ends.tolist() for ends in pairs), strict=True))
    vertices = igraph.Graph(n=graph.n_nodes, edges=edges)
    assert as_graph(vertices, nodes=graph.nodes) == graph
    kit = networkit.Graph(graph.n_nodes)
    for u, v in edges:
        kit.addEdge(u, v)
    assert as_graph(kit, nodes=graph.nodes) == graph
    edge_index = np.array(matrix.nonzero())
    if edge_index.shape != (2, 2):  # refused: it may be a matrix
        assert as_graph(edge_index, nodes=graph.nodes) == graph


@given(graph=graphs(integers) | graphs(names), make=st.sampled_from([pd.DataFrame, pa.table]))
def test_tables_give_the_same_graph(graph, make):
    u, v = zip(*rows(graph), strict=True) if graph.n_edges else ((), ())
    kind = pl.String if graph.nodes.kind == "str" else pl.Int64
    frame = pl.DataFrame({"u": list(u), "v": list(v)}, schema={"u": kind, "v": kind})
    table = make(frame.to_dict(as_series=False)) if graph.n_edges else frame
    assert as_graph(table, nodes=graph.nodes) == graph


@given(graph=graphs(integers) | graphs(plain_names))
def test_no_node_list_occurring_ids_are_the_sorted_nodes(graph):
    edges = rows(graph)
    frame = pl.DataFrame({"u": [u for u, _ in edges], "v": [v for _, v in edges]})
    assert list(as_graph(frame).nodes) == sorted({node for edge in edges for node in edge})


# -- whatever comes -----------------------------------------------------------------------


def is_graph_or_input_error(data: bytes, name: str, **options: object) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            return isinstance(read_graph(path, **options), Graph)
        except InputError as error:
            return "\n" not in str(error) and str(path) in str(error)


nearly_text = st.lists(
    st.sampled_from(["1", "2", "-7", "a", "é", ",", ";", "\t", " ", "\n", "\r", '"', "#", "%"])
    | st.sampled_from(
        ["nan", "1.5", "1e9", "9" * 25, "\0", "\ufeff", "\u2028", "source", "target"]
    ),
    max_size=40,
).map(lambda parts: "".join(parts).encode())


@settings(max_examples=300)
@given(
    data=st.binary(max_size=200) | nearly_text,
    name=st.sampled_from(["g.csv", "g.txt", "g.tsv.gz"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "nodes": st.sampled_from([[1, 2], ["a", "1"], []]),
            "header": st.booleans(),
            "delimiter": st.sampled_from([",", " ", "\t"]),
        },
    ),
    pack=st.booleans(),
)
def test_any_bytes_are_a_graph_or_one_sentence(data, name, options, pack):
    if pack and name.endswith(".gz"):
        data = gzip.compress(data)
    assert is_graph_or_input_error(data, name, **options)


def written(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        if name == "g.parquet":
            pl.DataFrame({"u": [1, 2, 3], "v": [2, 3, 4]}).write_parquet(path)
        elif name == "g.mat":
            scipy.io.savemat(path, {"network": sp.csc_array(np.eye(4))})
        else:
            scipy.io.mmwrite(path, sp.coo_array(np.eye(4)))
        return path.read_bytes()


@pytest.mark.parametrize("name", ["g.parquet", "g.mat", "g.mtx"])
def test_a_file_cut_anywhere_is_a_graph_or_one_sentence(name):
    data = written(name)
    assert all(is_graph_or_input_error(data[:size], name) for size in range(len(data)))


# not .mat and .parquet: scipy and polars themselves can crash on these, as read_graph says
@settings(max_examples=300)
@given(place=st.floats(0, 1), change=st.integers(1, 255))
def test_changed_byte_in_matrix_market_is_graph_or_input_error(place, change):
    data = bytearray(written("g.mtx"))
    data[int(place * (len(data) - 1))] ^= change
    assert is_graph_or_input_error(bytes(data), "g.mtx")
