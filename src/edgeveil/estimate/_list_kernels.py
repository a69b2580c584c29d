"""Compiled loops of `suggestions`: the lists of many members, out of the laws of their sums.

`score_lists` scores the strangers that stand out and as many popular ones as there are places,
and writes the best. Memory and time of a member go with its friends, the released values of its
row and the length of the list, not with the number of nodes. As `_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inner
from edgeveil.estimate._law_kernels import STEPS, beside, decays_of, laplace_tables, place_of
from edgeveil.estimate._mixture_kernels import stays_below
from edgeveil.estimate.popularity import CELLS, FINE

FIELDS = 7  # of a place: node, score, first, last, common friends, why, friends of the member

_TELLING = 2.0  # a reason multiplies the expected sum by this
_OPEN = 0.02  # posterior mass left out on either side of a place's range
_TINY = 1e-300


@compiled
def score_lists(
    members: Any,  # IN  (m)
    lists: Any,  # IN  friends of all members, sorted for each
    starts: Any,  # IN  (m + 1)
    facts: Any,  # IN  (m, FACTS)
    popular: Any,  # IN  (m, fine cells) what popularity adds to a score
    bonus: Any,  # IN  (m) what it adds to follow the member
    nodes: Any,  # IN  strangers that stand out, rising for each member
    values: Any,  # IN  their noisy sums
    fines: Any,  # IN  their fine cells
    begins: Any,  # IN  (m + 1)
    fans: Any,  # IN  strangers known to follow each member, rising for each
    fan_starts: Any,  # IN  (m + 1)
    cell: Any,  # IN  (n) fine cells
    between: Any,  # IN  (2, fine cells) a cell, and the part of the way to the next
    order: Any,  # IN  nodes that may be suggested, the most popular first
    allowed: Any,  # IN  (n) which these are, or (0) if all are
    rate: float,
    limit: float,  # the threshold
    law_starts: Any,  # IN  (m + 1)
    laws: Any,  # IN  (all points, c)
    rankings: Any,  # IN  (all points, c)
    limits: Any,  # OUT (m, 2 k) the highest true score of each place that is open, then the lowest
    out: Any,  # OUT (m, k, FIELDS), filled with NaN before
) -> None:
    """Score candidates: who stands out, who follows, and the popular. The best are the list."""
    k, most, room = out.shape[1], 0, 0
    for i in range(len(members)):
        most = max(most, law_starts[i + 1] - law_starts[i])
        room = max(room, begins[i + 1] - begins[i] + fan_starts[i + 1] - fan_starts[i] + k)
    # left and right of `laplace_tables` for the law, then for its first moment
    tables, moments = np.empty((4, most + 1, CELLS)), np.empty((most, CELLS))
    chances, near = np.empty((most + 1, CELLS)), np.empty((2, most))
    named, fine = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    fan = np.empty(room, dtype=np.bool_)
    scores, alone, offsets = np.empty(room), np.empty(room), np.empty(room)
    by_cell, by_fine = np.empty((3, CELLS)), np.empty((3, CELLS * FINE))
    heap = np.empty(k, dtype=np.int64)
    for i in range(len(members)):
        begin, size, unit = law_starts[i], law_starts[i + 1] - law_starts[i], facts[i, 2]
        law, ranking = laws[begin : begin + size], rankings[begin : begin + size]
        decays, unseen = np.empty(size), np.empty(size)
        decays_of(rate * unit, decays)
        stays_below(limit, unit, rate, unseen)
        for x in range(size):
            for c in range(CELLS):
                moments[x, c] = ranking[x, c] * (STEPS[x] * unit)
        laplace_tables(ranking, size, CELLS, decays, tables[0], tables[1])
        laplace_tables(moments, size, CELLS, decays, tables[2], tables[3])
        # Expected sums: of those below the threshold when ranked, the same, and before all values.
        low_chances(ranking, unseen, chances)
        _means(ranking, unseen, unit, by_cell[0])
        _means(law, unseen, unit, by_cell[1])
        for x in range(size):
            unseen[x] = 1.0
        _means(law, unseen, unit, by_cell[2])
        _at_degrees(by_cell, between, by_fine)

        seen, own = begins[i + 1] - begins[i], lists[starts[i] : starts[i + 1]]
        count = _candidates(
            members[i], own, nodes[begins[i] : begins[i + 1]], fans, fan_starts[i],
            fan_starts[i + 1], cell, order, k, named, fine, fan,
        )  # fmt: skip
        for j in range(count):
            f, v = fine[j], named[j]
            offsets[j] = popular[i, f] + (bonus[i] if fan[j] else 0.0)
            alone[j] = scores[j] = by_fine[0, f] + offsets[j]
            if j < seen:
                z, c = values[begins[i] + j], f // FINE
                at = place_of(z, unit, size)
                before, after = beside(z, at, unit, rate, size)
                whole = max(tables[0, at, c] * before + tables[1, at, c] * after, _TINY)
                mean = (tables[2, at, c] * before + tables[3, at, c] * after) / whole
                # Interpolation between cells must not make more evidence count less.
                scores[j] = max(mean, by_fine[0, f]) + offsets[j]
            if len(allowed) and not allowed[v]:
                scores[j] = -np.inf
        chosen = _best(scores, count, heap)
        for r in range(chosen):
            j = heap[r]
            f = fine[j]
            c, common, shares = f // FINE, by_fine[1, f], False
            if j < seen:
                at = place_of(values[begins[i] + j], unit, size)
                before, after = beside(values[begins[i] + j], at, unit, rate, size)
                _nearness(at, before, after, decays, near[0])
                common, none = _posterior(law, c, near[0], unit)
                shares = none < 0.5
                shares &= common >= _TELLING * by_fine[2, f]
                # On the list without its sum? Then that is not why it is there.
                shares &= alone[j] < scores[heap[chosen - 1]]
                _cumulate(ranking, c, near, size)
            else:
                for x in range(size):
                    near[1, x] = 1 - chances[x + 1, c]
            low = high = 0
            for x in range(size):
                low += near[1, x] < _OPEN
                high += near[1, x] < 1 - _OPEN
            limits[i, r] = STEPS[min(high, size - 1)] * unit + offsets[j]
            limits[i, k + r] = STEPS[min(low, size - 1)] * unit + offsets[j]
            line = out[i, r]
            line[0], line[1] = named[j], scores[j]
            line[4] = min(common / facts[i, 3], float(len(own)))  # it has no more friends
            line[5] = 1.0 if shares else (2.0 if fan[j] else 0.0)
            line[6] = len(own)


@inner
def low_chances(law: Any, unseen: Any, chances: Any) -> None:
    """OUT ``chances`` (x + 1, c): that a sum below the threshold is at point x or beyond."""
    size = len(unseen)
    for c in range(CELLS):
        chances[size, c] = 0.0
    for x in range(size - 1, -1, -1):
        for c in range(CELLS):
            chances[x, c] = chances[x + 1, c] + law[x, c] * unseen[x]
    for x in range(size - 1, -1, -1):  # the first row last: all are divided by it
        for c in range(CELLS):
            chances[x, c] /= max(chances[0, c], _TINY)


@inner
def _means(law: Any, chance: Any, unit: float, found: Any) -> None:
    """OUT ``found`` (c): expected sums, rising, given what has this chance at each point."""
    whole = np.zeros(CELLS)
    for c in range(CELLS):
        found[c] = 0.0
    for x in range(len(chance)):
        for c in range(CELLS):
            whole[c] += law[x, c] * chance[x]
            found[c] += law[x, c] * chance[x] * (STEPS[x] * unit)
    for c in range(CELLS):
        found[c] /= max(whole[c], _TINY)
        if c > 0:
            found[c] = max(found[c], found[c - 1])


@inner
def _at_degrees(by_cell: Any, between: Any, by_fine: Any) -> None:
    """OUT ``by_fine`` (3, fine cells): ``by_cell`` (3, c), linear between the cells' degrees."""
    for f in range(CELLS * FINE):
        at, part = int(between[0, f]), between[1, f]
        for j in range(3):
            by_fine[j, f] = by_cell[j, at] + part * (by_cell[j, at + 1] - by_cell[j, at])


