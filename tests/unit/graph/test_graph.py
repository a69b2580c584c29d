from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.graph import Graph, ReadReport, check_directed, index_type
from edgeveil.graph.nodes import NodeSet
from tests.strategies import graphs

entries = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


@given(entries)
def test_normalisation_counts_what_it_drops(pairs):
    u, v = [a for a, _ in pairs], [b for _, b in pairs]
    graph = Graph.from_edges(u, v, NodeSet.range(8))
    arcs = {p for p in pairs if p[0] != p[1]}
    edges = {frozenset(p) for p in arcs}
    loops = sum(a == b for a, b in pairs)
    assert graph.n_edges == len(edges)
    assert graph.read_report == ReadReport(
        entries=len(pairs),
        self_loops=loops,
        repeated=len(pairs) - loops - len(arcs),
        both_directions=len(arcs) - len(edges),
    )
    for node in range(8):
        assert graph.neighbours(node).tolist() == sorted(
            other for edge in edges if node in edge for other in edge - {node}
        )


@given(graphs())
def test_a_graph_is_symmetric_sorted_and_simple(graph):
    dense = graph.adjacency().toarray()
    assert (dense == dense.T).all()
    assert dense.diagonal().sum() == 0
    assert set(np.unique(dense)) <= {0.0, 1.0}
    assert (graph.degrees == dense.sum(axis=1)).all()


@given(graphs(min_nodes=2), st.randoms())
def test_flipping_an_edge_twice_gives_the_graph_back(graph, random):
    x, y = random.sample(range(graph.n_nodes), 2)
    other = graph.with_edge_flipped(x, y)
    assert abs(other.n_edges - graph.n_edges) == 1
    assert other != graph
    assert other.fingerprint != graph.fingerprint
    assert other.with_edge_flipped(y, x) == graph
    assert other.with_edge_flipped(y, x).fingerprint == graph.fingerprint


def test_an_isolated_node_stays_with_degree_zero():
    graph = Graph.from_edges([0], [2], NodeSet.of(["a", "b", "c"]))
    assert graph.degrees.tolist() == [1, 0, 1]
    assert Graph.from_edges([], [], NodeSet.range(2)).degrees.tolist() == [0, 0]


