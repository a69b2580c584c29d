"""Compiled loops of what degrees and own lists tell: arrays in and out. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled

__all__ = ["degree_floors", "hashed_closeness", "over_degrees", "prior_rows", "prior_shares"]


@compiled
def degree_floors(
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  of whoever is in the lists
    n: int,
    epsilon: float,
    overdispersion: float,
    candidates: int,
    out: Any,  # OUT (m) not written where there are no friends
) -> None:
    """Try quantiles of the friends' degrees, give the first with the smallest lost + noise."""
    for i in range(len(out)):
        k = starts[i + 1] - starts[i]
        if k == 0:
            continue
        ordered = np.empty(k)
        for u in range(k):
            ordered[u] = degrees[lists[starts[i] + u]]
        ordered.sort()
        best, least = ordered[0], np.inf
        for c in range(candidates):
            # Quantile c / (candidates - 1), linear between two neighbours.
            place = (k - 1) * (c * (1.0 / (candidates - 1)) if c + 1 < candidates else 1.0)
            at = min(int(place), k - 1)
            share, a, b = place - at, ordered[at], ordered[min(at + 1, k - 1)]
            floor = a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)
            lost = 0.0
            for u in range(k):
                if ordered[u] >= floor:
                    break
                cut = 1 / ordered[u] - 1 / floor
                lost += cut * cut * ordered[u]
            noise = 2 / (floor * epsilon) / (floor * epsilon)
            error = overdispersion / n * lost + noise
            if error < least:
                best, least = floor, error
        out[i] = best


@compiled
def prior_shares(
    friends: Any,  # IN  (k)
    restart: float,
    known_hops: int,
    in_common: float,
    echo: float,
) -> tuple[float, float]:
    """Give what `walk_model.prior_shares` does."""
    follow, back = 1 - restart, 0.0
    if not known_hops:
        return 0.0, follow
    for u in range(len(friends)):
        back += 1 / friends[u]
    back /= len(friends)  # of the second hop, at the source
    known = restart * follow * (1 + follow**2 * back)
    # As much as `walk_model.two_hop_row` would give them for these sums.
    known += in_common * (restart * follow**2 + follow**3 * echo)
    return min(known, follow), max(follow - known, 0.0)


@compiled
def prior_rows(
    rows: Any,  # OUT (m, n)
    sources: Any,  # IN  (m)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  (n)
    of_friends: Any,  # IN  (n)
    total: float,  # sum of `degrees`
    restart: float,
    known_hops: int,
    in_common: float,
    echo: float,
) -> None:
    """Write rows for which nothing is known beyond the own lists."""
    for i in range(len(rows)):
        row, own = rows[i], lists[starts[i] : starts[i + 1]]
        k = len(own)
        if known_hops and k == 0:
            row[:] = 0.0
            row[sources[i]] = 1.0
            continue
        friends, whole = np.empty(k), total
        for u in range(k):
            friends[u] = of_friends[own[u]]
            whole += friends[u] - degrees[own[u]]
        known, far = prior_shares(friends, restart, known_hops, in_common, echo)
        for v in range(len(row)):
            row[v] = far / whole * degrees[v]
        for u in range(k):
            row[own[u]] = far / whole * friends[u] + known / k
        row[sources[i]] += restart


@compiled
def over_degrees(
    rows: Any,  # INOUT (m, n)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  (n)
    of_friends: Any,  # IN  (n)
) -> None:
    """Divide every score by the degree that its source sees."""
    for i in range(len(rows)):
        row, own = rows[i], lists[starts[i] : starts[i + 1]]
        theirs = np.empty(len(own))
        for u in range(len(own)):
            theirs[u] = row[own[u]] / of_friends[own[u]]
        for v in range(len(row)):
            row[v] /= degrees[v]
        for u in range(len(own)):
            row[own[u]] = theirs[u]


@compiled
def hashed_closeness(
    rows: Any,  # IN  (m, n)
    usual: Any,  # IN  (m) row / degree without an excess
    sources: Any,  # IN  (m)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  (n)
    first_hop: float,  # what all friends together get from the first hop
    factor: float,
    most: int,
    bucket: Any,  # IN  (n) in 0 .. dimensions - 1
    sign: Any,  # IN  (n)
    out: Any,  # OUT (m, dimensions)
) -> None:
    """Add weights, factor * sqrt(excess) for strangers and 1 for friends, to their dimensions.

    Of the strangers only those with the largest excess count, at most `most` for each friend.
    """
    n = rows.shape[1]
    weights = np.empty(n)
    for i in range(len(rows)):
        row, own, sums = rows[i], lists[starts[i] : starts[i + 1]], out[i]
        sums[:] = 0.0
        if len(own) == 0:
            continue
        friend = first_hop / len(own)
        for v in range(len(row)):
            excess = max(row[v] - degrees[v] * usual[i], 0.0) / friend
            weights[v] = factor * math.sqrt(excess) if excess >= 1e-12 else 0.0  # or rounding
        weights[sources[i]] = 0.0
        for u in range(len(own)):
            weights[own[u]] = 0.0
        place = max(n - 1 - most * len(own), 0)
        cut = np.partition(weights, place)[place]
        for v in range(n):
            if weights[v] > cut:
                sums[bucket[v]] += weights[v] * sign[v]
        for u in range(len(own)):
            sums[bucket[own[u]]] += sign[own[u]]
