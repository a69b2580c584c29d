"""What one outcome of a tail tells at most about which of two graphs it came from."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from edgeveil.privacy._tail import threshold_in_steps
from edgeveil.privacy.noise import Calibration

Row = dict[int, int]  # steps at each place that is not zero


def largest_loss_of_rows(
    first: Iterable[Row], second: Iterable[Row], calibration: Calibration, at_least: float
) -> tuple[float, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The largest log-ratio of one outcome, first to second, and an outcome that has it.

    Of a coordinate either a noisy value z >= T is seen, or only that it is below T. With x and y
    steps before the noise, a seen z has log-ratio (|z - y| - |z - x|) / t. For x > y that is
    largest, (x - y) / t, at every z >= max(x, T), and "below" tells less than nothing. For x < y
    it falls with z, so it is largest at z = max(x, T); and "below" may tell more, by
    log P(x + Z < T) - log P(y + Z < T), less than (y - x) / t if T > x. Coordinates are
    independent, so the largest log-ratios add up. Right to the precision of a double.

    Returns
    -------
    loss, places, values, starts
        The outcome as a `NoisedTail` has it.
    """
    t, threshold = calibration.scale, threshold_in_steps(at_least, calibration)
    loss, places, seen, starts = 0.0, list[int](), list[int](), [0]
    for one, other in zip(first, second, strict=True):
        for place in sorted(one.keys() | other.keys()):
            x, y = one.get(place, 0), other.get(place, 0)
            z = max(x, threshold)
            more = (abs(z - y) - abs(z - x)) / t
            below = log_below(threshold - x, t) - log_below(threshold - y, t)
            loss += max(more, below)
            if more > below or (x == y and x >= threshold):
                places.append(place)
                seen.append(z)
        starts.append(len(places))
    values = np.array([float(z) * 2.0**calibration.step_log2 for z in seen])
    return loss, np.array(places, np.int64), values, np.array(starts, np.int64)


def log_below(distance: int, t: int) -> float:
    """The logarithm of P(Z < distance), for P(Z = z) proportional to exp(-|z| / t)."""
    q = math.exp(-1 / t)
    if distance <= 0:
        return (distance - 1) / t - math.log1p(q)
    return math.log1p(-math.exp(-distance / t) / (1 + q))
