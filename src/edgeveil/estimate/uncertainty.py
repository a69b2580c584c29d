"""Half-widths of 95 % intervals for the scores of `rows`.

A score is A c + B d + (what the member knows), c a two-hop sum and d a degree. The target is the
same formula, with the same public weights, on the true sums and degrees. Sums and degrees are
shrunk to a prior, so the variance of the noise is not enough: at a small epsilon hardly any noise
is left in the estimate, and hardly any signal. So the intervals cover noise and shrinkage bias
together, as estimated from the released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import (
    CLOSURE_DEVIATION,
    Indices,
    LocalViews,
    Rows,
    Vector,
    expected_sums,
    persistent_share,
    prior_shares,
    regression_error,
    row_blocks,
    two_hop_shares,
)

_DEVIATIONS = 3.0  # of a sum around its estimate; 2 would do if its prior were normal
_BISECTIONS = 50
_NEWTON_STEPS = 60
_MAX_TAU = 200.0
_FALSE_POSITIVES = 20  # sums that are expected to exceed the outlier threshold by noise alone
_MIN_TRUST = 1e-6  # below this, rounding hides the noisy sum in the shrunk one


@dataclass(frozen=True)
class RowUncertainty:
    """Half-widths of one row, with the part that comes from the nodes' own degrees apart."""

    by_degree: float  # coefficient of a node's degree in its score
    besides: Vector  # (n) half-widths from all other sources

    def of_pagerank(self, seen: DegreeEstimates) -> Vector:
        """Half-widths of the row."""
        return np.asarray(self.besides + self.by_degree * seen.uncertainty)

    def of_lift(self, row: Vector, seen: DegreeEstimates) -> Vector:
        """Half-widths of row / degree. The part proportional to the degree cancels."""
        degrees = seen.degrees
        least, most = np.maximum(degrees - seen.uncertainty, 1.0), degrees + seen.uncertainty
        rest = row - self.by_degree * degrees
        above = (rest + self.besides) / least - rest / degrees
        below = rest / degrees - (rest - self.besides) / most
        return np.asarray(np.maximum(above, below))


def half_widths(
    scores: Rows,
    views: LocalViews,
    released: DegreeEstimates,
    of_row: Callable[[int, Vector, DegreeEstimates], RowUncertainty],
    *,
    lift: bool,
) -> Rows:
    """Half-widths for each row of scores, which are PageRank or, for `lift`, PageRank / degree.

    `of_row` gets the number of a row, the row as PageRank, and the degrees as its member sees them.
    """
    out = np.empty_like(scores)
    for i, score in enumerate(scores):
        seen = released.seen_by(views.of(i))
        row = score * seen.degrees if lift else score
        uncertainty = of_row(i, row, seen)
        out[i] = uncertainty.of_lift(row, seen) if lift else uncertainty.of_pagerank(seen)
    return out


def prior_uncertainty(
    friends: Indices, seen: DegreeEstimates, restart: float, known_hops: int = 1
) -> RowUncertainty:
    """Uncertainty about a row of `rows.prior_rows`."""
    degrees = seen.degrees
    if known_hops and len(friends) == 0:  # all mass stays at the source
        return RowUncertainty(0.0, np.zeros(len(degrees)))
    to_friends, far = prior_shares(degrees[friends], restart, known_hops)
    by_degree = far / float(degrees.sum())
    besides = by_degree * seen.total_uncertainty * degrees
    if known_hops:
        # From the mean of 1 / degree over the friends.
        mean, off = degrees[friends], seen.uncertainty[friends]
        wide = 1 / np.maximum(mean - off, 1.0) - 1 / (mean + off)
        besides[friends] += to_friends / len(friends) ** 2 * float(np.sqrt((wide**2).sum()))
    return RowUncertainty(by_degree, besides)


def two_hop_uncertainty(
    row: Vector,
    source: int,
    friends: Indices,
    released: DegreeEstimates,
    weights: Vector,
    scales: Vector,
    restart: float,
) -> RowUncertainty:
    """Uncertainty about a row of `rows.complete_rows`, of a source whose list is not empty.

    `weights` are those of its friends in the sums, about 1 / degree each, and `scales` those of the
    noise on each sum.
    """
    seen = released.seen_by(friends)
    degrees, of_friends = seen.degrees, seen.degrees[friends]
    mass, largest = float(weights @ of_friends), float(weights.sum())
    shares = two_hop_shares(of_friends, mass, restart)
    prior = expected_sums(friends, released, weights)
    explained = float(prior[friends].sum())
    by_sum, by_degree, closure, rest = _coefficients(
        row, source, friends, degrees, shares, explained, restart
    )
    sums = np.maximum((rest - by_degree * degrees) / by_sum, 0.0)
    sums[source] = largest
    prior[friends] += max(closure - 1, 0.0) * explained / len(friends)
    spread = prior * (float(weights**2 @ of_friends) / mass)
    others = (np.delete(values, source) for values in (sums, prior, spread, scales))
    tau, error = fit_tau(*others)
    # The true tau may be larger than the fitted one, above all among friends; then the shrinkage
    # bias is larger.
    among = fit_tau(sums[friends], prior[friends], spread[friends], scales[friends])
    wider = np.full(len(row), tau + 2 * error)
    wider[friends] = max(tau + 2 * error, sum(among))
    # The true sum lies between 0 and the sum of all weights of the own list.
    off = sums_uncertainty(sums, prior, spread, scales, tau, wider, largest)
    off[source] = 0.0  # its sum is known
    # Errors that all scores share: of the sum of the degrees, and of the share of the second hop
    # that the weights carry.
    direct, _, far = shares
    elsewhere = float(sums.sum()) - largest
    carried = float(np.sqrt(((weights * seen.uncertainty[friends]) ** 2).sum()))
    common = seen.total_uncertainty + direct * carried / far
    relative = abs(elsewhere / mass - 1) + carried / mass
    besides = by_sum * off + by_degree * common * degrees + (by_sum - direct) * relative * sums
    # And of the share of the far hops that is distributed like the second.
    noise = float((2 * scales[friends] ** 2).sum()) / mass**2
    off_closure = 2 * CLOSURE_DEVIATION * math.sqrt(noise / (CLOSURE_DEVIATION**2 + noise))
    off_closure *= mass / explained
    least = persistent_share(closure - off_closure, restart)
    most = persistent_share(closure + off_closure, restart)
    departure = np.abs(sums / max(elsewhere, 1e-300) - degrees / float(degrees.sum()))
    departure[source] = 0.0
    return RowUncertainty(by_degree, besides + far * (most - least) * departure)


