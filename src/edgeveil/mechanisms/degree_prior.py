"""DegreePrior: everybody's noisy degrees, once, and each recipient's own list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import over_degrees, prior_rows
from edgeveil.estimate.uncertainty import RowUncertainty, prior_uncertainty
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import (
    Gives,
    Measuring,
    OwnLists,
    Rows,
    check_model,
    check_score,
)
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs
from edgeveil.mechanisms.released_degrees import degree_noise, degrees_of, learn_degrees
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.statistic import Noised, Statistic

__all__ = ["DegreePrior"]


@dataclass(frozen=True, kw_only=True)
class DegreePrior:
    """One shared release of all degrees with Laplace noise of scale 2 / epsilon.

    Each recipient combines it with its own neighbour list: hops 0 and 1 of the walk exactly,
    all further hops by degree. The noise is drawn once for everybody and the rest is the
    recipient's own data, so any coalition learns at most epsilon about the edges of others.
    In the public model the own list is left out. Neighbouring graphs differ in one edge (joint:
    not at the source). Proof: docs/theory/degree-prior.md. Cost: n draws once, then
    O(n) per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release, for any number of sources.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "degree-prior"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "many recipients who may collude, epsilon below 0.4, or the public model: one release for "
        "everybody"
    )

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_model(self.model)
        check_restart(self.restart)
        check_score(self.score)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=self.model,
            n_sources=n_sources,
            theorem="docs/theory/degree-prior.md",
            pooling="shared",
        )

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        degree_noise(len(nodes), exact_epsilon(self.epsilon))

    def shared(self, graph: Graph) -> Statistic:
        """All degrees."""
        return degrees_of(graph, exact_epsilon(self.epsilon))

    def learn(self, noised: Noised, nodes: NodeSet) -> DegreeEstimates:
        """Estimate the degrees."""
        return learn_degrees(noised)

    def measure(self, graph: Graph, shared: DegreeEstimates, own: OwnLists) -> Measuring:
        """Nothing is measured for one recipient alone."""
        yield from ()

    def estimate(self, noised: tuple[Noised, ...], shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Own list and released degrees."""
        rows = np.empty((len(own.sources), len(own.nodes)))
        prior_rows(rows, own, shared, self.restart, int(self.model == "joint"))
        if self.score == "lift":
            over_degrees(rows, own, shared)
        return rows

    def uncertainty(self, rows: Rows, shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Around the score that the same formula gives for the true degrees.

        It covers the noise on the degrees and what estimating them did, for 95 % of the nodes,
        over the noise and the nodes (docs/theory/degree-prior.md). That far hops do not follow
        the degrees exactly is not in it.
        """
        out, hops = np.empty_like(rows), int(self.model == "joint")
        for i, scores in enumerate(rows):
            friends = own.of(i)
            known = shared.seen_by(friends) if hops else shared
            if hops and len(friends) == 0:
                about = RowUncertainty(0.0, np.zeros_like(scores))
            else:
                about = prior_uncertainty(friends, known, self.restart, hops)
            if self.score == "lift":
                out[i] = about.of_lift(scores * known.degrees, known)
            else:
                out[i] = about.of_pagerank(known)
        return out

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: an edge moves two degrees by one each, whatever the graph."""
        yield two_hubs(4, 10)

    @classmethod
    def hardest(cls) -> tuple[DegreePrior, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(4, 10)
