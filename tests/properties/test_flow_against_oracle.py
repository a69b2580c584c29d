"""The kernels agree with the slow oracles, which follow the paper line by line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.flow import (
    lazy_restart,
    personalized_pagerank,
    push_flow,
    push_flow_cap,
)
from edgeveil.flow.bounds import edge_cap, float_error_bound
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from tests import oracle
from tests.strategies import graphs, graphs_with_source, restarts, sigmas

rounds = st.integers(1, 60)
starts = st.sampled_from([("joint", False), ("joint", True), ("public", False)])
bounds = st.sampled_from(["paper", "tight"])


@given(graphs(), restarts)
def test_pagerank_is_within_its_tolerance_of_the_dense_solution(graph, restart):
    rows = personalized_pagerank(graph, range(graph.n_nodes), restart=restart, tol=1e-12)
    for source, row in enumerate(rows):
        exact = oracle.pagerank(graph, source, lazy_restart(restart))
        assert np.abs(row - exact).sum() <= 1e-12 + 1e-13
        assert row.min() >= 0


@given(graphs(), restarts, st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_a_loose_tolerance_is_kept_too(graph, restart, tol):
    rows = personalized_pagerank(graph, range(graph.n_nodes), restart=restart, tol=tol)
    exact = personalized_pagerank(graph, range(graph.n_nodes), restart=restart, tol=1e-13)
    assert np.abs(rows - exact).sum(axis=1).max() <= tol * (1 + 1e-9)


@given(graphs(), restarts, rounds)
def test_push_flow_equals_algorithm_1(graph, restart, rounds):
    rows = push_flow(graph, range(graph.n_nodes), restart=restart, rounds=rounds)
    for source, row in enumerate(rows):
        expected = oracle.push_flow(graph, source, lazy_restart(restart), rounds).output
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


@given(graphs(), restarts, rounds, sigmas, starts, bounds)
def test_push_flow_cap_equals_algorithm_2(graph, restart, rounds, sigma, start, bound):
    model, prepush = start
    alpha = lazy_restart(restart)
    rows = push_flow_cap(
        graph,
        range(graph.n_nodes),
        sigma=sigma,
        model=model,
        restart=restart,
        rounds=rounds,
        prepush=prepush,
        bound=bound,
    )
    cap = edge_cap(sigma, alpha, rounds, bound)
    for source, row in enumerate(rows):
        trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, model == "joint", prepush)
        np.testing.assert_allclose(row, trace.output, rtol=0, atol=1e-12)


@given(graphs(max_nodes=30), sigmas)
def test_the_float_error_stays_far_below_its_proven_bound(graph, sigma):
    alpha, rounds = lazy_restart(0.15), 50
    rows = push_flow_cap(graph, range(graph.n_nodes), sigma=sigma, rounds=rounds)
    cap = edge_cap(sigma, alpha, rounds)
    for source, row in enumerate(rows):
        trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, True)
        assert np.abs(row - trace.output).sum() <= 2 * float_error_bound(graph.n_nodes, alpha)


@given(graphs_with_source(), rounds)
def test_a_sigma_that_caps_nothing_gives_push_flow_bit_for_bit(graph_source, rounds):
    graph, source = graph_source
    capped = push_flow_cap(graph, [source], sigma=1e6, rounds=rounds)
    np.testing.assert_array_equal(capped, push_flow(graph, [source], rounds=rounds))


@given(graphs(), st.randoms())
def test_a_row_does_not_depend_on_the_other_sources_of_its_block(graph, random):
    sources = [random.randrange(graph.n_nodes) for _ in range(random.randrange(1, 20))]
    for compute in (
        lambda s: push_flow_cap(graph, s, sigma=1e-2, prepush=True),
        lambda s: personalized_pagerank(graph, s),
    ):
        together = compute(sources)
        for i, source in enumerate(sources):
            np.testing.assert_array_equal(together[i], compute([source])[0])


def test_an_isolated_source_keeps_its_mass():
    graph = graph_of_pairs(3, [(0, 1)])
    mass = 1 - (1 - lazy_restart(0.15)) ** 100
    for prepush in (False, True):
        row = push_flow_cap(graph, [2], sigma=1e-6, prepush=prepush)[0]
        np.testing.assert_allclose(row, [0, 0, mass], atol=1e-15)
    np.testing.assert_array_equal(push_flow_cap(graph, [2], sigma=1e-6, model="public")[0], 0)
    np.testing.assert_array_equal(personalized_pagerank(graph, [2])[0], [0, 0, 1])


def test_a_large_graph_that_is_not_reordered_gives_the_same_flow(monkeypatch):
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 60, (300, 2))
    expected = push_flow_cap(graph_of_pairs(60, pairs), range(60), sigma=1e-3, prepush=True)
    monkeypatch.setattr("edgeveil.flow._blocks._LARGEST_COPY", 0)
    kept_order = push_flow_cap(graph_of_pairs(60, pairs), range(60), sigma=1e-3, prepush=True)
    np.testing.assert_allclose(kept_order, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sigma": 0}, "sigma must be"),
        ({"sigma": float("nan")}, "sigma must be"),
        ({"sigma": float("inf")}, "sigma must be"),
        ({"sigma": "1"}, "sigma must be"),
        ({"restart": 0}, "restart must be"),
        ({"restart": 1}, "restart must be"),
        ({"restart": float("nan")}, "restart must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": 2.5}, "rounds must be"),
        ({"model": "secret"}, "model must be"),
        ({"model": "public", "prepush": True}, "prepush"),
        ({"sources": [3]}, "source index"),
        ({"sources": [-1]}, "source index"),
        ({"sources": [0.5]}, "node indices"),
    ],
)
def test_a_wrong_argument_is_refused_in_plain_words(changes, words):
    arguments = {"sources": [0], "sigma": 1e-3} | changes
    with pytest.raises(ParameterError, match=words):
        push_flow_cap(graph_of_pairs(3, [(0, 1)]), **arguments)


@pytest.mark.parametrize("tol", [0, -1, float("nan"), float("inf"), 1e-20])
def test_a_tolerance_that_cannot_be_kept_is_refused(tol):
    with pytest.raises(ParameterError, match="tol must be"):
        personalized_pagerank(graph_of_pairs(2, [(0, 1)]), [0], tol=tol)
