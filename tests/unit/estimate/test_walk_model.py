from __future__ import annotations

import numpy as np
import pytest

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import (
    LocalViews,
    complete_rows,
    prior_rows,
    shrink,
    two_hop_weights,
)
from edgeveil.flow import personalized_pagerank
from edgeveil.graph.datasets import social_network
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from tests.two_hop import two_hop_sums


def estimates_of(degrees):
    return DegreeEstimates(degrees, degrees, np.zeros(len(degrees)), 0.0)


def own_list(source, friends, n):
    lists = np.array(friends, dtype=np.int32)
    return LocalViews(np.array([source]), lists, np.array([0, len(lists)]), NodeSet.range(n))


def row_of_exact_sums(graph, source, degrees):
    """From sums with next to no noise, with the weights 1 / degree."""
    views, weights = graph.neighbours(source), 1 / np.maximum(degrees, 1)
    rows = two_hop_sums(graph, source, weights)[None]
    member = own_list(source, views, graph.n_nodes)
    complete_rows(rows, member, weights[views], np.ones(1), estimates_of(degrees), 1e-9, 0.15)
    return rows[0]


def test_a_prior_row_is_a_distribution():
    degrees = np.array([3.0, 1.0, 2.0, 2.0])
    for friends, hops in (([1, 2], 1), ([], 1), ([], 0)):
        (row,) = prior_rows(own_list(0, friends, 4), estimates_of(degrees), 0.15, hops)
        assert row.sum() == pytest.approx(1)
        assert row.min() >= 0
    assert prior_rows(own_list(0, [], 4), estimates_of(degrees), 0.15)[0, 0] == 1


def test_exact_sums_and_degrees_come_close_to_pagerank():
    graph = social_network(600, average_degree=30, communities=3).graph
    degrees = graph.degrees.astype(float)
    source = int(np.argmax(degrees))
    views = graph.neighbours(source)
    exact = personalized_pagerank(graph, [source])[0]
    with_hop = row_of_exact_sums(graph, source, degrees)
    without = prior_rows(own_list(source, views, 600), estimates_of(degrees), 0.15)[0]
    assert np.abs(with_hop - exact).sum() < 0.7 * np.abs(without - exact).sum()
    assert with_hop.sum() == pytest.approx(1, abs=0.02)


def test_shrinkage_trusts_exact_sums_and_ignores_hopeless_ones():
    rng = np.random.default_rng(2)
    prior = rng.uniform(1, 20, 3000)
    truth = rng.poisson(prior).astype(float)

    def shrunk(noisy, scale):
        return shrink(noisy, prior, 1.0, np.full(len(noisy), 2 * scale**2))

    for scale, low, high in ((1e-6, 0.99, 1.01), (1000.0, 0.0, 0.05)):
        noisy = truth + rng.laplace(0, scale, len(prior))
        moved = shrunk(noisy, scale) - prior
        slope = (moved @ (noisy - prior)) / ((noisy - prior) @ (noisy - prior))
        assert low <= slope <= high
    noisy = truth + rng.laplace(0, 3.0, len(prior))
    error = np.abs(shrunk(noisy, 3.0) - truth).mean()
    assert error < min(np.abs(noisy - truth).mean(), np.abs(prior - truth).mean())


def test_the_floor_falls_when_there_is_more_budget():
    degrees = np.concatenate([np.geomspace(5, 500, 80), np.ones(4920)])
    views = own_list(4999, range(80), 5000)
    floors = [two_hop_weights(views, degrees, e)[0][0] for e in (0.1, 1.0, 10.0, 100.0)]
    assert floors == sorted(floors, reverse=True)
    assert floors[0] > 2 * floors[-1]


def test_a_single_neighbour_is_enough():
    graph = graph_of_pairs(3, [(0, 1)])
    assert np.isfinite(row_of_exact_sums(graph, 0, np.ones(3))).all()
