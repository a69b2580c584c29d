"""The paper's observations, lemmas and examples, each as a test on its own algorithm."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.flow import (
    lazy_restart,
    personalized_pagerank,
    push_flow,
    push_flow_cap,
)
from edgeveil.flow.bounds import edge_cap
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from tests import oracle
from tests.strategies import graphs_with_source, restarts, sigmas

CLOSE = {"rtol": 1e-11, "atol": 1e-14}


@given(graphs_with_source(8), restarts, sigmas, st.booleans(), st.integers(1, 25))
def test_observation_4_1(graph_source, restart, sigma, joint, rounds):
    graph, source = graph_source
    alpha = lazy_restart(restart)
    cap = edge_cap(sigma, alpha, rounds)
    trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, joint)
    f, h, r, p = (np.array(rows) for rows in (trace.f, trace.h, trace.r, trace.p))
    caps = graph.degrees * cap
    if joint:
        caps[source] = np.inf
    # The paper's sum counts what a capped node could not push once more in every round. That
    # does no harm (the minimum is the cap then), but the recursion lemma needs what arrived.
    arrived = np.vstack([r[:1], r[1:] - (r[:-1] - f[1:])])
    for i in range(1, rounds + 1):
        np.testing.assert_allclose(h[i], f[1 : i + 1].sum(axis=0), **CLOSE)
        np.testing.assert_allclose(h[i], np.minimum(r[:i].sum(axis=0), caps), **CLOSE)
        np.testing.assert_allclose(h[i], np.minimum(arrived[:i].sum(axis=0), caps), **CLOSE)
        np.testing.assert_allclose(p[i], alpha * h[i], **CLOSE)
        assert (f[i] >= 0).all()


@given(graphs_with_source(8), restarts, sigmas, st.booleans(), st.integers(1, 25))
def test_lemma_4_2_the_recursion_on_the_pushed_flow(graph_source, restart, sigma, joint, rounds):
    graph, source = graph_source
    alpha = lazy_restart(restart)
    cap = edge_cap(sigma, alpha, rounds)
    start = np.zeros(graph.n_nodes)
    start[source] = 1
    trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, joint)
    recursion = oracle.capped_recursion(graph, start, source, alpha, rounds, cap, joint)
    np.testing.assert_allclose(trace.h[-1], recursion, **CLOSE)
    h = np.array(trace.h)
    assert (h[1:] >= h[:-1] - 1e-15).all(), "the pushed flow never decreases"


@given(graphs_with_source(10), restarts, st.integers(1, 40))
def test_push_flow_is_a_xi_approximation(graph_source, restart, rounds):
    """p = PageRank of (s - r) with 0 <= r <= xi (Lemma 3.1)."""
    graph, source = graph_source
    alpha = lazy_restart(restart)
    trace = oracle.push_flow(graph, source, alpha, rounds)
    residual = np.array(trace.r[-1])
    assert residual.min() >= 0
    assert residual.max() <= math.exp(-lazy_restart(restart) * rounds) + 1e-15
    np.testing.assert_allclose(residual.sum(), (1 - alpha) ** rounds, **CLOSE)
    exact = [oracle.pagerank(graph, v, alpha) for v in range(graph.n_nodes)]
    np.testing.assert_allclose(
        trace.output, exact[source] - residual @ np.array(exact), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("model", ["joint", "public"])
def test_on_graphs_of_high_degree_the_cap_changes_nothing(model):
    """Lemma 4.5: min degree >= max(1/(alpha T_s), sqrt(1/(alpha T))) gives PushFlow itself."""
    n, alpha, rounds = 41, lazy_restart(0.15), 60
    clique = graph_of_pairs(n, list(combinations(range(n), 2)))
    degree = n - 1
    needed = 1 / (alpha * (degree if model == "public" else degree**2))
    sigma = needed * (3 - alpha) * 1.0000001
    uncapped = push_flow(clique, [0], rounds=rounds)
    assert edge_cap(sigma, alpha, rounds) >= needed
    np.testing.assert_array_equal(
        push_flow_cap(clique, [0], sigma=sigma, model=model, rounds=rounds), uncapped
    )
    tight = push_flow_cap(clique, [0], sigma=sigma / 30, model=model, rounds=rounds)
    assert np.abs(tight - uncapped).max() > 1e-4, "a small sigma must cap something here"


@pytest.mark.parametrize("D", [3, 5, 20])
def test_the_appendix_formulas_for_the_clique(D):
    """Lazy alpha = 1/2, clique on D + 1 nodes; edge (s, x) or (x, y) removed."""
    s, x, y = 0, 1, 2
    restart = 2 * Fraction(1, 2) / (1 + Fraction(1, 2))
    clique = graph_of_pairs(D + 1, list(combinations(range(D + 1), 2)))

    def rank(graph):
        return personalized_pagerank(graph, [s], restart=float(restart), tol=1e-13)[0]

    p = rank(clique)
    expected = np.full(D + 1, 1 / (3 * D + 1))
    expected[s] = (2 * D + 1) / (3 * D + 1)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)

    p = rank(clique.with_edge_flipped(s, x))
    expected = np.full(D + 1, D / (3 * D**2 - D - 2))  # printed with + 2, which does not sum to 1
    expected[s], expected[x] = (6 * D + 5) / (9 * D + 6), 1 / (9 * D + 6)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)

    p = rank(clique.with_edge_flipped(x, y))
    bottom = 9 * D**3 - 7 * D - 2
    expected = np.full(D + 1, (3 * D**2 - D) / bottom)
    expected[s] = (6 * D**3 + D**2 - 5 * D) / bottom
    expected[[x, y]] = 1 / (3 * D + 2)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)
