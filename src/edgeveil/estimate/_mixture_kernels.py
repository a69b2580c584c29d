"""Compiled loops of `suggestions`: the law of a true sum, fitted to a member's released row.

By degree cell a mixture of five Poisson laws about what the degree explains and three
exponentials, the tail. Values of one cell that lie in the same half of a gap between two points,
followers apart, are one item of the fit, at their mean. As `_walk_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import inner
from edgeveil.estimate._law_kernels import PLAIN, STEPS, TAIL, beside, place_of
from edgeveil.estimate.popularity import CELLS, FINE

KINDS = PLAIN + len(TAIL)
LAWS = PLAIN * CELLS + len(TAIL)  # lanes of a table: each Poisson law by cell; the tail for all

# Items lie in blocks of 4, so that a step of the fit takes 4 at once: row by row their likelihoods,
# how many values each has, and the growth of the tail in its cell.
LANES = 4
_OFTEN, _GROWTH = KINDS, KINDS + 1
BLOCK = LANES * (KINDS + 2)

_TAIL_MOST = 0.5  # of the nodes of a cell
_FIRST_SHARE = 0.001  # of each exponential, before the fit
_STEPS, _FASTER = 60, 7
_SETTLED = 1e-3  # a fit ends when no share moves by more, relatively
_POSSIBLE = 1e-290  # values that are less likely under all laws tell nothing, and would overflow


@inner
def collect(
    values: Any,  # IN  noisy sums
    fine: Any,  # IN  fine cell of each
    fan: Any,  # IN  whether it follows the member
    count: int,
    offsets: Any,  # IN  what counts beside each sum
    unit: float,
    size: int,
    ids: Any,  # INOUT (4 CELLS (x + 1)) -1 before and after
    at: Any,  # OUT (count) how many points are at most each value
    items: Any,  # OUT (4, count) of each item: how many values, sum of them and of offsets; its key
) -> int:
    """Items of a member's values: how many there are."""
    found = 0
    for j in range(count):
        z = values[j]
        x = place_of(z, unit, size)
        nearer = 0 < x < size and 2 * z > (STEPS[x - 1] + STEPS[x]) * unit
        key = ((2 * x + nearer) * 2 + fan[j]) * CELLS + fine[j] // FINE
        b = ids[key]
        if b < 0:
            b = ids[key] = found
            items[0, b] = items[1, b] = items[2, b] = 0.0
            items[3, b] = key
            found += 1
        at[j] = x
        items[0, b] += 1.0
        items[1, b] += z
        items[2, b] += offsets[j]
    for b in range(found):
        ids[int(items[3, b])] = -1
    return found


@inner
def fill_blocks(
    mass: Any, unseen: Any, below: Any, growth: Any, items: Any, found: int, unit: float,
    rate: float, left: Any, right: Any, blocks: Any,
) -> int:  # fmt: skip
    """OUT ``blocks``: the strangers below the threshold by cell, then the items; how many blocks.

    IN ``mass`` (x, LAWS) with ``left`` and ``right`` of `laplace_tables`, ``unseen`` (x), ``below``
    (fine cells), ``items`` of `collect`.
    """
    size, hidden = len(unseen), np.zeros(LAWS)
    for x in range(size):
        for lane in range(LAWS):
            hidden[lane] += mass[x, lane] * unseen[x]
    count = CELLS + found
    last = (count + LANES - 1) // LANES
    for i in range(last * LANES):
        start = i // LANES * BLOCK + i % LANES
        if i < CELLS:
            number, c = 0.0, i
            for f in range(FINE * c, FINE * (c + 1)):
                number += below[f]
            for k in range(KINDS):
                lane = k * CELLS + c if k < PLAIN else PLAIN * CELLS + k - PLAIN
                blocks[start + k * LANES] = hidden[lane]
        elif i < count:
            number, key = items[0, i - CELLS], int(items[3, i - CELLS])
            x, c = key // (4 * CELLS), key % CELLS
            before, after = beside(items[1, i - CELLS] / number, x, unit, rate, size)
            for k in range(KINDS):
                lane = k * CELLS + c if k < PLAIN else PLAIN * CELLS + k - PLAIN
                blocks[start + k * LANES] = left[x, lane] * before + right[x, lane] * after
        else:  # nothing, to fill the last block
            number, c = 0.0, 0
            for k in range(KINDS):
                blocks[start + k * LANES] = 1.0
        blocks[start + _OFTEN * LANES], blocks[start + _GROWTH * LANES] = number, growth[c]
    return last


