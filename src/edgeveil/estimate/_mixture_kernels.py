"""Compiled loops of `suggestions`: the law of a true sum, fitted to each member's released row.

By degree cell a mixture of five Poisson laws about what the degree explains and three
exponentials, the tail. Values of one cell that lie in the same half of a gap between two points
are one item of the fit, at their mean. As `_kernels`: no bounds checks, arrays in and out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inner
from edgeveil.estimate._law_kernels import (
    PLAIN,
    STEPS,
    TAIL,
    beside,
    decays_of,
    exponentials,
    laplace_tables,
    place_of,
    poissons,
    widths_of,
)
from edgeveil.estimate.popularity import CELLS, FINE

KINDS = PLAIN + len(TAIL)
_LANES = KINDS * CELLS

_PSEUDO = 0.2  # nodes that each component of the tail has beforehand, and
_SEATS = 0.5  # strangers in the member's circles for each friend in them, beforehand
_TAIL_MOST = 0.5  # of the nodes of a cell
_FIRST_SHARE = 0.001  # of each exponential, before the fit
_STEPS, _FASTER = 60, 7
_SETTLED = 1e-3  # a fit ends when no share moves by more, relatively
_POSSIBLE = 1e-290  # values that are less likely under all laws tell nothing, and would overflow


@inner
def stays_below(limit: float, unit: float, rate: float, unseen: Any) -> None:
    """OUT ``unseen`` (x): chance that a sum at each point stays below the threshold."""
    for x in range(len(unseen)):
        gap = rate * (limit - STEPS[x] * unit)
        unseen[x] = 0.5 * math.exp(gap) if gap < 0 else 1 - 0.5 * math.exp(-gap)


@compiled
def fit_laws(
    expected: Any,  # INOUT (m, 5 c) of `read_friends`; overwritten
    facts: Any,  # IN  (m, FACTS)
    friends: Any,  # IN  (m + 1) starts of the members' lists
    values: Any,  # IN  noisy sums
    fines: Any,  # IN  fine cell of each
    begins: Any,  # IN  (m + 1)
    below: Any,  # IN  (m, fine cells) how many strangers are below the threshold
    growth: Any,  # IN  (c) how the share of the tail grows with the degree
    rate: float,
    limit: float,  # the threshold
    law_starts: Any,  # IN  (m + 1) the laws of member i are at these rows
    laws: Any,  # OUT (all points, c) for estimates
    rankings: Any,  # OUT (all points, c) the same with more in the tail beforehand
    bins: Any,  # OUT as long as `values`: the item of each, from 0 on
) -> None:
    """Laws of a true sum by cell: mixtures whose shares are fitted to the members' rows."""
    most = room = 0
    for i in range(len(facts)):
        most = max(most, law_starts[i + 1] - law_starts[i])
        room = max(room, begins[i + 1] - begins[i])
    room += CELLS
    mass, tails = np.empty((most, _LANES)), np.empty((most, len(TAIL)))
    left, right = np.empty((most + 1, _LANES)), np.empty((most + 1, _LANES))
    value, whole = np.empty(PLAIN * CELLS), np.empty(PLAIN * CELLS)
    likelihoods = np.empty((KINDS, room))
    # Of the items: how often they were seen, growth of the tail, and room to work in.
    items = np.empty((4, room))
    kept, mix = np.empty(room, dtype=np.int64), np.empty((KINDS, CELLS))
    ids = np.full(2 * (most + 1) * CELLS, -1, dtype=np.int32)
    shares = np.empty(KINDS)
    for i in range(len(facts)):
        begin, size = law_starts[i], law_starts[i + 1] - law_starts[i]
        share, typical, unit = facts[i, 0], facts[i, 1], facts[i, 2]
        widths, decays, unseen = np.empty(size), np.empty(size), np.empty(size)
        widths_of(widths)
        decays_of(rate * unit, decays)
        stays_below(limit, unit, rate, unseen)
        for c in range(PLAIN * CELLS):
            expected[i, c] /= unit
        poissons(expected[i], widths, mass, value, whole)
        exponentials(typical, unit, widths, tails)
        for k in range(KINDS):
            for c in range(CELLS):
                likelihoods[k, c] = 0.0
        for x in range(size):
            for j in range(len(TAIL)):
                for c in range(CELLS):
                    mass[x, (PLAIN + j) * CELLS + c] = tails[x, j]
            for k in range(KINDS):
                for c in range(CELLS):
                    likelihoods[k, c] += mass[x, k * CELLS + c] * unseen[x]
        for c in range(CELLS):
            items[0, c], items[1, c] = 0.0, growth[c]
            for f in range(FINE * c, FINE * (c + 1)):
                items[0, c] += below[i, f]
        laplace_tables(mass, size, _LANES, decays, left, right)
        count = _collect(
            values, fines, begins[i], begins[i + 1], unit, rate, size, growth,
            left, right, ids, kept, bins, items, likelihoods,
        )  # fmt: skip
        seats = share * (friends[i + 1] - friends[i])
        for more in range(2):
            pseudo = _PSEUDO + (_SEATS * seats / len(TAIL) if more else 0.0)
            fit_mixture(likelihoods, items, count, pseudo, more == 1, shares)
            _mix(shares, growth, mix)
            out = rankings if more else laws
            for x in range(size):
                for c in range(CELLS):
                    out[begin + x, c] = 0.0
                for k in range(KINDS):
                    for c in range(CELLS):
                        out[begin + x, c] += mix[k, c] * mass[x, k * CELLS + c]