def _coefficients(
    row: Vector,
    source: int,
    friends: Indices,
    degrees: Vector,
    shares: tuple[float, float, float],
    explained: float,
    restart: float,
) -> tuple[float, float, float, Vector]:
    """Coefficients of a sum and of a degree in a row of `rows.complete_rows`.

    Also the closure, which is the friends' sums over what degrees explain of them, and the row
    without the known mass on friends.
    """
    direct, to_friends, far = shares
    total = float(degrees.sum())
    rest = row.copy()
    rest[friends] -= to_friends / len(friends)
    on_friends, degrees_of_friends = float(rest[friends].sum()), float(degrees[friends].sum())
    # At the source the sum is known.
    elsewhere = float(rest.sum() - rest[source])

    def coefficients(share: float) -> tuple[float, float, float]:
        # Off the source, rest = (direct + far share / C) sums + far (1 - share) degrees / total,
        # where C is the sum of those sums.
        by_degree = far * (1 - share) / total
        second = elsewhere - by_degree * (total - degrees[source])
        by_sum = direct + far * share / max((second - far * share) / direct, 1e-300)
        closure = (on_friends - by_degree * degrees_of_friends) / by_sum / explained
        return by_sum, by_degree, closure

    # The persistent share depends on the sums and they on it. A larger share is a larger
    # coefficient, so smaller sums give the same row, and these have a smaller share: one fixed
    # point, by bisection.
    low, high = persistent_share(1.0, restart), persistent_share(math.inf, restart)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if persistent_share(coefficients(middle)[2], restart) > middle:
            low = middle
        else:
            high = middle
    by_sum, by_degree, closure = coefficients(low)
    return by_sum, by_degree, closure, rest


def fit_tau(sums: Vector, prior: Vector, spread: Vector, scales: Vector) -> tuple[float, float]:
    """Estimate, slightly high, the tau that `rows.shrink` used, and give its standard error.

    A shrunk sum has mean squared distance (tau s)^2 / (tau s + noise) from its prior, s its
    spread. Sums below their prior may have been cut at 0, so those above count twice. tau solves
    sum tau^2 s / (tau s + noise) = 2 sum (sums - prior)^2 / s, within bounds. The left side is
    convex and rises from 0: Newton's method starts below the root and comes down to it from its
    first step on.
    """
    noise, observed, slope = 2 * scales**2, 0.0, 0.0
    for part in row_blocks(len(sums)):
        above = np.maximum(sums[part] - prior[part], 0.0)
        observed += 2 * float((above**2 / spread[part]).sum())
        slope += float((spread[part] / noise[part]).sum())
    tau = 0.0
    if observed > 0:
        # The left side is at most tau^2 sum s / noise, and at most tau for each: two lower bounds.
        tau = min(max(math.sqrt(observed / slope), observed / len(sums)), _MAX_TAU)
        for _ in range(_NEWTON_STEPS):
            value = rise = 0.0
            for part in row_blocks(len(sums)):
                trust = tau * spread[part] / (tau * spread[part] + noise[part])
                # The left side is tau * sum of trust, its derivative the sum of trust (2 - trust).
                value += float(trust.sum())
                rise += float((trust * (2 - trust)).sum())
            before, tau = tau, min(tau - (tau * value - observed) / rise, _MAX_TAU)
            if abs(tau - before) <= 1e-8 * tau:  # the error is about the square of the last step
                break
    return tau, regression_error(spread, noise, tau)


def sums_uncertainty(
    sums: Vector,
    prior: Vector,
    spread: Vector,
    scales: Vector,
    tau: float,
    wider: Vector,
    largest: float,
) -> Vector:
    """Half-widths of shrunk sums: noise and shrinkage bias, cut at the possible range.

    `wider` is the tau that the true sums may have. For a sum so far above its prior that noise
    alone would explain only a few such (an outlier), the half-width is at least its shrinkage plus
    the 95 % quantile of the noise.
    """
    above_noise = math.log(max(len(sums) / _FALSE_POSITIVES, 1.0))
    off = np.empty_like(sums)
    for part in row_blocks(len(sums)):
        noise = 2 * scales[part] ** 2
        trust = tau * spread[part] / (tau * spread[part] + noise)
        wide = (1 - trust) ** 2 * wider[part] * spread[part] + trust**2 * noise
        half, above = _DEVIATIONS * np.sqrt(wide), sums[part] - prior[part]
        outliers = np.flatnonzero(
            (trust > _MIN_TRUST) & (above > trust * above_noise * scales[part])
        )
        at_least = above[outliers] / trust[outliers] - above[outliers]
        at_least += math.log(20) * scales[part][outliers]
        half[outliers] = np.maximum(half[outliers], at_least)
        off[part] = np.minimum(half, np.maximum(sums[part], largest - sums[part]))
    return off
