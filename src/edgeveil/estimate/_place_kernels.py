"""Compiled loops of `suggestions`: orders, and the places that noise leaves open. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inlined
from edgeveil.estimate._suggestion_kernels import decays_of

__all__ = ["ahead", "at_degree", "best", "nearness", "open_points"]

_OPEN = 0.02  # posterior mass left out on either side of a place's range
_NOBODY = 1e-7  # of a node is left out of a count
_TIES = 1e-9  # scores that differ by less are equal: roundings decide no place
_TINY = 1e-300


@compiled
def best(scores: Any, k: int) -> Any:
    """Places of the k largest, best first; of equal ones the first. Those of -inf are left out."""
    heap, size = np.empty(min(k, len(scores)), dtype=np.int64), 0  # the worst on top
    for i in range(len(scores)):
        if scores[i] == -np.inf:
            continue
        if size < len(heap):
            heap[size] = i
            size += 1
            child = size - 1
            while child > 0 and _worse(scores, heap[child], heap[(child - 1) // 2]):
                parent = (child - 1) // 2
                heap[child], heap[parent] = heap[parent], heap[child]
                child = parent
        elif _worse(scores, heap[0], i):
            heap[0] = i
            _sift(scores, heap, size)
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sift(scores, heap, last)
    return heap[:size]


@inlined
def _worse(scores: Any, i: int, j: int) -> bool:
    return scores[i] < scores[j] or (scores[i] == scores[j] and i > j)


@compiled
def _sift(scores: Any, heap: Any, size: int) -> None:
    """Put what is on top of the heap where it belongs."""
    top = 0
    while 2 * top + 1 < size:
        child = 2 * top + 1
        if child + 1 < size and _worse(scores, heap[child + 1], heap[child]):
            child += 1
        if not _worse(scores, heap[child], heap[top]):
            break
        heap[top], heap[child] = heap[child], heap[top]
        top = child


@inlined
def at_degree(by_cell: Any, at: int, part: float) -> Any:
    return by_cell[at] + part * (by_cell[at + 1] - by_cell[at])


@compiled
def nearness(points: Any, z: float, rate: float, near: Any) -> None:
    """OUT ``near``: exp(-rate |z - x|), relative to the nearest point: not all may underflow."""
    least = np.inf
    for x in range(len(points)):
        near[x] = rate * abs(z - points[x])
        least = min(least, near[x])
    for x in range(len(points)):
        near[x] = math.exp(least - near[x])


@compiled
def open_points(law: Any, near: Any) -> Any:
    """The points between which all but `_OPEN` of the mass on either side lies."""
    whole = so_far = 0.0
    low, high, last = 0, 0, len(law) - 1
    for x in range(len(law)):
        whole += law[x] * near[x]
    for x in range(len(law)):
        so_far += law[x] * near[x]
        low += so_far < _OPEN * whole
        high += so_far < (1 - _OPEN) * whole
    return min(low, last), min(high, last)


@compiled
def ahead(
    limits: Any,  # IN  (q) scores
    cells: Any,
    offsets: Any,  # IN  what a candidate's score has beside its sum; first those of `cells`
    ahead_of: Any,  # IN  (3, m) of `_expected_sum`
    tables: Any,
    table: Any,
    following: Any,  # IN  (fine cells) followers below the threshold
    model: Any,
) -> Any:
    """Mean and variance of the number of strangers whose true score exceeds each limit."""
    points, _, unseen, _, ranking, popular, bonus, below, _ = model
    size, fine = len(points), len(below) // len(ranking)
    order = best(-limits, len(limits))
    limits = limits[order]
    # What is added from one limit on: sums over the limits come last.
    mean, variance = np.zeros((2, len(limits) + 1))
    # chance[c, j]: that a sum below the threshold is at point j or beyond
    chance = np.zeros((len(ranking), size + 1))
    for c in range(len(ranking)):
        for x in range(size - 1, -1, -1):
            chance[c, x] = chance[c, x + 1] + ranking[c, x] * unseen[x]
        chance[c] *= 1 / max(chance[c, 0], _TINY)
    for f in range(len(below)):
        offset = at_degree(popular, table[2][f], table[3][f])
        for follows in range(2):
            count = following[f] if follows else below[f] - following[f]
            offset += bonus if follows else 0.0
            of, q = chance[f // fine], 0
            for j in range(size + 1 if count > 0 else 0):
                if count * of[j] < _NOBODY:
                    break
                q = _add(of[j], count, j, points, offset, limits, q, mean, variance)
                if q == len(limits):
                    break
    _ahead_of_seen(limits, cells, offsets, ahead_of, tables, model, mean, variance)
    of_order, spread = np.empty((2, len(limits)))
    so_far = so_spread = 0.0
    for q in range(len(limits)):
        so_far += mean[q]
        so_spread += variance[q]
        of_order[order[q]], spread[order[q]] = so_far, max(so_spread, 0.0)
    return of_order, spread


@inlined
def _add(
    chance: float, count: float, j: int, points: Any, offset: float, limits: Any, q: int,
    mean: Any, variance: Any,
) -> int:  # fmt: skip
    """Add nodes with this chance to exceed a limit that has j points below it; the next limit.

    Limits rise, and q is the first that has at least j points below it.
    """
    first = q
    if j == len(points):
        q = len(limits)
    else:
        score = points[j] + offset - _TIES
        while q < len(limits) and limits[q] < score:
            q += 1
    if q > first:
        mean[first] += count * chance
        mean[q] -= count * chance
        spread = count * chance * (1 - chance)
        variance[first] += spread
        variance[q] -= spread
    return q


@compiled
def _ahead_of_seen(
    limits: Any, cells: Any, offsets: Any, ahead_of: Any, tables: Any, model: Any,
    mean: Any, variance: Any,
) -> None:  # fmt: skip
    """INOUT ``mean``, ``variance``: add how many of the nodes above the threshold may be ahead."""
    points, rate = model[0], model[1]
    left, right, _, _ = tables
    size = len(points)
    decay = np.empty((size, size))  # exp(-rate * distance), i <= j
    steps = decays_of(points, rate)
    for i in range(size):
        value = 1.0
        for j in range(i, size):
            decay[i, j] = value
            value = value * steps[j] if value > 1e-250 else 0.0
    for i in range(len(cells)):
        c, p, below, above = cells[i], int(ahead_of[0, i]), ahead_of[1, i], ahead_of[2, i]
        q = 0
        for j in range(size):
            if j == 0:
                chance = 1.0
            elif j <= p:
                chance = 1 - left[c, j] * decay[j - 1, p - 1] * below
            else:
                chance = right[c, j] * decay[p, j] * above
            chance = min(max(chance, 0.0), 1.0)
            if chance < _NOBODY:
                break
            q = _add(chance, 1.0, j, points, offsets[i], limits, q, mean, variance)
            if q == len(limits):
                break
