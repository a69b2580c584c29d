"""Uncertainty: as wide as it says, not wider than it has to be, and post-processing only."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from edgeveil.estimate.rows import exact_weights
from edgeveil.flow import push_flow, push_flow_cap
from edgeveil.graph.datasets import social_network
from edgeveil.mechanisms import (
    MECHANISMS,
    DegreePrior,
    DPPushFlow,
    DPPushFlowCap,
    TwoHop,
)
from edgeveil.mechanisms.base import Mechanism, local_views
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.mechanisms.two_hop import split_epsilon
from experiments.forward_cap import DPForwardCap
from tests.flows import forward_flow
from tests.seam import run_in_parts
from tests.two_hop import two_hop_sums
from tests.unit.estimate.plain_walk_model import best_degree_floor, prior_row, two_hop_row

LAPLACE = [
    (DPPushFlowCap(epsilon=1), push_flow_cap, {"sigma": 1e-6, "rounds": 100}),
    (DPForwardCap(epsilon=0.3), forward_flow, {"sigma": 1e-6, "model": "joint", "rounds": None}),
    (DPPushFlow(epsilon=2, promised_min_degree=1), push_flow, {"rounds": 100}),
]


def run(mechanism, graph, sources, seed):
    shared, rows, views = run_in_parts(mechanism, graph, sources, seed)
    return shared, rows, mechanism.uncertainty(rows, shared, views)


def without_noise(mechanism, estimates, graph, source):
    """The score that the mechanism's docstring speaks of."""
    degrees = graph.degrees.astype(float)
    joint = getattr(mechanism, "model", "joint") == "joint"
    views = graph.neighbours(source) if joint else np.empty(0, dtype=np.int64)
    epsilon = 0
    if isinstance(mechanism, TwoHop):
        epsilon = split_epsilon(mechanism.epsilon, mechanism.degree_epsilon)[1]
    if epsilon == 0:
        row = prior_row(len(degrees), source, views, degrees, mechanism.restart, int(joint))
    else:
        floor = best_degree_floor(estimates.degrees[views], len(degrees), float(epsilon))
        weights = exact_weights(floor / estimates.degrees)
        sums = two_hop_sums(graph, source, weights)
        sums[views] *= 2
        row = two_hop_row(
            source, views, degrees, weights[views] / floor, sums / floor, mechanism.restart
        )
    return row / degrees if mechanism.score == "lift" else row


def test_uncertainty_is_given_by_the_expected_mechanisms():
    knowing = {
        cls.name
        for cls in MECHANISMS
        if cls.uncertainty is not Mechanism.uncertainty and cls.output == "scores"
    }
    assert knowing == {"push-flow-cap", "push-flow", "two-hop", "degree-prior"}


@pytest.mark.parametrize(("mechanism", "flow", "options"), LAPLACE)
def test_laplace_noise_is_within_95_percent_of_the_time(mechanism, flow, options):
    graph = social_network(1000, average_degree=20).graph
    sources = list(range(20))
    _, rows, half = run(mechanism, graph, sources, 3)
    assert half.shape == (20, 1)
    inside = (np.abs(rows - flow(graph, sources, **options)) <= half).mean()
    assert abs(inside - 0.95) < 4 * math.sqrt(0.05 * 0.95 / rows.size)


SHRUNK = [
    *(TwoHop(epsilon=e) for e in (0.2, 0.5, 1, 3, 10)),
    TwoHop(epsilon=2, score="lift"),
    *(DegreePrior(epsilon=e) for e in (0.1, 1, 5)),
    DegreePrior(epsilon=0.5, model="public"),
    DegreePrior(epsilon=0.5, score="lift"),
]


@pytest.mark.parametrize("mechanism", SHRUNK, ids=lambda m: f"{m.name}-{m.epsilon}-{m.score}")
@pytest.mark.parametrize(("n", "degree", "communities"), [(800, 16, 4), (3000, 50, 1)])
def test_estimates_are_within_95_percent_of_the_time(mechanism, n, degree, communities, figure):
    """Of all nodes, of friends, and of the best strangers, whom a ranking picks out."""
    graph = social_network(n, average_degree=degree, communities=communities, seed=8).graph
    sources = [int(s) for s in np.random.default_rng(1).choice(n, 8, replace=False)]
    covered, widths = {"all": [], "friends": [], "best": []}, []
    for seed in range(3):
        estimates, rows, half = run(mechanism, graph, sources, seed)
        assert half.shape == rows.shape
        for row, width, source in zip(rows, half, sources, strict=True):
            truth = without_noise(mechanism, estimates, graph, source)
            inside = np.abs(row - truth) <= width * (1 + 1e-9)
            stranger = np.ones(n, dtype=bool)
            stranger[source] = stranger[graph.neighbours(source)] = False
            best = np.argsort(-np.where(stranger, row, -np.inf))[:50]
            covered["all"].append(inside.mean())
            covered["friends"] += inside[graph.neighbours(source)].tolist()
            covered["best"] += inside[best].tolist()
            widths.append(np.median(width[stranger]) / max(np.std(truth[stranger]), 1e-12))
    assert np.mean(covered["all"]) >= 0.95
    assert np.mean(covered["friends"]) >= 0.92  # some hundreds of nodes that share their noise
    assert np.mean(covered["best"]) >= 0.9
    if mechanism.score == "pagerank":
        figure(
            f"uncertainty, {mechanism.name}, epsilon {mechanism.epsilon}, {n} nodes",
            f"covers {np.mean(covered['all']):.3f} of all, {np.mean(covered['best']):.3f} of the "
            f"best; half-width {np.median(widths):.2f} deviations of the scores",
        )


def test_more_budget_narrows_the_uncertainty():
    graph = social_network(1000, average_degree=20).graph
    halves = [np.median(run(TwoHop(epsilon=e), graph, [5], 1)[2]) for e in (0.5, 1, 3, 10)]
    assert halves == sorted(halves, reverse=True)


@pytest.mark.parametrize("mechanism", [TwoHop(epsilon=1), DegreePrior(epsilon=1), SHRUNK[5]])
def test_uncertainty_reads_only_the_members_own_edges(mechanism):
    """On another graph with the same list of the source, from the same released values."""
    graph = social_network(300, average_degree=10).graph
    source = 7
    estimates, rows, half = run(mechanism, graph, [source], 4)
    other = graph
    views = {source, *graph.neighbours(source).tolist()}
    for x, y in [(1, 2), (3, 250), (int(graph.neighbours(source)[0]), 299), (100, 101)]:
        if source not in (x, y):
            other = other.with_edge_flipped(x, y)
    assert other != graph
    assert {source, *other.neighbours(source).tolist()} == views
    elsewhere = local_views(other, [source], "joint")
    np.testing.assert_array_equal(mechanism.uncertainty(rows, estimates, elsewhere), half)


@pytest.mark.parametrize(
    "mechanism",
    [*SHRUNK, DPPushFlowCap(epsilon=1), dataclasses.replace(SHRUNK[0], degree_epsilon=0.1)],
    ids=lambda m: f"{m.name}-{m.epsilon}",
)
@pytest.mark.parametrize(
    "edges", [[], [(0, 1)], [(1, 2)], [(0, v) for v in range(1, 6)], [(0, 1), (1, 2), (2, 3)]]
)
def test_small_graphs_and_lonely_sources_get_finite_widths(mechanism, edges):
    for n in (6, 7):
        _, rows, half = run(mechanism, graph_of_pairs(n, edges), [0, n - 1], 2)
        assert np.isfinite(half).all()
        assert (half >= 0).all()
        np.broadcast_shapes(half.shape, rows.shape)
