from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.estimate.degrees import estimate_all


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.floats(0.01, 1e5),
)
def test_estimates_are_at_least_one_finite_and_keep_the_order(noisy, scale):
    noisy = np.array(noisy)
    estimate = estimate_all(noisy, scale).degrees
    assert np.isfinite(estimate).all()
    assert estimate.min() >= 1
    order = np.argsort(noisy, kind="stable")
    assert (np.diff(estimate[order]) >= 0).all()


@pytest.mark.parametrize("scale", [2.0, 8.0, 40.0])
def test_the_estimate_is_closer_than_the_noisy_degree(scale):
    rng = np.random.default_rng(5)
    degrees = np.floor(10 * rng.pareto(1.5, 4000) + 3)
    noisy = degrees + rng.laplace(0, scale, len(degrees))
    error = np.abs(estimate_all(noisy, scale).degrees - degrees).mean()
    cut_off = np.abs(np.maximum(noisy, 1) - degrees).mean()
    assert error < 0.95 * cut_off


def test_tiny_noise_leaves_the_degrees():
    degrees = np.arange(1.0, 25.0)
    np.testing.assert_allclose(estimate_all(degrees, 1e-3).degrees, degrees, atol=0.01)


def test_estimates_of_one_or_no_node_have_their_shape():
    assert estimate_all(np.array([3.0]), 1.0).degrees.shape == (1,)
    assert estimate_all(np.empty(0), 1.0).degrees.shape == (0,)
