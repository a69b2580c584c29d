"""Compiled loops of `suggestions`: arrays in and out, no Python objects. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled

__all__ = ["count_above", "fit_mixture", "fit_share", "laplace_tables", "mean_counts"]


@compiled
def mean_counts(
    degrees: Any,  # IN  (c) of the candidates
    friends: Any,  # IN  (f) degrees of the friends
    weights: Any,  # IN  (f)
    total: float,  # sum of all degrees
    out: Any,  # OUT (5, c)
) -> None:
    """Write sum_u w_u (1 - exp(-t d_u d / total)) for t = 1/4, 1/2, 1, 2, 4."""
    out[:] = 0.0
    for u in range(len(friends)):
        rate = 0.25 * friends[u] / total
        for c in range(len(degrees)):
            missed = math.exp(-rate * degrees[c])
            for t in range(5):
                out[t, c] += weights[u] * (1 - missed)
                missed *= missed


@compiled
def laplace_tables(
    mass: Any,  # IN  (r, x) weight of each point of the grid
    points: Any,  # IN  (x) rising
    rate: float,  # 1 / scale of the noise
    left: Any,  # OUT (r, x + 1)
    right: Any,  # OUT (r, x + 1)
) -> None:
    """Write sums of mass * exp(-rate * distance) over the points on either side of each point.

    left[r, j + 1] sums over the points up to j, with the distance from point j; right[r, j] over
    the points from j on. left[r, 0] and right[r, x] are 0. So for a z between points j and
    j + 1 the likelihood of row r is rate / 2 times
    left[r, j + 1] exp(-rate (z - x_j)) + right[r, j + 1] exp(-rate (x_(j+1) - z)).
    """
    size = len(points)
    for r in range(mass.shape[0]):
        left[r, 0] = 0.0
        right[r, size] = 0.0
        for j in range(size):
            before = math.exp(-rate * (points[j] - points[j - 1])) if j > 0 else 0.0
            left[r, j + 1] = left[r, j] * before + mass[r, j]
        for j in range(size - 1, -1, -1):
            after = math.exp(-rate * (points[j + 1] - points[j])) if j < size - 1 else 0.0
            right[r, j] = right[r, j + 1] * after + mass[r, j]


@compiled
def fit_mixture(
    seen: Any,  # IN  (m, k) likelihood of each value above the threshold under each component
    cells: Any,  # IN  (m) degree cell of each
    unseen: Any,  # IN  (c, k) chance of a value below the threshold
    below: Any,  # IN  (c) how many are below it
    growth: Any,  # IN  (c) how the share of the tail grows with the degree
    shares: Any,  # INOUT (k) first `plain` sum to 1, then shares of the tail at growth 1
    plain: int,  # how many components are not of the tail
    most: float,  # of a cell that the tail may claim
    pseudo: float,  # counts that each component of the tail has beforehand; the others have 1
    rounds: int,
    mix: Any,  # OUT (c, k) shares by cell
) -> None:
    """Fit the shares of a mixture to one row by EM; values below the threshold are counts."""
    count_cells, kinds = unseen.shape
    counts = shares.copy()
    exposure = 0.0
    for c in range(count_cells):
        exposure += below[c] * growth[c]
    for i in range(len(cells)):
        exposure += growth[cells[i]]
    for turn in range(rounds + 1):
        for c in range(count_cells):
            tail = 0.0
            for k in range(plain, kinds):
                mix[c, k] = shares[k] * growth[c]
                tail += mix[c, k]
            cut = min(1.0, most / tail) if tail > 0 else 1.0
            for k in range(plain, kinds):
                mix[c, k] *= cut
            for k in range(plain):
                mix[c, k] = shares[k] * (1 - tail * cut)
        if turn == rounds:
            break
        counts[:plain] = 1.0
        counts[plain:] = pseudo
        for c in range(count_cells):
            if below[c] > 0:
                whole = 0.0
                for k in range(kinds):
                    whole += mix[c, k] * unseen[c, k]
                if whole > 0:
                    for k in range(kinds):
                        counts[k] += below[c] * mix[c, k] * unseen[c, k] / whole
        for i in range(len(cells)):
            c, whole = cells[i], 0.0
            for k in range(kinds):
                whole += mix[c, k] * seen[i, k]
            if whole > 0:
                for k in range(kinds):
                    counts[k] += mix[c, k] * seen[i, k] / whole
        explained = 0.0
        for k in range(plain):
            explained += counts[k]
        moved = 0.0
        for k in range(kinds):
            new = counts[k] / (explained if k < plain else exposure + 1.0)
            moved = max(moved, abs(new - shares[k]) / (new + 1e-9))
            shares[k] = new
        if moved < 1e-3:
            rounds = turn + 1


@compiled
def fit_share(
    one: Any,  # IN (m) likelihood under the first law
    other: Any,  # IN (m) under the second
    for_one: float,  # counts beforehand
    for_other: float,
    rounds: int,
) -> float:
    """Fit by EM the share of the first of two laws, of which each value has one."""
    share = for_one / (for_one + for_other)
    for _ in range(rounds):
        count = for_one
        for i in range(len(one)):
            whole = share * one[i] + (1 - share) * other[i]
            count += share * one[i] / whole if whole > 0 else share
        share = count / (len(one) + for_one + for_other)
    return share


@compiled
def count_above(
    limits: Any,  # IN  (q) scores, rising
    sums: Any,  # IN  (m) noisy sums above the threshold
    cells: Any,  # IN  (m)
    offsets: Any,  # IN  (m) what a node's score has beside its sum
    whole: Any,  # IN  (m) likelihood of each noisy sum, without rate / 2
    places: Any,  # IN  (m) how many points are at most the noisy sum, at least 1
    points: Any,  # IN  (x)
    rate: float,
    left: Any,  # IN  (c, x + 1) of `laplace_tables`
    right: Any,  # IN  (c, x + 1)
    mean: Any,  # INOUT (q) expected number of nodes whose score exceeds the limit
    variance: Any,  # INOUT (q)
) -> None:
    """Add up how many of some nodes may have a true score above each limit."""
    size = len(points)
    decay = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            decay[i, j] = math.exp(-rate * abs(points[i] - points[j]))
    for i in range(len(sums)):
        c, p = cells[i], places[i]
        below = math.exp(-rate * (sums[i] - points[p - 1])) / whole[i]
        above = math.exp(-rate * (points[p] - sums[i])) / whole[i] if p < size else 0.0
        j = 0  # how many points are at most the limit
        for q in range(len(limits)):
            while j < size and points[j] <= limits[q] - offsets[i]:
                j += 1
            if j == size:
                break
            if j == 0:
                chance = 1.0
            elif j <= p:
                chance = 1 - left[c, j] * decay[j - 1, p - 1] * below
            else:
                chance = right[c, j] * decay[j, p] * above
            chance = min(max(chance, 0.0), 1.0)
            mean[q] += chance
            variance[q] += chance * (1 - chance)
