"""Compiled loops of `uncertainty`: arrays in and out, no Python objects. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

from edgeveil.estimate._compile import compiled

__all__ = ["fit_tau", "sums_uncertainty"]

_NEWTON_ROUNDS = 60
_FEW = 20  # noisy sums that are far above their prior by noise alone
_LN_20 = math.log(20)
_SOME_TRUST = 1e-6  # below, what a sum was before the pull is lost in rounding


@compiled
def fit_tau(
    sums: Any,  # IN  (m)
    prior: Any,  # IN  (m)
    spread: Any,  # IN  (m) positive
    scales: Any,  # IN  (m) positive
    skip: int,  # a place that does not count, or -1
    most: float,
) -> tuple[float, float]:
    """Find the tau that `_kernels.shrunk` must have used, or a little more, and its standard error.

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
    # As in `_kernels.shrunk`: a regression of squares, of variance 5 noise^2, on the spread.
    return tau, math.sqrt(5 * scatter) / certainty


@compiled
def sums_uncertainty(
    sums: Any,  # IN  (n)
    prior: Any,  # IN  (n)
    spread: Any,  # IN  (n)
    scales: Any,  # IN  (n)
    tau: float,
    wider: Any,  # IN  (n) the tau that the truth may have
    deviations: float,
    largest: float,  # what a sum cannot exceed
    out: Any,  # OUT (n)
) -> None:
    """Write deviations * sqrt((1 - trust)^2 wider s + trust^2 noise), cut at what is possible.

    A noisy sum so far above its prior that few of so many are by noise alone was pulled away from
    the truth: there it is at least the pull, and the noise's own 95 %.
    """
    far = math.log(max(len(sums) / _FEW, 1.0))
    for v in range(len(sums)):
        noise = 2 * scales[v] * scales[v]
        trust = tau * spread[v] / (tau * spread[v] + noise)
        pull = (1 - trust) * (1 - trust) * wider[v] * spread[v]
        off = deviations * math.sqrt(pull + trust * trust * noise)
        above = sums[v] - prior[v]
        if trust > _SOME_TRUST and above > trust * far * scales[v]:
            off = max(off, above / trust - above + _LN_20 * scales[v])
        out[v] = min(off, max(sums[v], largest - sums[v]))