@inner
def _collect(
    values: Any, fines: Any, first: int, last: int, unit: float, rate: float, size: int,
    growth: Any, left: Any, right: Any, ids: Any, kept: Any, bins: Any, items: Any,
    likelihoods: Any,
) -> int:  # fmt: skip
    """Items of a member's values, after those of the cells; ``ids`` is -1 before and after."""
    count = CELLS
    for j in range(first, last):
        z, c = values[j], fines[j] // FINE
        at = place_of(z, unit, size)
        nearer = 0 < at < size and 2 * z > (STEPS[at - 1] + STEPS[at]) * unit
        key = (2 * at + nearer) * CELLS + c
        if ids[key] < 0:
            ids[key] = count
            kept[count] = key
            items[0, count], items[2, count] = 0.0, 0.0
            count += 1
        bins[j] = ids[key] - CELLS
        items[0, ids[key]] += 1.0
        items[2, ids[key]] += z
    for b in range(CELLS, count):
        at, c = kept[b] // (2 * CELLS), kept[b] % CELLS
        ids[kept[b]] = -1
        items[1, b] = growth[c]
        before, after = beside(items[2, b] / items[0, b], at, unit, rate, size)
        for k in range(KINDS):
            lane = k * CELLS + c
            likelihoods[k, b] = left[at, lane] * before + right[at, lane] * after
    return count


@inner
def fit_mixture(
    likelihoods: Any,  # IN  (k, at least m) of each item under each component
    items: Any,  # INOUT (4, at least m) how often each was seen, growth of the tail; room for two
    count: int,  # m
    pseudo: float,  # counts that each component of the tail has beforehand; the others have 1
    faster: bool,
    shares: Any,  # OUT (k)
) -> None:
    """Fit the shares of a mixture by EM: `_STEPS` steps, or 7 times three `faster` ones.

    Faster: two steps of EM give a direction and how fast it slows down; the third goes on from as
    far as that leads (Varadhan and Roland 2008, SqS3), unless a share would not stay positive.
    That ranks as well, but where noise is large it goes further than the data tell.
    """
    before, between = np.empty(KINDS), np.empty(KINDS)
    for k in range(KINDS):
        shares[k] = 1 / PLAIN if k < PLAIN else _FIRST_SHARE
    exposure = 1.0
    for i in range(count):
        exposure += items[0, i] * items[1, i]
    for step in range(3 * _FASTER if faster else _STEPS):
        phase = step % 3 if faster else 0
        if phase == 2:
            far = _leap(before, between, shares)
            if not far:
                continue
        for k in range(KINDS):
            if phase == 0:
                before[k] = shares[k]
            elif phase == 1:
                between[k] = shares[k]
        _improve(likelihoods, items, count, pseudo, exposure, shares)
        moved = 0.0
        for k in range(KINDS):
            last = before[k] if phase == 0 else between[k]
            moved = max(moved, abs(shares[k] - last) / (shares[k] + 1e-9))
        if moved < _SETTLED and phase == (1 if faster else 0):
            break