@inner
def _candidates(
    member: int, own: Any, nodes: Any, fans: Any, first_fan: int, last_fan: int, cell: Any,
    order: Any, k: int, named: Any, fine: Any, fan: Any,
) -> int:  # fmt: skip
    """OUT who may be on the list, its fine cell, and whether it is known to follow the member."""
    size = len(nodes)
    for j in range(size):
        named[j] = nodes[j]
        fan[j] = holds(fans, first_fan, last_fan, nodes[j])
    for j in range(first_fan, last_fan):
        if not holds(nodes, 0, len(nodes), fans[j]):
            named[size], fan[size] = fans[j], True
            size += 1
    most, at = size + k, 0
    while size < most and at < len(order):
        v = order[at]
        at += 1
        if v != member and not (
            holds(own, 0, len(own), v)
            or holds(nodes, 0, len(nodes), v)
            or holds(fans, first_fan, last_fan, v)
        ):
            named[size], fan[size] = v, False
            size += 1
    for j in range(size):
        fine[j] = cell[named[j]]
    return size


@inner
def holds(ordered: Any, low: int, high: int, value: int) -> bool:
    """Whether a value is among ordered[low : high], which rise."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < end and ordered[low] == value


@inner
def _nearness(at: int, before: float, after: float, decays: Any, near: Any) -> None:
    """OUT ``near`` (x): exp(-rate |z - x|), but for a factor, of a z before point ``at``."""
    weight = before
    for x in range(at - 1, -1, -1):
        near[x] = weight
        weight = weight * decays[x - 1] if x > 0 and weight > 1e-250 else 0.0
    weight = after
    for x in range(at, len(decays)):
        near[x] = weight
        weight = weight * decays[x] if weight > 1e-250 else 0.0


@inner
def _posterior(law: Any, c: int, near: Any, unit: float) -> Any:
    """Expected true sum, and the chance that it is 0."""
    whole = first = 0.0
    for x in range(len(law)):
        mass = law[x, c] * near[x]
        whole += mass
        first += mass * (STEPS[x] * unit)
    whole = max(whole, _TINY)
    return first / whole, law[0, c] * near[0] / whole


@inner
def _cumulate(law: Any, c: int, near: Any, size: int) -> None:
    """INOUT ``near`` (2, x): the second row is how much of the posterior lies up to each point."""
    whole = 0.0
    for x in range(size):
        whole += law[x, c] * near[0, x]
        near[1, x] = whole
    for x in range(size):
        near[1, x] /= max(whole, _TINY)


@inner
def _best(scores: Any, count: int, heap: Any) -> int:
    """OUT ``heap``: places of the largest scores, best first; of equal ones the first.

    Those of -inf are left out. Gives how many there are.
    """
    size = 0  # of a heap with the worst on top
    for i in range(count):
        if scores[i] == -np.inf:
            continue
        if size < len(heap):
            child = size
            heap[child] = i
            size += 1
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
    return size


@inner
def _worse(scores: Any, i: int, j: int) -> bool:
    return scores[i] < scores[j] or (scores[i] == scores[j] and i > j)


@inner
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
