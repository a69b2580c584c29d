"""DPEmbeddingSparse: embed the large coordinates only (algorithm 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow, paper_threshold
from edgeveil.graph import Graph
from edgeveil.hashing import (
    check_dimension,
    check_hash_key,
    embedding_float_error,
    hash_nodes,
    instant_embedding,
)
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, PerSource, Rows
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic

__all__ = ["DPEmbeddingSparse"]


@dataclass(frozen=True, kw_only=True)
class DPEmbeddingSparse(PerSource):
    """Choose the large coordinates privately, embed those, noise the embedding.

    Half of epsilon goes to the choice S, half to Laplace noise of scale m log(1 + sigma n / m)
    over epsilon / 2, m = max(|S|, 1). Neighbouring graphs differ in one edge (joint: not at
    the source). Proof: docs/theory/sparse.md, which also covers an empty S. Cost per source:
    `rounds` passes over the edges. Parameters as for `DPInstantEmbedding`.
    """

    name: ClassVar[str] = "embedding-sparse"
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = "to compare with the paper's sparse embeddings"
    theorem: ClassVar[str] = "docs/theory/sparse.md"

    epsilon: float
    dimension: int = 256
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "tight"
    hash_key: str = "edgeveil"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_dimension(self.dimension)
        check_hash_key(self.hash_key)
        CappedFlow.of(self)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self._choice_noise(len(nodes))
        for chosen in (1, max(len(nodes), 1)):
            _embedding_noise(self, len(nodes), chosen)

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The flow, to choose coordinates; then the embedding of those that were chosen."""
        n, half = graph.n_nodes, exact_epsilon(self.epsilon) / 2
        rows = CappedFlow.of(self).rows(graph, own.sources)
        choice = yield Statistic(rows.copy(), self._choice_noise(n))
        chosen = choice.values >= paper_threshold(n, self.sigma, half)
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

    def _choice_noise(self, n_nodes: int) -> Calibration:
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon) / 2,
            error=CappedFlow.of(self).error(n_nodes),
        )


@lru_cache(maxsize=256)  # exact arithmetic, the same for all rows with as many coordinates
def _embedding_noise(mechanism: DPEmbeddingSparse, n: int, chosen: int) -> Calibration:
    """The noise of an embedding of so many chosen coordinates."""
    sigma = mechanism.sigma
    return calibrate(
        coordinates=mechanism.dimension,
        sensitivity=chosen * math.log1p(sigma * n / chosen) * (1 + 2**-48),  # rounded up
        epsilon=exact_epsilon(mechanism.epsilon) / 2,
        error=embedding_float_error(n, CappedFlow.of(mechanism).error(n)),
    )
