"""Shared by mechanisms that release all degrees once, and measure a member's second hop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import check_parameters
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Statistic

_DEGREE_EPSILON = 0.4


def split_epsilon(epsilon: float, degree_epsilon: float | None) -> tuple[Fraction, Fraction]:
    """Epsilon of the shared degrees and of one member's second hop; they add up exactly.

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


def two_hop_guarantee(
    epsilon: float, shared: Fraction, n_sources: int, theorem: str = "docs/theory/two-hop.md"
) -> Guarantee:
    """Epsilon to each member, of which `shared` is drawn once for all members."""
    nearest = float(shared)  # rounded down: it counts once, however many members combine lists
    below = nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)
    return Guarantee(
        epsilon=epsilon,
        model="joint",
        n_sources=n_sources,
        theorem=theorem,
        shared_epsilon=below,
    )


@lru_cache(maxsize=16)  # exact arithmetic, the same for all rows of a release
def degree_noise(n: int, epsilon: Fraction) -> Calibration:
    """One edge changes two degrees by one each; degrees are exact, so there is no float error."""
    return calibrate(coordinates=max(n, 1), sensitivity=2, epsilon=epsilon)


@lru_cache(maxsize=16)
def second_hop_noise(coordinates: int, epsilon: Fraction) -> Calibration:
    """One edge moves a member's two-hop sums, friends' halved or left out, by 1 in L1: exactly.

    Hashing them (adding them up with signs) does not increase that.
    """
    return calibrate(coordinates=max(coordinates, 1), sensitivity=1, epsilon=epsilon)


def degree_statistic(graph: Graph, epsilon: Fraction) -> Statistic:
    """All degrees as one row, with their noise."""
    degrees = graph.degrees.astype(np.float64)[None, :]
    return Statistic(degrees, degree_noise(graph.n_nodes, epsilon))


class DegreesOnce:
    """Base for mechanisms that share all degrees and measure each member's second hop."""

    epsilon: float
    degree_epsilon: float | None
    theorem: ClassVar[str] = "docs/theory/two-hop.md"

    def __post_init__(self) -> None:
        check_parameters(self)
        self.split  # noqa: B018  (refuses a wrong degree_epsilon)

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """Epsilon of the degrees and of one member's second hop."""
        return split_epsilon(self.epsilon, self.degree_epsilon)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Epsilon to each member, of which the degrees' part is shared by all."""
        return two_hop_guarantee(self.epsilon, self.split[0], n_sources, self.theorem)

    def coordinates(self, n_nodes: int) -> int:
        """How many numbers one member's second hop is."""
        return n_nodes

    def second_hop_noise(self, n_nodes: int) -> Calibration | None:
        """Noise of the second hop; None if no epsilon is left for it."""
        epsilon = self.split[1]
        return second_hop_noise(self.coordinates(n_nodes), epsilon) if epsilon else None

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate both parts once before the charge, so that it cannot fail after it."""
        degree_noise(len(nodes), self.split[0])
        self.second_hop_noise(len(nodes))

    def shared(self, graph: Graph) -> Statistic:
        """All degrees."""
        return degree_statistic(graph, self.split[0])

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: both parts of the release move as far as one edge can move them."""
        yield two_hubs(1, 4)
        yield wedge()  # both ends are friends
