"""NonPrivate: exact PageRank behind the same seam, so that evaluation has one path."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.flow.walk import check_restart, check_tol
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, NothingShared, OwnLists, Rows
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.statistic import Exact, Noised


@dataclass(frozen=True, kw_only=True)
class NonPrivate(NothingShared):
    """Exact Personalized PageRank: epsilon = infinity, for the curator only.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        L1 error that no row exceeds.
    """

    name: ClassVar[str] = "non-private"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "the truth, for the curator only"

    restart: float = 0.15
    tol: float = 1e-9

    def __post_init__(self) -> None:
        check_restart(self.restart)
        check_tol(self.tol)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Promise nothing."""
        return Guarantee(
            epsilon=math.inf,
            model="none",
            n_sources=n_sources,
            theorem="docs/theory/baselines.md",
        )

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """Exact PageRank."""
        yield Exact(personalized_pagerank(graph, own.sources, restart=self.restart, tol=self.tol))

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """Give it as it is."""
        return noised[0].values
