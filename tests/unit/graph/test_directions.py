"""directed="keep": every reader gives the same directed graph."""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

from edgeveil.errors import InputError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph

networkit = pytest.importorskip("networkit")  # not everywhere: see pyproject.toml

ARCS = [(0, 1), (1, 0), (2, 0), (0, 3), (3, 1)]
U, V = (np.array(ends) for ends in zip(*ARCS, strict=True))
GRAPH = Graph.from_edges(U, V, NodeSet.range(4), directed=True)
MATRIX = sp.csr_array((np.ones(len(ARCS)), (U, V)), shape=(4, 4))


def networkit_graph():
    graph = networkit.Graph(4, directed=True)
    for u, v in ARCS:
        graph.addEdge(u, v)
    return graph


OBJECTS = {
    "sparse": MATRIX,
    "dense": MATRIX.toarray(),
    "edge_index": np.array([U, V]),
    "table": pl.DataFrame({"follower": U, "followed": V}),
    "networkx": nx.DiGraph(ARCS),
    "networkx, multi": nx.MultiDiGraph([*ARCS, (0, 1)]),
    "igraph": igraph.Graph(n=4, edges=ARCS, directed=True),
    "igraph, named": igraph.Graph(
        n=4, edges=ARCS, directed=True, vertex_attrs={"name": list(range(4))}
    ),
    "networkit": networkit_graph(),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_keeps_its_directions(kind):
    assert as_graph(OBJECTS[kind], directed="keep") == GRAPH


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_edge_list_keeps_its_directions(tmp_path, suffix, names):
    path, ids = tmp_path / f"follows{suffix}", np.array(["ann", "bob", "cem", "dan"])
    frame = pl.DataFrame({"from": ids[U] if names else U, "to": ids[V] if names else V})
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    graph = read_graph(path, directed="keep")
    assert graph.directed
    assert np.array_equal(graph.indptr, GRAPH.indptr)
    assert np.array_equal(graph.indices, GRAPH.indices)
    assert not read_graph(path, directed="ignore").directed


@pytest.mark.parametrize("dense", [False, True])
def test_a_matrix_file_keeps_its_directions(tmp_path, dense):
    matrix = MATRIX.toarray() if dense else MATRIX
    scipy.io.mmwrite(tmp_path / "g.mtx", MATRIX, symmetry="general")
    assert read_graph(tmp_path / "g.mtx", directed="keep") == GRAPH
    scipy.io.savemat(tmp_path / "g.mat", {"network": matrix})
    assert read_graph(tmp_path / "g.mat", directed="keep") == GRAPH


def test_a_file_without_edges_is_directed_all_the_same(tmp_path):
    (tmp_path / "none.csv").write_text("source,target\n")
    graph = read_graph(tmp_path / "none.csv", nodes=[1, 2], directed="keep")
    assert graph == Graph.from_edges([], [], NodeSet.of([1, 2]), directed=True)


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_an_undirected_graph_has_no_directions_to_keep(kind):
    with pytest.raises(InputError, match="no directions to keep"):
        as_graph(kind([(0, 1)]), directed="keep")
