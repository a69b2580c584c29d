"""The embedding of the own list and a noisy second hop."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.estimate.embeddings import standing_out
from edgeveil.flow import two_hop
from edgeveil.flow.two_hop import hashed_two_hop_of_lists
from edgeveil.hashing import hash_nodes, hash_weights
from edgeveil.mechanisms import TwoHopEmbedding
from edgeveil.mechanisms.base import own_lists
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.noise import calibrate
from tests.seam import run, statistics_of

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


def test_where_the_second_hop_is_not_measured_a_row_is_the_own_list():
    np.testing.assert_array_equal(_rows(epsilon=0.4, degree_epsilon=0.4), _own_lists())


def test_where_noise_covers_it_a_row_is_the_own_list():
    changed = (_rows(epsilon=0.01) != _own_lists()).any(axis=1)
    assert changed.mean() < 0.1  # noise that stands out by itself, beyond two deviations


def test_a_second_hop_that_stands_out_enters():
    changed = np.abs(_rows(epsilon=5.0) - _own_lists()).max(axis=1) > 0.01
    assert changed.mean() > 0.5


def test_what_stands_out_is_weighed_by_how_much_more_there_is_than_noise_leaves():
    sums = np.array([0.0, -4.0, 1.0, 0.0, 0.039, 4.0, 0.0, -1.0])
    wanted = (1 - 1.25 / 4) * np.array([0, -1, 0.5, 0, 0, 1, 0, -0.5])  # 0.25 + 2 * 0.5 in vain
    np.testing.assert_allclose(standing_out(sums, 0.0, 1), wanted)
    np.testing.assert_allclose(standing_out(sums, 0.1, 1), wanted)
    assert not standing_out(sums, 1.2, 1).any()  # none reaches 1.2 ln 32
    assert not standing_out(sums, 0.1, 40).any()
    assert not standing_out(np.zeros(8), 0.0, 1).any()


def test_a_row_is_wide_and_has_few_places_for_each_friend():
    rows = run(TwoHopEmbedding(epsilon=20.0), GRAPH, EVERYBODY)
    assert rows.shape == (GRAPH.n_nodes, 4096)
    used, friends = (rows != 0).sum(axis=1), GRAPH.degrees
    assert (used <= 5 * friends).all()
    assert (used > 2 * friends).mean() > 0.8  # strangers are there


def test_noise_is_on_as_many_numbers_as_there_are_dimensions():
    _, (asked, _) = statistics_of(TwoHopEmbedding(epsilon=1, dimension=32), GRAPH, [3, 9])
    assert asked.values.shape == (2, 32)
    assert asked.calibration == calibrate(coordinates=32, sensitivity=1, epsilon=Fraction(9, 10))


# -- the hashed sums ----------------------------------------------------------------------


def _sums(graph, sources, weight_of, dimension):
    own = own_lists(graph, sources, "joint")
    signed = hash_nodes(graph.nodes, dimension).signed
    lists = own.sources, own.lists, own.starts, weight_of[own.lists]
    return hashed_two_hop_of_lists(graph, *lists, signed, dimension)


def _plain_sums(graph, source, weight_of, dimension):
    adjacency, node_hash = graph.adjacency().toarray(), hash_nodes(graph.nodes, dimension)
    sums = (adjacency[source] * np.floor(weight_of * 2**20) / 2**20) @ adjacency
    sums[graph.neighbours(source)] = sums[source] = 0
    return hash_weights(sums, node_hash)


@pytest.mark.parametrize("dimension", [1, 7, 64])
def test_sums_are_the_plain_ones(dimension):
    weight_of = np.random.default_rng(3).random(GRAPH.n_nodes)
    found = _sums(GRAPH, [5, 0, 299, 5], weight_of, dimension)
    for row, source in zip(found, [5, 0, 299, 5], strict=True):
        np.testing.assert_array_equal(row, _plain_sums(GRAPH, source, weight_of, dimension))


@pytest.mark.parametrize("most_bits", [31, -1])
@pytest.mark.parametrize("dimension", [1, 3])
def test_an_edge_moves_one_number_by_at_most_one(dimension, most_bits, monkeypatch):
    """All edges of a small graph that do not touch the source, with sums cut off or not."""
    monkeypatch.setattr(two_hop, "_MOST_BITS", most_bits)
    n, rng, moved = 7, np.random.default_rng(8), 0.0
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.6]
    weight_of = np.where(np.arange(n) == 3, 1.0, rng.random(n))
    graph = graph_of_pairs(n, pairs)
    friends = set(graph.neighbours(0).tolist())
    assert 3 in friends
    before = _sums(graph, [0], weight_of, dimension)[0]
    for pair in combinations(range(1, n), 2):
        other = graph_of_pairs(n, sorted({*pairs} ^ {pair}))
        change = np.abs(_sums(other, [0], weight_of, dimension)[0] - before)
        assert np.count_nonzero(change) <= 1
        assert change.sum() <= 1
        if friends >= {*pair}:
            assert not change.any()
        moved = max(moved, change.sum())
    assert most_bits < 0 or moved == 1
