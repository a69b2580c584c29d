"""OwnNeighbours: what a recipient can compute alone (epsilon = 0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource

__all__ = ["OwnNeighbours"]


@dataclass(frozen=True, kw_only=True)
class OwnNeighbours:
    """The source and its own neighbour list: one step of the walk, nothing of anybody else.

    The floor that every private mechanism has to beat: it costs no budget. Joint model only,
    because a row shows its source's edges. Proof: docs/theory/baselines.md.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    """

    name: ClassVar[str] = "own-neighbours"
    columns: ClassVar[Columns] = "nodes"

    restart: float = 0.15

    def __post_init__(self) -> None:
        check_restart(self.restart)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon 0: nothing about edges elsewhere."""
        return Guarantee(
            epsilon=0.0,
            model="joint",
            n_sources=n_sources,
            theorem="docs/theory/baselines.md",
            pooling="shared",
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """`restart` at the source, the rest spread over its neighbours."""
        rows = np.zeros((len(sources), prepared.n_nodes))
        for row, source in zip(rows, sources, strict=True):
            neighbours = prepared.neighbours(source)
            row[source] = self.restart if len(neighbours) else 1.0
            row[neighbours] = (1 - self.restart) / max(len(neighbours), 1)
        return rows
