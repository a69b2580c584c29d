"""Compiled loops for rows with a second hop: arrays in and out, no Python objects.

n nodes, m rows, k friends of one source, sorted. IN arrays may be read-only. The friends of a
block of m sources are concatenated in `lists`; those of source i begin at starts[i]. `degrees`
are the estimates for all nodes, `of_friends` those for a node that is known to be a friend.

A sum over all nodes is accumulated in _LANES lanes, node v in lane v mod _LANES, and then over
the lanes in order: vectorised, and the same bits on every machine. The same model in plain numpy
is in tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inner

# Parameters of the model in `rows`. They are here because numba compiles a file again only if that
# file has changed. "Tuned" means on generated networks.
CLOSURE_EXCESS = 0.034  # prior mean of friends' sums beyond what degrees explain; tuned
CLOSURE_DEVIATION = 0.1  # its standard deviation between members
_PERSISTENCE, _MAX_PERSISTENCE = 0.5, 0.8
_HALF_RISE = 3.0  # closure - 1 at which persistence is half way between these two
_OVERDISPERSION = 4.0  # of two-hop sums, relative to independent edges; tuned
_FLOOR_CANDIDATES = 41
_DEGREE_STEPS = 64
_PRIOR_TAU = 3.0  # overdispersion of sums; 2 to 4 on generated networks
_MAX_TAU = 50.0
_MAX_FITTED_TAU = 200.0

_LANES = 64
_TINY = 1e-150  # the smallest variance: its inverse can be squared
_CELL_COUNT_BITS = 11  # at most 2^11 cells, and at least half as many
_TERMS = 25  # 2^25 / 25! < 2^-58
_NEWTON_STEPS = 60


@compiled
def degree_floors(
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    degrees: Any,  # IN  (n)
    epsilon: float,
    out: Any,  # OUT (m) not written where there are no friends
) -> None:
    """Choose the quantile of the friends' degrees with the smallest mean squared error."""
    for i in range(len(out)):
        k = starts[i + 1] - starts[i]
        if k == 0:
            continue
        ordered = degrees[lists[starts[i] : starts[i + 1]]]
        ordered.sort()
        best, least = ordered[0], np.inf
        for c in range(_FLOOR_CANDIDATES):
            # numpy's quantile: linear between two order statistics.
            place = (k - 1) * min(c * (1.0 / (_FLOOR_CANDIDATES - 1)), 1.0)
            at = min(int(place), k - 1)
            share, a, b = place - at, ordered[at], ordered[min(at + 1, k - 1)]
            floor = a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)
            bias = 0.0
            for u in range(k):
                if ordered[u] >= floor:
                    break
                cut = 1 / ordered[u] - 1 / floor
                bias += cut * cut * ordered[u]
            noise = 2 / (floor * epsilon) / (floor * epsilon)
            error = _OVERDISPERSION / len(degrees) * bias + noise
            if error < least:
                best, least = floor, error
        out[i] = best


@inner
def _sums_on_grid(
    grid: Any,  # IN  degrees, rising
    friends: Any,  # IN  (k) degrees of the friends
    weights: Any,  # IN  (k)
    total: float,  # sum of all degrees
) -> Any:
    """sum_u w_u (1 - exp(-d_u d / total)) for every degree d of the grid.

    Friends with an exponent of at most 2 are summed by moments: with the power series of
    1 - exp(-x), all of them take 25 terms for a grid point, instead of an exponential each. The
    alternating terms lose at most a factor of exp(2) / (1 - exp(-2)) < 9 in rounding. From the
    last grid point to the first more and more friends qualify. (With an exponential each, a row
    with its noise takes 15 % longer on 10,000 nodes of degree 60, 45 % on 2,000.)
    """
    order = np.argsort(friends)
    friends, weights = friends[order], weights[order]
    k, largest = len(friends), friends[len(friends) - 1]
    value = np.zeros(len(grid))
    moments = np.zeros(_TERMS)  # sum over the first `joined` of w (d / largest)^(j + 1) / (j + 1)!
    joined, point = 0, len(grid)
    while joined < k and point > 0:
        point -= 1
        while joined < k and grid[point] * (friends[joined] / total) <= 2.0:
            power, share = weights[joined], friends[joined] / largest
            for j in range(_TERMS):
                power *= share / (j + 1)
                moments[j] += power
            joined += 1
        for j in range(_TERMS - 1, -1, -1):
            value[point] = grid[point] * (largest / total) * (moments[j] - value[point])
        for u in range(joined, k):
            value[point] -= weights[u] * math.expm1(-grid[point] * (friends[u] / total))
    # All friends have joined: the remaining grid points need the series alone.
    for j in range(_TERMS - 1, -1, -1):
        for i in range(point):
            value[i] = grid[i] * (largest / total) * (moments[j] - value[i])
    return value


