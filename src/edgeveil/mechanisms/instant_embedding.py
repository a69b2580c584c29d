"""DPInstantEmbedding: embed the capped flow, then noise the embedding (paper, Section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, NoiseLast, Rows
from edgeveil.mechanisms.capped_flow import FlowEmbedding, embedding_noise
from edgeveil.mechanisms.hard_pairs import Pair, wedge_with_leaves
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import Calibration


@dataclass(frozen=True, kw_only=True)
class DPInstantEmbedding(FlowEmbedding, NoiseLast):
    """InstantEmbedding of the capped flow plus Laplace noise of scale n log(1+sigma) / epsilon.

    Proof: docs/theory/instant-embedding.md. Parameters as for `FlowEmbedding`.
    """

    name: ClassVar[str] = "instant-embedding"
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = (
        "to compare with the paper's embeddings, or a few public ones; n public ones cost n times "
        "epsilon: for many, hash the scores of edge-flipping"
    )
    theorem: ClassVar[str] = "docs/theory/instant-embedding.md"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The embedding of the capped flow."""
        return self.embedded(graph, self.flow(graph, sources))

    def calibration(self, n_nodes: int) -> Calibration:
        """All n coordinates may move: n log(1 + sigma) in L1."""
        return embedding_noise(self, n_nodes, max(n_nodes, 1), exact_epsilon(self.epsilon))

    @classmethod
    def hardest(cls) -> tuple[DPInstantEmbedding, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 210 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge_with_leaves(9)
