"""Compiled loops of rows with a second hop: arrays in and out, no Python objects.

n nodes, m rows, k friends of one source, sorted. IN arrays may be read-only. A block of m
sources has the friends of all, one list after the other, in `lists`; those of source i begin at
starts[i]. `degrees` are everybody's, `of_friends` what they are for a friend.

A loop over all nodes treats friends like strangers, without a branch, and friends are put right
one by one. A sum over all nodes runs in _LANES lanes, node v in lane v mod _LANES, and then from
the first lane to the last: the same bits on every machine, and whatever else is computed. Plain
numpy says the same, slower, in tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inlined

__all__ = ["complete_rows", "echo_share", "expected", "mixed", "shrunk", "two_hop_shares"]

_LANES = 64
_TINY = 1e-150
_CELL_COUNT_BITS = 11  # at most 2^11 cells, and at least half as many
_TERMS = 25  # 2^25 / 25! < 2^-58


@inlined
def _on_grid(
    d: Any, origin: Any, shift: Any, before: Any, above: Any, at: Any, slope: Any, value: Any
) -> Any:
    """Interpolate at d."""
    # Held inside of the table whatever d is.
    cell = min(max((np.float64(d).view(np.int64) - origin) >> shift, 0), len(before) - 1)
    i = np.uint64(before[np.uint64(cell)])
    i = i + np.uint64(above[i] <= d)
    return slope[i] * (d - at[i]) + value[i]


@compiled
def expected(
    own: Any,  # IN  (k)
    friends: Any,  # IN  (k) their degrees
    weights: Any,  # IN  (k) and weights
    degrees: Any,  # IN  (n) all positive; those of friends do not count
    total: float,  # sum of all degrees, friends' as in `friends`
    low: float,  # the least of them
    high: float,  # and the largest
    steps: int,  # of the grid of degrees
    out: Any,  # OUT (n)
) -> float:
    """Write sum_u w_u (1 - exp(-d_u d_v / sum d)), linear between grid points; give its factor."""
    # A geometric grid; never falling, whatever the powers round to.
    at, value = np.empty(steps), np.zeros(steps)
    first, last = math.log10(low), math.log10(high)
    at[0], at[steps - 1] = low, high
    for i in range(1, steps - 1):
        at[i] = min(max(10.0 ** (first + i * ((last - first) / (steps - 1))), at[i - 1]), high)
    # Friends with an exponent not below -2 all at once, by the series of 1 - exp(-x) under the
    # sum; its alternating terms cost at most exp(2) / (1 - exp(-2)) < 9 roundings. They are more
    # and more from the last grid point to the first, and from some point on all.
    k, joined, point, most = len(friends), 0, steps, friends.max()
    order = np.argsort(friends)
    moments = np.zeros(_TERMS)  # sum_u w_u (d_u / most)^(j + 1) / (j + 1)!, u those that joined
    while joined < k and point > 0:
        point -= 1
        while joined < k and at[point] * (friends[order[joined]] / total) <= 2.0:
            power, share = weights[order[joined]], friends[order[joined]] / most
            for j in range(_TERMS):
                power *= share / (j + 1)
                moments[j] += power
            joined += 1
        for j in range(_TERMS - 1, -1, -1):
            value[point] = at[point] * (most / total) * (moments[j] - value[point])
        for u in order[joined:]:
            value[point] -= weights[u] * math.expm1(-at[point] * (friends[u] / total))
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
    lanes, u = np.zeros(_LANES), 0
    for start in range(0, len(degrees), _LANES):
        width = min(_LANES, len(degrees) - start)
        theirs, here = degrees[start : start + width], out[start : start + width]
        for v in range(width):
            here[v] = _on_grid(theirs[v], origin, shift, before, above, at, slope, value)
        while u < len(own) and own[u] < start + width:
            d = friends[u]
            out[own[u]] = _on_grid(d, origin, shift, before, above, at, slope, value)
            u += 1
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
    own: Any,  # IN  (k)
    prior: Any,  # INOUT (n) positive; undefined afterwards
    factor: float,  # of the prior
    grain: float,
    scale: float,  # of the noise on strangers, half of that on friends
    usual: float,  # tau where nothing is known
    most: float,  # and the largest
) -> float:
    """Fit tau by weighted least squares, write posterior means, not below 0; give their sum."""
    k, n = len(own), len(row)
    # not so small that its inverse has no square
    noise, more_noise = max(2 * scale * scale, _TINY), max(8 * scale * scale, _TINY)
    theirs, noisy = np.empty(k), np.empty(k)
    for u in range(k):
        theirs[u], noisy[u] = prior[own[u]] * factor, row[own[u]]
        prior[own[u]] = 0.0  # a node without a prior adds nothing to the sums below
    lanes = np.zeros(3 * _LANES)
    for start in range(0, n, _LANES):
        width = min(_LANES, n - start)
        priors, sums = prior[start : start + width], row[start : start + width]
        for v in range(width):
            mean = priors[v] * factor
            spread = mean * grain
            root = 1 / (noise + 6 * spread)
            weighted = root * root * spread
            off = sums[v] - mean
            scatter = weighted * (noise + usual * spread)
            lanes[v] += weighted * spread
            lanes[v + _LANES] += weighted * (off * off - noise)
            lanes[v + 2 * _LANES] += scatter * scatter
    certainty, fitted, variance = 0.0, 0.0, 0.0
    for v in range(_LANES):
        certainty += lanes[v]
        fitted += lanes[v + _LANES]
        variance += lanes[v + 2 * _LANES]
    for u in range(k):
        spread = theirs[u] * grain
        root = 1 / (more_noise + 6 * spread)
        weighted = root * root * spread
        off = noisy[u] - theirs[u]
        scatter = weighted * (more_noise + usual * spread)
        certainty += weighted * spread
        fitted += weighted * (off * off - more_noise)
        variance += scatter * scatter
    # Squares of Laplace noise have variance 5 noise^2.
    variance = 5 * variance / (certainty * certainty)
    belief = usual * usual / (usual * usual + variance)
    tau = min(max(belief * (fitted / certainty) + (1 - belief) * usual, 0.0), most)
    if known >= 0:
        prior[known] = 0.0
    lanes[:_LANES] = 0.0
    for start in range(0, n, _LANES):
        width = min(_LANES, n - start)
        priors, sums = prior[start : start + width], row[start : start + width]
        for v in range(width):
            mean = priors[v] * factor
            spread = tau * mean * grain
            sums[v] = max(mean + spread / (spread + noise) * (sums[v] - mean), 0.0)
            lanes[v] += sums[v]
    whole = 0.0
    for v in range(_LANES):
        whole += lanes[v]
    for u in range(k):
        spread = tau * theirs[u] * grain
        trust = spread / (spread + more_noise)
        row[own[u]] = max(theirs[u] + trust * (noisy[u] - theirs[u]), 0.0)
        whole += row[own[u]]
    return whole


@compiled
def mixed(
    row: Any,  # INOUT (n) sums, then scores
    own: Any,  # IN  (k)
    friends: Any,  # IN  (k) their degrees
    degrees: Any,  # IN  (n)
    by_sum: float,
    by_degree: float,
    on_friends: float,
) -> None:
    """Write by_sum * sums + by_degree * degrees, and on_friends beyond on every friend."""
    theirs = np.empty(len(own))
    for u in range(len(own)):
        theirs[u] = by_sum * row[own[u]] + by_degree * friends[u] + on_friends
    for v in range(len(row)):
        row[v] = by_sum * row[v] + by_degree * degrees[v]
    for u in range(len(own)):
        row[own[u]] = theirs[u]


@compiled
def two_hop_shares(
    friends: Any,  # IN  (k)
    mass: float,  # sum of weight times degree over the friends
    restart: float,
    in_common: float,
) -> tuple[float, float, float]:
    """Give `direct`, `friends` and `far` of `walk_model.two_hop_shares`."""
    follow, k, back = 1 - restart, len(friends), 0.0
    for u in range(k):
        back += 1 / friends[u]
    carried = min(mass / k, 1.0)
    back *= restart * follow**3 / k
    # What the floor cuts off follows the degrees, but for what friends have in common.
    back += restart * follow**2 * (1 - carried) * in_common
    far = follow**3 + restart * follow**2 * (1 - carried) - back
    return restart * follow**2 / k, restart * follow + back, far


@compiled
def echo_share(
    closure: float,  # the friends' sums over what degrees explain of them
    restart: float,
    echo: tuple[float, float, float],  # least and most that survives a step, and half way at
) -> float:
    """Give what `walk_model.echo_share` does."""
    least, most, half = echo
    more = max(closure - 1, 0.0) / half
    survives = most - (most - least) / (1 + more * more)
    return restart * survives / (1 - (1 - restart) * survives)


@compiled
def _seen(
    own: Any,  # IN  (k)
    friends: Any,  # IN  (k) not below `degrees` at `own`
    degrees: Any,  # IN  (n)
    total: float,  # their sum
    low: float,  # the least of them
    lows: int,  # how many nodes have it
    high: float,  # the largest of them
) -> tuple[float, float, float]:
    """Give sum, least and largest of the degrees, with the friends' in place of theirs."""
    for u in range(len(own)):
        total += friends[u] - degrees[own[u]]
        lows -= degrees[own[u]] == low
        high = max(high, friends[u])
    if lows == 0:
        low, u = np.inf, 0
        for v in range(len(degrees)):
            if u < len(own) and own[u] == v:
                low = min(low, friends[u])
                u += 1
            else:
                low = min(low, degrees[v])
    return total, low, high


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
    about: tuple[float, float, int, float],  # total, low, lows, high of `_seen`
    scale: float,
    restart: float,
    in_common: float,
    spread_in_common: float,  # its deviation from member to member
    echo: tuple[float, float, float],  # of `echo_share`
    usual: float,
    most: float,
    steps: int,
    prior: Any,  # OUT (n) room to work in
) -> None:
    """Shrink the sums to what is expected of them, then complete them to rows of PageRank."""
    for i in range(len(rows)):
        row, source, k = rows[i], sources[i], starts[i + 1] - starts[i]
        if k == 0:
            row[:] = 0.0
            row[source] = 1.0
            continue
        own, weight = lists[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        friends, mass, grain, known = np.empty(k), 0.0, 0.0, 0.0
        for u in range(k):
            friends[u] = of_friends[own[u]]
            mass += weight[u] * friends[u]
            grain += weight[u] * weight[u] * friends[u]
            known += weight[u]
        grain /= mass
        total, low, high = _seen(own, friends, degrees, about[0], about[1], about[2], about[3])
        factor = expected(own, friends, weight, degrees, total, low, high, steps, prior)
        explained, measured = 0.0, 0.0
        for u in range(k):
            row[own[u]] *= 2
            explained += factor * prior[own[u]]
            measured += row[own[u]]
        # Friends have more in common than the prior says: by their own sums, as far as the noise
        # lets them tell, else by what is usual.
        noise = 8 * scale * scale * k / (mass * mass)
        belief = spread_in_common**2 / (spread_in_common**2 + noise)
        closed = belief * ((measured - explained) / mass) + (1 - belief) * in_common
        more = max(closed, 0.0) * min(mass / k, floors[i])
        for u in range(k):
            prior[own[u]] += more / factor
        # Every friend has the source for a friend, so its sum is known. What is there goes to
        # the friends next, and has no echo.
        seen = shrunk(row, source, own, prior, factor, grain, scale, usual, most)
        closure = 0.0
        for u in range(k):
            closure += row[own[u]] / explained
        direct, on_friends, far = two_hop_shares(friends, mass / floors[i], restart, in_common)
        direct /= floors[i]
        share = echo_share(closure, restart, echo)
        by_echo, rest = (far * share / seen, far * (1 - share)) if seen > 0 else (0.0, far)
        mixed(row, own, friends, degrees, direct + by_echo, rest / total, on_friends / k)
        row[source] += restart + direct * known
