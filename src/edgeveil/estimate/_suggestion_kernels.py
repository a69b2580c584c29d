"""Compiled loops of `suggestions`: the laws of a member's sums, fitted to its released row.

What a true sum may be is a law on a grid of points, by degree cell: a mixture of five Poisson laws
about what the degree explains and three exponentials, the tail. With Laplace noise the likelihood
of a value is two table entries times two exponentials. Formulae: docs/theory/suggestions.md; a
plain version of all of this is in tests/unit/estimate/plain_suggestions.py. As `_kernels`: no
bounds checks, arrays in and out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inlined
from edgeveil.estimate._mixture_kernels import KINDS, PLAIN, TAIL, fit_mixture, fit_share

__all__ = [
    "STEPS",
    "beside",
    "circles",
    "decays_of",
    "fit_laws",
    "laplace_tables",
    "mean_counts",
    "place_of",
    "points_to",
]


_PSEUDO = 0.2  # nodes that each component of the tail has beforehand, and
_SEATS = 0.5  # strangers in the member's circles for each friend in them, beforehand
_FOR_CIRCLES, _FOR_DEGREE = 0.5, 1.5  # friends beforehand: popularity if in doubt
_SHARE_ROUNDS = 60


_UNIT_STEPS = 30  # points of the grid lie one unit apart up to here


def _steps() -> Any:
    """Whole numbers, from 30 on ever wider apart: points of every grid, in its unit."""
    steps = [float(i) for i in range(_UNIT_STEPS + 1)]
    while steps[-1] < 1e15:
        steps.append(max(steps[-1] + 1, round(1.06 * steps[-1])))
    return np.array(steps)


STEPS = _steps()
_LOG_FACTORIALS = np.array([math.lgamma(step + 1) for step in STEPS])
_INVERSES = 1 / np.maximum(STEPS, 1.0)


@compiled
def points_to(top: float, unit: float) -> Any:
    """Multiples of `unit` that reach from 0 to `top`, and how much of the line each stands for."""
    size = _UNIT_STEPS + 1
    while size < len(STEPS) and STEPS[size - 1] * unit < top:
        size += 1
    width = np.empty(size)
    width[0] = 1.0
    for j in range(1, size - 1):
        width[j] = (STEPS[j + 1] - STEPS[j - 1]) / 2
    width[size - 1] = 0.5 + (STEPS[size - 1] - STEPS[size - 2]) / 2
    return STEPS[:size] * unit, width


@compiled
def mean_counts(
    degrees: Any,  # IN  (c) of the candidates
    friends: Any,  # IN  (f) degrees of the friends
    weights: Any,  # IN  (f)
    total: float,  # sum of all degrees
    weighted: Any,  # OUT (5, c)
    counted: Any,  # OUT (c) t = 1, all weights 1
) -> None:
    """Write sum_u w_u (1 - exp(-t d_u d / total)) for t = 1/4, 1/2, 1, 2, 4."""
    weighted[:] = 0.0
    counted[:] = 0.0
    for u in range(len(friends)):
        rate, weight = 0.25 * friends[u] / total, weights[u]
        for c in range(len(degrees)):
            missed = math.exp(-rate * degrees[c])
            weighted[0, c] += weight * (1 - missed)
            missed *= missed
            weighted[1, c] += weight * (1 - missed)
            missed *= missed
            weighted[2, c] += weight * (1 - missed)
            counted[c] += 1 - missed
            missed *= missed
            weighted[3, c] += weight * (1 - missed)
            missed *= missed
            weighted[4, c] += weight * (1 - missed)


@compiled
def _poisson(mean: float, width: Any, out: Any) -> None:
    """OUT ``out`` (x): the Poisson law on the grid, in units."""
    mean = max(mean, 1e-9)
    log_mean, size, whole = math.log(mean), len(out), 0.0
    if mean < 50:  # so e^mean is a float: each point from the one before
        value = 1.0
        for j in range(size):
            if j > _UNIT_STEPS:
                gap = STEPS[j] - STEPS[j - 1]
                value *= math.exp(gap * log_mean - (_LOG_FACTORIALS[j] - _LOG_FACTORIALS[j - 1]))
            elif j > 0:
                value *= mean * _INVERSES[j]
            if value < 1e-250:  # numbers near the end of the floats are slow
                value = 0.0
            out[j] = value * width[j]
            whole += out[j]
    else:
        top = -np.inf
        for j in range(size):
            out[j] = STEPS[j] * log_mean - _LOG_FACTORIALS[j]
            top = max(top, out[j])
        for j in range(size):
            out[j] = math.exp(out[j] - top) * width[j]
            whole += out[j]
    for j in range(size):
        out[j] *= 1 / whole


@compiled
def _exponential(mean: float, points: Any, width: Any, out: Any) -> None:
    """OUT ``out`` (x): an exponential law on the grid; of the first point's width half is left."""
    whole = 0.0
    for j in range(len(points)):
        out[j] = math.exp(-points[j] / mean) * (width[j] if j > 0 else width[j] / 2)
        whole += out[j]
    for j in range(len(points)):
        out[j] /= whole