@inner
def fit_mixture(
    blocks: Any,  # IN  of `fill_blocks`
    count: int,  # blocks
    pseudo: float,  # counts that each component of the tail has beforehand; the others have 1
    faster: bool,
    shares: Any,  # OUT (k)
) -> None:
    """Fit the shares of a mixture by EM: `_STEPS` steps, or 7 times three `faster` ones.

    Faster: two steps of EM give a direction and how fast it slows down; the third goes on from as
    far as that leads (Varadhan and Roland 2008, SqS3), unless a share would not stay positive.
    That ranks as well, but where noise is large it goes further than the data tell.
    """
    before, between, counts = np.empty(KINDS), np.empty(KINDS), np.empty(LANES * KINDS)
    for k in range(KINDS):
        shares[k] = 1 / PLAIN if k < PLAIN else _FIRST_SHARE
    exposure = 1.0
    for b in range(count):
        for i in range(LANES):
            start = b * BLOCK + i
            exposure += blocks[start + _OFTEN * LANES] * blocks[start + _GROWTH * LANES]
    for step in range(3 * _FASTER if faster else _STEPS):
        phase = step % 3 if faster else 0
        if phase == 2 and not _leap(before, between, shares):
            continue
        for k in range(KINDS):
            if phase == 0:
                before[k] = shares[k]
            elif phase == 1:
                between[k] = shares[k]
        _improve(blocks, count, pseudo, exposure, counts, shares)
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
def _improve(
    blocks: Any, count: int, pseudo: float, exposure: float, counts: Any, shares: Any
) -> None:
    """INOUT ``shares``: one step of EM; ``counts`` is room. The same bits on every machine."""
    s0, s1, s2, s3, s4, s5, s6, s7 = (
        shares[0], shares[1], shares[2], shares[3], shares[4], shares[5], shares[6], shares[7],
    )  # fmt: skip
    tail = s5 + s6 + s7
    cap = _TAIL_MOST / tail
    for i in range(LANES * KINDS):
        counts[i] = 0.0
    for b in range(count):
        at = b * BLOCK
        for i in range(LANES):
            l0, l1, l2 = blocks[at + i], blocks[at + 4 + i], blocks[at + 8 + i]
            l3, l4, l5 = blocks[at + 12 + i], blocks[at + 16 + i], blocks[at + 20 + i]
            l6, l7 = blocks[at + 24 + i], blocks[at + 28 + i]
            cut = min(blocks[at + 36 + i], cap)
            rest = 1 - tail * cut
            plain = s0 * l0 + s1 * l1 + s2 * l2 + s3 * l3 + s4 * l4
            whole = rest * plain + cut * (s5 * l5 + s6 * l6 + s7 * l7)
            scale = blocks[at + 32 + i] / max(whole, _POSSIBLE) if whole > _POSSIBLE else 0.0
            rest *= scale
            cut *= scale
            counts[i] += l0 * rest
            counts[4 + i] += l1 * rest
            counts[8 + i] += l2 * rest
            counts[12 + i] += l3 * rest
            counts[16 + i] += l4 * rest
            counts[20 + i] += l5 * cut
            counts[24 + i] += l6 * cut
            counts[28 + i] += l7 * cut
    explained = 0.0
    for k in range(KINDS):
        at = LANES * k
        number = (counts[at] + counts[at + 1]) + (counts[at + 2] + counts[at + 3])
        shares[k] = shares[k] * number + (1.0 if k < PLAIN else pseudo)
        explained += shares[k] if k < PLAIN else 0.0
    for k in range(KINDS):
        shares[k] /= explained if k < PLAIN else exposure


@inner
def mix(shares: Any, growth: Any, mass: Any, size: int, law: Any) -> None:
    """OUT ``law`` (x, c): the tail grows with the degree, the others share what it leaves."""
    tail = shares[PLAIN] + shares[PLAIN + 1] + shares[PLAIN + 2]
    plain, cut = np.empty(PLAIN * CELLS), np.empty(CELLS)
    for c in range(CELLS):
        cut[c] = min(growth[c], _TAIL_MOST / tail)
        for k in range(PLAIN):
            plain[k * CELLS + c] = shares[k] * (1 - tail * cut[c])
    for x in range(size):
        beyond = 0.0
        for j in range(len(TAIL)):
            beyond += shares[PLAIN + j] * mass[x, PLAIN * CELLS + j]
        for c in range(CELLS):
            law[x, c] = cut[c] * beyond
        for k in range(PLAIN):
            for c in range(CELLS):
                law[x, c] += plain[k * CELLS + c] * mass[x, k * CELLS + c]
