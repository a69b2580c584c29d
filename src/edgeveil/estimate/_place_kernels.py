"""Compiled loops of `suggestions`: the places that noise leaves open. As `_walk_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import inner
from edgeveil.estimate._law_kernels import STEPS, beside, place_of, sort
from edgeveil.estimate.popularity import CELLS, FINE

_OPEN = 0.02  # posterior mass left out on either side of a place's range
_DEVIATIONS = 2.0  # of the number of nodes ahead
_NOBODY = 1e-4  # of a node is left out of a count
_TIES = 1e-9  # scores that differ by less are equal: roundings decide no place
_TINY = 1e-300
_BINS = 256  # of limits, to find one in


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
    k, size, count = len(limits) // 2, len(decays), 2 * chosen
    rising, mean, spread = np.empty(count), np.zeros(count + 1), np.zeros(count + 1)
    index, chance = np.empty(_BINS + 1, dtype=np.int64), np.empty((size + 1, 1))
    for r in range(chosen):
        rising[2 * r], rising[2 * r + 1] = limits[r], limits[k + r]
    sort(rising)
    _fill_index(rising, index)
    for f in range(CELLS * FINE):
        c, hidden, offset = f // FINE, below[f] - following[f], popular[f]
        first = _first_point(rising, offset, unit, size)
        _add(chances, c, first, size, hidden, unit, offset, rising, index, mean, spread)
        if following[f] > 0:
            first, offset = _first_point(rising, offset + bonus, unit, size), offset + bonus
            _add(chances, c, first, size, following[f], unit, offset, rising, index, mean, spread)
    for b in range(found):  # as many at their mean
        number, key = items[0, b], int(items[3, b])
        z, offset = items[1, b] / number, items[2, b] / number
        first = _first_point(rising, offset, unit, size)
        end = _beyond(
            z, key // (4 * CELLS), key % CELLS, first, _NOBODY / number, unit, rate, decays,
            left, right, chance,
        )  # fmt: skip
        _add(chance, 0, first, end, number, unit, offset, rising, index, mean, spread)
    for q in range(1, count):
        mean[q] += mean[q - 1]
        spread[q] += spread[q - 1]
    for r in range(chosen):
        q = _find(rising, index, limits[r])
        least = math.floor(mean[q] - _DEVIATIONS * math.sqrt(max(spread[q], 0.0) + 1)) + 1
        q = _find(rising, index, limits[k + r])
        last = math.ceil(mean[q] + _DEVIATIONS * math.sqrt(max(spread[q], 0.0) + 1)) + 1
        out[r, 2] = min(max(least, 1.0), r + 1.0)
        out[r, 3] = max(min(last, strangers), r + 1.0)


@inner
def _first_point(rising: Any, offset: float, unit: float, size: int) -> int:
    """A point before which no score exceeds a limit."""
    return max(place_of(rising[0] - offset, unit, size) - 1, 0)


@inner
def _fill_index(rising: Any, index: Any) -> None:
    """OUT ``index`` (bins + 1): how many limits lie before each bin of equal width."""
    q, width = 0, (rising[-1] - rising[0]) / _BINS
    for b in range(_BINS + 1):
        while q < len(rising) and rising[q] < rising[0] + b * width:
            q += 1
        index[b] = q


@inner
def _find(rising: Any, index: Any, score: float) -> int:
    """How many limits are below a score."""
    if score <= rising[0]:
        return 0
    if score > rising[-1]:
        return len(rising)
    q = index[int((score - rising[0]) / (rising[-1] - rising[0]) * _BINS)]
    while q > 0 and rising[q - 1] >= score:
        q -= 1
    while rising[q] < score:
        q += 1
    return q


@inner
def _add(
    chances: Any, c: int, x: int, end: int, number: float, unit: float, offset: float, rising: Any,
    index: Any, mean: Any, spread: Any,
) -> None:  # fmt: skip
    """INOUT: add nodes with the chance chances[x, c] of a sum at point x or beyond.

    What is added counts from one limit on: sums over the limits, which rise, come last.
    """
    q = 0
    while x < end and q < len(rising) and number * chances[x, c] >= _NOBODY:
        first, part = q, chances[x, c]
        q = _find(rising, index, STEPS[x] * unit + offset - _TIES)
        if q > first:
            mean[first] += number * part
            mean[q] -= number * part
            spread[first] += number * part * (1 - part)
            spread[q] -= number * part * (1 - part)
        x += 1


@inner
def _beyond(
    z: float, at: int, c: int, first: int, least: float, unit: float, rate: float, decays: Any,
    left: Any, right: Any, chance: Any,
) -> int:  # fmt: skip
    """OUT ``chance`` (x, 1), from `first` on: that the true sum of a noisy z is there or beyond.

    The point from which on it is less than `least`.
    """
    size = len(decays)
    before, after = beside(z, at, unit, rate, size)
    whole = max(left[at, c] * before + right[at, c] * after, _TINY)
    weight = before / whole  # from the last point before z down
    for x in range(min(at, size), max(first, 1) - 1, -1):
        chance[x, 0] = min(max(1 - left[x, c] * weight, 0.0), 1.0) if x < size else 0.0
        weight *= decays[x - 2] if x > 1 else 0.0
    weight, end = after / whole, at
    while end < size:
        chance[end, 0] = min(max(right[end, c] * weight, 0.0), 1.0)
        if chance[end, 0] < least:
            break
        weight *= decays[end]
        end += 1
    chance[0, 0] = 1.0
    return end
