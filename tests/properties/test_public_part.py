"""What is public about a graph, over every input: one edge more or less changes none of it."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeveil.graph.graph import Graph
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import save_graph

networkit = pytest.importorskip("networkit")  # not everywhere: see pyproject.toml

Ids = list[int] | list[str]
Edges = list[tuple[int, int]]  # places in the list of ids, in the order of the input


class Tensor:
    """An object with ``numpy()``, as tensors have it."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def numpy(self) -> Any:
        return self._values


def as_rows(ids: Ids, edges: Edges) -> list[tuple[Any, Any]]:
    return [(ids[a], ids[b]) for a, b in edges]


def as_matrix(ids: Ids, edges: Edges) -> sp.coo_array:
    a, b = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    ends = np.r_[a, b], np.r_[b, a]
    return sp.coo_array((np.ones(2 * len(a)), ends), shape=(len(ids), len(ids)))


def as_table(ids: Ids, edges: Edges) -> pl.DataFrame:
    kind = pl.String if isinstance(ids[0], str) else pl.Int64
    return pl.DataFrame(as_rows(ids, edges), schema={"u": kind, "v": kind}, orient="row")


def read_text(ids: Ids, edges: Edges, name: str, mark: str, **nodes: Any) -> Graph:
    text = "".join(f"{a}{mark}{b}\n" for a, b in as_rows(ids, edges)).encode() or b"# none\n"
    return from_file(
        name, lambda p: p.write_bytes(gzip.compress(text) if name.endswith("gz") else text), **nodes
    )


def from_file(name: str, write: Callable[[Path], Any], **nodes: Any) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path)
        return read_graph(path, **nodes)


def read_edge_index(ids: Ids, edges: Edges, kind: Callable[[Any], Any], **nodes: Any) -> Graph:
    return as_graph(kind(np.array(as_matrix(ids, edges).nonzero(), dtype=np.int64)), **nodes)


def named_igraph(ids: Ids, edges: Edges) -> igraph.Graph:
    rows = [(str(a), str(b)) for a, b in as_rows(ids, edges)]
    return igraph.Graph.TupleList(rows)  # vertices in the order of their first edges


def networkit_graph(ids: Ids, edges: Edges) -> networkit.Graph:
    graph = networkit.Graph(len(ids))
    for a, b in edges:
        graph.addEdge(a, b)
    return graph


# Inputs that name the ends of every edge, in the order in which somebody wrote the edges down
NAMING: dict[str, Callable[..., Graph]] = {
    "csv": lambda i, e, **k: read_text(i, e, "g.csv", ",", **k),
    "tsv.gz": lambda i, e, **k: read_text(i, e, "g.tsv.gz", "\t", **k),
    "txt": lambda i, e, **k: read_text(i, e, "g.txt", " ", **k),
    "parquet": lambda i, e, **k: from_file("g.parquet", as_table(i, e).write_parquet, **k),
    "polars": lambda i, e, **k: as_graph(as_table(i, e), **k),
    "pandas": lambda i, e, **k: as_graph(as_table(i, e).to_pandas(), **k),
    "pyarrow": lambda i, e, **k: as_graph(pa.table(as_table(i, e)), **k),
    "networkx": lambda i, e, **k: as_graph(nx.Graph(as_rows(i, e)), **k),
    "multigraph": lambda i, e, **k: as_graph(nx.MultiGraph(as_rows(i, e)), **k),
    "igraph": lambda i, e, **k: as_graph(named_igraph(i, e), **k),
}
# Inputs that number their nodes
NUMBERING: dict[str, Callable[..., Graph]] = {
    "scipy": lambda i, e, **k: as_graph(as_matrix(i, e), **k),
    "numpy": lambda i, e, **k: as_graph(as_matrix(i, e).toarray(), **k),
    "mat": lambda i, e, **k: from_file(
        "g.mat", lambda p: scipy.io.savemat(p, {"network": as_matrix(i, e).tocsc()}), **k
    ),
    "mtx": lambda i, e, **k: from_file(
        "g.mtx", lambda p: scipy.io.mmwrite(p, as_matrix(i, e)), **k
    ),
    "edge_index": lambda i, e, **k: read_edge_index(i, e, np.asarray, **k),
    "tensor": lambda i, e, **k: read_edge_index(i, e, Tensor, **k),
    "igraph": lambda i, e, **k: as_graph(igraph.Graph(n=len(i), edges=e), **k),
    "networkit": lambda i, e, **k: as_graph(networkit_graph(i, e), **k),
}

