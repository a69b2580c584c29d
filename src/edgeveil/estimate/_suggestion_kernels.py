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

from edgeveil.estimate._compile import compiled

__all__ = ["KINDS", "PLAIN", "STEPS", "circles", "fit_laws", "mean_counts", "points_to"]

PLAIN = 5  # Poisson laws, about what t = 1/4, 1/2, 1, 2, 4 times as many pairs explain
TAIL = (0.5, 1.0, 2.5)  # means of the exponentials, in friends' mean sums
KINDS = PLAIN + len(TAIL)

_TAIL_MOST = 0.5  # of the nodes of a cell
_FIRST_SHARE = 0.001  # of each exponential, before the fit
_PSEUDO = 0.2  # nodes that each component of the tail has beforehand, and
_SEATS = 0.5  # strangers in the member's circles for each friend in them, beforehand
_FOR_CIRCLES, _FOR_DEGREE = 0.5, 1.5  # friends beforehand: popularity if in doubt
_ROUNDS = 60
_SETTLED = 1e-3  # a fit ends when no share moves by more, relatively
_POSSIBLE = 1e-290  # values that are less likely under all laws tell nothing, and would overflow


_UNIT_STEPS = 30  # points of the grid lie one unit apart up to here


def _steps() -> Any:
    """Whole numbers, from 30 on ever wider apart: points of every grid, in its unit."""
    steps = [float(i) for i in range(_UNIT_STEPS + 1)]
    while steps[-1] < 1e15:
        steps.append(max(steps[-1] + 1, round(1.06 * steps[-1])))
    return np.array(steps)


STEPS = _steps()
_LOG_FACTORIALS = np.array([math.lgamma(step + 1) for step in STEPS])


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
                value *= mean / STEPS[j]
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
        out[j] /= whole


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


@compiled
def place_of(points: Any, z: float) -> int:
    """How many points are at most z."""
    return np.searchsorted(points, z, side="right")


@compiled
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
        cells[u] = min(np.searchsorted(centres, degrees[u]), len(centres) - 1)
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
    return fit_share(odds, _FOR_CIRCLES, _FOR_DEGREE, _ROUNDS), typical


@compiled
def fit_share(odds: Any, for_one: float, for_other: float, rounds: int) -> float:
    """Fit by EM the share of the first of two laws, of which each value has one.

    IN ``odds``: likelihood under the first law, divided by that under the second.
    """
    share = for_one / (for_one + for_other)
    for _ in range(rounds):
        count, against = for_one, (1 - share) / share
        for i in range(len(odds)):
            count += 1 / (1 + against / odds[i]) if odds[i] > 0 else 0.0
        share = count / (len(odds) + for_one + for_other)
    return share


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
    rows = count * PLAIN  # row of the first exponential; cell c has rows c * PLAIN and on
    mass = np.empty((rows + len(TAIL), size))
    for c in range(count):
        for t in range(PLAIN):
            _poisson(expected[t, c] / unit, width, mass[c * PLAIN + t])
    for j in range(len(TAIL)):
        _exponential(TAIL[j] * typical, points, width, mass[rows + j])
    likelihoods, items, often = _likelihoods(mass, points, rate, unseen, below, cells, sums)
    mix = np.empty((count, KINDS))
    for more in range(2):
        pseudo = _PSEUDO + (_SEATS * seats / len(TAIL) if more else 0.0)
        fit_mixture(likelihoods, items, often, growth, pseudo, mix)
        out = ranking if more else law
        for c in range(count):
            one = out[c]
            one[:] = 0.0
            for k in range(KINDS):
                share, of = mix[c, k], mass[c * PLAIN + k if k < PLAIN else rows + k - PLAIN]
                for x in range(size):
                    one[x] += share * of[x]


@compiled
def _likelihoods(
    mass: Any, points: Any, rate: float, unseen: Any, below: Any, cells: Any, sums: Any
) -> Any:
    """Likelihood of each value under each component, its cell, and how often it was seen.

    First those below the threshold, one for each cell, then the others.
    """
    size, count = len(points), len(below)
    rows = count * PLAIN
    found = np.empty((count + len(sums), KINDS))
    items, often = np.empty(len(found), dtype=np.int64), np.ones(len(found))
    for c in range(count):
        items[c], often[c] = c, below[c]
        for k in range(KINDS):
            of, chance = mass[c * PLAIN + k if k < PLAIN else rows + k - PLAIN], 0.0
            for x in range(size):
                chance += of[x] * unseen[x]
            found[c, k] = chance
    decays, made = decays_of(points, rate), np.zeros(count, dtype=np.bool_)
    left, right = np.empty((2, len(mass), size + 1))
    for k in range(rows, len(mass)):
        laplace_tables(mass[k], decays, left[k], right[k])
    for i in range(len(sums)):
        c = items[count + i] = cells[i]
        if not made[c]:
            made[c] = True
            for k in range(c * PLAIN, (c + 1) * PLAIN):
                laplace_tables(mass[k], decays, left[k], right[k])
        at = place_of(points, sums[i])
        before, after = beside(points, at, sums[i], rate)
        for k in range(KINDS):
            row = c * PLAIN + k if k < PLAIN else rows + k - PLAIN
            found[count + i, k] = left[row, at] * before + right[row, at] * after
    return found, items, often


@compiled
def fit_mixture(
    likelihoods: Any,  # IN  (m, k) of each value under each component
    cells: Any,  # IN  (m) degree cell of each
    often: Any,  # IN  (m) how often it was seen
    growth: Any,  # IN  (c) how the share of the tail grows with the degree
    pseudo: float,  # counts that each component of the tail has beforehand; the others have 1
    mix: Any,  # OUT (c, k) shares by cell
) -> None:
    """Fit the shares of a mixture to one row by EM."""
    shares, counts = np.full(KINDS, _FIRST_SHARE), np.empty(KINDS)
    shares[:PLAIN] = 1 / PLAIN
    exposure, moved = 1.0, np.inf
    for i in range(len(cells)):
        exposure += often[i] * growth[cells[i]]
    for turn in range(_ROUNDS + 1):
        whole_tail = 0.0
        for k in range(PLAIN, KINDS):
            whole_tail += shares[k]
        for c in range(len(growth)):
            cut = growth[c] * min(1.0, _TAIL_MOST / (whole_tail * growth[c]))
            for k in range(PLAIN):
                mix[c, k] = shares[k] * (1 - whole_tail * cut)
            for k in range(PLAIN, KINDS):
                mix[c, k] = shares[k] * cut
        if turn == _ROUNDS or moved < _SETTLED:
            break
        counts[:PLAIN] = 1.0
        counts[PLAIN:] = pseudo
        for i in range(len(cells)):
            of, its = likelihoods[i], mix[cells[i]]
            whole = 0.0
            for k in range(KINDS):
                whole += its[k] * of[k]
            if whole > _POSSIBLE:
                scale = often[i] / whole
                for k in range(KINDS):
                    counts[k] += its[k] * of[k] * scale
        explained = 0.0
        for k in range(PLAIN):
            explained += counts[k]
        moved = 0.0
        for k in range(KINDS):
            new = counts[k] / (explained if k < PLAIN else exposure)
            moved = max(moved, abs(new - shares[k]) / (new + 1e-9))
            shares[k] = new
