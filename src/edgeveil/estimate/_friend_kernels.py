"""Compiled loops of `suggestions`: what members' friends tell. As `_walk_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inner
from edgeveil.estimate._law_kernels import (
    PLAIN,
    TAIL,
    beside,
    decays_of,
    exponentials,
    laplace_tables,
    place_of,
    poissons,
    size_of,
    sort,
    widths_of,
)
from edgeveil.estimate.popularity import CELLS, FINE

_CLEAR = 1.5  # by how much weighted sums must exceed what noise alone reaches
_LEAST_UNIT = 0.02  # of the grid
_FOR_CIRCLES, _FOR_DEGREE = 0.5, 1.5  # friends beforehand: popularity if in doubt
_SHARE_ROUNDS, _SETTLED = 60, 1e-4
_SMALL = 1 / 64  # up to here five terms give 1 - exp(-x) to 12 digits


@compiled
def weigh_friends(
    lists: Any,  # IN  friends of all members
    starts: Any,  # IN  (m + 1)
    sums: Any,  # IN  the friends' noisy sums
    of_friends: Any,  # IN  (n) degrees
    clear: float,  # what noise alone reaches
    weights: Any,  # OUT as long as `lists`
) -> None:
    """min(1, D0 / degree) with D0 the 0.75, else the 0.9 quantile of a member's friends' degrees.

    If the sums that are left stand out of the noise; else all are 1.
    """
    for i in range(len(starts) - 1):
        first, count = starts[i], starts[i + 1] - starts[i]
        mean = 0.0
        for u in range(first, first + count):
            weights[u] = 1.0
            mean += sums[u] / count
        if mean < _CLEAR * clear:  # weights are at most 1
            continue
        degrees = np.empty(count)
        for u in range(count):
            degrees[u] = of_friends[lists[first + u]]
        sort(degrees)
        for quantile in (0.75, 0.9):
            at = quantile * (count - 1)
            low = int(at)
            step = degrees[min(low + 1, count - 1)] - degrees[low]
            start, whole = degrees[low] + (at - low) * step, 0.0
            for u in range(count):
                whole += min(1.0, start / degrees[u])
            if whole / count * mean >= _CLEAR * clear:
                for u in range(first, first + count):
                    weights[u] = min(1.0, start / of_friends[lists[u]])
                break


@inner
def read_friends(
    own: Any,  # IN  (f) friends
    sums: Any,  # IN  (f) their noisy sums
    weights: Any,  # IN  (f)
    of_friends: Any,  # IN  (n) degrees
    centres: Any,  # IN  (c) degrees of the cells
    total: float,  # sum of all degrees
    between: Any,  # IN  (2, fine cells) a cell, and the part of the way to the next
    rates: Any,  # 1 / scale of the noise on strangers' and on friends' sums
    highest: float,  # of the strangers' noisy sums, or 0
    expected: Any,  # OUT (5 c) what degrees explain of a stranger's sum
    popular: Any,  # OUT (fine cells) what that adds to a score
) -> Any:
    """What the friends of a member tell about it, and about its popular strangers.

    The share of circles, mean of the tail, unit and number of points of the grid, typical weight,
    and reach.
    """
    counted, rising = np.zeros(CELLS), np.empty(CELLS)
    whole = reach = squares = 0.0
    for c in range(PLAIN * CELLS):
        expected[c] = 0.0
    for u in range(len(own)):
        degree, weight = of_friends[own[u]], weights[u]
        _explain(centres, degree / total, weight, expected, counted)
        whole += weight
        reach += weight * degree
        squares += weight * weight * degree
    share, typical = _circles(centres, own, of_friends, sums, counted, total, rates[1])
    typical_weight = whole / len(own) if len(own) else 1.0
    typical = max(1.0, typical * typical_weight)
    unit = max(squares / reach if reach > 0 else 1.0, _LEAST_UNIT)
    size = size_of(min(whole, max(8 * typical, highest + 10 / rates[0])), unit)
    so_far = 0.0  # the more popular, the more
    for c in range(CELLS):
        so_far = max(so_far, (1 - share) / share * expected[2 * CELLS + c])
        rising[c] = so_far
    for f in range(CELLS * FINE):
        at = int(between[0, f])
        popular[f] = rising[at] + between[1, f] * (rising[at + 1] - rising[at])
    return share, typical, unit, size, typical_weight, reach


@inner
def _explain(centres: Any, rate: float, weight: float, weighted: Any, counted: Any) -> None:
    """INOUT: add w (1 - exp(-t rate d)) for t = 1/4, 1/2, 1, 2, 4 by cell; ``counted`` t = 1."""
    for c in range(CELLS):
        x = 0.25 * rate * centres[c]
        if x < _SMALL:
            hit = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))))
        else:
            hit = -math.expm1(-x)
        weighted[c] += weight * hit
        hit *= 2 - hit  # twice as many pairs
        weighted[CELLS + c] += weight * hit
        hit *= 2 - hit
        weighted[2 * CELLS + c] += weight * hit
        counted[c] += hit
        hit *= 2 - hit
        weighted[3 * CELLS + c] += weight * hit
        hit *= 2 - hit
        weighted[4 * CELLS + c] += weight * hit


@inner
def _circles(
    centres: Any,  # IN (c) degrees of the cells
    own: Any,  # IN (f) friends
    of_friends: Any,  # IN (n) degrees
    sums: Any,  # IN (f) their noisy sums
    counted: Any,  # IN (c) of `_explain`
    total: float,
    rate: float,  # of the noise on them
) -> Any:
    """How many friends share circles with the member, as a share, and their typical sum.

    A friend's sum is either what its degree explains, or has the law of the tail.
    """
    size = len(own)
    if size == 0:
        return 0.5, 0.0
    by_degree = np.empty(CELLS)
    for c in range(CELLS):  # nobody is its own friend
        by_degree[c] = max(counted[c] + math.expm1(-centres[c] * centres[c] / total), 0.0)
    # The friends' degrees are size-biased: they have cells of their own.
    cells, typical, highest = np.empty(size, dtype=np.int64), 0.0, -np.inf
    for u in range(size):
        c = 0
        while c < CELLS - 1 and centres[c] < of_friends[own[u]]:
            c += 1
        cells[u] = c
        typical += sums[u] - by_degree[c]
        highest = max(highest, sums[u])
    typical = max(typical / size, 1.0)
    points = size_of(min(float(size), max(highest + 10 / rate, 8 * typical)), 1.0)
    widths, decays = np.empty(points), np.empty(points)
    widths_of(widths)
    decays_of(rate, decays)
    # A lane for each cell, and the last for the mean of the tail.
    mass, tails = np.empty((points, CELLS + 1)), np.empty((points, len(TAIL)))
    poissons(by_degree, widths, mass, np.empty(CELLS), np.empty(CELLS))
    exponentials(typical, 1.0, widths, tails, 0)
    for x in range(points):
        mass[x, CELLS] = 0.0
        for j in range(len(TAIL)):
            mass[x, CELLS] += tails[x, j] / len(TAIL)
    left, right = np.empty((points + 1, CELLS + 1)), np.empty((points + 1, CELLS + 1))
    laplace_tables(mass, points, CELLS + 1, decays, left, right)
    odds = np.empty(size)
    for u in range(size):
        at, c = place_of(sums[u], 1.0, points), cells[u]
        before, after = beside(sums[u], at, 1.0, rate, points)
        one = left[at, CELLS] * before + right[at, CELLS] * after
        other = left[at, c] * before + right[at, c] * after
        odds[u] = one / other if other > 0 else (np.inf if one > 0 else 1.0)
    return fit_share(odds, _FOR_CIRCLES, _FOR_DEGREE, _SHARE_ROUNDS), typical


@compiled
def fit_share(odds: Any, for_one: float, for_other: float, rounds: int) -> float:
    """Fit by EM the share of the first of two laws, of which each value has one.

    IN ``odds``: likelihood under the first law, divided by that under the second.
    """
    share = for_one / (for_one + for_other)
    for _ in range(rounds):
        count, against, before = for_one, (1 - share) / share, share
        for i in range(len(odds)):
            count += odds[i] / (odds[i] + against) if odds[i] < 1e300 else 1.0
        share = count / (len(odds) + for_one + for_other)
        if abs(share - before) < _SETTLED * before:
            break
    return share
