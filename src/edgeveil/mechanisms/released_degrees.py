"""Shared by mechanisms that release all degrees once, and measure a recipient's second hop.

Not mechanisms themselves. `shared` and `measure` are the only two places where these touch private
edges of others; all else is post-processing of what comes back noised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import DegreeEstimates, estimate_all
from edgeveil.estimate.rows import complete_rows, over_degrees, prior_rows, two_hop_weights
from edgeveil.estimate.uncertainty import RowUncertainty, prior_uncertainty, two_hop_uncertainty
from edgeveil.flow.two_hop import two_hop_sums_of_lists
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Measuring, OwnLists, Rows
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic

_DEGREE_EPSILON = 0.4


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


def two_hop_guarantee(
    epsilon: float, shared: Fraction, n_sources: int, theorem: str = "docs/theory/two-hop.md"
) -> Guarantee:
    """Epsilon to each recipient, of which `shared` is drawn once for all."""
    nearest = float(shared)  # not rounded up: k recipients learn no more than it says
    below = nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)
    return Guarantee(
        epsilon=epsilon,
        model="joint",
        n_sources=n_sources,
        theorem=theorem,
        shared_epsilon=below,
    )


@lru_cache(maxsize=16)  # exact arithmetic, the same for all rows of a release
def _degree_noise(n: int, epsilon: Fraction) -> Calibration:
    """One edge changes two degrees by one each; degrees are exact, so there is no float error."""
    return calibrate(coordinates=max(n, 1), sensitivity=2, epsilon=epsilon)


@lru_cache(maxsize=16)
def _second_hop_noise(coordinates: int, epsilon: Fraction) -> Calibration:
    """One edge moves a recipient's two-hop sums, friends' halved or left out, by 1 in L1: exactly.

    So does it if they are hashed: added up with signs.
    """
    return calibrate(coordinates=max(coordinates, 1), sensitivity=1, epsilon=epsilon)


class DegreesOnce:
    """All degrees once, for everybody; what else is asked is the mechanism's own."""

    epsilon: float
    degree_epsilon: float | None
    theorem: ClassVar[str] = "docs/theory/two-hop.md"

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """Epsilon of the degrees and of one recipient's second hop."""
        return split_epsilon(self.epsilon, self.degree_epsilon)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon to each recipient, of which the degrees' part is shared by all."""
        return two_hop_guarantee(self.epsilon, self.split[0], n_sources, self.theorem)

    def coordinates(self, n_nodes: int) -> int:
        """How many numbers one recipient's second hop is."""
        return n_nodes

    def second_hop_noise(self, n_nodes: int) -> Calibration | None:
        """Their noise; None if no epsilon is left for them."""
        epsilon = self.split[1]
        return _second_hop_noise(self.coordinates(n_nodes), epsilon) if epsilon else None

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate both parts: that fails before the charge or not at all."""
        _degree_noise(len(nodes), self.split[0])
        self.second_hop_noise(len(nodes))

    def shared(self, graph: Graph) -> Statistic:
        """All degrees."""
        noise = _degree_noise(graph.n_nodes, self.split[0])
        return Statistic(graph.degrees.astype(np.float64)[None, :], noise)

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: both parts of the release are moved as far as an edge can."""
        yield two_hubs(1, 4)
        yield wedge()  # both ends are friends


class TwoHopRelease(DegreesOnce):
    """All degrees once, then each recipient's second hop, and rows from both.

    Where no epsilon is left for the second hop, it is not measured.
    """

    restart: float
    score: str = "pagerank"

    @property
    def known_hops(self) -> int:
        """Hops of the walk that a recipient knows by itself; 0: its list may not be used."""
        return 1

    def learn(self, noised: Noised, nodes: NodeSet) -> DegreeEstimates:
        """What the released degrees tell about the true ones."""
        return estimate_all(noised.values[0], noised.scale)

    def measure(self, graph: Graph, shared: DegreeEstimates, own: OwnLists) -> Measuring:
        """Sums of the weights of common friends, in units of 1 / floor, friends' halved."""
        noise = self.second_hop_noise(graph.n_nodes)
        if noise:
            _, weights = two_hop_weights(own, shared.degrees, float(self.split[1]))
            sums = two_hop_sums_of_lists(graph, own.lists, own.starts, weights)
            yield Statistic(sums, noise)

    def estimate(self, noised: tuple[Noised, ...], shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Sums shrunk to the prior and completed to rows; without sums, the prior."""
        epsilon = self.split[1]
        if epsilon:
            rows = noised[0].values
            floors, weights = two_hop_weights(own, shared.degrees, float(epsilon))
            complete_rows(rows, own, weights, floors, shared, noised[0].scale, self.restart)
        else:
            rows = prior_rows(own, shared, self.restart, self.known_hops)
        if self.score == "lift":
            over_degrees(rows, own, shared)
        return rows

    def uncertainty(self, rows: Rows, shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Around the score that the same formula gives for the true sums and degrees.

        With the same public weights. It covers the noise on both and what pulling them towards
        their priors did, for 95 % of the nodes, over the noise and the nodes
        (docs/theory/two-hop.md, docs/theory/degree-prior.md). That far hops do not follow the
        degrees exactly is not in it, nor, where it is not measured, what the second hop does.
        """
        out, n, epsilon = np.empty_like(rows), len(own.nodes), self.split[1]
        lift = self.score == "lift"
        if epsilon:
            floors, weights = two_hop_weights(own, shared.degrees, float(epsilon))
            noise = _second_hop_noise(n, epsilon).noise_scale
        for i, scores in enumerate(rows):
            friends = own.of(i)
            seen = shared.seen_by(friends)
            row = scores * seen.degrees if lift else scores
            if self.known_hops and len(friends) == 0:
                about = RowUncertainty(0.0, np.zeros(n))
            elif not epsilon:
                about = prior_uncertainty(friends, seen, self.restart, self.known_hops)
            else:
                scales = np.full(n, noise / floors[i])
                scales[friends] *= 2
                weight = weights[own.starts[i] : own.starts[i + 1]] / floors[i]
                source = int(own.sources[i])
                about = two_hop_uncertainty(
                    row, source, friends, seen, weight, scales, self.restart
                )
            out[i] = about.of_lift(row, seen) if lift else about.of_pagerank(seen)
        return out