@inner
def _first_guess(grid: Any) -> tuple[Any, Any, int]:
    """A table that finds a degree's place in the grid without a binary search.

    The bits of a positive float, as an integer, are nearly its logarithm. Cut into cells of equally
    many floats, the range of the grid has more cells than grid points, so that a cell holds at most
    one grid point. (If all degrees are equal but for rounding, it may hold two; then a value is off
    by rounding.) Gives for every cell the last grid point at or below its start, and the origin
    and shift that make a cell's number of a float's bits. (A binary search instead makes a row on
    10,000 nodes 13 % slower.)
    """
    origin = np.float64(grid[0]).view(np.int64)
    span, shift = np.float64(grid[len(grid) - 1]).view(np.int64) - origin, 0
    while span >> shift >= 1 << _CELL_COUNT_BITS:
        shift += 1
    before = np.zeros((span >> shift) + 1, dtype=np.uint8)
    j = 0
    for cell in range(len(before)):
        edge = np.int64(origin + (cell << shift)).view(np.float64)
        while j + 1 < len(grid) and grid[j + 1] <= edge:
            j += 1
        before[cell] = j
    return before, origin, shift


@compiled
def expected(
    friends: Any,  # IN  (k) degrees of the friends
    weights: Any,  # IN  (k) and weights
    degrees: Any,  # IN  (n) all positive
    total: float,  # sum of all degrees
    low: float,  # the smallest of them
    high: float,  # and the largest
    out: Any,  # OUT (n)
) -> float:
    """Write sum_u w_u (1 - exp(-d_u d_v / sum d)), and give the factor that normalises it.

    Computed on a geometric grid of degrees and interpolated linearly.
    """
    steps = _DEGREE_STEPS
    grid = np.empty(steps)
    first, last = math.log10(low), math.log10(high)
    grid[0], grid[steps - 1] = low, high
    for i in range(1, steps - 1):  # rising, whatever the powers round to
        grid[i] = min(max(10.0 ** (first + i * ((last - first) / (steps - 1))), grid[i - 1]), high)
    value = _sums_on_grid(grid, friends, weights, total)
    slope, above = np.zeros(steps), np.full(steps, np.inf)
    for i in range(steps - 1):
        above[i] = grid[i + 1]
        if grid[i + 1] > grid[i]:
            slope[i] = (value[i + 1] - value[i]) / (grid[i + 1] - grid[i])
    before, origin, shift = _first_guess(grid)
    lanes = np.zeros(_LANES)
    for start in range(0, len(degrees), _LANES):
        width = min(_LANES, len(degrees) - start)
        some, here = degrees[start : start + width], out[start : start + width]
        for v in range(width):
            d = some[v]
            cell: Any = (np.float64(d).view(np.int64) - origin) >> shift
            cell = min(max(cell, 0), len(before) - 1)  # indices are not checked
            place = np.uint64(before[np.uint64(cell)])
            place = place + np.uint64(above[place] <= d)
            here[v] = slope[place] * (d - grid[place]) + value[place]
        for v in range(width):
            lanes[v] += here[v]
    mass = 0.0
    for u in range(len(friends)):
        mass += weights[u] * friends[u]
    return float(mass / lanes.sum())


