"""OwnNeighbours and NonPrivate: their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from edgeveil.mechanisms import NonPrivate, OwnNeighbours
from tests.seam import run
from tests.strategies import graphs_with_source, restarts


@given(graphs_with_source(), restarts)
def test_own_neighbours_is_one_step_of_the_walk(drawn, restart):
    graph, source = drawn
    (row,) = run(OwnNeighbours(restart=restart), graph, [source])
    expected = np.zeros(graph.n_nodes)
    neighbours = graph.neighbours(source).tolist()
    expected[source] = restart if neighbours else 1.0
    for v in neighbours:
        expected[v] = (1 - restart) / len(neighbours)
    np.testing.assert_array_equal(row, expected)
    assert row.sum() == pytest.approx(1)


@given(graphs_with_source(min_nodes=4), restarts)
def test_own_neighbours_knows_nothing_of_an_edge_elsewhere(drawn, restart):
    graph, source = drawn
    others = [v for v in range(graph.n_nodes) if v != source]
    neighbour = graph.with_edge_flipped(others[0], others[-1])
    mechanism = OwnNeighbours(restart=restart)
    np.testing.assert_array_equal(
        run(mechanism, graph, [source]), run(mechanism, neighbour, [source])
    )


@given(graphs_with_source(), restarts)
def test_non_private_solves_the_linear_system_of_pagerank(drawn, restart):
    graph, source = drawn
    n = graph.n_nodes
    walk = graph.adjacency().toarray()
    walk[graph.degrees == 0, graph.degrees == 0] = 0
    for v in range(n):
        if graph.degrees[v] == 0:
            walk[v, v] = 1.0  # an isolated node keeps its mass
    walk /= walk.sum(axis=1, keepdims=True)
    start = np.eye(n)[source]
    expected = np.linalg.solve((np.eye(n) - (1 - restart) * walk).T, restart * start)
    for tol in (1e-3, 1e-9):
        (row,) = run(NonPrivate(restart=restart, tol=tol), graph, [source])
        assert np.abs(row - expected).sum() <= tol + 1e-12
