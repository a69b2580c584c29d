"""DPForwardCap: everything that arrives is absorbed, what is passed on is capped, then noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.flow import lazy_restart, personalized_pagerank
from edgeveil.flow.push_rounds import Recursion, capped_rows
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from experiments.forward_cap import (
    DPForwardCap,
    forward_edge_cap,
    forward_fixed_point_cap,
    forward_rows,
)
from tests import oracle
from tests.flows import forward_flow
from tests.seam import calibrations_of, run
from tests.strategies import graphs, restarts, sigmas

models = st.sampled_from(["joint", "public"])


@given(graphs(), restarts, st.integers(2, 60), sigmas, models)
def test_the_kernel_equals_the_slow_rounds(graph, restart, rounds, sigma, model):
    rows = forward_flow(
        graph, range(graph.n_nodes), sigma=sigma, model=model, restart=restart, rounds=rounds
    )
    alpha = lazy_restart(restart)
    cap = forward_edge_cap(sigma, alpha, rounds)
    for source, row in enumerate(rows):
        expected = oracle.forward_flow(graph, source, alpha, rounds, cap, model == "joint")
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


@given(graphs(), restarts, sigmas, models, st.sampled_from([2, 9, None]))
def test_no_value_is_below_the_one_that_is_cut_at_the_same_cap(
    graph, restart, sigma, model, rounds
):
    joint = model == "joint"
    if rounds is None:
        cap = forward_fixed_point_cap(sigma, restart)
        recursion = Recursion.fixed_point(restart, 1e-11, cap, joint=joint)
    else:
        cap = forward_edge_cap(sigma, lazy_restart(restart), rounds)
        recursion = Recursion(restart=restart, rounds=rounds, cap=cap, joint=joint)
    cut = capped_rows(graph, range(graph.n_nodes), recursion)
    whole = forward_rows(graph, range(graph.n_nodes), recursion)
    assert (whole >= cut - 1e-15).all()
    exact = personalized_pagerank(graph, range(graph.n_nodes), restart=restart, tol=1e-12)
    assert (whole <= exact + 1e-11).all()


@given(graphs(), st.randoms())
def test_a_row_does_not_depend_on_the_other_sources_of_its_block(graph, random):
    sources = [random.randrange(graph.n_nodes) for _ in range(random.randrange(1, 20))]
    together = forward_flow(graph, sources, sigma=1e-2)
    for i, source in enumerate(sources):
        np.testing.assert_array_equal(together[i], forward_flow(graph, [source], sigma=1e-2)[0])


def test_isolated_source_absorbs_as_in_the_proof():
    """Joint: all of its mass. Public: one absorption, as the proof's formula has it."""
    graph = graph_of_pairs(3, [(0, 1)])
    alpha = lazy_restart(0.15)
    for rounds, joint, public in [(None, 1, 0.15), (5, 1 - (1 - alpha) ** 5, alpha)]:
        row = forward_flow(graph, [2], sigma=1e-3, rounds=rounds)[0]
        np.testing.assert_allclose(row, [0, 0, joint], rtol=1e-14)
        row = forward_flow(graph, [2], sigma=1e-3, rounds=rounds, model="public")[0]
        np.testing.assert_allclose(row, [0, 0, public], rtol=1e-14)


def test_edge_to_isolated_source_moves_row_at_most_sigma():
    for rounds, sigma in [(None, 0.3), (2, 0.1), (7, 0.2)]:
        rows = [
            forward_flow(graph_of_pairs(4, edges), [0], sigma=sigma, rounds=rounds, model="public")
            for edges in ([(1, 2)], [(1, 2), (0, 1)])
        ]
        assert 0 < np.abs(rows[0] - rows[1]).sum() <= sigma * (1 + 2.0**-10)


@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize(("sigma", "epsilon", "rounds"), [(1e-6, 1, None), (1e-3, 0.2, 20)])
def test_release_is_flow_plus_laplace_of_sigma_over_epsilon(
    model, sigma, epsilon, rounds, network, assert_laplace
):
    graph = network(400, 0.05)
    sources = range(0, 400, 8)
    options = {"sigma": sigma, "model": model, "rounds": rounds}
    mechanism = DPForwardCap(epsilon=epsilon, **options)
    noisy = run(mechanism, graph, sources, 8)
    assert_laplace(noisy - forward_flow(graph, sources, **options), sigma / epsilon)


def test_noise_scale_is_hardly_above_sigma_over_epsilon(network):
    (calibration,) = calibrations_of(DPForwardCap(epsilon=0.5), network(1000, 0.01), [0])
    overhead = calibration.noise_scale / (1e-6 / 0.5) - 1
    assert 2.0**-11 <= overhead < 0.002


@pytest.mark.parametrize("rounds", [1, 0, -3, 2.5, True, "2", 100_001])
def test_rounds_that_pass_nothing_on_are_refused(rounds):
    with pytest.raises(ParameterError, match=r"^rounds must be .*, got "):
        DPForwardCap(epsilon=1, rounds=rounds)
