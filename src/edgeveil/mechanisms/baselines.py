"""Baselines with the same interface, for every comparison: the truth, and the own list alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    OwnListOnly,
    Rows,
    Statistics,
)
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.statistic import Exact, Noised


class NonPrivate(Mechanism):
    """Exact Personalized PageRank: epsilon = infinity, for the curator only.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        Bound on the L1 error of a row.
    """

    name = "non-private"
    when_to_use = "the truth, for the curator only"
    theorem = "docs/theory/baselines.md"

    restart: float = 0.15
    tol: float = 1e-9

    def guarantee(self, n_members: int) -> Guarantee:
        """Promise nothing."""
        return Guarantee(epsilon=math.inf, model="none", n_members=n_members, theorem=self.theorem)

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """Exact PageRank."""
        yield Exact(personalized_pagerank(graph, views.sources, restart=self.restart, tol=self.tol))


class OwnNeighbours(OwnListOnly):
    """The source and its own neighbour list: one step of the walk, no edge of anybody else.

    The baseline that every private mechanism has to beat: its price is 0. Joint model only,
    because a row shows its source's edges. Proof: docs/theory/baselines.md.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    """

    name = "own-neighbours"
    when_to_use = "no budget at all: the baseline that all others have to beat"
    theorem = "docs/theory/baselines.md"

    restart: float = 0.15

    def estimate(self, noised: tuple[Noised, ...], shared: Any, views: LocalViews) -> Rows:
        """`restart` at the source, the rest spread over its neighbours."""
        rows = np.zeros((len(views.sources), len(views.nodes)))
        for i, (row, source) in enumerate(zip(rows, views.sources, strict=True)):
            friends = views.of(i)
            row[source] = self.restart if len(friends) else 1.0
            row[friends] = (1 - self.restart) / max(len(friends), 1)
        return rows
