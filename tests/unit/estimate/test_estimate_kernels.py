"""The compiled estimates are the plain ones, on any input that noise can produce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.estimate import _kernels, walk_model
from tests.unit.estimate import plain_walk_model as plain

SAME = {"rtol": 1e-12, "atol": 0}


@st.composite
def views(draw):
    """A source, its list, everybody's degrees and the friends' weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 400))
    widest = draw(st.sampled_from([0.0, 1e-9, 0.01, 1.0, 4.0, 9.0, 20.0]))
    degrees = np.exp(rng.uniform(0, widest, n)) if widest else np.full(n, 7.5)
    own = np.sort(rng.choice(n - 1, draw(st.integers(1, n - 1)), replace=False)) + 1
    floor = draw(st.sampled_from([1.0, 3.0, 50.0]))
    return rng, own, degrees, np.minimum(1.0, floor / degrees[own])


@given(views(), st.sampled_from([1e-3, 0.3, 2.0, 50.0]))
def test_the_floor(view, epsilon):
    _, own, degrees, _ = view
    found = walk_model.best_degree_floor(degrees[own], len(degrees), epsilon)
    wanted = plain.best_degree_floor(degrees[own], len(degrees), epsilon)
    np.testing.assert_allclose(found, wanted, **SAME)


@given(views())
def test_expected_sums(view):
    _, own, degrees, weights = view
    found = walk_model.expected_sums(own, degrees, weights)
    if np.ptp(degrees) > 1e-6 * degrees.min():
        # Neighbouring points of the grid, and so the slopes between them, are well apart.
        np.testing.assert_allclose(found, plain.expected_sums(own, degrees, weights), **SAME)
    else:
        np.testing.assert_allclose(
            found, plain.expected_sums(own, degrees, weights), rtol=1e-9, atol=0
        )


@given(views(), st.sampled_from([1e-6, 0.1, 3.0, 1e4]), st.sampled_from([0.01, 1.0]))
def test_shrinking_and_how_far_it_may_be_off(view, scale, grain):
    rng, own, degrees, weights = view
    prior = plain.expected_sums(own, degrees, weights)
    scales = np.full(len(prior), scale)
    scales[own] *= 2
    noisy = rng.poisson(np.minimum(prior, 1e9)) + rng.laplace(0, scales)
    sums = walk_model.shrink(noisy, scales, prior, grain)
    wanted = plain.shrink(noisy, scales, prior, grain)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-12 * wanted.max())

    others = np.arange(1, len(sums))
    tau, error = _kernels.fit_tau(sums, prior, prior * grain, scales, 0, 200.0)
    plain_tau, plain_error = plain.fit_tau(
        *(x[others] for x in (sums, prior, prior * grain, scales))
    )
    assert tau == pytest.approx(plain_tau, rel=1e-12, abs=1e-25)
    assert error == pytest.approx(plain_error, rel=1e-12)
    off, wider = np.empty(len(sums)), rng.uniform(0, 9, len(sums))
    largest = float(weights.sum())
    _kernels.sums_doubt(sums, prior * grain, scales, tau, wider, 3.0, largest, off)
    np.testing.assert_allclose(
        off, plain.sums_doubt(sums, prior * grain, scales, tau, wider, largest), **SAME
    )


@given(views(), st.booleans())
def test_rows_and_closeness(view, measured):
    rng, own, degrees, weights = view
    sums = rng.exponential(1, len(degrees)) * measured
    sums[0] = weights.sum()
    found = walk_model.two_hop_row(0, own, degrees, weights, sums, 0.15)
    wanted = plain.two_hop_row(0, own, degrees, weights, sums, 0.15)
    np.testing.assert_allclose(found, wanted, **SAME)
    np.testing.assert_allclose(
        walk_model.closeness_weights(wanted, 0, own, degrees, 0.15, 0.3),
        plain.closeness_weights(wanted, 0, own, degrees, 0.15, 0.3),
        **SAME,
    )
