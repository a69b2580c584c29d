"""Compiled loops of `suggestions`: the places that noise leaves open. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inner
from edgeveil.estimate._law_kernels import STEPS, beside, decays_of, laplace_tables, place_of, sort
from edgeveil.estimate._list_kernels import holds, low_chances
from edgeveil.estimate._mixture_kernels import stays_below
from edgeveil.estimate.popularity import CELLS, FINE

_DEVIATIONS = 2.0  # of the number of nodes ahead
_NOBODY = 1e-4  # of a node is left out of a count
_TIES = 1e-9  # scores that differ by less are equal: roundings decide no place
_TINY = 1e-300


@compiled
def open_places(
    facts: Any,  # IN  (m, FACTS)
    popular: Any,  # IN  (m, fine cells)
    bonus: Any,  # IN  (m)
    nodes: Any,  # IN  strangers that stand out, rising for each member
    values: Any,  # IN  their noisy sums
    fines: Any,  # IN  their fine cells
    begins: Any,  # IN  (m + 1)
    bins: Any,  # IN  the item of each, from 0 on for each member
    fans: Any,  # IN  strangers known to follow each member, rising for each
    fan_starts: Any,  # IN  (m + 1)
    cell: Any,  # IN  (n) fine cells
    below: Any,  # IN  (m, fine cells) strangers below the threshold
    rate: float,
    limit: float,
    law_starts: Any,  # IN  (m + 1)
    rankings: Any,  # IN  (all points, c)
    strangers: Any,  # IN  (m) how many a member has
    limits: Any,  # IN  (m, 2 k) of `score_lists`
    out: Any,  # INOUT (m, k, FIELDS)
) -> None:
    """Write first and last place: how many strangers may be ahead of each limit."""
    k, most, room = out.shape[1], 0, 0
    for i in range(len(facts)):
        most = max(most, law_starts[i + 1] - law_starts[i])
        room = max(room, begins[i + 1] - begins[i])
    chances, left = np.empty((most + 1, CELLS)), np.empty((most + 1, CELLS))
    right = np.empty((most + 1, CELLS))
    # Of items: how many values, sum of them and of their offsets; and the cell.
    items, cells = np.empty((3, 2 * room)), np.empty(2 * room, dtype=np.int64)
    ordered, mean, spread = np.empty(2 * k + 1), np.empty(2 * k + 1), np.empty(2 * k + 1)
    chance, following = np.empty((most + 1, 1)), np.empty(CELLS * FINE)
    for i in range(len(facts)):
        first, size, unit = begins[i], law_starts[i + 1] - law_starts[i], facts[i, 2]
        ranking = rankings[law_starts[i] : law_starts[i + 1]]
        decays, unseen = np.empty(size), np.empty(size)
        decays_of(rate * unit, decays)
        stays_below(limit, unit, rate, unseen)
        low_chances(ranking, unseen, chances)
        laplace_tables(ranking, size, CELLS, decays, left, right)
        chosen = 0
        while chosen < k and not math.isnan(out[i, chosen, 0]):
            ordered[2 * chosen], ordered[2 * chosen + 1] = limits[i, chosen], limits[i, k + chosen]
            chosen += 1
        rising = ordered[: 2 * chosen]
        sort(rising)
        for q in range(2 * chosen + 1):
            mean[q] = spread[q] = 0.0
        for f in range(CELLS * FINE):
            following[f] = 0.0
        for j in range(fan_starts[i], fan_starts[i + 1]):
            following[cell[fans[j]]] += not holds(nodes, first, begins[i + 1], fans[j])
        for f in range(CELLS * FINE):
            c, hidden, offset = f // FINE, below[i, f] - following[f], popular[i, f]
            _add(chances, c, size, hidden, unit, offset, rising, mean, spread)
            _add(chances, c, size, following[f], unit, offset + bonus[i], rising, mean, spread)
        # Values of one item, and followers among them apart, count as so many at their mean.
        for b in range(2 * (begins[i + 1] - first)):
            items[0, b] = items[1, b] = items[2, b] = 0.0
        for j in range(first, begins[i + 1]):
            fan = holds(fans, fan_starts[i], fan_starts[i + 1], nodes[j])
            b = 2 * bins[j] + fan
            cells[b] = fines[j] // FINE
            items[0, b] += 1.0
            items[1, b] += values[j]
            items[2, b] += popular[i, fines[j]] + (bonus[i] if fan else 0.0)
        for b in range(2 * (begins[i + 1] - first)):
            number = items[0, b]
            if number > 0:
                z, offset = items[1, b] / number, items[2, b] / number
                _beyond(z, cells[b], unit, rate, decays, left, right, chance)
                _add(chance, 0, size, number, unit, offset, rising, mean, spread)
        for q in range(1, 2 * chosen):
            mean[q] += mean[q - 1]
            spread[q] += spread[q - 1]
        for r in range(chosen):
            q = _first_at(rising, limits[i, r])
            least = math.floor(mean[q] - _DEVIATIONS * math.sqrt(max(spread[q], 0.0) + 1)) + 1
            q = _first_at(rising, limits[i, k + r])
            last = math.ceil(mean[q] + _DEVIATIONS * math.sqrt(max(spread[q], 0.0) + 1)) + 1
            out[i, r, 2] = min(max(least, 1.0), r + 1.0)
            out[i, r, 3] = max(min(last, strangers[i]), r + 1.0)


@inner
def _first_at(rising: Any, wanted: float) -> int:
    """The first place of a value that is there."""
    low, high = 0, len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _add(
    chances: Any, c: int, size: int, number: float, unit: float, offset: float, rising: Any,
    mean: Any, spread: Any,
) -> None:  # fmt: skip
    """INOUT: add nodes with the chance chances[x, c] of a sum at point x or beyond.

    What is added counts from one limit on: sums over the limits, which rise, come last.
    """
    if number <= 0 or len(rising) == 0:
        return
    q, x = 0, max(place_of(rising[0] - offset, unit, size) - 1, 0)
    while x < size and q < len(rising) and number * chances[x, c] >= _NOBODY:
        first, score, part = q, STEPS[x] * unit + offset - _TIES, chances[x, c]
        while q < len(rising) and rising[q] < score:
            q += 1
        if q > first:
            mean[first] += number * part
            mean[q] -= number * part
            spread[first] += number * part * (1 - part)
            spread[q] -= number * part * (1 - part)
        x += 1


@inner
def _beyond(
    z: float, c: int, unit: float, rate: float, decays: Any, left: Any, right: Any, chance: Any
) -> None:
    """OUT ``chance`` (x, 1): that the true sum of a noisy z is at point x or beyond."""
    size = len(decays)
    at = place_of(z, unit, size)
    before, after = beside(z, at, unit, rate, size)
    whole = max(left[at, c] * before + right[at, c] * after, _TINY)
    weight = before / whole  # from the last point before z down
    for x in range(at, 0, -1):
        chance[x, 0] = min(max(1 - left[x, c] * weight, 0.0), 1.0) if x < size else 0.0
        weight *= decays[x - 2] if x > 1 else 0.0
    weight = after / whole
    for x in range(at, size):
        chance[x, 0] = min(max(right[x, c] * weight, 0.0), 1.0)
        weight *= decays[x]
    chance[0, 0] = 1.0
