"""How far the noise may have moved the scores of `rows`: half-widths of 95 % intervals.

A score is A c + B d + (what the recipient knows), c a two-hop sum and d a degree. "Without
noise" means the same formula, with the same public weights, on the true sums and degrees. Sums
and degrees were pulled towards a prior, so the noise alone says too little: at a small epsilon
nearly nothing of it is left in the estimate, and nearly nothing of the truth. So the distance
is that between estimate and truth, noise and pull together, as far as the released values tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeveil.estimate import _kernels
from edgeveil.estimate._kernels import SPREAD_IN_COMMON, echo_share
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import Indices, OwnLists, Rows, Vector, prior_shares

_DEVIATIONS = 3.0  # of a sum around its estimate; 2 would do, were its prior normal
_HALVINGS = 50
_FEW = 20  # noisy sums that are far above their prior by noise alone
_SOME_TRUST = 1e-6  # below, what a sum was before the pull is lost in rounding


@dataclass(frozen=True)
class RowUncertainty:
    """How far a row may be off, and why."""

    by_degree: float  # what the row holds for a unit of a node's degree
    besides: Vector  # (n) half-widths that do not come from the node's own degree

    def of_pagerank(self, known: DegreeEstimates) -> Vector:
        """Half-widths of the row."""
        return np.asarray(self.besides + self.by_degree * known.uncertainty)

    def of_lift(self, row: Vector, known: DegreeEstimates) -> Vector:
        """Half-widths of row / degree. The part that goes with the degree divides out of it."""
        degrees = known.degrees
        least, most = np.maximum(degrees - known.uncertainty, 1.0), degrees + known.uncertainty
        rest = row - self.by_degree * degrees
        above = (rest + self.besides) / least - rest / degrees
        below = rest / degrees - (rest - self.besides) / most
        return np.asarray(np.maximum(above, below))


def half_widths(
    scores: Rows,
    own: OwnLists,
    known: DegreeEstimates,
    of_row: Callable[[int, Vector, DegreeEstimates], RowUncertainty],
    *,
    lift: bool,
) -> Rows:
    """Half-widths for each row of scores, which are PageRank or, for `lift`, PageRank / degree.

    `of_row` gets the number of a row, the row as PageRank, and the degrees as its member sees them.
    """
    out = np.empty_like(scores)
    for i, score in enumerate(scores):
        seen = known.seen_by(own.of(i))
        row = score * seen.degrees if lift else score
        about = of_row(i, row, seen)
        out[i] = about.of_lift(row, seen) if lift else about.of_pagerank(seen)
    return out


def prior_uncertainty(
    own: Indices, known: DegreeEstimates, restart: float, known_hops: int = 1
) -> RowUncertainty:
    """Uncertainty about a row of `rows.prior_rows`."""
    degrees = known.degrees
    if known_hops and len(own) == 0:  # all mass stays at the source
        return RowUncertainty(0.0, np.zeros(len(degrees)))
    friends, far = prior_shares(degrees[own], restart, known_hops)
    by_degree = far / float(degrees.sum())
    besides = by_degree * known.total_uncertainty * degrees
    if known_hops:
        # How far the mean of 1 / degree over the friends may be off.
        mean, off = degrees[own], known.uncertainty[own]
        wide = 1 / np.maximum(mean - off, 1.0) - 1 / (mean + off)
        besides[own] += friends / len(own) ** 2 * float(np.sqrt((wide**2).sum()))
    return RowUncertainty(by_degree, besides)


def expected_sums(own: Indices, degrees: Vector, weights: Vector) -> Vector:
    """Two-hop sums to be expected if edges followed the degrees alone; `own` is not empty.

    Nodes u and v are joined with probability 1 - exp(-d_u d_v / sum d): about d_u d_v / sum d,
    but a hub cannot be joined to anybody more than once. Scaled so that all sums together are
    what they must be, the sum of weight times degree over the own list.
    """
    expected = np.empty(len(degrees))
    extent = float(degrees.sum()), float(degrees.min()), float(degrees.max())
    factor = _kernels.expected(degrees[own], weights, degrees, *extent, expected)
    return np.asarray(factor * expected)


def two_hop_uncertainty(
    row: Vector,
    source: int,
    own: Indices,
    known: DegreeEstimates,
    weights: Vector,
    scales: Vector,
    restart: float,
) -> RowUncertainty:
    """Uncertainty about a row of `rows.complete_rows`, of a source whose list is not empty.

    `known` are the degrees as the source sees them, `weights` those of its friends in the sums,
    about 1 / degree each, and `scales` those of the noise on each sum.
    """
    degrees, of_friends = known.degrees, known.degrees[own]
    mass, largest = float(weights @ of_friends), float(weights.sum())
    shares = _kernels.two_hop_shares(of_friends, mass, restart)
    prior = expected_sums(own, degrees, weights)
    explained = float(prior[own].sum())
    by_sum, by_degree, closure, known_part = _coefficients(
        row, source, own, degrees, shares, explained, restart
    )
    sums = np.maximum((known_part - by_degree * degrees) / by_sum, 0.0)
    sums[source] = largest
    prior[own] += max(closure - 1, 0.0) * explained / len(own)
    spread = prior * (float(weights**2 @ of_friends) / mass)
    tau, error = _kernels.fit_tau(sums, prior, spread, scales, source)
    # The truth may be spread wider than the fit says, among friends above all, and then the
    # pull does more harm.
    among = _kernels.fit_tau(sums[own], prior[own], spread[own], scales[own], -1)
    wider = np.full(len(row), tau + 2 * error)
    wider[own] = max(tau + 2 * error, sum(among))
    # The truth is not negative and not more than all weights of the own list together.
    off = sums_uncertainty(sums, prior, spread, scales, tau, wider, largest)
    off[source] = 0.0  # its sum is known
    # What all scores have in common: the sum of the degrees, and the share of the second hop
    # that the weights carry.
    direct, _, far = shares
    elsewhere = float(sums.sum()) - largest
    carried = float(np.sqrt(((weights * known.uncertainty[own]) ** 2).sum()))
    common = known.total_uncertainty + direct * carried / far
    whole = abs(elsewhere / mass - 1) + carried / mass
    besides = by_sum * off + by_degree * common * degrees + (by_sum - direct) * whole * sums
    # And the share of the far hops that follows the second.
    noise = float((2 * scales[own] ** 2).sum()) / mass**2
    apart = 2 * SPREAD_IN_COMMON * math.sqrt(noise / (SPREAD_IN_COMMON**2 + noise))
    apart *= mass / explained
    least, most = (echo_share(closure + sign * apart, restart) for sign in (-1, 1))
    departure = np.abs(sums / max(elsewhere, 1e-300) - degrees / float(degrees.sum()))
    departure[source] = 0.0
    return RowUncertainty(by_degree, besides + far * (most - least) * departure)


def _coefficients(
    row: Vector,
    source: int,
    own: Indices,
    degrees: Vector,
    shares: tuple[float, float, float],
    explained: float,
    restart: float,
) -> tuple[float, float, float, Vector]:
    """What a row of `rows.complete_rows` holds for a unit of a sum, and of a degree.

    Also the closure, which is the friends' sums over what degrees explain of them, and the row
    without what its friends are known to get.
    """
    direct, friends, far = shares
    total = float(degrees.sum())
    known = row.copy()
    known[own] -= friends / len(own)
    on_friends, degrees_of_friends = float(known[own].sum()), float(degrees[own].sum())
    # At the source the sum is known.
    elsewhere = float(known.sum() - known[source])

    def by(echo: float) -> tuple[float, float, float]:
        # Off the source known = (direct + far echo / C) sums + far (1 - echo) degrees / total,
        # where C is the sum of those sums.
        by_degree = far * (1 - echo) / total
        second = elsewhere - by_degree * (total - degrees[source])
        by_sum = direct + far * echo / max((second - far * echo) / direct, 1e-300)
        closure = (on_friends - by_degree * degrees_of_friends) / by_sum / explained
        return by_sum, by_degree, closure

    # The echo depends on the sums and they on the echo. A larger echo is a larger coefficient, so
    # smaller sums make the same row, and these have a smaller echo: the two meet once.
    low, high = echo_share(1.0, restart), echo_share(math.inf, restart)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = echo_share(by(middle)[2], restart) > middle
        low, high = (middle, high) if rising else (low, middle)
    return *by(low), known


def sums_uncertainty(
    sums: Vector,
    prior: Vector,
    spread: Vector,
    scales: Vector,
    tau: float,
    wider: Vector,
    largest: float,
) -> Vector:
    """How far shrunk sums may be off: noise and pull together, cut at what is possible.

    `wider` is the tau that the truth may have. A noisy sum so far above its prior that few of so
    many are by noise alone was pulled away from the truth: there it is at least the pull, and the
    noise's own 95 %.
    """
    noise = 2 * scales**2
    trust = tau * spread / (tau * spread + noise)
    off = _DEVIATIONS * np.sqrt((1 - trust) ** 2 * wider * spread + trust**2 * noise)
    above, far = sums - prior, math.log(max(len(sums) / _FEW, 1.0))
    pulled = np.flatnonzero((trust > _SOME_TRUST) & (above > trust * far * scales))
    pull = above[pulled] / trust[pulled] - above[pulled] + math.log(20) * scales[pulled]
    off[pulled] = np.maximum(off[pulled], pull)
    return np.asarray(np.minimum(off, np.maximum(sums, largest - sums)))
