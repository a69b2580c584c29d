"""The step from private numbers to public ones, and what one outcome of it tells."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import NoiseSource, calibrate, calibrate_whole, to_lattice
from edgeveil.privacy.statistic import (
    Bits,
    Exact,
    Noised,
    Statistic,
    randomise,
    total_epsilon,
    without_noise,
)
from tests.seam import noisy_row

ONE = calibrate(coordinates=2, sensitivity=1, epsilon=0.5)
OTHER = calibrate(coordinates=2, sensitivity=4, epsilon=1.5)


NOISE = NoiseSource.insecure(1)


# --- randomise -----------------------------------------------------------------------------


def test_rows_are_noised_in_place_each_by_its_own_stream():
    values = np.arange(6.0).reshape(3, 2)
    before = values.copy()
    given_back = randomise(Statistic(values, ONE), NOISE, range(3))
    assert np.shares_memory(given_back.values, values)
    assert given_back.scale == ONE.noise_scale
    for i in range(3):
        wanted = noisy_row(before[i], ONE, NOISE.rows(range(3)), i)
        np.testing.assert_array_equal(values[i], wanted)


def test_noised_values_are_read_only():
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    buffer = np.zeros(6)
    for asked in (
        Statistic(buffer.copy().reshape(2, 3), calibration),
        Statistic(buffer.copy().reshape(2, 3), (calibration, calibration)),
    ):
        noised = randomise(asked, NoiseSource.insecure(1), [4, 5])
        for theirs in (asked.values, asked.values.base):
            if theirs is not None:
                with pytest.raises(ValueError, match="read-only"):
                    theirs[:] = 1.0
        noised.values[:] = 2.0  # an estimate may


def test_every_row_may_have_a_calibration_of_its_own():
    values = np.arange(4.0).reshape(2, 2)
    before = values.copy()
    given_back = randomise(Statistic(values, (ONE, OTHER)), NOISE, range(2))
    assert np.shares_memory(given_back.values, values)
    assert given_back.scale == ONE.noise_scale
    for i, calibration in enumerate((ONE, OTHER)):
        wanted = noisy_row(before[i], calibration, NOISE.rows(range(2)), i)
        np.testing.assert_array_equal(values[i], wanted)


@pytest.mark.parametrize("calibrations", [(), (ONE,), (ONE, ONE, ONE)])
def test_calibrations_must_be_as_many_as_rows(calibrations):
    with pytest.raises(ParameterError, match="2 rows need as many calibrations"):
        randomise(Statistic(np.zeros((2, 2)), calibrations), NOISE, range(2))


def test_empty_statistic_gives_no_rows():
    for calibration in (ONE, ()):
        assert randomise(Statistic(np.zeros((0, 2)), calibration), NOISE, []).values.shape == (0, 2)


def test_bits_flip_with_probability_1_over_1_plus_e_to_the_loss():
    total, loss = 40_000, 1.2
    ones = np.arange(0, total, 4)
    noised = randomise(Bits(ones, total, loss), NOISE, range(1)).values
    assert (np.diff(noised) > 0).all()
    flipped = np.setxor1d(ones, noised)
    assert flipped.min() >= 0
    assert flipped.max() < total
    share = 1 / (1 + math.exp(loss))
    for count, size in ((np.isin(flipped, ones).sum(), len(ones)), (len(flipped), total)):
        assert abs(count - share * size) < 4 * math.sqrt(size * share * (1 - share))


def test_exact_statistic_is_passed_on():
    values = np.arange(4.0).reshape(2, 2)
    assert randomise(Exact(values), NOISE, range(2)).values is values
    assert without_noise(Statistic(values, ONE)) == Noised(values, 0.0)
    ones = np.array([1, 5])
    assert without_noise(Bits(ones, 9, 1.0)).values is ones


# --- epsilon -------------------------------------------------------------------------------


def test_epsilon_is_that_of_the_row_that_tells_most():
    rows = np.zeros((2, 2))
    assert Statistic(rows, ONE).epsilon == Fraction(1, 2)
    assert Statistic(rows, (ONE, OTHER)).epsilon == Fraction(3, 2)
    assert Statistic(rows, (OTHER, ONE)).epsilon == Fraction(3, 2)
    assert Statistic(rows, (ONE, OTHER), noise_only=True).epsilon == 0
    assert Bits(np.array([1]), 3, 0.1).epsilon == Fraction(1, 10)


def test_rounds_of_one_statistic_count_once():
    six = calibrate(coordinates=6, sensitivity=1, epsilon=0.5)

    def asked(rounds_of, calibration=six):
        return Statistic(np.zeros((1, 2)), calibration, rounds_of=rounds_of)

    assert total_epsilon([asked("words"), asked("words"), asked("words")]) == Fraction(1, 2)
    assert total_epsilon([asked("words"), asked("others"), asked("")]) == Fraction(3, 2)
    assert total_epsilon([asked(""), asked("")]) == 1
    with pytest.raises(ParameterError, match="must have the same noise"):
        total_epsilon([asked("words"), asked("words", OTHER)])


def test_coordinates_of_all_rounds_count_unless_they_are_whole():
    # Each of 4 numbers is rounded a step away: together more than a calibration for 2 allows.
    step = 2.0**ONE.step_log2
    far = np.array([[0.25 + 0.51 * step, 0.25 + 0.51 * step]])
    near = np.full((1, 2), 0.49 * step)
    rounds = [Statistic(near.copy(), ONE, rounds_of="words") for _ in range(2)]
    others = [Statistic(far.copy(), ONE, rounds_of="words") for _ in range(2)]
    assert 4 * float((far - near)[0, 0]) <= 1 + 0.1 * step
    losses = [largest_loss(first, second)[0] for first, second in zip(rounds, others, strict=True)]
    assert sum(losses) > ONE.epsilon
    assert total_epsilon(rounds[:1]) == Fraction(1, 2)
    with pytest.raises(ParameterError, match="all rounds count together, 4 so far"):
        total_epsilon(rounds)
    whole = calibrate_whole(coordinates=2, sensitivity=1, epsilon=0.5)
    of_whole = [Statistic(np.zeros((1, 2)), whole, rounds_of="words") for _ in range(2)]
    assert total_epsilon(of_whole) == Fraction(1, 2)


def test_a_round_of_noise_alone_does_not_hide_the_next():
    nothing = Statistic(np.zeros((1, 2)), ONE, noise_only=True, rounds_of="words")
    assert total_epsilon([nothing, Statistic(np.zeros((1, 2)), ONE, rounds_of="words")]) == 0.5


# --- largest_loss --------------------------------------------------------------------------


def log_probability(outcome: np.ndarray, value: np.ndarray, scale: int) -> float:
    """Discrete Laplace noise of this scale on every coordinate, in steps; not normed."""
    return -float(np.abs(outcome - value).sum()) / scale


SMALL = [
    calibrate(coordinates=2, sensitivity=1, epsilon=1),
    calibrate(coordinates=2, sensitivity=3, epsilon=0.25),
]


@pytest.mark.parametrize("calibration", SMALL, ids=["epsilon 1", "epsilon 0.25"])
@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_largest_loss_equals_brute_force_on_the_lattice(calibration, steps):
    step = 2.0**calibration.step_log2
    x, y = (np.array(part, dtype=np.float64) for part in (steps[:2], steps[2:]))
    first, second = (Statistic(part[None] * step, calibration) for part in (x, y))
    loss, outcome = largest_loss(first, second)

    def log_ratio(z):
        scale = calibration.scale
        return log_probability(z, x, scale) - log_probability(z, y, scale)

    # Farther out nothing changes any more: both distances grow alike.
    brute = max(log_ratio(np.array(z)) for z in product(range(-5, 6), repeat=2))
    assert loss == pytest.approx(brute, rel=1e-12, abs=1e-300)
    assert log_ratio(outcome.values[0] / step) == pytest.approx(loss, rel=1e-12, abs=1e-300)
    assert outcome.scale == calibration.noise_scale


def test_values_between_lattice_points_are_rounded_first():
    step = 2.0**ONE.step_log2
    first, second = (Statistic(np.array([[value * step, 0.0]]), ONE) for value in (0.4, 0.0))
    assert largest_loss(first, second)[0] == 0
    second = replace(second, values=np.array([[1.4 * step, 0.0]]))
    assert largest_loss(first, second)[0] == pytest.approx(1 / ONE.scale, rel=1e-12)
    assert to_lattice(np.array([1.4 * step]), ONE).tolist() == [1]


def test_the_loss_of_rows_adds_up_each_by_its_own_noise():
    first = Statistic(np.array([[0.0, 0.0], [0.0, 0.0]]), (ONE, OTHER))
    second = Statistic(np.array([[1.0, 0.0], [0.0, -4.0]]), (ONE, OTHER))
    assert largest_loss(first, second)[0] == pytest.approx(0.5 + 1.5, rel=1e-3)
    alone = Statistic(second.values * [[1], [0]], (ONE, OTHER))
    assert largest_loss(first, alone)[0] == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("total", [1, 2, 3])
def test_bits_lose_what_enumeration_says(total):
    loss = 0.7
    keep = math.exp(loss) / (1 + math.exp(loss))

    def probability(outcome, truth):
        return math.prod(keep if a == b else 1 - keep for a, b in zip(outcome, truth, strict=True))

    every = list(product([0, 1], repeat=total))
    for x, y in product(every, repeat=2):
        first, second = (Bits(np.flatnonzero(bits), total, loss) for bits in (x, y))
        exact, outcome = largest_loss(first, second)
        brute = max(math.log(probability(z, x) / probability(z, y)) for z in every)
        assert exact == pytest.approx(brute, abs=1e-12)
        np.testing.assert_array_equal(outcome.values, np.flatnonzero(x))


ROW = np.zeros((1, 2))
APART = {
    "other noise": (Statistic(ROW, ONE), Statistic(ROW, OTHER)),
    "another shape": (Statistic(ROW, ONE), Statistic(np.zeros((1, 3)), ONE)),
    "another number of rows": (Statistic(ROW, ONE), Statistic(np.zeros((2, 2)), ONE)),
    "noise and none": (Statistic(ROW, ONE), Exact(ROW)),
    "bits and numbers": (Bits(np.array([0]), 2, 1.0), Statistic(ROW, ONE)),
    "other numbers without noise": (Exact(ROW), Exact(ROW + 1)),
    "more bits": (Bits(np.array([0]), 2, 1.0), Bits(np.array([0]), 3, 1.0)),
    "other coins": (Bits(np.array([0]), 2, 1.0), Bits(np.array([0]), 2, 2.0)),
}


@pytest.mark.parametrize("case", APART)
def test_distinguishable_outcomes_lose_everything(case):
    first, second = APART[case]
    assert largest_loss(first, second)[0] == math.inf
    assert largest_loss(second, first)[0] == math.inf


def test_equal_numbers_without_noise_lose_nothing():
    assert largest_loss(Exact(ROW), Exact(ROW.copy()))[0] == 0


def test_loss_leaves_the_statistics_unchanged():
    first, second = Statistic(np.ones((1, 2)), ONE), Statistic(np.zeros((1, 2)), ONE)
    _, outcome = largest_loss(first, second)
    outcome.values[:] = 7
    assert first.values.tolist() == [[1, 1]]
    assert second.values.tolist() == [[0, 0]]
