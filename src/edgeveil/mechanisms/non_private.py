"""NonPrivate: exact PageRank behind the same seam, so that evaluation has one path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.flow.walk import check_restart, check_tol
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource

__all__ = ["NonPrivate"]


@dataclass(frozen=True, kw_only=True)
class NonPrivate:
    """Exact Personalized PageRank: epsilon = infinity, for the curator only.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        L1 error that no row exceeds.
    """

    name: ClassVar[str] = "non-private"
    columns: ClassVar[Columns] = "nodes"

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

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Exact PageRank."""
        return personalized_pagerank(prepared, sources, restart=self.restart, tol=self.tol)
