"""DPSparsification: algorithm 6's probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.sparsification import sparsify, threshold

REPEATS = 20_000


@pytest.mark.parametrize(("sigma", "epsilon"), [(1e-6, 0.5), (0.3, 2.0)])
@pytest.mark.parametrize("t", [-5.0, -3, -1, -0.3, 0, 0.3, 1, 3, 5])
def test_a_coordinate_is_marked_with_the_papers_two_case_probability(sigma, epsilon, t):
    b = sigma / epsilon
    gamma = threshold(1000, sigma, epsilon)
    p = gamma + t * b
    marked = sparsify(
        np.full(REPEATS, p),
        sensitivity=sigma,
        epsilon=epsilon,
        gamma=gamma,
        error=0.0,
        noise=NoiseSource.insecure(int(10 * t) + 100),
    )
    assert marked.dtype == np.bool_
    assert marked.shape == (REPEATS,)
    if p <= gamma:
        expected = 0.5 * math.exp(-epsilon / sigma * (gamma - p))
    else:
        expected = 1 - 0.5 * math.exp(epsilon / sigma * (gamma - p))
    assert stats.binomtest(int(marked.sum()), REPEATS, expected).pvalue > 1e-3


def test_marks_of_different_coordinates_are_independent():
    marked = sparsify(
        np.zeros(REPEATS),
        sensitivity=1.0,
        epsilon=1.0,
        gamma=0.5,
        error=0.0,
        noise=NoiseSource.insecure(1),
    )
    assert abs(np.corrcoef(marked[1:], marked[:-1])[0, 1]) < 4 / math.sqrt(REPEATS)


@pytest.mark.parametrize("n", [1, 2, 10, 10_312])
def test_the_threshold_is_the_papers(n):
    assert threshold(n, 1e-6, 0.25) == pytest.approx(3 * 1e-6 * math.log(n) / 0.25)


def test_a_proven_float_error_widens_the_choice():
    # The error enters the noise scale, so far coordinates are marked more often.
    shares = [
        sparsify(
            np.zeros(REPEATS),
            sensitivity=1.0,
            epsilon=1.0,
            gamma=3.0,
            error=error,
            noise=NoiseSource.insecure(1),
        ).mean()
        for error in (0.0, 1.0)
    ]
    assert shares[1] == pytest.approx(0.5 * math.exp(-1), rel=0.05)
    assert shares[0] == pytest.approx(0.5 * math.exp(-3), rel=0.15)
