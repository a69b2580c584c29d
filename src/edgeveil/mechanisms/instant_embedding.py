"""DPInstantEmbedding: embed the capped flow, then noise the embedding (paper, Section 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph
from edgeveil.hashing import (
    check_dimension,
    check_hash_key,
    embedding_float_error,
    hash_nodes,
    instant_embedding,
)
from edgeveil.mechanisms.base import Gives, NoiseLast, Rows
from edgeveil.mechanisms.capped_flow import PaperFlow
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge_with_leaves
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import Calibration, calibrate

__all__ = ["DPInstantEmbedding"]


@dataclass(frozen=True, kw_only=True)
class DPInstantEmbedding(PaperFlow, NoiseLast):
    """InstantEmbedding of the capped flow plus Laplace noise of scale n log(1+sigma) / epsilon.

    Proof: docs/theory/instant-embedding.md.

    Parameters
    ----------
    dimension : int
        Length k of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    epsilon, sigma, model, restart, rounds, prepush, bound
        As for `PaperFlow`.
    """

    name: ClassVar[str] = "instant-embedding"
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = (
        "to compare with the paper's embeddings, or a few public ones; n public ones cost n times "
        "epsilon: for many, hash the scores of edge-flipping"
    )
    theorem: ClassVar[str] = "docs/theory/instant-embedding.md"

    dimension: int = 256
    hash_key: str = "edgeveil"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.dimension)
        check_hash_key(self.hash_key)

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The embedding of the capped flow."""
        node_hash = hash_nodes(graph.nodes, self.dimension, self.hash_key)
        return instant_embedding(self.flow(graph, sources), node_hash)

    def calibration(self, n_nodes: int) -> Calibration:
        """One edge moves an embedding by at most n log(1 + sigma) in L1."""
        return calibrate(
            coordinates=self.dimension,
            sensitivity=n_nodes * math.log1p(self.sigma) * (1 + 2**-48),  # rounded up
            epsilon=exact_epsilon(self.epsilon),
            error=embedding_float_error(n_nodes, self.flow_error(n_nodes)),
        )

    def hard_pairs(self) -> Iterator[Pair]:
        """Those of the flow; the embedding looks at n p and not below 1: lone nodes raise n."""
        return capped_flow_pairs(self.model, lone=True)

    @classmethod
    def hardest(cls) -> tuple[DPInstantEmbedding, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 210 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge_with_leaves(9)
