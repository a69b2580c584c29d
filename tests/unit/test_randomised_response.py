"""Randomised response by gaps: the probability, exactly, and the places."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgeveil.errors import ParameterError
from edgeveil.privacy import randomised_response
from edgeveil.privacy.noise import NoiseSource, discrete_laplace
from edgeveil.privacy.randomised_response import flip_scale, flipped_positions

EPSILONS = [
    *np.geomspace(1e-5, 60, 400).tolist(),
    *np.random.default_rng(1).uniform(1e-5, 45, 200).tolist(),
    # Where the scale is a power of two, and where it reaches its largest value.
    *(-math.log(math.expm1(2.0**-k)) for k in range(1, 52)),
    *(1e-5, 0.1, 1, 2, 5, 38.12, 38.13, 99.9, 100, 700, 1e5),
]


def test_flip_probability_is_between_its_need_and_one_half():
    with localcontext() as context:
        context.prec = 120
        for epsilon in EPSILONS:
            scale, shift = flip_scale(epsilon)
            assert isinstance(scale, int)
            assert isinstance(shift, int)
            q = 1 - (-(Decimal(2) ** shift) / Decimal(scale)).exp()
            exact = Decimal(repr(epsilon))
            assert q >= 1 / (1 + exact.exp()), epsilon
            assert q <= Decimal(1) / 2, epsilon
            assert abs(((1 - q) / q).ln()) <= exact, epsilon


def test_rounding_costs_a_millionth_up_to_epsilon_38():
    with localcontext() as context:
        context.prec = 60
        for epsilon in EPSILONS:
            scale, shift = flip_scale(epsilon)
            q = 1 - (-(Decimal(2) ** shift) / Decimal(scale)).exp()
            needed = 1 / (1 + Decimal(repr(epsilon)).exp())
            # Beyond, the scale is at its largest and q stays at 2^-55.
            assert epsilon > 38 or q / needed - 1 < Decimal("1e-6")


def test_the_scale_is_one_that_the_sampler_takes():
    for epsilon in EPSILONS:
        scale, shift = flip_scale(epsilon)
        assert 1 <= scale <= 2**55
        assert shift >= 0
        assert (scale >> max(scale.bit_length() - 25, 0)) << max(
            scale.bit_length() - 25, 0
        ) == scale


@given(
    st.integers(0, 3000),
    st.one_of(st.floats(-9, 2).map(lambda x: 10.0**x), st.floats(1e-6, 8)),
    st.integers(0, 2**64),
)
def test_places_are_sorted_distinct_and_inside(total, epsilon, seed):
    places = flipped_positions(total, epsilon, NoiseSource.insecure(seed))
    assert places.dtype == np.int64
    assert places.ndim == 1
    assert (np.diff(places) > 0).all()
    if len(places):
        assert places[0] >= 0
        assert places[-1] < total


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3, 60])
def test_no_bits_have_no_flips(epsilon):
    for seed in range(20):
        assert len(flipped_positions(0, epsilon, NoiseSource.insecure(seed))) == 0


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 2])
@pytest.mark.parametrize("total", [1, 2, 63, 64, 65])
def test_few_bits_flip_with_the_right_probability_each(epsilon, total):
    trials = 2000
    counts = np.zeros(total)
    for seed in range(trials):
        counts[flipped_positions(total, epsilon, NoiseSource.insecure(seed))] += 1
    q = 1 / (1 + math.exp(epsilon))
    chi = ((counts - trials * q) ** 2 / (trials * q * (1 - q))).sum()
    assert 1e-4 < stats.chi2.sf(chi, total) < 1 - 1e-4


@pytest.mark.parametrize("epsilon", [9.9e-6, 1e-5, 0.3, 1, 4, 9])
def test_flip_counts_and_gaps_follow_their_laws(epsilon):
    total = 1_000_000
    q = 1 / (1 + math.exp(epsilon))
    places = flipped_positions(total, epsilon, NoiseSource.insecure(6))
    assert stats.binomtest(len(places), total, q).pvalue > 1e-3
    gaps = np.diff(places)
    longest = max(2, int(5 / q))
    observed = np.bincount(np.minimum(gaps, longest), minlength=longest + 1)[1:]
    expected = len(gaps) * np.append(
        stats.geom.pmf(np.arange(1, longest), q), stats.geom.sf(longest - 1, q)
    )
    cells = np.array_split(np.arange(longest), min(longest, 30))
    merged = [(observed[c].sum(), expected[c].sum()) for c in cells]
    merged = np.array([pair for pair in merged if pair[1] > 5]).T
    scaled = merged[1] * merged[0].sum() / merged[1].sum()
    assert stats.chisquare(merged[0], scaled).pvalue > 1e-3


@pytest.mark.parametrize("epsilon", [0.01, 1])
def test_going_on_after_a_batch_of_gaps_keeps_the_law(epsilon, monkeypatch):
    def three_draws(scale, size, noise):
        return discrete_laplace(scale, 3, noise)

    monkeypatch.setattr(randomised_response, "discrete_laplace", three_draws)
    total, trials = 60, 500
    counts = np.zeros(total)
    for seed in range(trials):
        places = flipped_positions(total, epsilon, NoiseSource.insecure(seed))
        assert (np.diff(places) > 0).all()
        counts[places] += 1
    q = 1 / (1 + math.exp(epsilon))
    chi = ((counts - trials * q) ** 2 / (trials * q * (1 - q))).sum()
    assert 1e-3 < stats.chi2.sf(chi, total) < 1 - 1e-3


def test_gaps_of_zero_count_and_negative_draws_do_not(monkeypatch):
    _, shift = flip_scale(1)
    draws = np.array([0, -1, (1 << shift) - 1, 3 << shift, -(5 << shift), 1 << shift, 2**62])
    monkeypatch.setattr(randomised_response, "discrete_laplace", lambda *_: draws)
    places = flipped_positions(10, 1, NoiseSource.insecure(1))
    assert places.tolist() == [0, 1, 5, 7]


def test_below_a_hundred_thousandth_the_flips_are_fair_coins():
    coins = flipped_positions(640, 9.99e-6, NoiseSource.insecure(1))
    np.testing.assert_array_equal(coins, flipped_positions(640, 1e-200, NoiseSource.insecure(1)))
    assert not np.array_equal(coins, flipped_positions(640, 1.01e-5, NoiseSource.insecure(1)))


def test_a_large_epsilon_over_many_bits_does_not_overflow():
    places = flipped_positions(10**14, 30, NoiseSource.insecure(1))
    assert len(places) < 60  # 9.4 on average
    assert (np.diff(places) > 0).all()


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1", None])
def test_a_bad_epsilon_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be a positive number"):
        flipped_positions(10, epsilon, NoiseSource.insecure(1))
