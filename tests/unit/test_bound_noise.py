"""Noise that depends on the very numbers of each row (`randomise_bound`)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.privacy.noise import NoiseSource, calibrate
from edgeveil.privacy.statistic import Statistic, Tail, randomise, randomise_bound

SECRET = NoiseSource.from_secret(b"a secret of thirty-two bytes ...")
NOISE = calibrate(coordinates=40, sensitivity=1.0, epsilon=1.0)


def tail(kind: type, first: float = 3.0) -> Tail:
    return Tail(
        positions=np.array([1, 5, 9], dtype=kind),
        values=np.array([first, 4.0, 5.0]),
        starts=np.array([0, 3]),
        width=40,
        calibration=NOISE,
        threshold=0.5,
    )


def test_type_of_positions_does_not_change_the_noise():
    """It may depend on how the sources of a release are split into groups."""
    narrow, wide = (randomise_bound(tail(kind), SECRET, [7]) for kind in (np.int32, np.int64))
    np.testing.assert_array_equal(narrow.values, wide.values)
    np.testing.assert_array_equal(narrow.positions, wide.positions)
    assert len(narrow.values) > 3
    other = randomise_bound(tail(np.int64, first=3.5), SECRET, [7])
    assert not np.isin(other.values, narrow.values).all()


def test_type_of_values_does_not_change_the_noise():
    wide = tail(np.int64)
    narrow = dataclasses.replace(wide, values=wide.values.astype(np.float32))
    values = [randomise_bound(numbers, SECRET, [7]).values for numbers in (narrow, wide)]
    np.testing.assert_array_equal(*values)


def test_numbers_of_no_row_or_of_two_are_refused():
    for starts in ([0, 2], [1, 3], [0, 4], [0, 3, 2, 3]):
        numbers = dataclasses.replace(tail(np.int64), starts=np.array(starts))
        for add_noise in (randomise, randomise_bound):
            with pytest.raises(ParameterError, match="starts must rise from 0"):
                add_noise(numbers, SECRET, range(len(starts) - 1))


@pytest.mark.parametrize("layout", ["read-only", "by columns"])
def test_rows_that_cannot_be_written_to_are_refused(layout):
    values = np.asfortranarray(np.arange(80.0).reshape(2, 40))
    if layout == "read-only":
        values = values.copy("C")
        values.setflags(write=False)
    with pytest.raises(ParameterError, match="writeable, contiguous"):
        randomise_bound(Statistic(values, NOISE), SECRET, [3, 4])


def test_tiny_and_huge_numbers_raise_nothing():
    """Whoever lets numpy raise errors would see which numbers there are."""
    values = np.array([[1e-320, 1e308, -1e308, np.nan, np.inf, 0.0]])
    coarse = calibrate(coordinates=6, sensitivity=1e200, epsilon=1.0)
    with np.errstate(all="raise"):
        noised = randomise_bound(Statistic(values, coarse), SECRET, [7])
    assert noised.values.shape == (1, 6)
