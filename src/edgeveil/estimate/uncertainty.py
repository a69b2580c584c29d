"""How far the noise may have moved the scores of `walk_model`: half-widths of 95 % intervals.

A score is A c + B d + (what the recipient knows), c a two-hop sum and d a degree. "Without
noise" means the same formula, with the same public weights, on the true sums and degrees. Sums
and degrees were pulled towards a prior, so the noise alone says too little: at a small epsilon
nearly nothing of it is left in the estimate, and nearly nothing of the truth. So the distance
is that between estimate and truth, noise and pull together, as far as the released values tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgeveil.estimate import _uncertainty_kernels
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.walk_model import (
    SPREAD_IN_COMMON,
    Indices,
    Vector,
    echo_share,
    expected_sums,
    prior_shares,
    two_hop_shares,
)

__all__ = ["RowUncertainty", "prior_uncertainty", "sums_of_row", "two_hop_uncertainty"]

_DEVIATIONS = 3.0  # of a sum around its estimate; 2 would do, were its prior normal
_MOST_TAU = 200.0
_HALVINGS = 50


@dataclass(frozen=True)
class RowUncertainty:
    """How far a row may be off, and why.

    Attributes
    ----------
    by_degree : float
        What the row holds for a unit of a node's degree.
    besides : array of shape (n,)
        Half-widths that do not come from the node's own degree.
    """

    by_degree: float
    besides: Vector

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


def prior_uncertainty(
    own: Indices, known: DegreeEstimates, restart: float, known_hops: int
) -> RowUncertainty:
    """Uncertainty about a row of `walk_model.prior_row`, which takes the same arguments."""
    degrees = known.degrees
    friends, far = prior_shares(own, degrees, restart, known_hops)
    by_degree = far / float(degrees.sum())
    besides = by_degree * known.total_uncertainty * degrees
    if known_hops:
        besides[own] += friends / len(own) * _return_uncertainty(own, known)
    return RowUncertainty(by_degree, besides)


def _return_uncertainty(own: Indices, known: DegreeEstimates) -> float:
    """How far the mean of 1 / degree over the friends may be off."""
    degrees, uncertainty = known.degrees[own], known.uncertainty[own]
    wide = 1 / np.maximum(degrees - uncertainty, 1.0) - 1 / (degrees + uncertainty)
    return float(np.sqrt((wide**2).sum())) / len(own)


def sums_of_row(
    row: Vector, source: int, own: Indices, degrees: Vector, weights: Vector, restart: float
) -> tuple[Vector, float, float, float]:
    """The sums from which `walk_model.two_hop_row` made a row, and its two coefficients.

    Returns
    -------
    sums : array of shape (n,)
        The argument of that name.
    by_sum, by_degree : float
        What the row holds for a unit of a sum, and of a degree.
    closure : float
        `walk_model.closure_of` the sums.
    """
    direct, friends, far = two_hop_shares(own, degrees, weights, restart)
    total = float(degrees.sum())
    explained = float(expected_sums(own, degrees, weights)[own].sum())
    known = row.copy()
    known[own] -= friends / len(own)
    on_friends, degrees_of_friends = float(known[own].sum()), float(degrees[own].sum())
    # At the source the sum is known.
    elsewhere = float(known.sum() - known[source])

    def coefficients(echo: float) -> tuple[float, float]:
        # Off the source known = (direct + far echo / C) sums + far (1 - echo) degrees / total,
        # where C is the sum of those sums.
        by_degree = far * (1 - echo) / total
        second = elsewhere - by_degree * (total - degrees[source])
        return direct + far * echo / max((second - far * echo) / direct, 1e-300), by_degree

    def closure_by(echo: float) -> float:
        by_sum, by_degree = coefficients(echo)
        return (on_friends - by_degree * degrees_of_friends) / by_sum / explained

    # The echo depends on the sums and they on the echo. A larger echo is a larger coefficient, so
    # smaller sums make the same row, and these have a smaller echo: the two meet once.
    low, high = echo_share(restart), echo_share(restart, math.inf)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = echo_share(restart, closure_by(middle)) > middle
        low, high = (middle, high) if rising else (low, middle)
    by_sum, by_degree = coefficients(low)
    sums = np.maximum((known - by_degree * degrees) / by_sum, 0.0)
    sums[source] = float(weights.sum())
    return sums, by_sum, by_degree, closure_by(low)


def two_hop_uncertainty(
    row: Vector,
    source: int,
    own: Indices,
    known: DegreeEstimates,
    weights: Vector,
    scales: Vector,
    restart: float,
) -> RowUncertainty:
    """Uncertainty about a row of `walk_model.two_hop_row` whose sums came from `shrink`.

    Parameters
    ----------
    row, source, own, weights, restart
        As there; `row` is what it gave.
    known : DegreeEstimates
        The degrees it was given.
    scales : array of shape (n,)
        Scale of the noise on each sum.
    """
    degrees = known.degrees
    sums, by_sum, by_degree, closure = sums_of_row(row, source, own, degrees, weights, restart)
    mass, largest = float(weights @ degrees[own]), float(weights.sum())
    grain = float(weights**2 @ degrees[own]) / mass
    prior = expected_sums(own, degrees, weights)
    explained = float(prior[own].sum())
    prior[own] += max(closure - 1, 0.0) * explained / len(own)
    spread = prior * grain
    tau, error = _uncertainty_kernels.fit_tau(sums, prior, spread, scales, source, _MOST_TAU)
    # The truth may be spread wider than the fit says, among friends above all, and then the
    # pull does more harm.
    among = _uncertainty_kernels.fit_tau(
        sums[own], prior[own], spread[own], scales[own], -1, _MOST_TAU
    )
    wider = np.full(len(row), tau + 2 * error)
    wider[own] = max(tau + 2 * error, sum(among))
    off = np.empty(len(row))
    # The truth is not negative and not more than all weights of the own list together.
    _uncertainty_kernels.sums_uncertainty(
        sums, prior, spread, scales, tau, wider, _DEVIATIONS, largest, off
    )
    off[source] = 0.0  # its sum is known
    # What all scores have in common: the sum of the degrees, and the share of the second hop
    # that the weights carry.
    direct, _, far = two_hop_shares(own, degrees, weights, restart)
    carried = float(np.sqrt(((weights * known.uncertainty[own]) ** 2).sum()))
    common = known.total_uncertainty + direct * carried / far
    whole = abs((float(sums.sum()) - largest) / mass - 1) + carried / mass
    besides = by_sum * off + by_degree * common * degrees + (by_sum - direct) * whole * sums
    # And the share of the far hops that follows the second.
    noise = float((2 * scales[own] ** 2).sum()) / mass**2
    apart = 2 * SPREAD_IN_COMMON * math.sqrt(noise / (SPREAD_IN_COMMON**2 + noise))
    apart *= mass / explained
    least, most = (echo_share(restart, closure + sign * apart) for sign in (-1, 1))
    elsewhere = max(float(sums.sum()) - largest, 1e-300)
    departure = np.abs(sums / elsewhere - degrees / float(degrees.sum()))
    departure[source] = 0.0
    return RowUncertainty(by_degree, besides + far * (most - least) * departure)
