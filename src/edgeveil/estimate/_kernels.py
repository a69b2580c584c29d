"""Compiled loops of rows with a second hop: arrays in and out, no Python objects.

n nodes, m rows, k friends of one source, sorted. IN arrays may be read-only. A block of m
sources has the friends of all, one list after the other, in `lists`; those of source i begin at
starts[i]. `degrees` are everybody's, `of_friends` what they are for a friend.

A sum over all nodes runs in _LANES lanes, node v in lane v mod _LANES, and then from
the first lane to the last: the same bits on every machine, and whatever else is computed. Plain
numpy says the same, slower, in tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inner

# Of the model in `rows`. Here, because compiled code is made anew when its own file changes.
IN_COMMON = 0.034  # two friends' sum beyond what degrees explain; tuned on generated networks
SPREAD_IN_COMMON = 0.1  # deviation of the same from member to member
_ECHO, _MOST_ECHO = 0.5, 0.8
_HALF_ECHO = 3.0  # how far beyond 1 the closure is where the echo is half way to the most
_OVERDISPERSION = 4.0  # of two-hop sums against independent edges; tuned on generated networks
_FLOOR_CANDIDATES = 41
_DEGREE_STEPS = 64
_USUAL_TAU = 3.0  # overdispersion of sums on generated networks: 2 to 4
_MOST_TAU = 50.0
_MOST_FITTED_TAU = 200.0

_LANES = 64
_TINY = 1e-150
_CELL_COUNT_BITS = 11  # at most 2^11 cells, and at least half as many
_TERMS = 25  # 2^25 / 25! < 2^-58
_NEWTON_ROUNDS = 60


@compiled
def degree_floors(
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  (n)
    epsilon: float,
    out: Any,  # OUT (m) not written where there are no friends
) -> None:
    """Try quantiles of the friends' degrees, give the first with the smallest lost + noise."""
    for i in range(len(out)):
        k = starts[i + 1] - starts[i]
        if k == 0:
            continue
        ordered = degrees[lists[starts[i] : starts[i + 1]]]
        ordered.sort()
        best, least = ordered[0], np.inf
        for c in range(_FLOOR_CANDIDATES):
            # A quantile, linear between two neighbours.
            place = (k - 1) * min(c * (1.0 / (_FLOOR_CANDIDATES - 1)), 1.0)
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
            error = _OVERDISPERSION / len(degrees) * lost + noise
            if error < least:
                best, least = floor, error
        out[i] = best


@inner
def _sorted_by(values: Any, others: Any) -> tuple[Any, Any]:
    """Copies of both, ``values`` rising, by Shell's gaps; numpy's takes seconds to compile."""
    values, others = values.copy(), others.copy()
    gap = 1
    while 3 * gap < len(values):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, other, at = values[i], others[i], i
            while at >= gap and values[at - gap] > value:
                values[at], others[at] = values[at - gap], others[at - gap]
                at -= gap
            values[at], others[at] = value, other
        gap //= 3
    return values, others


