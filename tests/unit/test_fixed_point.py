"""The fixed point of the capped recursion, and the caps of both theorems."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.flow import lazy_restart, personalized_pagerank, push_flow_cap
from edgeveil.flow.bounds import (
    edge_cap,
    fixed_point_cap,
    fixed_point_error,
    fixed_point_rounds,
    float_error_bound,
    flow_error_bound,
)
from edgeveil.flow.push_rounds import Recursion, capped_rows
from edgeveil.mechanisms import DPPushFlowCap
from edgeveil.mechanisms.capped_flow import flow_error
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from experiments.forward_cap import forward_edge_cap, forward_fixed_point_cap, forward_rows
from tests import oracle
from tests.flows import forward_flow
from tests.strategies import graphs, restarts, sigmas

bounds = st.sampled_from(["tight", "paper"])
RESTARTS = [0.01, 0.15, 1 / 3, 0.5, 0.9, 0.99, 1 - 1e-9]


def start_of(graph, source, restart, prepush):
    """Residual and absorbed flow at the start."""
    residual, absorbed = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    first = graph.neighbours(source)
    if not prepush or len(first) == 0:
        residual[source] = 1.0
    else:
        absorbed[source] = restart
        absorbed[first] += restart * (1 - restart) / len(first)
        residual[first] = (1 - restart) ** 2 / len(first)
    return residual, absorbed


@given(graphs(), restarts, sigmas, st.sampled_from(["joint", "prepush", "public"]), bounds)
@settings(max_examples=60)
def test_kernel_reaches_the_fixed_point_within_its_error(graph, restart, sigma, start, bound):
    joint, prepush = start != "public", start == "prepush"
    n = graph.n_nodes
    rows = push_flow_cap(
        graph,
        range(n),
        sigma=sigma,
        model="joint" if joint else "public",
        restart=restart,
        rounds=None,
        prepush=prepush,
        bound=bound,
    )
    cap = fixed_point_cap(sigma, restart, bound=bound)
    error = flow_error_bound(n, sigma=sigma, restart=restart, rounds=None)
    for source, row in enumerate(rows):
        residual, absorbed = start_of(graph, source, restart, prepush)
        h, _ = oracle.fixed_point(graph, residual, source, restart, cap, joint)
        assert row.min() >= 0
        assert np.abs(absorbed + restart * h - row).sum() <= error + 1e-12


@given(graphs(), restarts, sigmas, st.booleans(), st.booleans())
@settings(max_examples=60)
def test_kernel_at_double_precision_equals_the_oracle(graph, restart, sigma, joint, forward):
    cap_of, rows_of = fixed_point_cap, capped_rows
    if forward:
        cap_of, rows_of = forward_fixed_point_cap, forward_rows
    cap = cap_of(sigma, restart)
    recursion = Recursion.fixed_point(restart, 1e-11, cap, joint=joint)
    rows = rows_of(graph, range(graph.n_nodes), recursion)
    for source, row in enumerate(rows):
        start = np.zeros(graph.n_nodes)
        start[source] = 1.0
        h, arrived = oracle.fixed_point(graph, start, source, restart, cap, joint)
        expected = restart * (arrived if forward else h)
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


@given(graphs(max_nodes=9), st.sampled_from([0.15, 0.5, 0.85]), sigmas, st.booleans())
@settings(max_examples=30)
def test_many_lazy_rounds_come_to_the_same_point(graph, restart, sigma, joint):
    """Lemma 2: the lazy recursion with T and the ordinary one with (1 + alpha) T / 2."""
    alpha = lazy_restart(restart)
    cap = 2 * fixed_point_cap(sigma, restart) / (1 + alpha)
    many = math.ceil(math.log(1e-14) / math.log1p(-alpha))
    lazy = Recursion(restart=restart, rounds=many, cap=cap, joint=joint)
    ordinary = Recursion.fixed_point(restart, 1e-11, fixed_point_cap(sigma, restart), joint=joint)
    rows, same = (capped_rows(graph, range(graph.n_nodes), r) for r in (lazy, ordinary))
    np.testing.assert_allclose(rows, same, rtol=0, atol=1e-12)


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("bound", ["tight", "paper"])
def test_the_two_forms_of_a_cap_agree(restart, bound):
    alpha = lazy_restart(restart)
    lazy = 2 * fixed_point_cap(1e-3, restart, bound=bound) / (1 + alpha)
    if bound == "paper":  # the tight constant of many rounds is above that of the fixed point
        assert lazy == pytest.approx(edge_cap(1e-3, alpha, 10_000, bound), rel=1e-12)
    constant = 3 - alpha if bound == "paper" else max(1 - alpha, 2 * alpha)
    assert lazy * constant == pytest.approx(1e-3, rel=1e-13)
    assert lazy * constant < 1e-3, "rounded down"


def exact_constant(alpha, rounds):
    """C_R of docs/theory/tight-bounds.md, Theorem 3, in rational numbers."""
    if rounds == 1:
        return 2 * alpha
    q, kappa = 1 - alpha, (1 - alpha) / (1 + alpha)
    rho = mu = 2 * kappa / (1 + 2 * kappa)
    if kappa >= Fraction(1, 2):
        rho, mu = kappa, 1 - kappa
    return 2 * alpha + rho * (1 - q ** (rounds - 1)) + alpha * q / 2 * mu * q ** (rounds - 2)


@pytest.mark.parametrize("restart", [1e-9, *RESTARTS])
@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 100, 1000])
def test_the_constants_for_r_rounds(restart, rounds):
    alpha = lazy_restart(restart)
    exact, half = Fraction(alpha), Fraction(1, 2)
    pushed = 1 - (1 - exact) ** rounds
    constant = exact_constant(exact, rounds)
    assert constant <= 1 + exact - (1 - exact) ** rounds <= 2 * pushed
    assert (constant == 1 + exact - (1 - exact) ** rounds) == (rounds <= 2)
    caps = [
        (edge_cap(0.5, alpha, rounds, "paper"), (3 - exact) * pushed),
        (edge_cap(0.5, alpha, rounds), constant),
    ]
    if rounds > 1:
        forward = forward_edge_cap(0.5, alpha, rounds)
        caps.append((forward, (1 - exact) * exact_constant(exact, rounds - 1)))
        assert forward > edge_cap(0.5, alpha, rounds) > edge_cap(0.5, alpha, rounds, "paper")
    for cap, factor in caps:
        assert half * (1 - Fraction(1, 2**46)) < Fraction(cap) * factor <= half, "rounded down"


@pytest.mark.parametrize("restart", RESTARTS)
def test_the_cap_for_arriving_flow_at_the_fixed_point(restart):
    alpha, cap = lazy_restart(restart), forward_fixed_point_cap(0.5, restart)
    lazy = 2 * cap / (1 + alpha)
    constant = 2 * (1 - restart) / (2 - restart) * max(1, 2 * restart)  # (1 - alpha) max(1, 2 a0)
    assert lazy * constant == pytest.approx(0.5, rel=1e-12)
    if restart < 0.5:
        assert cap == pytest.approx(fixed_point_cap(0.5, restart), rel=1e-13)


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("sigma", [1e-200, 1e-6, 0.1, 1.0, 1e6])
def test_the_number_of_rounds_leaves_at_most_its_share_undone(restart, sigma):
    rounds = fixed_point_rounds(sigma, restart)
    wanted = 2.0**-12 * min(sigma, 1)
    assert rounds * math.log1p(-restart) <= math.log(wanted)
    assert rounds == 1 or (rounds - 1) * math.log1p(-restart) > math.log(wanted) - 1e-9
    assert fixed_point_error(sigma) == wanted
    error = flow_error_bound(50, sigma=sigma, restart=restart, rounds=None)
    assert error == pytest.approx(wanted + float_error_bound(50, restart), rel=1e-15)


def test_fixed_point_cap_is_three_times_that_of_the_paper():
    alpha = lazy_restart(0.15)
    gain = 2 * fixed_point_cap(1e-6, 0.15) / (1 + alpha) / edge_cap(1e-6, alpha, 10_000, "paper")
    assert gain == pytest.approx(3.176, abs=1e-3)


def test_tiny_restart_is_refused_before_any_graph():
    for make in (
        lambda: DPPushFlowCap(epsilon=1, restart=1e-6, rounds=None),
        lambda: push_flow_cap(None, [0], sigma=1, restart=1e-6, rounds=None),
        lambda: forward_flow(None, [0], sigma=1, restart=1e-6),
    ):
        with pytest.raises(ParameterError, match="restart must be larger for the fixed point"):
            make()


@pytest.mark.parametrize("bound", ["Tight", "", None, 2, True, ["paper"]])
def test_a_wrong_bound_is_refused(bound):
    for make in (
        lambda: DPPushFlowCap(epsilon=1, bound=bound),
        lambda: push_flow_cap(graph_of_pairs(2, []), [0], sigma=1, bound=bound),
        lambda: edge_cap(1, 0.1, 5, bound),
    ):
        with pytest.raises(ParameterError, match="bound must be 'tight' or 'paper', got"):
            make()


def test_isolated_sources_and_uncapped_flows():
    graph = graph_of_pairs(4, [(0, 1), (1, 2)])
    options = {"rounds": None, "restart": 0.3}
    for prepush in (False, True):
        row = push_flow_cap(graph, [3], sigma=1e-6, prepush=prepush, **options)[0]
        np.testing.assert_array_equal(row, [0, 0, 0, 1])
    row = push_flow_cap(graph, [3], sigma=1e-6, model="public", **options)[0]
    np.testing.assert_array_equal(row, 0)
    exact = personalized_pagerank(graph, range(4), restart=0.3, tol=1e-13)
    for compute in (push_flow_cap, forward_flow):
        np.testing.assert_allclose(
            compute(graph, range(4), sigma=1e3, **options), exact, rtol=0, atol=2.0**-12
        )


@pytest.mark.parametrize("sigma", [1e-6, 0.3, 50.0])
def test_what_is_cut_off_enters_the_error(sigma):
    mechanism = DPPushFlowCap(epsilon=1, sigma=sigma, rounds=None)
    assert flow_error(mechanism, 6) > 2.0**-12 * min(sigma, 1)
    assert flow_error(mechanism, 6) < 2.0**-10, "the lemma on embeddings needs that"
