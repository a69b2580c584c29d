"""The exact privacy loss of noised numbers: largest log-ratio of an outcome on two graphs."""

from __future__ import annotations

import math
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

    `first` and `second` are the same statistic of two graphs; the loss is ``inf`` if their noise
    differs, or there is none and their values differ, or it is noise for whole numbers on others.
    Exact: values lie on a lattice and the distribution of their noise is known, so nothing is
    sampled. For discrete Laplace noise of scale t the outcome z has log-ratio
    sum (|z - y| - |z - x|) / t, at most the L1 distance of x and y in steps over t, with equality
    where in every coordinate z = x, or z lies farther from y than x does. `beyond` (in noise
    scales) moves z that way: the next statistic may depend on z.
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
        if calibration.whole and any((s.values[i] % 1).any() for s in (first, second)):
            return float("inf"), without_noise(first)  # rounded to the lattice, beyond any bound
        x, y = (to_lattice(s.values[i], calibration) for s in (first, second))
        steps = sum(abs(int(a) - int(b)) for a, b in zip(x, y, strict=True) if a != b)
        exact += Fraction(steps, calibration.scale)
        z = x + np.sign(x - y) * np.rint(beyond * calibration.scale)
        seen[i] = z * 2.0**calibration.step_log2
    return float(exact), Noised(seen, calibrations[0].noise_scale if calibrations else 0.0)


def _largest_loss_of_tails(first: Tail, second: Tail) -> tuple[float, Noised]:
    """The largest log-ratio of one outcome of a `Tail`, and an outcome that attains it.

    Of a coordinate either a noisy value z >= T is seen, or only that it is below T. With x and y
    steps before the noise, a seen z has log-ratio (|z - y| - |z - x|) / t. For x > y that is
    largest, (x - y) / t, at every z >= max(x, T), and "below" is more likely for y. For x < y it
    decreases with z, so it is largest at z = max(x, T); and "below" may have a larger one,
    log P(x + Z < T) - log P(y + Z < T), less than (y - x) / t if T > x. Coordinates are
    independent, so the largest log-ratios add up. Right to the precision of a double.
    """
    if not first.same_public_part(second):
        return float("inf"), without_noise(first)
    from edgeveil.privacy._tail import threshold_in_steps  # it loads the compiler

    calibration = first.calibration
    t, reach = calibration.scale, threshold_in_steps(first.threshold, calibration)
    loss, positions, seen, starts = 0.0, list[int](), list[int](), [0]
    for xs, ys in zip(_steps_of_rows(first), _steps_of_rows(second), strict=True):
        for position in sorted(xs.keys() | ys.keys()):
            x, y = xs.get(position, 0), ys.get(position, 0)
            z = max(x, reach)
            of_seen = (abs(z - y) - abs(z - x)) / t
            of_below = log_below(reach - x, t) - log_below(reach - y, t)
            loss += max(of_seen, of_below)
            if of_seen > of_below or (x == y and x >= reach):
                positions.append(position)
                seen.append(z)
        starts.append(len(positions))
    return loss, NoisedTail(
        values=np.array([float(z) * 2.0**calibration.step_log2 for z in seen]),
        scale=calibration.noise_scale,
        positions=np.array(positions, np.int64),
        starts=np.array(starts, np.int64),
    )


def _steps_of_rows(tail: Tail) -> list[dict[int, int]]:
    """For each row the steps at its positions."""
    positions, starts = tail.positions.tolist(), tail.starts.tolist()
    steps = [int(x) for x in to_lattice(tail.values, tail.calibration)]
    return [dict(zip(positions[a:b], steps[a:b], strict=True)) for a, b in pairwise(starts)]


def log_below(distance: int, t: int) -> float:
    """The logarithm of P(Z < distance), for P(Z = z) proportional to exp(-|z| / t)."""
    q = math.exp(-1 / t)
    if distance <= 0:
        return (distance - 1) / t - math.log1p(q)
    return math.log1p(-math.exp(-distance / t) / (1 + q))
