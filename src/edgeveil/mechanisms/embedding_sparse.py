"""DPEmbeddingSparse: embed the large coordinates only (algorithm 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows
from edgeveil.mechanisms.capped_flow import FlowEmbedding, embedding_noise
from edgeveil.mechanisms.hard_pairs import Pair, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.statistic import Noised, Statistic


@dataclass(frozen=True, kw_only=True)
class DPEmbeddingSparse(FlowEmbedding):
    """Choose the large coordinates privately, embed those, noise the embedding.

    Half of epsilon goes to the choice S, half to Laplace noise of scale m log(1 + sigma n / m)
    over epsilon / 2, m = max(|S|, 1). Proof: docs/theory/sparse.md, which also covers an empty S.
    Parameters as for `FlowEmbedding`.
    """

    name: ClassVar[str] = "embedding-sparse"
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = "to compare with the paper's sparse embeddings"
    theorem: ClassVar[str] = "docs/theory/sparse.md"

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self.flow_noise(len(nodes), self.half)
        for chosen in (1, max(len(nodes), 1)):
            embedding_noise(self, len(nodes), chosen, self.half)

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The flow, to choose coordinates; then the embedding of those that were chosen."""
        n, rows = graph.n_nodes, self.flow(graph, own.sources)
        choice = yield Statistic(rows.copy(), self.flow_noise(n, self.half))
        chosen = self.is_large(choice.values)
        # A function of the private choice only: S empty leaves w = 0, and m = 1 noises it
        # like any other.
        sizes = np.maximum(chosen.sum(axis=1), 1)
        noises = tuple(embedding_noise(self, n, int(m), self.half) for m in sizes)
        yield Statistic(self.embedded(graph, np.where(chosen, rows, 0.0)), noises)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """Give the embeddings as they are."""
        return noised[1].values

    @classmethod
    def hardest(cls) -> tuple[DPEmbeddingSparse, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 50 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge(50)
