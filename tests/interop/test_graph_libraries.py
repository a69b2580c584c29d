"""Graphs of other libraries, all the way: their object -> private result -> their object.

How each object is read, in detail, is tested in tests/unit/graph.
"""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import edgeveil as ev

networkit = pytest.importorskip("networkit")  # not everywhere: see pyproject.toml

KARATE = nx.karate_club_graph()
NUMBERED = nx.Graph(KARATE.edges)
EDGES = list(NUMBERED.edges)
SEEDED = ev.NoiseSource.insecure(1)


def test_networkx_ranks_and_gets_node_attributes_back():
    graph = ev.as_graph(KARATE)
    ranking = ev.rank(graph, 0, epsilon=50.0, noise=SEEDED)
    nx.set_node_attributes(KARATE, dict(ranking.top(len(KARATE))), "score")
    by_score = sorted(KARATE, key=lambda node: -KARATE.nodes[node]["score"])
    # networkx computes the truth: its alpha is 1 - restart
    theirs = nx.pagerank(KARATE, alpha=0.85, personalization={0: 1}, weight=None, tol=1e-12)
    true_order = sorted(KARATE, key=lambda node: -theirs[node])
    assert by_score[0] == true_order[0] == 0
    assert len({*by_score[:10]} & {*true_order[:10]}) >= 8
    ours = ev.rank(graph, 0, mechanism=ev.mechanisms.NonPrivate()).row(0)
    np.testing.assert_allclose(ours, [theirs[node] for node in graph.nodes], atol=1e-6)


def test_igraph_names_come_back_as_vertices():
    names = [f"member {i}" for i in range(34)]
    source = igraph.Graph(n=34, edges=EDGES)
    source.vs["name"] = names
    ranking = ev.rank(ev.as_graph(source), "member 0", epsilon=50.0, noise=SEEDED)
    for node, score in ranking.top(34):
        source.vs.find(name=node)["score"] = score
    best = max(source.vs, key=lambda vertex: vertex["score"])
    assert best["name"] == "member 0"
    theirs = source.personalized_pagerank(reset_vertices=[0], damping=0.85)
    graph = ev.as_graph(source, nodes=names)  # in the order of the vertices, else sorted
    ours = ev.rank(graph, "member 0", mechanism=ev.mechanisms.NonPrivate())
    np.testing.assert_allclose(ours.to_numpy()[0], theirs, atol=1e-6)


def test_networkit_numbers_come_back_as_rows():
    source = networkit.Graph(34)
    for u, v in EDGES:
        source.addEdge(u, v)
    graph = ev.as_graph(source)
    assert graph == ev.as_graph(NUMBERED, nodes=range(34))
    embedded = ev.embed(graph, dimension=16)
    rows = embedded.to_numpy()
    assert rows.shape == (source.numberOfNodes(), 16)
    assert embedded.guarantee.protects
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, sp.csc_array])
def test_scipy_scores_are_rows_of_a_matrix(make):
    matrix = make(nx.to_scipy_sparse_array(NUMBERED, nodelist=range(34), weight=None))
    released = ev.release(
        ev.as_graph(matrix), ev.mechanisms.TwoHop(epsilon=50.0), range(34), noise=SEEDED
    )
    scores = released.to_numpy()
    assert scores.shape == matrix.shape
    # Friends score higher than strangers, on the whole: rows and columns are where they belong.
    friends = matrix.toarray() > 0
    strangers = ~friends & ~np.eye(34, dtype=bool)
    assert scores[friends].mean() > 3 * scores[strangers].mean()
    scores[0, 0] = 7.0  # the user's own copy
    assert released.values[0, 0] != 7.0


def test_an_edge_index_gives_features_for_every_node():
    arcs = np.array(EDGES).T
    edge_index = np.hstack([arcs, arcs[::-1]])  # PyG: each edge in both directions
    graph = ev.as_graph(edge_index, nodes=range(34))
    assert graph == ev.as_graph(NUMBERED, nodes=range(34))
    x = ev.embed(graph, dimension=8).to_numpy().astype(np.float32)
    assert x.shape == (int(edge_index.max()) + 1, 8)
    assert x.flags.writeable, "torch.from_numpy needs that"


def test_an_edge_index_of_torch_is_read_and_features_go_back():
    torch = pytest.importorskip("torch")
    arcs = torch.tensor(EDGES).T
    edge_index = torch.hstack([arcs, arcs.flip(0)])
    embedded = ev.embed(ev.as_graph(edge_index, nodes=range(34)), dimension=8)
    x = torch.from_numpy(embedded.to_numpy())
    assert x.shape == (34, 8)
    assert x.dtype == torch.float64


def test_a_graph_is_the_same_whichever_library_it_comes_from():
    arcs = np.array(EDGES).T
    ours = ev.as_graph(NUMBERED, nodes=range(34))
    seeded = ev.rank(ours, 5, epsilon=1.0, noise=SEEDED).row(5)
    for source in (
        igraph.Graph(n=34, edges=EDGES),
        nx.to_scipy_sparse_array(NUMBERED, nodelist=range(34)),
        np.hstack([arcs, arcs[::-1]]),
    ):
        graph = ev.as_graph(source)
        # An edge_index was read off the edges, which the guarantee says; the rows are the same.
        other = ev.rank(graph, 5, epsilon=1.0, noise=SEEDED).row(5)
        np.testing.assert_array_equal(seeded, other)