@compiled
def decays_of(points: Any, rate: float) -> Any:
    """exp(-rate * gap) from each point to the next."""
    decays = np.empty(len(points))
    decays[:_UNIT_STEPS] = math.exp(-rate * points[1])
    for j in range(_UNIT_STEPS, len(points) - 1):
        decays[j] = math.exp(-rate * (points[j + 1] - points[j]))
    decays[-1] = 0.0
    return decays


@compiled
def laplace_tables(mass: Any, decays: Any, left: Any, right: Any) -> None:
    """OUT (x + 1): sums of mass * exp(-rate * distance) over the points on either side of each.

    left[j + 1] sums over the points up to j, with the distance from point j; right[j] over the
    points from j on. left[0] and right[x] are 0. So the likelihood of a z between points j and
    j + 1 is rate / 2 times
    left[j + 1] exp(-rate (z - x_j)) + right[j + 1] exp(-rate (x_(j+1) - z)).
    """
    size = len(mass)
    left[0] = right[size] = 0.0
    below = above = 0.0
    for j in range(size):
        below = below * decays[j - 1] + mass[j]  # decays[-1] is 0
        left[j + 1] = below
    for j in range(size - 1, -1, -1):
        above = above * decays[j] + mass[j]
        right[j] = above


@inlined
def place_of(points: Any, z: float) -> int:
    """How many points, which rise, are at most z."""
    low, high = 0, len(points)
    while low < high:
        middle = (low + high) // 2
        if points[middle] <= z:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def beside(points: Any, at: int, z: float, rate: float) -> Any:
    """What the two table entries of a value between points at - 1 and at are multiplied with.

    Beyond either end that is a factor of all laws alike, and left out: it would underflow.
    """
    if at == len(points):
        return 1.0, 0.0
    if at == 0:
        return 0.0, 1.0
    return math.exp(-rate * (z - points[at - 1])), math.exp(-rate * (points[at] - z))


@compiled
def circles(
    centres: Any,  # IN (c) degrees of the cells
    degrees: Any,  # IN (f) of the friends
    sums: Any,  # IN (f) their noisy sums
    counted: Any,  # IN (c) of `mean_counts`
    total: float,
    rate: float,  # of the noise on them
) -> Any:
    """How many friends share circles with the member, as a share, and their typical sum.

    A friend's sum is either what its degree explains, or has the law of the tail.
    """
    size = len(degrees)
    if size == 0:
        return 0.5, 0.0
    by_degree = np.empty(len(centres))
    for c in range(len(centres)):  # nobody is its own friend
        by_degree[c] = max(counted[c] + math.expm1(-centres[c] * centres[c] / total), 0.0)
    # The friends' degrees are size-biased: they have cells of their own.
    cells, typical, highest = np.empty(size, dtype=np.int64), 0.0, -np.inf
    for u in range(size):
        c = 0
        while c < len(centres) - 1 and centres[c] < degrees[u]:
            c += 1
        cells[u] = c
        typical += sums[u] - by_degree[cells[u]]
        highest = max(highest, sums[u])
    typical = max(typical / size, 1.0)
    points, width = points_to(min(float(size), max(highest + 10 / rate, 8 * typical)), 1.0)
    decays = decays_of(points, rate)
    # Row c: the law of a cell, made when a friend is in it; the last row: the mean of the tail.
    mass, part = np.zeros((2, len(points)))
    left, right = np.empty((2, len(centres) + 1, len(points) + 1))
    for j in range(len(TAIL)):
        _exponential(TAIL[j] * typical, points, width, part)
        mass += part / len(TAIL)
    laplace_tables(mass, decays, left[-1], right[-1])
    made = np.zeros(len(centres), dtype=np.bool_)
    odds = np.empty(size)
    for u in range(size):
        c = cells[u]
        if not made[c]:
            made[c] = True
            _poisson(by_degree[c], width, mass)
            laplace_tables(mass, decays, left[c], right[c])
        at = place_of(points, sums[u])
        below, above = beside(points, at, sums[u], rate)
        one = left[-1, at] * below + right[-1, at] * above
        other = left[c, at] * below + right[c, at] * above
        odds[u] = one / other if other > 0 else (np.inf if one > 0 else 1.0)
    return fit_share(odds, _FOR_CIRCLES, _FOR_DEGREE, _SHARE_ROUNDS), typical


