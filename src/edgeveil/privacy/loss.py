"""What one outcome of noised numbers tells about which of two graphs they came from, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from edgeveil.privacy.noise import to_lattice
from edgeveil.privacy.statistic import (
    AnyStatistic,
    Bits,
    Exact,
    Noised,
    NoisedTail,
    Statistic,
    Tail,
    without_noise,
)


def largest_loss(
    first: AnyStatistic, second: AnyStatistic, *, beyond: float = 0.0
) -> tuple[float, Noised]:
    """The largest log-ratio of the probabilities of one outcome, and an outcome that attains it.

    `first` and `second` are the same question asked of two graphs; the loss is ``inf`` if they can
    be told apart for certain, by other noise or none. Exact: values lie on a lattice and the law
    of their noise is known, so no sampling is needed. For discrete Laplace noise of scale t the
    outcome z has log-ratio sum (|z - y| - |z - x|) / t, at most the L1 distance of x and y in steps
    over t, with equality where z lies on the far side of x as seen from y in every coordinate;
    z = x does, and any z `beyond` it, in units of the noise's scale, on which the next question
    may depend.
    """
    if isinstance(first, Bits) and isinstance(second, Bits):
        apart = len(np.setxor1d(first.ones, second.ones, assume_unique=True))
        same = first.total == second.total and first.loss == second.loss
        return (float(apart * first.epsilon) if same else float("inf")), Noised(first.ones)
    if isinstance(first, Exact) and isinstance(second, Exact):
        same = np.array_equal(first.values, second.values)
        return (0.0 if same else float("inf")), Noised(first.values)
    if isinstance(first, Tail) and isinstance(second, Tail):
        return _largest_loss_of_tails(first, second)
    if not isinstance(first, Statistic) or not isinstance(second, Statistic):
        return float("inf"), without_noise(first)
    calibrations = first.of_rows()
    if calibrations != second.of_rows() or first.values.shape != second.values.shape:
        return float("inf"), without_noise(first)
    exact, seen = Fraction(0), np.empty_like(first.values)
    for i, calibration in enumerate(calibrations):
        x, y = (to_lattice(s.values[i], calibration) for s in (first, second))
        steps = sum(abs(int(a) - int(b)) for a, b in zip(x, y, strict=True) if a != b)
        exact += Fraction(steps, calibration.scale)
        z = x + np.sign(x - y) * np.rint(beyond * calibration.scale)
        seen[i] = z * 2.0**calibration.step_log2
    return float(exact), Noised(seen, calibrations[0].noise_scale if calibrations else 0.0)


def _largest_loss_of_tails(first: Tail, second: Tail) -> tuple[float, Noised]:
    if not first.same_question(second):
        return float("inf"), without_noise(first)
    from edgeveil.privacy._tail_loss import largest_loss_of_rows  # it loads the compiler

    calibration = first.calibration
    loss, places, values, starts = largest_loss_of_rows(
        _steps_of_rows(first), _steps_of_rows(second), calibration, first.at_least
    )
    scale = calibration.noise_scale
    return loss, NoisedTail(values=values, scale=scale, places=places, starts=starts)


def _steps_of_rows(tail: Tail) -> list[dict[int, int]]:
    """Of each row the steps at its places."""
    places, starts = tail.places.tolist(), tail.starts.tolist()
    steps = [int(x) for x in to_lattice(tail.values, tail.calibration)]
    return [dict(zip(places[a:b], steps[a:b], strict=True)) for a, b in pairwise(starts)]