@compiled
def expected(
    friends: Any,  # IN  (k) degrees of the friends
    weights: Any,  # IN  (k) and weights
    degrees: Any,  # IN  (n) all positive
    total: float,  # sum of all degrees
    low: float,  # the least of them
    high: float,  # and the largest
    out: Any,  # OUT (n)
) -> float:
    """Write sum_u w_u (1 - exp(-d_u d_v / sum d)), linear between grid points; give its factor."""
    # A geometric grid; never falling, whatever the powers round to.
    steps = _DEGREE_STEPS
    at, value = np.empty(steps), np.zeros(steps)
    first, last = math.log10(low), math.log10(high)
    at[0], at[steps - 1] = low, high
    for i in range(1, steps - 1):
        at[i] = min(max(10.0 ** (first + i * ((last - first) / (steps - 1))), at[i - 1]), high)
    # Friends with an exponent not below -2 all at once, by the series of 1 - exp(-x) under the
    # sum; its alternating terms cost at most exp(2) / (1 - exp(-2)) < 9 roundings. They are more
    # and more from the last grid point to the first, and from some point on all.
    theirs, counts = _sorted_by(friends, weights)
    k, joined, point, most = len(theirs), 0, steps, theirs[len(theirs) - 1]
    moments = np.zeros(_TERMS)  # sum_u w_u (d_u / most)^(j + 1) / (j + 1)!, u those that joined
    while joined < k and point > 0:
        point -= 1
        while joined < k and at[point] * (theirs[joined] / total) <= 2.0:
            power, share = counts[joined], theirs[joined] / most
            for j in range(_TERMS):
                power *= share / (j + 1)
                moments[j] += power
            joined += 1
        for j in range(_TERMS - 1, -1, -1):
            value[point] = at[point] * (most / total) * (moments[j] - value[point])
        for u in range(joined, k):
            value[point] -= counts[u] * math.expm1(-at[point] * (theirs[u] / total))
    for j in range(_TERMS - 1, -1, -1):
        for i in range(point):
            value[i] = at[i] * (most / total) * (moments[j] - value[i])
    slope, above = np.zeros(steps), np.full(steps, np.inf)  # slope's last stays 0
    for i in range(steps - 1):
        above[i] = at[i + 1]
        if at[i + 1] > at[i]:
            slope[i] = (value[i + 1] - value[i]) / (at[i + 1] - at[i])
    # The bits of a float are its logarithm, nearly: cells of equally many floats are so much
    # narrower than the grid's steps that a cell holds one grid point at most. (Where all
    # degrees are the same but for rounding, two; then a value is off by rounding.)
    origin = np.float64(low).view(np.int64)
    span, shift = np.float64(high).view(np.int64) - origin, 0
    while span >> shift >= 1 << _CELL_COUNT_BITS:
        shift += 1
    before = np.zeros((span >> shift) + 1, dtype=np.uint8)
    j = 0
    for cell in range(len(before)):
        edge = np.int64(origin + (cell << shift)).view(np.float64)
        while j + 1 < steps and at[j + 1] <= edge:
            j += 1
        before[cell] = j
    lanes = np.zeros(_LANES)
    for start in range(0, len(degrees), _LANES):
        width = min(_LANES, len(degrees) - start)
        some, here = degrees[start : start + width], out[start : start + width]
        for v in range(width):
            d = some[v]
            # Held inside of the table whatever d is.
            inside: Any = min(
                max((np.float64(d).view(np.int64) - origin) >> shift, 0), len(before) - 1
            )
            place = np.uint64(before[np.uint64(inside)])
            place = place + np.uint64(above[place] <= d)
            here[v] = slope[place] * (d - at[place]) + value[place]
        for v in range(width):
            lanes[v] += here[v]
    mass = 0.0
    for u in range(len(friends)):
        mass += weights[u] * friends[u]
    return float(mass / lanes.sum())


@compiled
def shrunk(
    row: Any,  # INOUT (n) noisy sums, then posterior means
    known: int,  # a node whose sum becomes 0 in the end, or -1
    prior: Any,  # INOUT (n) positive; undefined afterwards
    factor: float,  # of the prior
    grain: float,  # size of a typical weight
    noise: Any,  # IN  (n) variance of the noise, not below _TINY
) -> float:
    """Write posterior means, not below 0, and give their sum.

    A sum's variance around its prior is taken as tau * prior * grain. tau is fitted to the noisy
    sums, whose variance is that plus the known noise's, by weighted least squares; where they are
    too noisy to tell, it is what it usually is.
    """
    lanes = np.zeros((3, _LANES))
    for start in range(0, len(row), _LANES):
        width = min(_LANES, len(row) - start)
        priors, sums = prior[start : start + width], row[start : start + width]
        noises = noise[start : start + width]
        for v in range(width):
            mean = priors[v] * factor
            spread = mean * grain
            root = 1 / (noises[v] + 6 * spread)
            weighted = root * root * spread
            off = sums[v] - mean
            scatter = weighted * (noises[v] + _USUAL_TAU * spread)
            lanes[0, v] += weighted * spread
            lanes[1, v] += weighted * (off * off - noises[v])
            lanes[2, v] += scatter * scatter
    certainty, fitted, scattered = lanes[0].sum(), lanes[1].sum(), lanes[2].sum()
    # Squares of Laplace noise have variance 5 noise^2.
    variance = 5 * scattered / (certainty * certainty)
    belief = _USUAL_TAU * _USUAL_TAU / (_USUAL_TAU * _USUAL_TAU + variance)
    tau = belief * (fitted / certainty) + (1 - belief) * _USUAL_TAU
    tau = min(max(tau, 0.0), _MOST_TAU)
    if known >= 0:
        prior[known] = 0.0
    whole = np.zeros(_LANES)
    for start in range(0, len(row), _LANES):
        width = min(_LANES, len(row) - start)
        priors, sums = prior[start : start + width], row[start : start + width]
        noises = noise[start : start + width]
        for v in range(width):
            mean = priors[v] * factor
            spread = tau * mean * grain
            sums[v] = max(mean + spread / (spread + noises[v]) * (sums[v] - mean), 0.0)
            whole[v] += sums[v]
    return float(whole.sum())


