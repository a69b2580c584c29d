"""Compiled loops only: arrays in and out, no Python objects.

n nodes, k friends. IN arrays may be read-only. Every sum runs from the first node to the last,
so a result does not depend on what else is computed. Plain numpy says the same, slower, in
tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

__all__ = ["closeness", "degree_floor", "expected", "fit_tau", "mixed", "shrunk", "sums_doubt"]

_CELL_BITS = 45  # a cell is 1/128 of an octave: 7 bits of the mantissa
_NEWTON_ROUNDS = 60
_TERMS = 25  # 2^25 / 25! < 2^-58

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    """As `edgeveil._compiled.compiled`, but without a branch before every division."""
    decorated: F = njit(cache=True, nogil=True, error_model="numpy")(function)
    return decorated


@_compiled
def degree_floor(
    ordered: Any,  # IN  (k) degrees of the friends, sorted, k > 0
    n: int,
    epsilon: float,
    overdispersion: float,
    candidates: int,
) -> float:
    """Try quantiles of the degrees, give the first with the smallest lost + noise."""
    k = len(ordered)
    best, least = ordered[0], np.inf
    for i in range(candidates):
        # Quantile i / (candidates - 1), linear between two neighbours.
        place = (k - 1) * (i * (1.0 / (candidates - 1)) if i + 1 < candidates else 1.0)
        at = min(int(place), k - 1)
        share, a, b = place - at, ordered[at], ordered[min(at + 1, k - 1)]
        floor = a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)
        lost = 0.0
        for u in range(k):
            if ordered[u] >= floor:
                break
            cut = 1 / ordered[u] - 1 / floor
            lost += cut * cut * ordered[u]
        error = overdispersion / n * lost + 2 / (floor * epsilon) / (floor * epsilon)
        if error < least:
            best, least = floor, error
    return float(best)


@_compiled
def expected(
    friends: Any,  # IN  (k) degrees of the friends
    weights: Any,  # IN  (k) their weights
    degrees: Any,  # IN  (n) all positive
    total: float,  # their sum
    low: float,  # the least of them
    high: float,  # and the largest
    steps: int,  # of the grid of degrees
    out: Any,  # OUT (n)
) -> None:
    """Write sum_u w_u (1 - exp(-d_u d_v / sum d)), linear between grid points, scaled."""
    # A geometric grid; never falling, whatever the powers round to.
    at, value = np.empty(steps), np.zeros(steps)
    first, last = math.log10(low), math.log10(high)
    at[0], at[steps - 1] = low, high
    for i in range(1, steps - 1):
        at[i] = min(max(10.0 ** (first + i * ((last - first) / (steps - 1))), at[i - 1]), high)
    # Where no exponent is below -2, by the series of 1 - exp(-x) under the sum: all friends at
    # once, and its alternating terms cost at most exp(2) / (1 - exp(-2)) < 9 roundings.
    most = friends.max()
    moments = np.zeros(_TERMS)  # sum_u w_u (d_u / most)^(j + 1) / (j + 1)!
    for u in range(len(friends)):
        power = weights[u]
        for j in range(_TERMS):
            power *= friends[u] / most / (j + 1)
            moments[j] += power
    for i in range(steps):
        x = at[i] * (most / total)
        if x <= 2.0:
            for j in range(_TERMS - 1, -1, -1):
                value[i] = x * (moments[j] - value[i])
        else:
            for u in range(len(friends)):
                value[i] -= weights[u] * math.expm1(-at[i] * (friends[u] / total))
    slope = np.zeros(steps)  # the last stays 0
    for i in range(steps - 1):
        if at[i + 1] > at[i]:
            slope[i] = (value[i + 1] - value[i]) / (at[i + 1] - at[i])
    # The leading bits of a float are its logarithm, nearly: floats of one cell lie between the
    # grid points before[cell] and before[cell + 1] + 1.
    origin = np.float64(low).view(np.int64) >> _CELL_BITS
    cells = (np.float64(high).view(np.int64) >> _CELL_BITS) - origin + 2
    before = np.zeros(cells, dtype=np.int16)
    j = 0
    for cell in range(cells):
        edge = np.int64((origin + cell) << _CELL_BITS).view(np.float64)
        while j + 1 < steps and at[j + 1] <= edge:
            j += 1
        before[cell] = j
    mass, whole = 0.0, 0.0
    for v in range(len(degrees)):
        d = degrees[v]
        # In 0 .. cells - 2 for low <= d <= high; held there whatever d is.
        place = (np.float64(d).view(np.int64) >> _CELL_BITS) - origin
        place = min(max(place, np.int64(0)), cells - 2)
        i, j = before[place], before[place + 1]
        while i < j:  # the last grid point that is not above d
            middle = (i + j + 1) // 2
            if at[middle] <= d:
                i = middle
            else:
                j = middle - 1
        out[v] = slope[i] * (d - at[i]) + value[i]
        whole += out[v]
    for u in range(len(friends)):
        mass += weights[u] * friends[u]
    for v in range(len(degrees)):
        out[v] *= mass / whole


@_compiled
def shrunk(
    noisy: Any,  # IN  (n)
    scales: Any,  # IN  (n) positive
    prior: Any,  # IN  (n) positive
    grain: float,
    usual: float,  # tau where nothing is known
    most: float,  # and the largest
    out: Any,  # OUT (n); may be one of the IN arrays
) -> None:
    """Fit tau by weighted least squares, then write posterior means, not below 0."""
    certainty, fitted, doubt = 0.0, 0.0, 0.0
    for v in range(len(noisy)):
        spread, noise = prior[v] * grain, 2 * scales[v] * scales[v]
        root = 1 / (noise + 6 * spread)
        weighted = root * root * spread
        off = noisy[v] - prior[v]
        certainty += weighted * spread
        fitted += weighted * (off * off - noise)
        scatter = weighted * (noise + usual * spread)
        doubt += scatter * scatter
    # Squares of Laplace noise have variance 5 noise^2.
    doubt = 5 * doubt / (certainty * certainty)
    belief = usual * usual / (usual * usual + doubt)
    tau = min(max(belief * (fitted / certainty) + (1 - belief) * usual, 0.0), most)
    for v in range(len(noisy)):
        spread, noise = tau * prior[v] * grain, 2 * scales[v] * scales[v]
        out[v] = max(prior[v] + spread / (spread + noise) * (noisy[v] - prior[v]), 0.0)


@_compiled
def mixed(
    sums: Any,  # IN  (n)
    degrees: Any,  # IN  (n)
    by_sum: float,
    by_degree: float,
    out: Any,  # OUT (n)
) -> None:
    """Write by_sum * sums + by_degree * degrees."""
    for v in range(len(sums)):
        out[v] = by_sum * sums[v] + by_degree * degrees[v]


@_compiled
def closeness(
    row: Any,  # IN  (n)
    degrees: Any,  # IN  (n)
    usual: float,  # row / degree without an excess
    friend: float,  # unit of the excess
    factor: float,
    out: Any,  # OUT (n)
) -> None:
    """Write factor * sqrt(excess)."""
    for v in range(len(row)):
        excess = max(row[v] - degrees[v] * usual, 0.0) / friend
        out[v] = factor * math.sqrt(excess) if excess >= 1e-12 else 0.0  # below is rounding


@_compiled
def fit_tau(
    sums: Any,  # IN  (m)
    prior: Any,  # IN  (m)
    spread: Any,  # IN  (m) positive
    scales: Any,  # IN  (m) positive
    skip: int,  # a place that does not count, or -1
    most: float,
) -> tuple[float, float]:
    """Find the tau that `shrunk` must have used, up to a little more, and its standard error.

    A shrunk sum departs from its prior by (tau s)^2 / (tau s + noise) in the mean square, s its
    spread. Only sums above their prior are looked at, twice: those below may have been cut at
    0. So tau solves sum tau^2 s / (tau s + noise) = 2 sum (sums - prior)^2 / s, 0 to `most`.
    The left side is convex and rises from 0: Newton's method starts below the root, and from
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
        tau = min(max(math.sqrt(seen / small), seen / count), most)
        for _ in range(_NEWTON_ROUNDS):
            value, rise = 0.0, 0.0
            for v in range(len(sums)):
                if v != skip:
                    signal = tau * spread[v]
                    trust = signal / (signal + 2 * scales[v] * scales[v])
                    value += trust
                    rise += trust * (2 - trust)
            # The left side is tau * value, its derivative `rise`.
            before, tau = tau, min(tau - (tau * value - seen) / rise, most)
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
    # As in `shrunk`: a regression of squares, which have variance 5 noise^2, on the spread.
    return tau, math.sqrt(5 * scatter) / certainty


@_compiled
def sums_doubt(
    sums: Any,  # IN  (n)
    spread: Any,  # IN  (n)
    scales: Any,  # IN  (n)
    tau: float,
    wider: Any,  # IN  (n) the tau that the truth may have
    deviations: float,
    largest: float,  # what a sum cannot exceed
    out: Any,  # OUT (n)
) -> None:
    """Write deviations * sqrt((1 - trust)^2 wider s + trust^2 noise), cut at what is possible."""
    for v in range(len(sums)):
        noise = 2 * scales[v] * scales[v]
        trust = tau * spread[v] / (tau * spread[v] + noise)
        pull = (1 - trust) * (1 - trust) * wider[v] * spread[v]
        off = deviations * math.sqrt(pull + trust * trust * noise)
        out[v] = min(off, max(sums[v], largest - sums[v]))
