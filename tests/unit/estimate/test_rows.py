"""The estimates are those of a second implementation, on any input that noise can produce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.estimate import rows as blocks
from edgeveil.estimate import uncertainty
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import LocalViews, expected_sums, shrink, two_hop_shares
from edgeveil.graph.nodes import NodeSet
from tests.unit.estimate import plain_walk_model as plain

SAME = {"rtol": 1e-12, "atol": 0}
INDEX = np.int32  # as in a graph


@pytest.fixture(scope="module", autouse=True)
def several_blocks():
    """Rows of more than 50 nodes are computed in parts, the last one shorter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", 50)
        yield


@st.composite
def a_view(draw):
    """A source, its list, everybody's degrees and the friends' weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 400))
    widest = draw(st.sampled_from([0.0, 1e-9, 0.01, 1.0, 4.0, 9.0, 20.0]))
    degrees = np.exp(rng.uniform(0, widest, n)) if widest else np.full(n, 7.5)
    friends = np.sort(rng.choice(n - 1, draw(st.integers(1, n - 1)), replace=False)) + 1
    floor = draw(st.sampled_from([1.0, 3.0, 50.0]))
    return rng, friends, degrees, np.minimum(1.0, floor / degrees[friends])


@given(a_view(), st.sampled_from([1e-3, 0.3, 2.0, 50.0]))
def test_degree_floor_equals_the_plain_one(view, epsilon):
    _, friends, degrees, _ = view
    starts, nodes = np.array([0, len(friends)]), NodeSet.range(len(degrees))
    everybody = LocalViews(np.zeros(1), friends.astype(INDEX), starts, nodes)
    (floor,), weights = blocks.two_hop_weights(everybody, degrees, epsilon)
    np.testing.assert_allclose(weights, np.minimum(floor / degrees[friends], 1), atol=2.0**-40)
    wanted = plain.best_degree_floor(degrees[friends], len(degrees), epsilon)
    np.testing.assert_allclose(floor, wanted, **SAME)


@given(a_view(), st.sampled_from([1.0, 1.5]))
def test_expected_sums_equal_the_plain_ones(view, factor):
    _, friends, degrees, weights = view
    estimates = DegreeEstimates(degrees, factor * degrees, np.ones(len(degrees)), 1.0)
    sums = expected_sums(friends, estimates, weights)
    seen = estimates.degrees_seen_by(friends)
    # Between points of the grid that differ by rounding only, slopes are not exact.
    rtol = 1e-12 if np.ptp(estimates.grid) > 1e-6 * degrees.min() else 1e-9
    wanted = plain.expected_sums(friends, seen, weights, estimates.grid)
    np.testing.assert_allclose(sums, wanted, rtol=rtol, atol=0)
    joined = -np.expm1(-np.outer(seen, seen[friends] / seen.sum())) @ weights
    exact = joined * ((weights @ seen[friends]) / joined.sum())
    np.testing.assert_allclose(sums, exact, rtol=0.04)


@given(a_view(), st.sampled_from([1e-6, 0.1, 3.0, 1e4]), st.sampled_from([0.01, 1.0]))
def test_shrunk_sums_and_errors_equal_the_plain_ones(view, scale, grain):
    rng, friends, degrees, weights = view
    prior = plain.expected_sums(friends, degrees, weights)
    scales = np.full(len(prior), scale)
    scales[friends] *= 2
    noisy = rng.poisson(np.minimum(prior, 1e9)) + rng.laplace(0, scales)
    sums = shrink(noisy, prior, grain, 2 * scales**2)
    wanted = plain.shrink(noisy, scales, prior, grain)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12 * wanted.max())

    tau, error = uncertainty.fit_tau(sums, prior, prior * grain, scales)
    plain_tau, plain_error = plain.fit_tau(sums, prior, prior * grain, scales)
    assert tau == pytest.approx(plain_tau, rel=1e-12, abs=1e-25)
    assert error == pytest.approx(plain_error, rel=1e-12)
    wider, largest = rng.uniform(0, 9, len(sums)), float(weights.sum())
    arguments = (sums, prior, prior * grain, scales, tau, wider, largest)
    off = uncertainty.sums_uncertainty(*arguments)
    np.testing.assert_allclose(off, plain.sums_uncertainty(*arguments), **SAME)


@st.composite
def members(draw):
    """What is known about the degrees, and lists of several members; some are empty."""
    rng, _, degrees, _ = draw(a_view())
    n = len(degrees)
    if draw(st.booleans()):
        degrees = np.round(degrees)  # several nodes have the least degree
    of_friends = degrees * (1 + rng.exponential(draw(st.sampled_from([0.0, 0.3])), n))
    estimates = DegreeEstimates(degrees, of_friends, np.ones(n), 1.0)
    sources = rng.integers(0, n, draw(st.integers(1, 5)))
    sizes = [draw(st.integers(0, n - 1)) for _ in sources]
    lists = [
        np.sort(rng.choice(np.delete(np.arange(n, dtype=INDEX), s), k, replace=False))
        for s, k in zip(sources, sizes, strict=True)
    ]
    views = LocalViews(sources, np.concatenate(lists), np.cumsum([0, *sizes]), NodeSet.range(n))
    return rng, views, lists, estimates


@given(members(), st.sampled_from([0.1, 3.0, 40.0]), st.sampled_from([0.05, 1.0, 300.0]))
def test_two_hop_rows_equal_the_plain_ones(drawn, epsilon, scale):
    rng, views, lists, estimates = drawn
    n = len(estimates.degrees)
    floors, weights = blocks.two_hop_weights(views, estimates.degrees, epsilon)
    noisy = rng.exponential(1, (len(lists), n)) + rng.laplace(0, scale, (len(lists), n))
    rows = noisy.copy()
    blocks.complete_rows(rows, views, weights, floors, estimates, scale, 0.15)
    for i, (source, friends) in enumerate(zip(views.sources, lists, strict=True)):
        if len(friends):
            floor = plain.best_degree_floor(estimates.degrees[friends], n, epsilon)
            assert floors[i] == pytest.approx(floor, rel=1e-12)
        weight = weights[views.starts[i] : views.starts[i + 1]]
        wanted = plain.complete_row(
            noisy[i], source, friends, estimates, weight, floors[i], scale, 0.15
        )
        # The prior of nearly equal degrees is known up to 1e-9, see above.
        apart = np.ptp(estimates.degrees_seen_by(friends)) > 1e-6 * estimates.degrees.min()
        np.testing.assert_allclose(
            rows[i], wanted, rtol=0, atol=(1e-11 if apart else 1e-8) * wanted.max()
        )


@given(members(), st.sampled_from([0, 1]))
def test_prior_rows_and_lifts_equal_the_plain_ones(drawn, known_hops):
    _, views, lists, estimates = drawn
    n = len(estimates.degrees)
    if not known_hops:
        lists = [np.empty(0, dtype=INDEX) for _ in lists]
        views = views._replace(lists=lists[0], starts=np.zeros(len(lists) + 1, dtype=np.int64))
    rows = blocks.prior_rows(views, estimates, 0.15, known_hops)
    lifts = rows.copy()
    blocks.over_degrees(lifts, views, estimates)
    for row, lift, source, friends in zip(rows, lifts, views.sources, lists, strict=True):
        degrees = estimates.degrees_seen_by(friends)
        wanted = plain.prior_row(n, source, friends, degrees, 0.15, known_hops)
        np.testing.assert_allclose(row, wanted, **SAME)
        np.testing.assert_array_equal(lift, row / degrees)


@given(a_view())
def test_shares_equal_the_plain_ones(view):
    _, friends, degrees, weights = view
    mass = float(weights @ degrees[friends])
    shares = two_hop_shares(degrees[friends], mass, 0.15)
    np.testing.assert_allclose(
        shares, plain.two_hop_shares(friends, degrees, weights, 0.15), **SAME
    )
    for hops in (0, 1):
        shares = blocks.prior_shares(degrees[friends], 0.15, hops)
        np.testing.assert_allclose(shares, plain.prior_shares(friends, degrees, 0.15, hops), **SAME)