@compiled
def fit_tau(
    sums: Any,  # IN  (m)
    prior: Any,  # IN  (m)
    spread: Any,  # IN  (m) positive
    scales: Any,  # IN  (m) positive
    skip: int,  # a place that does not count, or -1
) -> tuple[float, float]:
    """Find the tau that `shrunk` must have used, or a little more, and its standard error.

    A shrunk sum departs from its prior by (tau s)^2 / (tau s + noise) in the mean square, s its
    spread. Only sums above their prior are looked at, twice: those below may have been cut at
    0. So tau solves sum tau^2 s / (tau s + noise) = 2 sum (sums - prior)^2 / s, within bounds. The
    left side is convex and rises from 0: Newton's method starts below the root, and from
    its first step on comes down to it.
    """
    seen, count, small = 0.0, 0, 0.0
    for v in range(len(sums)):
        if v != skip:
            count += 1
            small += spread[v] / (2 * scales[v] * scales[v])
            if sums[v] > prior[v]:
                seen += 2 * (sums[v] - prior[v]) ** 2 / spread[v]
    tau = 0.0
    if seen > 0:
        # The left side is at most tau^2 sum s / noise, and at most tau for each: two bounds.
        tau = min(max(math.sqrt(seen / small), seen / count), _MOST_FITTED_TAU)
        for _ in range(_NEWTON_ROUNDS):
            value, rise = 0.0, 0.0
            for v in range(len(sums)):
                if v != skip:
                    signal = tau * spread[v]
                    trust = signal / (signal + 2 * scales[v] * scales[v])
                    value += trust
                    rise += trust * (2 - trust)
            # The left side is tau * value, its derivative `rise`.
            before, tau = tau, min(tau - (tau * value - seen) / rise, _MOST_FITTED_TAU)
            if abs(tau - before) <= 1e-8 * tau:  # the error is about the square of the last step
                break
    certainty, scatter = 0.0, 0.0
    for v in range(len(sums)):
        if v != skip:
            noise = 2 * scales[v] * scales[v]
            root = 1 / (noise + 6 * spread[v])
            weighted = root * root * spread[v]
            certainty += weighted * spread[v]
            deviation = weighted * (noise + tau * spread[v])
            scatter += deviation * deviation
    # As in `shrunk`: a regression of squares, of variance 5 noise^2, on the spread.
    return tau, math.sqrt(5 * scatter) / certainty


@compiled
def two_hop_shares(
    friends: Any,  # IN  (k)
    mass: float,  # sum of weight times degree over the friends
    restart: float,
) -> tuple[float, float, float]:
    """How a row with a second hop is shared out.

    First what a unit of a two-hop sum gets. Then the mass of the friends that is known: the first
    hop, and what comes back over the source. Then that of all hops beyond the second, and of what
    the weights' floor cuts off the second.
    """
    follow, k, back = 1 - restart, len(friends), 0.0
    for u in range(k):
        back += 1 / friends[u]
    carried = min(mass / k, 1.0)
    back *= restart * follow**3 / k
    # What the floor cuts off follows the degrees, but for what friends have in common.
    back += restart * follow**2 * (1 - carried) * IN_COMMON
    far = follow**3 + restart * follow**2 * (1 - carried) - back
    return restart * follow**2 / k, restart * follow + back, far


