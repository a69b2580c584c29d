"""Shared by three mechanisms: all degrees released once, and a recipient's noisy second hop.

Not a mechanism itself. `release_degrees` and `noisy_two_hop_row` are the only two places where
these mechanisms touch private edges of others, each through `privacy.noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import DegreeEstimates, estimate_all
from edgeveil.estimate.doubt import RowDoubt, prior_doubt, two_hop_doubt
from edgeveil.estimate.walk_model import (
    IN_COMMON,
    best_degree_floor,
    expected_sums,
    prior_row,
    shrink,
    two_hop_row,
)
from edgeveil.flow.two_hop import exact_weights, two_hop_sums
from edgeveil.graph import Graph
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.noise import Calibration, NoiseSource, add_laplace, calibrate

__all__ = [
    "ReleasedDegrees",
    "noisy_two_hop_row",
    "release_degrees",
    "shared_part",
    "split_epsilon",
    "two_hop_row_doubt",
]

Vector = npt.NDArray[np.float64]

_DEGREE_EPSILON = 0.4


@dataclass(frozen=True)
class ReleasedDegrees:
    """The graph, for the recipients' own lists, and what was released about all degrees."""

    graph: Graph
    known: DegreeEstimates

    @property
    def degrees(self) -> Vector:
        """Estimates of all degrees, for everybody."""
        return self.known.degrees

    def seen_by(self, source: int) -> DegreeEstimates:
        """What the owner of `source` makes of them, who knows its own list."""
        return self.known.seen_by(self.graph.neighbours(source))

    def degrees_seen_by(self, source: int) -> Vector:
        """The degrees alone, as the owner of `source` sees them."""
        return self.known.degrees_seen_by(self.graph.neighbours(source))


def split_epsilon(epsilon: float, degree_epsilon: float | None) -> tuple[Fraction, Fraction]:
    """Epsilon of the shared degrees and of one recipient's second hop; they add up exactly.

    By default min(epsilon, 0.4 max(1, sqrt epsilon)) goes to the degrees: both parts grow with
    epsilon, so that more budget never makes either part worse.
    """
    check_epsilon(epsilon)
    whole = exact_epsilon(epsilon)
    if degree_epsilon is None:
        shared = exact_epsilon(_DEGREE_EPSILON * max(1.0, math.sqrt(epsilon)))
        return min(whole, shared), whole - min(whole, shared)
    try:
        too_much = check_epsilon(degree_epsilon) > epsilon
    except ParameterError:
        too_much = True
    if too_much:
        raise ParameterError(
            f"degree_epsilon must be a positive number, at most epsilon, got {degree_epsilon!r}"
        )
    return exact_epsilon(degree_epsilon), whole - exact_epsilon(degree_epsilon)


def shared_part(epsilon: float, degree_epsilon: float | None) -> float:
    """The shared part of epsilon as a float, not rounded up: k recipients learn no more."""
    shared = split_epsilon(epsilon, degree_epsilon)[0]
    nearest = float(shared)
    return nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)


def release_degrees(graph: Graph, epsilon: Fraction, noise: NoiseSource) -> ReleasedDegrees:
    """Release all degrees under Laplace noise of scale 2 / epsilon, and estimate them."""
    # One edge changes two degrees by one each; degrees are exact, so there is no float error.
    calibration = calibrate(coordinates=max(graph.n_nodes, 1), sensitivity=2, epsilon=epsilon)
    noisy = add_laplace(graph.degrees.astype(np.float64), calibration, noise)
    return ReleasedDegrees(graph, estimate_all(noisy, calibration.noise_scale))


def noisy_two_hop_row(
    released: ReleasedDegrees, source: int, epsilon: Fraction, restart: float, noise: NoiseSource
) -> Vector:
    """The PageRank row of one source from its own list, the degrees and a noisy second hop."""
    graph, degrees = released.graph, released.degrees_seen_by(source)
    n, own = graph.n_nodes, graph.neighbours(source)
    if epsilon == 0 or len(own) == 0:  # public, or known to the recipient
        return prior_row(n, source, own, degrees, restart)
    floor, all_weights = _weights(released, own, epsilon)
    calibration, scale = _noise_of_sums(n, epsilon)
    noisy = np.array(add_laplace(two_hop_sums(graph, source, all_weights), calibration, noise))
    scales = np.full(n, scale)
    scales[own] = 2 * scale
    weights, of_friends = all_weights[own], degrees[own]
    mass = float(weights @ of_friends)
    grain = float(weights**2 @ of_friends) / mass
    # Friends are expected to have more in common than the prior says, as far as weights carry.
    more = IN_COMMON * min(mass / len(own), floor)
    noisy[own] = 2 * noisy[own] - more
    sums = shrink(noisy, scales, expected_sums(own, degrees, weights), grain)
    sums[own] += more
    sums[source] = weights.sum()  # known: every friend has the source for a friend
    sums /= floor
    return two_hop_row(source, own, degrees, weights / floor, sums, restart)


def two_hop_row_doubt(
    released: ReleasedDegrees,
    source: int,
    epsilon: Fraction,
    restart: float,
    row: Vector,
    known: DegreeEstimates,
) -> RowDoubt:
    """How far the noise may have moved a row of `noisy_two_hop_row`: post-processing of it.

    `known` is what the owner of `source` makes of the degrees, from `ReleasedDegrees.seen_by`.
    """
    graph, n = released.graph, released.graph.n_nodes
    own = graph.neighbours(source)
    if len(own) == 0:
        return RowDoubt(0.0, np.zeros(n))
    if epsilon == 0:
        return prior_doubt(own, known, restart, 1)
    floor, weights = _weights(released, own, epsilon)
    scale = _noise_of_sums(n, epsilon)[1] / floor
    scales = np.full(n, scale)
    scales[own] = 2 * scale
    return two_hop_doubt(row, source, own, known, weights[own] / floor, scales, restart)


@lru_cache(maxsize=16)  # exact arithmetic, the same for all rows of a release
def _noise_of_sums(n: int, epsilon: Fraction) -> tuple[Calibration, float]:
    """The noise of one recipient's two-hop sums, and its scale: from public parameters."""
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
    return calibration, calibration.noise_scale


def _weights(
    released: ReleasedDegrees, own: npt.NDArray[np.integer], epsilon: Fraction
) -> tuple[float, Vector]:
    """The floor D0 and all weights in units of 1 / D0: from released degrees and the own list.

    Not `seen_by`: the mean of 1 / degree over a friend's posterior is 1 / the mean over anybody's.
    """
    degrees = released.degrees
    floor = best_degree_floor(degrees[own], released.graph.n_nodes, float(epsilon))
    return floor, exact_weights(floor / degrees)