NAMES = [*(f"naming {name}" for name in NAMING), *(f"numbering {name}" for name in NUMBERING)]

texts = st.from_regex(r"[b-m][a-z0-9]{0,5}", fullmatch=True)
numbers = st.integers(-(2**40), 2**40)


@st.composite
def inputs(draw: st.DrawFn, ids: st.SearchStrategy[Any], least: int = 2) -> tuple[Ids, Edges]:
    """Distinct ids in any order, and distinct edges in any order and direction."""
    chosen = draw(st.lists(ids, min_size=3, max_size=9, unique=True))
    node = st.integers(0, len(chosen) - 1)
    pair = st.tuples(node, node).filter(lambda p: p[0] != p[1])
    return chosen, draw(st.lists(pair, min_size=least, max_size=15, unique_by=frozenset))


def public_part(graph: Graph) -> tuple[Any, ...]:
    """Everything about a graph that releases show or that lies in the open beside its edges."""
    with tempfile.TemporaryDirectory() as folder:
        saved = save_graph(graph, Path(folder, "g"))
        files = {p.name: p.read_bytes() for p in saved.iterdir()}
    for private in ("graph.json", "indptr.npy", "indices.npy"):
        del files[private]
    return (
        list(graph.nodes),
        graph.nodes.kind,
        [(name, array.dtype, array.shape) for name, array in graph.nodes.arrays.items()],
        graph.indices.dtype,
        graph.read_report.nodes_from_edges,
        files,
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(given_ids=inputs(texts) | inputs(numbers), data=st.data())
def test_with_a_node_list_one_edge_changes_nothing_public(name, given_ids, data):
    ids, edges = given_ids
    kind, _, form = name.partition(" ")
    read = (NAMING if kind == "naming" else NUMBERING)[form]
    if name == "naming igraph":
        ids = [str(i) for i in ids]
    place = data.draw(st.integers(0, len(edges) - 1))
    fewer = edges[:place] + edges[place + 1 :]
    if form in ("edge_index", "tensor"):
        assume(len(fewer) > 1)  # 2 x 2 numbers are refused: they may be a matrix
    with_edge, without = read(ids, edges, nodes=ids), read(ids, fewer, nodes=ids)
    assert with_edge.n_edges == without.n_edges + 1
    assert public_part(with_edge) == public_part(without)
    assert list(with_edge.nodes) == ids


@pytest.mark.filterwarnings("ignore::edgeveil.errors.ReadingWarning")  # a line of its own words
@pytest.mark.parametrize("name", NAMING)
@settings(max_examples=15)
@given(given_ids=inputs(texts) | inputs(numbers))
def test_no_node_list_text_ids_are_sorted_and_reported(name, given_ids):
    ids, edges = given_ids
    if name == "igraph":
        ids = [str(i) for i in ids]
    graph = NAMING[name](ids, edges)
    assert list(graph.nodes) == sorted({node for row in as_rows(ids, edges) for node in row})
    assert graph.read_report.nodes_from_edges
    names = list(graph.nodes)
    edges_read = {
        frozenset((names[u], names[int(v)]))
        for u in range(graph.n_nodes)
        for v in graph.neighbours(u)
    }
    assert edges_read == {frozenset(row) for row in as_rows(ids, edges)}


@pytest.mark.parametrize("name", NUMBERING)
@settings(max_examples=15)
@given(given_ids=inputs(texts))
def test_no_node_list_numbered_nodes_keep_their_order(name, given_ids):
    ids, edges = given_ids
    if name in ("edge_index", "tensor"):
        ids = ids[: max(max(edge) for edge in edges) + 1]
    graph = NUMBERING[name](ids, edges)
    assert list(graph.nodes) == list(range(len(ids)))
    # a matrix has a row for a node without an edge; the number of nodes of the others may be
    # the highest number in their edges
    declared = name in ("scipy", "numpy", "mat", "mtx")
    assert graph.read_report.nodes_from_edges is not declared
