"""TwoHop: shared noisy degrees, and for each recipient a noisy count of the second hop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import over_degrees
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows, check_score
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs
from edgeveil.mechanisms.released_degrees import (
    check_two_hop_size,
    degrees_of,
    learn_degrees,
    measure_second_hop,
    second_hop_rows,
    second_hop_uncertainty,
    split_epsilon,
    two_hop_guarantee,
)
from edgeveil.nodes import NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.statistic import Noised, Statistic

__all__ = ["TwoHop"]


@dataclass(frozen=True, kw_only=True)
class TwoHop:
    """Noisy degrees for everybody, plus each recipient's two-hop sums with noise of their own.

    With public weights w_u = min(1 / d_u, 1 / D0) from the released degrees, the sum of w_u
    over the common neighbours u of s and v is linear in the edges: an edge moves one sum of a
    stranger, or two sums of friends, by at most 1 / D0. So noise of scale 1 / (D0 epsilon) on
    strangers and twice that on friends protects every edge elsewhere. Everything after that is
    post-processing. Joint model only. Proof: docs/theory/two-hop.md. Cost per source: its
    two-hop neighbourhood and n draws.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one recipient, both parts together.
    degree_epsilon : float, optional
        What of it goes to the shared degrees; by default min(epsilon, 0.4 max(1, sqrt epsilon)).
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "two-hop"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "the default for rankings in the joint model: from epsilon 0.4 on it measures the second "
        "hop, below it is the degree prior"
    )

    epsilon: float
    degree_epsilon: float | None = None
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        split_epsilon(self.epsilon, self.degree_epsilon)
        check_restart(self.restart)
        check_score(self.score)

    @property
    def _split(self) -> tuple[Fraction, Fraction]:
        return split_epsilon(self.epsilon, self.degree_epsilon)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon to each recipient, of which the degrees' part is shared by all."""
        return two_hop_guarantee(self.epsilon, self._split[0], n_sources)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        check_two_hop_size(len(nodes), *self._split)

    def shared(self, graph: Graph) -> Statistic:
        """All degrees."""
        return degrees_of(graph, self._split[0])

    def learn(self, noised: Noised, nodes: NodeSet) -> DegreeEstimates:
        """Estimate the degrees."""
        return learn_degrees(noised)

    def measure(self, graph: Graph, shared: DegreeEstimates, own: OwnLists) -> Measuring:
        """Two-hop sums."""
        return measure_second_hop(graph, shared, own, self._split[1])

    def estimate(self, noised: tuple[Noised, ...], shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Sums shrunk to the prior and completed to a row."""
        rows = second_hop_rows(noised, shared, own, self._split[1], self.restart)
        if self.score == "lift":
            over_degrees(rows, own, shared)
        return rows

    def uncertainty(self, rows: Rows, shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Around the score that the same formula gives for the true sums and degrees.

        With the same public weights. It covers the noise on both and what pulling them towards
        their priors did, for 95 % of the nodes, over the noise and the nodes
        (docs/theory/two-hop.md). What hops beyond the second do is not in it, nor, where
        epsilon is too small to measure it, what the second does.
        """
        epsilon, lift = self._split[1], self.score == "lift"
        out = np.empty_like(rows)
        for i, scores in enumerate(rows):
            seen = shared.seen_by(own.of(i))
            row = scores * seen.degrees if lift else scores
            about = second_hop_uncertainty(row, shared, seen, own, i, epsilon, self.restart)
            out[i] = about.of_lift(row, seen) if lift else about.of_pagerank(seen)
        return out

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: both parts of the release are moved as far as an edge can."""
        yield two_hubs(1, 4)

    @classmethod
    def hardest(cls) -> tuple[TwoHop, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(1, 4)
