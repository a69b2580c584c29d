"""Compiled loops of `suggestions`: the places that noise leaves open. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil._compiled import inlined, inner
from edgeveil.estimate._law_kernels import STEPS, beside, place_of, sort
from edgeveil.estimate.popularity import CELLS, FINE

_OPEN = 0.02  # posterior mass left out on either side of a place's range
_DEVIATIONS = 2.0  # of the number of nodes ahead
_NOBODY = 1e-3  # of a node is left out of a count
_TIES = 1e-9  # scores that differ by less are equal: roundings decide no place
_TINY = 1e-300


@inner
def open_seen(
    z: float, at: int, c: int, unit: float, rate: float, decays: Any, left: Any, right: Any
) -> Any:
    """The lowest and the highest point that noise leaves open for the true sum of a noisy z."""
    size = len(decays)
    before, after = beside(z, at, unit, rate, size)
    whole = max(left[at, c] * before + right[at, c] * after, _TINY)
    before, after = before / whole, after / whole
    low = _reaches(_OPEN, at, c, before, after, decays, left, right)
    return low, _reaches(1 - _OPEN, at, c, before, after, decays, left, right)


@inner
def _reaches(
    share: float, at: int, c: int, before: float, after: float, decays: Any, left: Any, right: Any
) -> int:
    """The first point up to which the posterior has so much mass, searched from z on."""
    x = at - 1
    if at > 0 and left[at, c] * before >= share:
        while x > 0 and left[x, c] * before * decays[x - 1] >= share:
            x -= 1
            before *= decays[x]
        return x
    x = at
    while x < len(decays) - 1 and right[x + 1, c] * after * decays[x] > 1 - share:
        after *= decays[x]
        x += 1
    return min(x, len(decays) - 1)


@inner
def open_below(chances: Any, c: int, size: int) -> Any:
    """The same for a sum below the threshold; ``chances`` as in `open_places`."""
    low = 0
    while low < size - 1 and 1 - chances[low + 1, c] < _OPEN:
        low += 1
    high = low
    while high < size - 1 and 1 - chances[high + 1, c] < 1 - _OPEN:
        high += 1
    return low, high


@inner
def open_places(
    chances: Any,  # IN  (x + 1, c) that a sum below the threshold is at point x or beyond
    below: Any,  # IN  (fine cells) strangers below the threshold
    following: Any,  # IN  (fine cells) how many of them follow the member
    popular: Any,  # IN  (fine cells)
    bonus: float,
    items: Any,  # IN  of `collect`
    found: int,
    unit: float,
    rate: float,
    decays: Any,  # IN  (x)
    left: Any,  # IN  (x + 1, c) of the ranking law
    right: Any,  # IN  (x + 1, c)
    limits: Any,  # IN  (2 k) the highest score of each place that is open, then the lowest
    chosen: int,  # places
    strangers: float,
    out: Any,  # OUT (k, FIELDS)
) -> None:
    """Write first and last place: how many strangers may be ahead of each limit."""
    k, size, count = len(limits) // 2, len(decays), 0
    rising, column = np.empty(2 * chosen), np.empty(size + 1)
    for r in range(chosen):
        rising[2 * r], rising[2 * r + 1] = limits[r], limits[k + r]
    sort(rising)
    for r in range(2 * chosen):  # each once
        if count == 0 or rising[r] > rising[count - 1]:
            rising[count] = rising[r]
            count += 1
    ahead = np.empty((count, 2))  # of each limit: expected nodes, and their squared chances
    upto, sums = np.empty(CELLS * FINE), np.empty((2, size, CELLS))
    _sum_cells(chances, below, following, upto, sums)
    for q in range(count):
        ahead[q, 0], ahead[q, 1] = _ahead(rising[q], chances, popular, unit, upto, sums)
    for f in range(CELLS * FINE):
        if following[f] > 0:
            for x in range(size):
                column[x] = chances[x, f // FINE]
            _add(column, 0, size, following[f], unit, popular[f] + bonus, rising, ahead)
    for b in range(found):  # as many at their mean
        number, offset, key = items[0, b], items[2, b] / items[0, b], int(items[3, b])
        first = max(place_of(rising[0] - offset, unit, size) - 1, 0)  # none before exceeds a limit
        end = _fill_beyond(
            items[1, b] / number, key // (4 * CELLS), key % CELLS, first, _NOBODY / number,
            unit, rate, decays, left, right, column,
        )  # fmt: skip
        _add(column, first, end, number, unit, offset, rising, ahead)
    for r in range(chosen):
        for j in range(2):
            q, high = 0, count - 1
            while q < high:
                middle = (q + high) // 2
                if rising[middle] < limits[j * k + r]:
                    q = middle + 1
                else:
                    high = middle
            mean = ahead[q, 0]
            spread = _DEVIATIONS * math.sqrt(max(mean - ahead[q, 1], 0.0) + 1)
            if j == 0:
                out[r, 2] = min(max(math.floor(mean - spread) + 1.0, 1.0), r + 1.0)
            else:
                out[r, 3] = max(min(math.ceil(mean + spread) + 1.0, strangers), r + 1.0)


@inner
def _sum_cells(chances: Any, below: Any, following: Any, upto: Any, sums: Any) -> None:
    """Of the strangers below the threshold that do not follow the member, what `_ahead` adds up.

    OUT ``upto`` (fine cells): how many there are up to this part of a cell. OUT ``sums`` (2, x, c):
    how many of all cells before are expected at point x or beyond, and the squared chances.
    """
    for x in range(sums.shape[1]):
        sums[0, x, 0] = sums[1, x, 0] = 0.0
    for c in range(CELLS):
        number = 0.0
        for f in range(c * FINE, (c + 1) * FINE):
            number += below[f] - following[f]
            upto[f] = number
        if c + 1 < CELLS:
            for x in range(sums.shape[1]):
                part = number * chances[x, c]
                sums[0, x, c + 1] = sums[0, x, c] + part
                sums[1, x, c + 1] = sums[1, x, c] + part * chances[x, c]


@inlined
def _ahead(limit: float, chances: Any, popular: Any, unit: float, upto: Any, sums: Any) -> Any:
    """How many strangers of `_sum_cells` are expected beyond a limit, and their squared chances.

    Popularity does not fall from one fine cell to the next, so those that exceed the limit from
    the same point on are neighbours: there are few such points, and each is two sums.
    """
    size, end, mean, squares = sums.shape[1], len(popular), 0.0, 0.0
    x = place_of(limit + _TIES - popular[end - 1], unit, size)
    while end > 0 and x < size:
        least, first, high = limit + _TIES - STEPS[x] * unit, 0, end
        while first < high:
            middle = (first + high) // 2
            if popular[middle] > least:
                high = middle
            else:
                first = middle + 1
        if first < end:
            c = (end - 1) // FINE
            part = upto[end - 1] * chances[x, c]
            mean += sums[0, x, c] + part
            squares += sums[1, x, c] + part * chances[x, c]
            if first > 0:
                c = (first - 1) // FINE
                part = upto[first - 1] * chances[x, c]
                mean -= sums[0, x, c] + part
                squares -= sums[1, x, c] + part * chances[x, c]
        end, x = first, x + 1
    return mean, squares


@inlined
def _add(
    column: Any, x: int, end: int, number: float, unit: float, offset: float, rising: Any,
    ahead: Any,
) -> None:  # fmt: skip
    """INOUT ``ahead``: add nodes whose sum is at point x or beyond with the chance column[x].

    From point x on; from `end` on there are none.
    """
    for q in range(len(ahead)):
        while x < end and STEPS[x] * unit + offset - _TIES <= rising[q]:
            x += 1
        if x == end:
            break
        ahead[q, 0] += number * column[x]
        ahead[q, 1] += number * column[x] * column[x]


@inlined
def _fill_beyond(
    z: float, at: int, c: int, first: int, least: float, unit: float, rate: float, decays: Any,
    left: Any, right: Any, column: Any,
) -> int:  # fmt: skip
    """OUT ``column`` (x + 1): that the true sum of a noisy z is at point x or beyond.

    From point `first` up to the one, which is given, where that is less than `least`.
    """
    size = len(decays)
    before, after = beside(z, at, unit, rate, size)
    whole = max(left[at, c] * before + right[at, c] * after, _TINY)
    weight = before / whole  # from the last point before z down
    for x in range(at, max(first, 1) - 1, -1):
        column[x] = min(max(1 - left[x, c] * weight, 0.0), 1.0)
        weight *= decays[x - 2] if x > 1 else 0.0
    weight, x = after / whole, at
    while x < size:
        column[x] = min(max(right[x, c] * weight, 0.0), 1.0)
        if column[x] < least and x >= first:
            break
        weight *= decays[x]
        x += 1
    if first == 0:
        column[0] = 1.0
    return x
