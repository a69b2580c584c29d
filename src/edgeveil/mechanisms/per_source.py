"""What mechanisms have in common whose every source has noise of its own."""

from __future__ import annotations

from typing import ClassVar

from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import per_source_guarantee
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import NoiseSource

__all__ = ["PerSource"]


class PerSource:
    """Rows that share nothing: each is a release of its own, proved in `theorem`."""

    theorem: ClassVar[str]  # page of the proof
    epsilon: float
    model: Model

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon per recipient (joint) or per source, added up (public)."""
        return per_source_guarantee(
            epsilon=self.epsilon, model=self.model, n_sources=n_sources, theorem=self.theorem
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph
