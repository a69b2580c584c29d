"""PageRank on flipped graphs for many sources at once is what `EdgeFlipping` gives."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.flow import personalized_pagerank
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import release
from edgeveil.mechanisms import EdgeFlipping
from edgeveil.privacy.noise import NoiseSource
from experiments.flipped_walk import FlippedWalk, all_pairs, flipped_rows

NOISE = NoiseSource.insecure(5)


@pytest.fixture(scope="module")
def graph():
    return social_network(300, average_degree=16, seed=3).graph


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_joint_walk_of_all_sources_equals_edge_flipping(graph, epsilon):
    mechanism, sources = EdgeFlipping(epsilon=epsilon), [3, 77, 150, 299]
    [(rows, _)] = flipped_rows(graph, mechanism, sources, 1, NOISE)
    released = release(graph, mechanism, sources, noise=NOISE.derive("repeat", 0))
    assert np.abs(rows - released.values).sum(axis=1).max() <= 4 * mechanism.tol


def test_all_pairs_is_exact_pagerank_up_to_float32(graph):
    isolated = Graph.from_edges([0, 1], [1, 2], NodeSet.range(4))
    for g in (graph, isolated):
        exact = personalized_pagerank(g, range(g.n_nodes))
        assert np.abs(all_pairs(g) - exact).sum(axis=1).max() < 1e-4


def test_a_flipped_walk_from_an_isolated_source_stays_there():
    graph = Graph.from_edges([0, 1], [1, 2], NodeSet.range(4))
    other = Graph.from_edges([0, 1, 2], [1, 2, 3], NodeSet.range(4))
    rows = FlippedWalk(graph, other, restart=0.15, tol=1e-9).rows([3, 0])
    assert rows[0].tolist() == [0, 0, 0, 1]
    assert rows[1].sum() == pytest.approx(1)