@inner
def _leap(before: Any, between: Any, shares: Any) -> bool:
    """INOUT ``shares``: as far on as two steps lead; False, and as they are, if one would be <= 0.

    Shares differ by orders of magnitude: lengths are measured relative to them.
    """
    moved = slowed = 0.0
    for k in range(KINDS):
        first, second = between[k] - before[k], shares[k] - between[k]
        moved += (first / shares[k]) ** 2
        slowed += ((second - first) / shares[k]) ** 2
    far = max(math.sqrt(moved / slowed), 1.0) if slowed > 0 else 1.0
    least = np.inf
    for k in range(KINDS):
        first, second = between[k] - before[k], shares[k] - between[k]
        before[k] += 2 * far * first + far * far * (second - first)
        least = min(least, before[k])
    if least <= 0:
        return False
    for k in range(KINDS):
        shares[k] = before[k]
    return True


@inner
def _mix(shares: Any, growth: Any, mix: Any) -> None:
    """OUT ``mix`` (k, c): the tail grows with the degree, the others share what it leaves."""
    tail = 0.0
    for k in range(PLAIN, KINDS):
        tail += shares[k]
    for c in range(CELLS):
        cut = min(growth[c], _TAIL_MOST / tail)
        for k in range(KINDS):
            mix[k, c] = shares[k] * ((1 - tail * cut) if k < PLAIN else cut)


@inner
def _improve(
    likelihoods: Any, items: Any, count: int, pseudo: float, exposure: float, shares: Any
) -> None:
    """INOUT ``shares``: one step of EM. The last two rows of ``items`` are overwritten."""
    s0, s1, s2, s3, s4, s5, s6, s7 = (
        shares[0], shares[1], shares[2], shares[3], shares[4], shares[5], shares[6], shares[7],
    )  # fmt: skip
    tail = s5 + s6 + s7
    cap = _TAIL_MOST / tail
    for i in range(count):
        cut = min(items[1, i], cap)
        rest = 1 - tail * cut
        plain = (
            s0 * likelihoods[0, i] + s1 * likelihoods[1, i] + s2 * likelihoods[2, i]
            + s3 * likelihoods[3, i] + s4 * likelihoods[4, i]
        )  # fmt: skip
        beyond = s5 * likelihoods[5, i] + s6 * likelihoods[6, i] + s7 * likelihoods[7, i]
        whole = rest * plain + cut * beyond
        scale = items[0, i] / max(whole, _POSSIBLE) if whole > _POSSIBLE else 0.0
        items[2, i] = scale * rest
        items[3, i] = scale * cut
    explained = 0.0
    for k in range(KINDS):
        row = 2 if k < PLAIN else 3
        shares[k] = shares[k] * _dot(likelihoods[k], items[row], count) + (
            1.0 if k < PLAIN else pseudo
        )
        explained += shares[k] if k < PLAIN else 0.0
    for k in range(KINDS):
        shares[k] /= explained if k < PLAIN else exposure


@inner
def _dot(one: Any, other: Any, count: int) -> float:
    """In four lanes: the same bits whatever the machine makes of it."""
    a = b = c = d = 0.0
    last = count - count % 4
    for i in range(0, last, 4):
        a += one[i] * other[i]
        b += one[i + 1] * other[i + 1]
        c += one[i + 2] * other[i + 2]
        d += one[i + 3] * other[i + 3]
    for i in range(last, count):
        a += one[i] * other[i]
    return (a + b) + (c + d)
