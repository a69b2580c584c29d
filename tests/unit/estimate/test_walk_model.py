from __future__ import annotations

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.estimate.walk_model import best_degree_floor, prior_row, shrink, two_hop_row
from edgeveil.flow import personalized_pagerank
from edgeveil.flow.two_hop import two_hop_sums
from edgeveil.mechanisms.hard_pairs import graph_of_pairs


def test_a_prior_row_is_a_distribution():
    degrees = np.array([3.0, 1.0, 2.0, 2.0])
    for own, hops in (([1, 2], 1), ([], 1), ([], 0)):
        row = prior_row(4, 0, np.array(own, dtype=np.int64), degrees, 0.15, hops)
        assert row.sum() == pytest.approx(1)
        assert row.min() >= 0
    assert prior_row(4, 0, np.array([], dtype=np.int64), degrees, 0.15)[0] == 1


def test_exact_sums_and_degrees_come_close_to_pagerank():
    graph = social_network(600, average_degree=30, communities=3).graph
    degrees = graph.degrees.astype(float)
    source = int(np.argmax(degrees))
    own = graph.neighbours(source)
    weights = 1 / np.maximum(degrees, 1)
    sums = two_hop_sums(graph, source, weights)
    sums[own] *= 2
    exact = personalized_pagerank(graph, [source])[0]
    with_hop = np.abs(two_hop_row(source, own, degrees, weights[own], sums, 0.15) - exact).sum()
    without = np.abs(prior_row(600, source, own, degrees, 0.15) - exact).sum()
    assert with_hop < 0.7 * without
    assert two_hop_row(source, own, degrees, weights[own], sums, 0.15).sum() == pytest.approx(
        1, abs=0.02
    )


def test_shrinkage_trusts_exact_sums_and_ignores_hopeless_ones():
    rng = np.random.default_rng(2)
    prior = rng.uniform(1, 20, 3000)
    truth, nobody = rng.poisson(prior).astype(float), np.empty(0, dtype=np.int64)
    for scale, low, high in ((1e-6, 0.99, 1.01), (1000.0, 0.0, 0.05)):
        noisy = truth + rng.laplace(0, scale, len(prior))
        moved = shrink(noisy, nobody, scale, prior, 1.0) - prior
        slope = (moved @ (noisy - prior)) / ((noisy - prior) @ (noisy - prior))
        assert low <= slope <= high
    noisy = truth + rng.laplace(0, 3.0, len(prior))
    error = np.abs(shrink(noisy, nobody, 3.0, prior, 1.0) - truth).mean()
    assert error < min(np.abs(noisy - truth).mean(), np.abs(prior - truth).mean())


def test_the_floor_falls_when_there_is_more_budget():
    degrees = np.geomspace(5, 500, 80)
    floors = [best_degree_floor(degrees, 5000, e) for e in (0.1, 1.0, 10.0, 100.0)]
    assert floors == sorted(floors, reverse=True)
    assert floors[0] > 2 * floors[-1]


def test_a_single_neighbour_is_enough():
    graph = graph_of_pairs(3, [(0, 1)])
    sums = two_hop_sums(graph, 0, np.ones(3))
    row = two_hop_row(0, graph.neighbours(0), np.ones(3), np.ones(1), sums, 0.15)
    assert np.isfinite(row).all()
