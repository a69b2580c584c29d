"""Rows from everybody's noisy degrees, the own list, and its noisy second hop.

`TwoHop`, and `DegreePrior` without a second hop. Only `shared` and `measure` read private edges;
the rest is post-processing of noised statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

import numpy as np

from edgeveil._internal.checks import positive
from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import DegreeEstimates, estimate_all
from edgeveil.estimate.rows import (
    Vector,
    complete_rows,
    over_degrees,
    prior_rows,
    two_hop_weights,
)
from edgeveil.estimate.uncertainty import (
    RowUncertainty,
    half_widths,
    prior_uncertainty,
    two_hop_uncertainty,
)
from edgeveil.flow.common_neighbours import two_hop_sums_of_lists
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    OnceForAll,
    Rows,
    Statistics,
    partly_shared_guarantee,
)
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs, wedge
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic

_DEGREE_EPSILON = 0.4


def split_epsilon(epsilon: float, degree_epsilon: float | None) -> tuple[Fraction, Fraction]:
    """Epsilon of the shared degrees and of one member's second hop; they add up exactly.

    By default min(epsilon, 0.4 max(1, sqrt epsilon)) goes to the degrees: both parts grow with
    epsilon, so that more budget never makes either part worse.
    """
    check_epsilon(epsilon)
    total = exact_epsilon(epsilon)
    if degree_epsilon is None:
        shared = exact_epsilon(_DEGREE_EPSILON * max(1.0, math.sqrt(epsilon)))
        return min(total, shared), total - min(total, shared)
    if positive("degree_epsilon", degree_epsilon) > epsilon:
        raise ParameterError(f"degree_epsilon must be at most epsilon, got {degree_epsilon!r}")
    return exact_epsilon(degree_epsilon), total - exact_epsilon(degree_epsilon)


def degree_noise(n: int, epsilon: Fraction) -> Calibration:
    """One edge changes two degrees by one each; degrees are exact, so there is no float error."""
    return calibrate(coordinates=max(n, 1), sensitivity=2, epsilon=epsilon)


def second_hop_noise(n: int, epsilon: Fraction) -> Calibration | None:
    """One edge moves a member's two-hop sums, friends' halved, by 1 in L1: exactly.

    None if no epsilon is left for them: then they are not measured.
    """
    return calibrate(coordinates=max(n, 1), sensitivity=1, epsilon=epsilon) if epsilon else None


def degree_statistic(graph: Graph, epsilon: Fraction) -> Statistic:
    """All degrees as one row, with their noise."""
    degrees = graph.degrees.astype(np.float64)[None, :]
    return Statistic(degrees, degree_noise(graph.n_nodes, epsilon))


class TwoHop(Mechanism):
    """Noisy degrees for everybody, plus each member's two-hop sums with noise of their own.

    With public weights w_u = min(1 / d_u, 1 / D0) from the released degrees, the sum of w_u
    over the common neighbours u of s and v is linear in the edges: an edge moves one sum of a
    stranger, or two sums of friends, by at most 1 / D0. So noise of scale 1 / (D0 epsilon) on
    strangers and twice that on friends protects every edge elsewhere. Everything after that is
    post-processing. Joint model only. Proof: docs/theory/two-hop.md. Cost per source: its
    two-hop neighbourhood and n draws.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one member, both parts together.
    degree_epsilon : float, optional
        The part of epsilon for the shared degrees; by default
        min(epsilon, 0.4 max(1, sqrt epsilon)).
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name = "two-hop"
    when_to_use = (
        "the default for rankings in the joint model: above epsilon 0.4 it measures the second "
        "hop; up to that it equals degree-prior"
    )
    theorem = "docs/theory/two-hop.md"

    epsilon: float
    degree_epsilon: float | None = None
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        super().__post_init__()
        split_epsilon(self.epsilon, self.degree_epsilon)  # refuses a wrong degree_epsilon

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """Epsilon of the degrees and of one member's second hop."""
        return split_epsilon(self.epsilon, self.degree_epsilon)

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon to each member, of which the degrees' part is shared by all."""
        return partly_shared_guarantee(self.epsilon, self.split[0], n_members, self.theorem)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate both parts once before the charge, so that it cannot fail after it."""
        degree_noise(len(nodes), self.split[0])
        second_hop_noise(len(nodes), self.split[1])

    def shared(self, graph: Graph) -> Statistics:
        """All degrees."""
        yield degree_statistic(graph, self.split[0])

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> DegreeEstimates:
        """Estimate the true degrees from the released ones."""
        return estimate_all(noised[0].values[0], noised[0].scale)

    def measure(self, graph: Graph, shared: DegreeEstimates, views: LocalViews) -> Statistics:
        """Sums of the weights of common friends, in units of 1 / floor, friends' halved."""
        if noise := second_hop_noise(graph.n_nodes, self.split[1]):
            _, weights = two_hop_weights(views, shared.degrees, float(self.split[1]))
            sums = two_hop_sums_of_lists(graph, views.lists, views.starts, weights)
            yield Statistic(sums, noise)

    def estimate(
        self, noised: tuple[Noised, ...], shared: DegreeEstimates, views: LocalViews
    ) -> Rows:
        """Sums shrunk to the prior and completed to rows; without sums, the prior."""
        epsilon = self.split[1]
        if epsilon:
            rows = noised[0].values
            floors, weights = two_hop_weights(views, shared.degrees, float(epsilon))
            complete_rows(rows, views, weights, floors, shared, noised[0].scale, self.restart)
        else:
            rows = prior_rows(views, shared, self.restart)
        if self.score == "lift":
            over_degrees(rows, views, shared)
        return rows

    def uncertainty(self, rows: Rows, shared: DegreeEstimates, views: LocalViews) -> Rows:
        """Around the score that the same formula gives for the true sums and degrees.

        With the same public weights. It covers the noise on both and the bias of shrinking them
        to their priors, for 95 % of the nodes, over the noise and the nodes
        (docs/theory/two-hop.md). Not covered: that far hops do not follow the degrees exactly,
        and, where it is not measured, the second hop.
        """
        noise = second_hop_noise(len(views.nodes), self.split[1])
        if noise is not None:
            floors, weights = two_hop_weights(views, shared.degrees, float(self.split[1]))

        def of_row(i: int, row: Vector, seen: DegreeEstimates) -> RowUncertainty:
            friends = views.of(i)
            if noise is None or len(friends) == 0:
                return prior_uncertainty(friends, seen, self.restart)
            scales = np.full(len(row), noise.noise_scale / floors[i])
            scales[friends] *= 2
            weight = weights[views.starts[i] : views.starts[i + 1]] / floors[i]
            return two_hop_uncertainty(
                row, int(views.sources[i]), friends, shared, weight, scales, self.restart
            )

        return half_widths(rows, views, shared, of_row, lift=self.score == "lift")

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: both parts of the release move as far as one edge can move them."""
        yield two_hubs(1, 4)
        yield wedge()  # both ends are friends

    @classmethod
    def tight_case(cls) -> tuple[TwoHop, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(1, 4)


class DegreePrior(OnceForAll):
    """One shared release of all degrees with Laplace noise of scale 2 / epsilon.

    Each member combines it with its own neighbour list: hops 0 and 1 of the walk exactly,
    all further hops by degree. The noise is drawn once for everybody and the rest is the
    member's own data, so any coalition learns at most epsilon about the edges of others.
    In the public model the own list is left out. Neighbouring graphs differ in one edge (joint:
    not at the source). Proof: docs/theory/degree-prior.md. Cost: n draws once, then
    O(n) per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release, for any number of sources.
    model : {"joint", "public"}
        Who sees a row: the member at its source alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name = "degree-prior"
    when_to_use = (
        "many members who may collude, epsilon up to 0.4, or the public model: one release for "
        "everybody"
    )
    theorem = "docs/theory/degree-prior.md"

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        degree_noise(len(nodes), exact_epsilon(self.epsilon))

    def shared(self, graph: Graph) -> Statistics:
        """All degrees."""
        yield degree_statistic(graph, exact_epsilon(self.epsilon))

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> DegreeEstimates:
        """Estimate the true degrees from the released ones."""
        return estimate_all(noised[0].values[0], noised[0].scale)

    @property
    def _known_hops(self) -> int:
        """Hops of the walk that the reader of a row knows: in the public model none."""
        return int(self.model == "joint")

    def estimate(
        self, noised: tuple[Noised, ...], shared: DegreeEstimates, views: LocalViews
    ) -> Rows:
        """The prior: hops beyond the known ones follow the degrees."""
        rows = prior_rows(views, shared, self.restart, self._known_hops)
        if self.score == "lift":
            over_degrees(rows, views, shared)
        return rows

    def uncertainty(self, rows: Rows, shared: DegreeEstimates, views: LocalViews) -> Rows:
        """Around the score that the same formula gives for the true degrees.

        It covers the noise and the bias of shrinking the degrees to their prior, for 95 % of the
        nodes, over the noise and the nodes (docs/theory/degree-prior.md). Not covered: that far
        hops do not follow the degrees exactly.
        """

        def of_row(i: int, row: Vector, seen: DegreeEstimates) -> RowUncertainty:
            return prior_uncertainty(views.of(i), seen, self.restart, self._known_hops)

        return half_widths(rows, views, shared, of_row, lift=self.score == "lift")

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: an edge moves two degrees by one each, whatever the graph."""
        yield two_hubs(4, 10)

    @classmethod
    def tight_case(cls) -> tuple[DegreePrior, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(4, 10)