def test_the_arrays_cannot_be_changed():
    graph = Graph.from_edges([0], [1], NodeSet.range(2))
    for array in (graph.indptr, graph.indices, graph.degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_indices_are_as_narrow_as_the_graph_allows():
    assert index_type(2**31 - 1) is np.int32
    assert index_type(2**31) is np.int64
    assert Graph.from_edges([0], [1], NodeSet.range(2)).indices.dtype == np.int32


def test_one_graph_has_one_fingerprint_whatever_its_index_width():
    graph = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    wide = Graph(graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.nodes)
    assert wide == graph
    assert wide.fingerprint == graph.fingerprint
    named = Graph(graph.indptr, graph.indices, NodeSet.of(["a", "b", "c"]))
    assert named.fingerprint != graph.fingerprint


@pytest.mark.parametrize(
    ("u", "v", "words"),
    [([0], [2], "outside of the 2 nodes"), ([-1], [0], "outside"), ([0.5], [1], "node indices")],
)
def test_edges_that_do_not_fit_the_node_set_are_refused(u, v, words):
    with pytest.raises(InputError, match=words):
        Graph.from_edges(u, v, NodeSet.range(2))


def test_one_way_input_is_refused_where_it_must_be_symmetric():
    with pytest.raises(InputError, match='directed="ignore"'):
        Graph.from_edges([0, 1, 1], [1, 0, 2], NodeSet.range(3), must_be_symmetric=True)
    graph = Graph.from_edges([0, 1], [1, 0], NodeSet.range(3), must_be_symmetric=True)
    assert graph.n_edges == 1


def test_arrays_that_do_not_fit_together_are_refused():
    with pytest.raises(InputError, match="do not fit"):
        Graph(np.array([0, 1]), np.array([0, 1]), NodeSet.range(1))


def test_directions_are_kept_when_asked_for():
    u, v = [0, 1, 2, 0, 3, 3], [1, 0, 0, 1, 3, 0]
    graph = Graph.from_edges(u, v, NodeSet.range(4), directed=True)
    assert graph.directed
    assert [graph.neighbours(i).tolist() for i in range(4)] == [[1], [0], [0], [0]]
    assert graph.n_edges == 4
    assert graph.degrees.tolist() == [1, 1, 1, 1]
    assert graph.in_degrees.tolist() == [3, 1, 0, 0]
    assert graph.read_report == ReadReport(entries=6, self_loops=1, repeated=1)
    assert repr(graph) == "Graph(4 nodes, 4 directed edges)"


def test_an_undirected_graph_has_one_kind_of_degree():
    graph = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    assert not graph.directed
    assert graph.in_degrees is graph.degrees


def test_directed_graph_differs_from_undirected_same_arrays():
    undirected = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    directed = Graph(undirected.indptr, undirected.indices, undirected.nodes, directed=True)
    assert directed != undirected
    assert directed.fingerprint != undirected.fingerprint


def test_flipped_arc_changes_one_direction_only():
    graph = Graph.from_edges([0, 1], [1, 0], NodeSet.range(3), directed=True)
    without = graph.with_edge_flipped(1, 0)
    assert without == Graph.from_edges([0], [1], NodeSet.range(3), directed=True)
    assert without.with_edge_flipped(1, 0) == graph


@pytest.mark.parametrize("directed", ["kept", 1, None, "True"])
def test_readers_know_three_ways_to_read_arcs(directed):
    with pytest.raises(ParameterError, match="directed must be 'refuse', 'ignore' or 'keep'"):
        check_directed(directed)


# -- first_seen -------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_is_added_with_its_birth_and_leaves_with_it(directed):
    plain = Graph.from_edges([0, 1, 3], [1, 2, 1], NodeSet.range(4), directed=directed)
    given = [1, 2, 3] if directed else [1, 1, 2, 3, 2, 3]
    graph = replace(plain, first_seen=np.array(given, np.uint16))
    other = graph.with_edge_flipped(0, 3, first_seen=9)
    assert (other.neighbours(0).tolist(), other.first_seen[:2].tolist()) == ([1, 3], [1, 9])
    assert other.n_edges == 4
    if not directed:
        assert other.neighbours(3).tolist() == [0, 1]
        assert other.first_seen[-2:].tolist() == [9, 3]
    assert other.with_edge_flipped(0, 3) == graph
    assert graph.with_edge_flipped(0, 3, first_seen=8) != other
    for wrong in (None, 0, 2**16):
        with pytest.raises(ParameterError, match="first_seen"):
            graph.with_edge_flipped(0, 3, first_seen=wrong)
    with pytest.raises(ParameterError, match="first_seen"):
        plain.with_edge_flipped(0, 3, first_seen=1)


def test_births_are_part_of_a_graph_and_cannot_be_changed():
    plain = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    earlier = replace(plain, first_seen=np.array([1, 1, 2, 2], np.uint16))
    later = replace(plain, first_seen=np.array([1, 1, 3, 3], np.uint16))
    assert earlier == replace(later, first_seen=earlier.first_seen.copy())
    assert plain != earlier != later != plain
    assert len({g.fingerprint for g in (plain, earlier, later)}) == 3
    assert pickle.loads(pickle.dumps(earlier)) == earlier
    with pytest.raises(ValueError, match="read-only"):
        earlier.first_seen[0] = 1
    for wrong in (np.ones(3, np.uint16), np.ones(4, np.int64), np.ones((2, 2), np.uint16)):
        with pytest.raises(InputError, match="first_seen"):
            replace(plain, first_seen=wrong)


def test_flipping_refuses_what_is_no_pair_of_nodes():
    graph = Graph.from_edges([0], [1], NodeSet.range(3))
    for x, y in ((0, 0), (0, 3), (-1, 0)):
        with pytest.raises(InputError):
            graph.with_edge_flipped(x, y)