@compiled
def echo_share(
    closure: float,  # the friends' sums over what degrees explain of them
    restart: float,
) -> float:
    """Share of the far hops that follows the second: sum of restart follow^j survives^(j+1)."""
    more = max(closure - 1, 0.0) / _HALF_ECHO
    survives = _MOST_ECHO - (_MOST_ECHO - _ECHO) / (1 + more * more)
    return restart * survives / (1 - (1 - restart) * survives)


@compiled
def complete_rows(
    rows: Any,  # INOUT (m, n) noisy sums, friends' halved, then scores
    sources: Any,  # IN  (m)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    weights: Any,  # IN  as long as `lists`, in units of 1 / floor
    floors: Any,  # IN  (m)
    degrees: Any,  # IN  (n)
    of_friends: Any,  # IN  (n)
    extent: tuple[float, float, float],  # sum, least and largest of the degrees
    scale: float,
    restart: float,
    prior: Any,  # OUT (n) room to work in
) -> None:
    """Shrink the sums to what is expected of them, then complete them to rows of PageRank."""
    # not so small that its inverse has no square
    noise = np.full(len(degrees), max(2 * scale * scale, _TINY))
    seen = degrees.copy()  # by the source: with its friends' in place of theirs
    for i in range(len(rows)):
        row, source, k = rows[i], sources[i], starts[i + 1] - starts[i]
        if k == 0:
            row[:] = 0.0
            row[source] = 1.0
            continue
        own, weight = lists[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        friends, mass, grain = of_friends[own], 0.0, 0.0
        total, low, high = extent
        was_least = False
        for u in range(k):
            mass += weight[u] * friends[u]
            grain += weight[u] * weight[u] * friends[u]
            total += friends[u] - degrees[own[u]]
            high = max(high, friends[u])
            was_least = was_least or degrees[own[u]] == low
            seen[own[u]] = friends[u]
        grain /= mass
        if was_least:
            low = seen.min()
        factor = expected(friends, weight, seen, total, low, high, prior)
        explained, measured = 0.0, 0.0
        for u in range(k):
            row[own[u]] *= 2
            explained += factor * prior[own[u]]
            measured += row[own[u]]
        # Friends have more in common than the prior says: by their own sums, as far as the noise
        # lets them tell, else by what is usual.
        uncertain = 8 * scale * scale * k / (mass * mass)
        belief = SPREAD_IN_COMMON**2 / (SPREAD_IN_COMMON**2 + uncertain)
        closed = belief * ((measured - explained) / mass) + (1 - belief) * IN_COMMON
        more = max(closed, 0.0) * min(mass / k, floors[i])
        for u in range(k):
            prior[own[u]] += more / factor
            noise[own[u]] = max(8 * scale * scale, _TINY)
        # Every friend has the source for a friend, so its sum is known. What is there goes to
        # the friends next, and has no echo.
        elsewhere = shrunk(row, source, prior, factor, grain, noise)
        closure = 0.0
        for u in range(k):
            closure += row[own[u]] / explained
        direct, on_friends, far = two_hop_shares(friends, mass / floors[i], restart)
        direct /= floors[i]
        share = echo_share(closure, restart)
        if elsewhere == 0:
            elsewhere, share = 1.0, 0.0  # nothing to follow
        by_sum, by_degree = direct + far * share / elsewhere, far * (1 - share) / total
        for v in range(len(row)):
            row[v] = by_sum * row[v] + by_degree * seen[v]
        for u in range(k):
            row[own[u]] += on_friends / k
            noise[own[u]] = max(2 * scale * scale, _TINY)
            seen[own[u]] = degrees[own[u]]
        row[source] += restart + direct * weight.sum()