@compiled
def shrink(
    row: Any,  # INOUT (n) noisy sums, then posterior means
    known: int,  # a node whose sum is set to 0, or -1
    prior: Any,  # INOUT (n) positive; undefined afterwards
    factor: float,  # of the prior
    grain: float,  # size of a typical weight
    noise: Any,  # IN  (n) variance of the noise, not below _TINY
) -> float:
    """Write posterior means, at least 0, and give their sum.

    Model: a sum has mean `prior` and variance tau * prior * grain. tau is fitted by weighted least
    squares to the noisy sums, whose variance is that plus the known variance of the noise, and
    shrunk to _PRIOR_TAU as far as they are too noisy to determine it.
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
            scatter = weighted * (noises[v] + _PRIOR_TAU * spread)
            lanes[0, v] += weighted * spread
            lanes[1, v] += weighted * (off * off - noises[v])
            lanes[2, v] += scatter * scatter
    certainty, fitted, scattered = lanes[0].sum(), lanes[1].sum(), lanes[2].sum()
    # Squares of Laplace noise have variance 5 noise^2.
    variance = 5 * scattered / (certainty * certainty)
    belief = _PRIOR_TAU * _PRIOR_TAU / (_PRIOR_TAU * _PRIOR_TAU + variance)
    tau = belief * (fitted / certainty) + (1 - belief) * _PRIOR_TAU
    tau = min(max(tau, 0.0), _MAX_TAU)
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
    skip: int,  # a node to leave out, or -1
) -> tuple[float, float]:
    """Estimate, slightly high, the tau that `shrink` used, and give its standard error.

    A shrunk sum has mean squared distance (tau s)^2 / (tau s + noise) from its prior, s its
    spread. Sums below their prior may have been cut at 0, so those above count twice. tau solves
    sum tau^2 s / (tau s + noise) = 2 sum (sums - prior)^2 / s, within bounds. The left side is
    convex and rises from 0: Newton's method starts below the root and comes down to it from its
    first step on.
    """
    observed, count, slope = 0.0, 0, 0.0
    for v in range(len(sums)):
        if v != skip:
            count += 1
            slope += spread[v] / (2 * scales[v] * scales[v])
            if sums[v] > prior[v]:
                observed += 2 * (sums[v] - prior[v]) ** 2 / spread[v]
    tau = 0.0
    if observed > 0:
        # The left side is at most tau^2 sum s / noise, and at most tau for each: two lower bounds.
        tau = min(max(math.sqrt(observed / slope), observed / count), _MAX_FITTED_TAU)
        for _ in range(_NEWTON_STEPS):
            value, rise = 0.0, 0.0
            for v in range(len(sums)):
                if v != skip:
                    signal = tau * spread[v]
                    trust = signal / (signal + 2 * scales[v] * scales[v])
                    value += trust
                    rise += trust * (2 - trust)
            # The left side is tau * value, its derivative `rise`.
            before, tau = tau, min(tau - (tau * value - observed) / rise, _MAX_FITTED_TAU)
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
    # As in `shrink`: a regression of squares, of variance 5 noise^2, on the spread.
    return tau, math.sqrt(5 * scatter) / certainty


@compiled
def two_hop_shares(
    friends: Any,  # IN  (k)
    mass: float,  # sum of weight times degree over the friends
    restart: float,
) -> tuple[float, float, float]:
    """Split the mass of a row: per unit of a two-hop sum, on friends, on far nodes.

    The mass on friends is what is known: the first hop, and walks that return through the source.
    The mass on far nodes is that of all hops beyond the second, and what the weights' floor cuts
    off the second.
    """
    follow, k, back = 1 - restart, len(friends), 0.0
    for u in range(k):
        back += 1 / friends[u]
    carried = min(mass / k, 1.0)
    back *= restart * follow**3 / k
    # What the floor cuts off follows the degrees, except for the friends' excess.
    back += restart * follow**2 * (1 - carried) * CLOSURE_EXCESS
    far = follow**3 + restart * follow**2 * (1 - carried) - back
    return restart * follow**2 / k, restart * follow + back, far


@compiled
def persistent_share(
    closure: float,  # the friends' sums over what degrees explain of them
    restart: float,
) -> float:
    """Share of the far hops distributed like the second: sum of restart follow^j persists^(j+1)."""
    more = max(closure - 1, 0.0) / _HALF_RISE
    persists = _MAX_PERSISTENCE - (_MAX_PERSISTENCE - _PERSISTENCE) / (1 + more * more)
    return restart * persists / (1 - (1 - restart) * persists)


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
    extent: tuple[float, float, float],  # sum, smallest and largest of the degrees
    scale: float,
    restart: float,
    prior: Any,  # OUT (n) working memory
) -> None:
    """Shrink the sums to their prior, then complete them to rows of PageRank."""
    noise = np.full(len(degrees), max(2 * scale * scale, _TINY))  # variances
    seen = degrees.copy()  # as the source sees them: friends' replaced by `of_friends`
    for i in range(len(rows)):
        row, source, k = rows[i], sources[i], starts[i + 1] - starts[i]
        if k == 0:
            row[:] = 0.0
            row[source] = 1.0
            continue
        own, weight = lists[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]]
        friends, mass, grain = of_friends[own], 0.0, 0.0
        total, low, high = extent
        smallest_changes = False
        for u in range(k):
            mass += weight[u] * friends[u]
            grain += weight[u] * weight[u] * friends[u]
            total += friends[u] - degrees[own[u]]
            high = max(high, friends[u])
            smallest_changes = smallest_changes or degrees[own[u]] == low
            seen[own[u]] = friends[u]
        grain /= mass
        if smallest_changes:
            low = seen.min()
        factor = expected(friends, weight, seen, total, low, high, prior)
        explained, measured = 0.0, 0.0
        for u in range(k):
            row[own[u]] *= 2
            explained += factor * prior[own[u]]
            measured += row[own[u]]
        # Triadic closure: friends' sums exceed what degrees explain. Shrink the measured excess
        # to its prior mean by the ratio of the variances.
        variance = 8 * scale * scale * k / (mass * mass)
        trust = CLOSURE_DEVIATION**2 / (CLOSURE_DEVIATION**2 + variance)
        excess = trust * ((measured - explained) / mass) + (1 - trust) * CLOSURE_EXCESS
        more = max(excess, 0.0) * min(mass / k, floors[i])
        for u in range(k):
            prior[own[u]] += more / factor
            noise[own[u]] = max(8 * scale * scale, _TINY)
        # The sum of the source itself is known: every friend has it as a friend. From there the
        # walk goes to the friends, so it is left out of what persists.
        elsewhere = shrink(row, source, prior, factor, grain, noise)
        closure = 0.0
        for u in range(k):
            closure += row[own[u]] / explained
        direct, on_friends, far = two_hop_shares(friends, mass / floors[i], restart)
        direct /= floors[i]
        share = persistent_share(closure, restart)
        if elsewhere == 0:
            elsewhere, share = 1.0, 0.0  # no second hop that could persist
        by_sum, by_degree = direct + far * share / elsewhere, far * (1 - share) / total
        for v in range(len(row)):
            row[v] = by_sum * row[v] + by_degree * seen[v]
        for u in range(k):
            row[own[u]] += on_friends / k
            noise[own[u]] = max(2 * scale * scale, _TINY)
            seen[own[u]] = degrees[own[u]]
        row[source] += restart + direct * weight.sum()
