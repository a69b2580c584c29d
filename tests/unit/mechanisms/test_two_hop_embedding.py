"""The embedding of the own list and a noisy second hop."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.hashing import hash_nodes, hash_weights
from edgeveil.mechanisms import TwoHopEmbedding
from tests.seam import run

GRAPH = social_network(300, average_degree=12, seed=1).graph
EVERYBODY = range(GRAPH.n_nodes)


def _rows(**options):
    return run(TwoHopEmbedding(dimension=64, **options), GRAPH, EVERYBODY)


def _own_lists():
    node_hash, rows = hash_nodes(GRAPH.nodes, 64), []
    for source in EVERYBODY:
        weights = np.zeros(GRAPH.n_nodes)
        weights[GRAPH.neighbours(source)] = 1.0
        row = hash_weights(weights, node_hash)
        rows.append(row / max(np.linalg.norm(row), 1e-12))
    return np.stack(rows)


@pytest.mark.parametrize("epsilon", [0.01, 0.4])
def test_an_epsilon_that_goes_to_the_degrees_adds_nothing_to_the_own_list(epsilon):
    np.testing.assert_array_equal(_rows(epsilon=epsilon), _own_lists())


@pytest.mark.parametrize("options", [{"epsilon": 0.5}, {"epsilon": 0.4, "degree_epsilon": 0.1}])
def test_a_measured_second_hop_enters(options):
    assert np.abs(_rows(**options) - _own_lists()).max() > 0.01


def test_a_row_is_wide_and_has_few_strangers_for_each_friend():
    rows = run(TwoHopEmbedding(epsilon=2.0), GRAPH, EVERYBODY)
    assert rows.shape == (GRAPH.n_nodes, 4096)
    used, friends = (rows != 0).sum(axis=1), GRAPH.degrees
    assert (used <= 5 * friends).all()
    assert (used > 2 * friends).mean() > 0.8  # strangers are there
