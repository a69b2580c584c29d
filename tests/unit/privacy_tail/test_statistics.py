"""Tails as statistics: noise, no noise, losses, and what they cost."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.privacy import _tail
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import Calibration, NoiseSource, calibrate
from edgeveil.privacy.statistic import (
    Bits,
    Exact,
    NoisedTail,
    Statistic,
    Tail,
    randomise,
    total_epsilon,
    without_noise,
)
from tests.seam import noisy_row

NOISE = calibrate(coordinates=500, sensitivity=1, epsilon=0.5)
STEPS = Calibration(step_log2=0, scale=2, epsilon=20.0, coordinates=9, sensitivity=Fraction(1))


SEED = NoiseSource.insecure(1)


def streams(count):
    return SEED.rows(range(count))


def tail(rows, threshold=4.0, calibration=STEPS, width=9, **more):
    positions = [p for row in rows for p in sorted(row)]
    values = [row[p] for row in rows for p in sorted(row)]
    starts = np.cumsum([0, *map(len, rows)])
    given = np.array(positions, np.int32), np.array(values, float), starts
    return Tail(*given, width, calibration, threshold, **more)


# --- Tails -----------------------------------------------------------------------------------


def test_a_tail_becomes_what_its_draw_gives():
    asked = tail([{3: 5.0, 7: 20.0}, {}], calibration=NOISE, width=500)
    drawn = randomise(asked, SEED, range(2))
    rows = asked.positions, asked.values, asked.starts
    positions, values, starts = _tail.draw_tail(rows, 500, NOISE, 4.0, streams(2))
    assert isinstance(drawn, NoisedTail)
    assert drawn.scale == NOISE.noise_scale
    for mine, wanted in (
        (drawn.positions, positions),
        (drawn.values, values),
        (drawn.starts, starts),
    ):
        np.testing.assert_array_equal(mine, wanted)


def test_a_tail_can_be_drawn_densely_on_demand():
    rows, calibration = [{3: 9.0}], calibrate(coordinates=10**5, sensitivity=1, epsilon=1)
    lazy, dense = (
        randomise(tail(rows, 9.0, calibration, 10**5, densely=way), SEED) for way in (False, True)
    )
    full = np.zeros(10**5)
    full[3] = 9.0
    noisy = noisy_row(full, calibration, streams(1), 0)
    np.testing.assert_array_equal(dense.positions, np.flatnonzero(noisy >= 9.0))
    assert lazy.positions.tolist() != dense.positions.tolist()


def test_without_noise_the_threshold_itself_is_reached():
    exceedances = without_noise(tail([{1: 4.0, 2: 3.9}, {}, {0: 5.0, 8: -1.0}]))
    assert exceedances.positions.tolist() == [1, 0]
    assert exceedances.values.tolist() == [4.0, 5.0]
    assert exceedances.starts.tolist() == [0, 1, 1, 2]
    assert exceedances.scale == 0.0


def log_ratios(x, y, threshold, t):
    """Of every outcome of one coordinate, by summing the law of the noise."""
    z = np.arange(-400, 401)
    first, second = (np.exp(-np.abs(z - at) / t) for at in (x, y))
    first, second = first / first.sum(), second / second.sum()
    below = math.log(first[z < threshold].sum() / second[z < threshold].sum())
    seen = {
        int(v): math.log(a / b)
        for v, a, b in zip(z, first, second, strict=True)
        if threshold <= v < 60
    }
    return {None: below, **seen}


@pytest.mark.parametrize("threshold", [1, 4, -2])
def test_the_loss_of_a_tail_is_that_of_its_most_telling_outcome(threshold):
    for x, y in product(range(-1, 8), repeat=2):
        ratios = log_ratios(x, y, threshold, STEPS.scale)
        rows = [{4: float(v)} if v else {} for v in (x, y)]
        first, second = (tail([row], float(threshold)) for row in rows)
        loss, outcome = largest_loss(first, second)
        assert loss == pytest.approx(max(ratios.values()), abs=1e-9)
        assert loss <= abs(x - y) / STEPS.scale + 1e-9  # that of the whole vector
        if x != y:
            seen = int(outcome.values[0]) if len(outcome.values) else None
            assert ratios[seen] == pytest.approx(loss, abs=1e-9)
            assert outcome.positions.tolist() in ([4], [])


def test_losses_of_places_and_rows_add_up():
    first, second = tail([{0: 6.0, 5: 2.0}, {1: 3.0}]), tail([{0: 5.0}, {1: 1.0}])
    loss, outcome = largest_loss(first, second)
    assert loss == pytest.approx((1 + 2 + 2) / STEPS.scale)
    assert outcome.positions.tolist() == [0, 5, 1]
    assert outcome.values.tolist() == [6.0, 4.0, 4.0]
    assert outcome.starts.tolist() == [0, 2, 3]


def test_different_questions_are_told_apart():
    statistic = tail([{0: 6.0}])
    for other in (tail([{0: 6.0}], 5.0), tail([{0: 6.0}, {}]), tail([{0: 6.0}], width=8)):
        assert largest_loss(statistic, other)[0] == math.inf
    assert largest_loss(statistic, Exact(np.zeros((1, 9))))[0] == math.inf


# --- Prices ----------------------------------------------------------------------------------


def test_prices_add_up_and_noise_alone_is_free():
    half, fifth = NOISE, calibrate(coordinates=9, sensitivity=1, epsilon=0.2)
    values = np.zeros(2)
    asked = [
        tail([{}], calibration=fifth),
        Statistic(values[None], half),
        Bits(np.array([1]), 9, 0.1),
        Statistic(values[None], half, noise_only=True),
    ]
    assert total_epsilon(asked) == Fraction(1, 2) + Fraction(fifth.epsilon) + Fraction(1, 10)
    assert total_epsilon([]) == 0
    with pytest.raises(ParameterError, match="no epsilon"):
        total_epsilon([Exact(values[None])])