@compiled
def fit_laws(
    expected: Any,  # IN  (5, c) of `mean_counts`
    typical: float,  # mean of the tail
    seats: float,  # friends that share circles with the member
    grid: Any,  # points and widths of `points_to`
    unit: float,
    rate: float,
    unseen: Any,  # IN  (x) chance that a sum at each point stays below the threshold
    below: Any,  # IN  (c) how many do
    cells: Any,  # IN  (m) of the values that do not
    sums: Any,  # IN  (m)
    growth: Any,  # IN  (c) how the share of the tail grows with the degree
    law: Any,  # OUT (c, x) for estimates
    ranking: Any,  # OUT (c, x) the same with more in the tail beforehand
) -> None:
    """Law of a true sum by cell: a mixture whose shares are fitted to the member's row."""
    points, width = grid
    size, count = len(points), len(below)
    mass = np.empty((count, size, KINDS))  # components side by side: loops over them are one step
    tail = np.empty((len(TAIL), size))
    for j in range(len(TAIL)):
        _exponential(TAIL[j] * typical, points, width, tail[j])
    for c in range(count):
        for t in range(PLAIN):
            _poisson(expected[t, c] / unit, width, mass[c, :, t])
        for x in range(size):
            for j in range(len(TAIL)):
                mass[c, x, PLAIN + j] = tail[j, x]
    likelihoods, items, often = _likelihoods(mass, points, rate, unseen, below, cells, sums)
    mix = np.empty((count, KINDS))
    for more in range(2):
        pseudo = _PSEUDO + (_SEATS * seats / len(TAIL) if more else 0.0)
        fit_mixture(likelihoods, items, often, growth, pseudo, more == 1, mix)
        out = ranking if more else law
        for c in range(count):
            for x in range(size):
                value = 0.0
                for k in range(KINDS):
                    value += mix[c, k] * mass[c, x, k]
                out[c, x] = value


@compiled
def _likelihoods(
    mass: Any, points: Any, rate: float, unseen: Any, below: Any, cells: Any, sums: Any
) -> Any:
    """Likelihood of each value under each component, its cell, and how often it was seen.

    First those below the threshold, one for each cell, then the others.
    """
    size, count = len(points), len(below)
    found = np.zeros((count + len(sums), KINDS))
    items, often = np.empty(len(found), dtype=np.int64), np.ones(len(found))
    for c in range(count):
        items[c], often[c] = c, below[c]
        for x in range(size):
            for k in range(KINDS):
                found[c, k] += mass[c, x, k] * unseen[x]
    decays, made = decays_of(points, rate), np.zeros(count, dtype=np.bool_)
    left, right = np.empty((2, count, size + 1, KINDS))  # of `laplace_tables`
    for i in range(len(sums)):
        c = items[count + i] = cells[i]
        if not made[c]:
            made[c] = True
            left[c, 0], right[c, size] = 0.0, 0.0
            for x in range(size):
                for k in range(KINDS):
                    left[c, x + 1, k] = left[c, x, k] * decays[x - 1] + mass[c, x, k]
            for x in range(size - 1, -1, -1):
                for k in range(KINDS):
                    right[c, x, k] = right[c, x + 1, k] * decays[x] + mass[c, x, k]
        at = place_of(points, sums[i])
        before, after = beside(points, at, sums[i], rate)
        for k in range(KINDS):
            found[count + i, k] = left[c, at, k] * before + right[c, at, k] * after
    return found, items, often
