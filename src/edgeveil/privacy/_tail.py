"""Rows of different lengths with noise, and rows of which only what reaches a threshold is drawn.

`densely` is the definition: noise for every coordinate, then what reaches the threshold is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler
from edgeveil.privacy._key_stream import NoiseSource
from edgeveil.privacy.noise import Calibration, _check_source, _split, add_laplace

__all__ = ["add_laplace_to_ragged", "draw_tail", "threshold_in_steps"]

Values = NDArray[np.float64]
Places = NDArray[np.int64]
Starts = NDArray[np.int64]

DENSE_CHUNK = 1 << 16


def add_laplace_to_ragged(
    values: Values, starts: Starts, calibration: Calibration, noises: Sequence[NoiseSource]
) -> None:
    """INOUT ``values``: in each row what `add_laplace` gives for it from its own noise."""
    _check_rows(starts, len(values), noises)
    if len(starts) > 1 and int(np.diff(starts).max()) > calibration.coordinates:
        raise ParameterError("a row has more coordinates than the noise is calibrated for")
    for i, noise in enumerate(noises):
        row = values[starts[i] : starts[i + 1]]
        row[:] = add_laplace(row, calibration, noise)


def draw_tail(
    rows: tuple[NDArray[np.integer], Values, Starts],
    width: int,
    calibration: Calibration,
    at_least: float,
    noises: Sequence[NoiseSource],
    *,
    densely: bool = False,
) -> tuple[Places, Values, Starts]:
    """Where the noisy rows reach ``at_least``, with their noisy values: places, values, starts."""
    places, values, starts = rows
    _check_rows(starts, len(values), noises)
    if len(places) != len(values) or not math.isfinite(at_least):
        raise ParameterError("a tail needs a value for each place and a finite threshold")
    if width > calibration.coordinates:
        raise ParameterError("a tail has more coordinates than its noise is calibrated for")
    found = []
    for i, noise in enumerate(noises):
        part = slice(starts[i], starts[i + 1])
        found.append(_dense_row(places[part], values[part], width, calibration, at_least, noise))
    begins = np.cumsum([0, *(len(p) for p, _ in found)], dtype=np.int64)
    return (
        np.concatenate([p for p, _ in found] or [np.empty(0, np.int64)]),
        np.concatenate([v for _, v in found] or [np.empty(0)]),
        begins,
    )


def threshold_in_steps(at_least: float, calibration: Calibration) -> int:
    """The least number of steps whose float is at least ``at_least``."""
    a, k = _split(calibration.scale)[1], calibration.step_log2
    steps = math.ceil(Fraction(at_least) / Fraction(2) ** k)
    # Beyond 2**53 steps several numbers share a float: the first of those that reach it.
    least, most = steps - (1 << max(steps.bit_length() - 52, 1)), steps
    while most - least > 1:
        middle = (least + most) // 2
        if _sampler.lattice_sum(0.0, middle, a, k) >= at_least:
            most = middle
        else:
            least = middle
    return most


def _check_rows(starts: Starts, size: int, noises: Sequence[NoiseSource]) -> None:
    if starts[0] != 0 or starts[-1] != size or (np.diff(starts) < 0).any():
        raise ParameterError("starts must rise from 0 to the number of values")
    if len({id(noise) for noise in noises}) != len(starts) - 1 or len(noises) != len(starts) - 1:
        raise ParameterError("every row needs a noise source of its own")
    for noise in noises:
        _check_source(noise)


def _dense_row(
    places: NDArray[np.integer],
    values: Values,
    width: int,
    calibration: Calibration,
    at_least: float,
    noise: NoiseSource,
) -> tuple[Places, Values]:
    """All coordinates of one row, some at a time: what reaches the threshold."""
    T, a = _split(calibration.scale)
    all_places, all_values = [], []
    for first in range(0, width, DENSE_CHUNK):
        chunk = np.zeros(min(DENSE_CHUNK, width - first))
        part = slice(*np.searchsorted(places, (first, first + len(chunk))))
        chunk[places[part] - first] = values[part]
        noisy = _sampler.add_noise(chunk, T, a, calibration.step_log2, noise)
        kept = np.flatnonzero(noisy >= at_least)
        all_places.append(kept + first)
        all_values.append(noisy[kept])
    return np.concatenate(all_places), np.concatenate(all_values)
