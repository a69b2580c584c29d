"""DPInstantEmbedding: embed the capped flow, then noise the embedding (paper, Section 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.hashing import (
    check_dimension,
    check_hash_key,
    embedding_float_error,
    hash_nodes,
    instant_embedding,
)
from edgeveil.mechanisms.per_source import PerSource
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.mechanisms.row_noise import add_row_noise
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import NoiseSource, calibrate

__all__ = ["DPInstantEmbedding"]


@dataclass(frozen=True, kw_only=True)
class DPInstantEmbedding(PerSource):
    """InstantEmbedding of the capped flow plus Laplace noise of scale n log(1+sigma) / epsilon.

    Neighbouring graphs differ in one edge (joint: not at the source). Proof:
    docs/theory/instant-embedding.md. Cost per source: `rounds` passes over the edges.

    Parameters
    ----------
    dimension : int
        Length k of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    epsilon, sigma, model, restart, rounds, prepush, bound
        As for `DPPushFlowCap`.
    """

    name: ClassVar[str] = "instant-embedding"
    columns: ClassVar[Columns] = "dimensions"
    theorem: ClassVar[str] = "docs/theory/instant-embedding.md"

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

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, embedding, noise on the dimensions."""
        n = prepared.n_nodes
        flow = CappedFlow.of(self)
        rows = instant_embedding(
            flow.rows(prepared, sources),
            hash_nodes(prepared.nodes, self.dimension, self.hash_key),
        )
        calibration = calibrate(
            coordinates=self.dimension,
            sensitivity=n * math.log1p(self.sigma) * (1 + 2**-48),  # rounded up
            epsilon=exact_epsilon(self.epsilon),
            error=embedding_float_error(n, flow.error(n)),
        )
        return add_row_noise(rows, sources, calibration, noise)
