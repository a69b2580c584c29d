"""Graphs of the real libraries."""

from __future__ import annotations

from pathlib import Path

import igraph
import networkx as nx
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.objects import as_graph

networkit = pytest.importorskip("networkit")  # not everywhere: see pyproject.toml

NAMES = NodeSet.of(["zoë", "ann", "bob", "eve"])
NAMED = Graph.from_edges([0, 1], [1, 2], NAMES)
SORTED = Graph.from_edges([3, 0], [0, 1], NodeSet.of(sorted(NAMES)))
NUMBERED = Graph.from_edges([0, 1], [1, 2], NodeSet.range(4))


def networkx_graph(kind: type[nx.Graph] = nx.Graph) -> nx.Graph:
    graph = kind()
    graph.add_nodes_from(NAMES)
    graph.add_edge("zoë", "ann", weight=2)
    graph.add_edge("bob", "ann", weight=1)
    return graph


def igraph_graph(*, directed: bool = False) -> igraph.Graph:
    return igraph.Graph(n=4, edges=[(0, 1), (2, 1)], directed=directed)


def networkit_graph(*, directed: bool = False) -> networkit.Graph:
    graph = networkit.Graph(4, directed=directed)
    graph.addEdge(0, 1)
    graph.addEdge(2, 1)
    return graph


def test_a_graph_is_returned_as_it_is():
    assert as_graph(NAMED) is NAMED
    with pytest.raises(InputError, match="node set already"):
        as_graph(NAMED, nodes=NAMES)


def test_networkx_keeps_ids_and_lonely_nodes_but_not_their_order():
    graph = as_graph(networkx_graph())
    assert graph == SORTED
    assert graph.read_report.nodes_from_edges
    assert as_graph(networkx_graph(), nodes=NAMES) == NAMED
    assert not as_graph(networkx_graph(), nodes=NAMES).read_report.nodes_from_edges
    assert (graph.read_report.entries, graph.read_report.weighted) == (2, 1)


def test_networkx_multigraphs_and_loops_are_counted():
    source = networkx_graph(nx.MultiGraph)
    source.add_edge("ann", "zoë", weight=3)
    source.add_edge("eve", "eve")
    graph = as_graph(source)
    assert graph == SORTED
    read_report = graph.read_report
    assert (
        read_report.entries,
        read_report.repeated,
        read_report.self_loops,
        read_report.weighted,
    ) == (4, 1, 1, 2)


def test_networkx_counts_what_networkx_counts_on_a_random_graph():
    source = nx.gnp_random_graph(60, 0.2, seed=1)
    graph = as_graph(source)
    assert graph == as_graph(nx.to_scipy_sparse_array(source))
    assert graph.read_report.entries == source.number_of_edges()
    assert graph.read_report.both_directions == 0


def test_a_subclass_or_view_of_networkx_is_recognised():
    class Friends(nx.Graph):
        pass

    assert as_graph(networkx_graph(Friends)) == SORTED
    assert as_graph(networkx_graph().subgraph(["ann", "bob"])).n_edges == 1


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_directed_networkx_is_read_only_when_asked_for(kind):
    with pytest.raises(InputError, match='directed="ignore"'):
        as_graph(networkx_graph(kind))
    assert as_graph(networkx_graph(kind), directed="ignore") == SORTED


def test_networkx_is_read_on_the_node_list():
    graph = as_graph(networkx_graph(), nodes=["ann", "bob", "cem", "eve", "zoë"])
    assert [int(d) for d in graph.degrees] == [2, 1, 0, 0, 1]
    with pytest.raises(InputError, match="2 nodes of the graph are not in the node list"):
        as_graph(networkx_graph(), nodes=["ann", "bob"])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (nx.grid_2d_graph(2, 2), "tuple; relabel"),
        (nx.Graph([("a", 1)]), "int, str"),
        (nx.Graph([("a", "\udcff")]), "not valid Unicode"),
    ],
)
def test_networkx_ids_of_other_kinds_are_refused(source, expected):
    with pytest.raises(InputError, match=expected):
        as_graph(source)


def test_igraph_is_numbered_or_named():
    source = igraph_graph()
    assert as_graph(source) == NUMBERED
    assert as_graph(source, nodes=list(NAMES)) == NAMED
    source.vs["name"] = list(NAMES)
    source.es["weight"] = [1, 2.5]
    graph = as_graph(source)
    assert graph == SORTED
    assert graph.read_report.weighted == 1
    assert as_graph(source, nodes=["eve", *NAMES][:-1]).nodes[0] == "eve"
    with pytest.raises(InputError, match="has 4 nodes, the node list 1"):
        as_graph(igraph_graph(), nodes=["a"])


def test_igraph_names_must_be_distinct():
    source = igraph_graph()
    source.vs["name"] = ["a", "a", "b", "c"]
    with pytest.raises(InputError, match="occurs more than once"):
        as_graph(source)


def test_networkit_is_numbered_without_removed_nodes():
    source = networkit_graph()
    assert as_graph(source) == NUMBERED
    assert as_graph(source, nodes=NAMES) == NAMED
    source.removeNode(0)
    graph = as_graph(source)
    assert list(graph.nodes) == [1, 2, 3]
    assert [int(d) for d in graph.degrees] == [1, 1, 0]


def test_networkit_weights_are_counted():
    source = networkit.Graph(3, weighted=True)
    source.addEdge(0, 1, 2.0)
    source.addEdge(1, 2, 1.0)
    assert as_graph(source).read_report.weighted == 1


@pytest.mark.parametrize("make", [igraph_graph, networkit_graph])
def test_directed_library_graph_needs_directed_ignore(make):
    """Graphs of igraph and networkit."""
    with pytest.raises(InputError, match='directed="ignore"'):
        as_graph(make(directed=True))
    assert as_graph(make(directed=True), directed="ignore") == NUMBERED


@pytest.mark.parametrize("make", [nx.Graph, igraph.Graph, networkit.Graph])
def test_a_graph_without_nodes_is_one_without_nodes(make):
    assert as_graph(make()).n_nodes == 0


@pytest.mark.parametrize("thing", ["edges.csv", Path("edges.csv")])
def test_a_path_is_sent_to_read_graph(thing):
    with pytest.raises(InputError, match="use read_graph for a path"):
        as_graph(thing)


@pytest.mark.parametrize("thing", [None, 7, nx])
def test_what_is_no_graph_is_refused(thing):
    with pytest.raises(InputError, match=r"is not a graph, matrix or table of edges$"):
        as_graph(thing)
