"""DPEmbeddingSparse: embed the large coordinates only (algorithm 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from edgeveil.graph import Graph
from edgeveil.hashing import (
    check_dimension,
    check_hash_key,
    embedding_float_error,
    hash_nodes,
    instant_embedding,
)
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows
from edgeveil.mechanisms.capped_flow import PaperFlow
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic

__all__ = ["DPEmbeddingSparse"]


@dataclass(frozen=True, kw_only=True)
class DPEmbeddingSparse(PaperFlow):
    """Choose the large coordinates privately, embed those, noise the embedding.

    Half of epsilon goes to the choice S, half to Laplace noise of scale m log(1 + sigma n / m)
    over epsilon / 2, m = max(|S|, 1). Proof: docs/theory/sparse.md, which also covers an empty S.
    Parameters as for `DPInstantEmbedding`.
    """

    name: ClassVar[str] = "embedding-sparse"
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = "to compare with the paper's sparse embeddings"
    theorem: ClassVar[str] = "docs/theory/sparse.md"

    dimension: int = 256
    hash_key: str = "edgeveil"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.dimension)
        check_hash_key(self.hash_key)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self.flow_noise(len(nodes), self.half)
        for chosen in (1, max(len(nodes), 1)):
            _embedding_noise(self, len(nodes), chosen)

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The flow, to choose coordinates; then the embedding of those that were chosen."""
        n, rows = graph.n_nodes, self.flow(graph, own.sources)
        choice = yield Statistic(rows.copy(), self.flow_noise(n, self.half))
        chosen = self.is_large(choice.values)
        node_hash = hash_nodes(graph.nodes, self.dimension, self.hash_key)
        # A function of the private choice only: S empty leaves w = 0, and m = 1 noises it
        # like any other.
        sizes = np.maximum(chosen.sum(axis=1), 1)
        noises = tuple(_embedding_noise(self, n, int(m)) for m in sizes)
        yield Statistic(instant_embedding(np.where(chosen, rows, 0.0), node_hash), noises)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """Give the embeddings as they are."""
        return noised[1].values

    def hard_pairs(self) -> Iterator[Pair]:
        """Those of the flow; the embedding looks at n p and not below 1: lone nodes raise n."""
        return capped_flow_pairs(self.model, lone=True)

    @classmethod
    def hardest(cls) -> tuple[DPEmbeddingSparse, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 50 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge(50)


@lru_cache(maxsize=256)  # exact arithmetic, the same for all rows with as many coordinates
def _embedding_noise(mechanism: DPEmbeddingSparse, n: int, chosen: int) -> Calibration:
    """The noise of an embedding of so many chosen coordinates."""
    return calibrate(
        coordinates=mechanism.dimension,
        sensitivity=chosen * math.log1p(mechanism.sigma * n / chosen) * (1 + 2**-48),  # rounded up
        epsilon=mechanism.half,
        error=embedding_float_error(n, mechanism.flow_error(n)),
    )
