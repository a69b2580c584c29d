"""Shared by three mechanisms: all degrees released once, and a recipient's noisy second hop.

Not a mechanism itself. `release_degrees` and `noisy_two_hop_row` are the only two places where
these mechanisms touch private edges of others, each through `privacy.noise`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import estimate_degrees
from edgeveil.estimate.walk_model import best_degree_floor, prior_row, shrink, two_hop_row
from edgeveil.flow.two_hop import exact_weights, two_hop_sums
from edgeveil.graph import Graph
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

__all__ = ["ReleasedDegrees", "noisy_two_hop_row", "release_degrees", "split_epsilon"]

Vector = npt.NDArray[np.float64]

_DEGREE_EPSILON = 0.4


@dataclass(frozen=True)
class ReleasedDegrees:
    """The graph, for the recipients' own lists, and estimates of all degrees (released)."""

    graph: Graph
    degrees: Vector


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


def release_degrees(graph: Graph, epsilon: Fraction, noise: NoiseSource) -> ReleasedDegrees:
    """Release all degrees under Laplace noise of scale 2 / epsilon, and estimate them."""
    # One edge changes two degrees by one each; degrees are exact, so there is no float error.
    calibration = calibrate(coordinates=max(graph.n_nodes, 1), sensitivity=2, epsilon=epsilon)
    noisy = add_laplace(graph.degrees.astype(np.float64), calibration, noise)
    return ReleasedDegrees(graph, estimate_degrees(noisy, calibration.noise_scale))


def noisy_two_hop_row(
    released: ReleasedDegrees, source: int, epsilon: Fraction, restart: float, noise: NoiseSource
) -> Vector:
    """The PageRank row of one source from its own list, the degrees and a noisy second hop."""
    graph, degrees = released.graph, released.degrees
    n, own = graph.n_nodes, graph.neighbours(source)
    if epsilon == 0 or len(own) == 0:  # public, or known to the recipient
        return prior_row(n, source, own, degrees, restart)
    floor = best_degree_floor(degrees[own], n, float(epsilon))
    weights = exact_weights(floor / degrees)  # in units of 1 / D0
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
    noisy = np.array(add_laplace(two_hop_sums(graph, source, weights), calibration, noise))
    scales = np.full(n, calibration.noise_scale)
    noisy[own] *= 2
    scales[own] *= 2
    mass = float(weights[own] @ degrees[own])
    grain = float(weights[own] ** 2 @ degrees[own]) / mass
    sums = shrink(noisy, scales, degrees * (mass / degrees.sum()), grain)
    return two_hop_row(source, own, degrees, weights / floor, sums / floor, restart)
