"""DPEmbeddingSparse: embed the large coordinates only (algorithm 7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate
from edgeveil.privacy.sparsification import sparsify, threshold

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
    columns: ClassVar[Columns] = "dimensions"
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

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, private choice of coordinates, embedding of those, noise."""
        n, half = prepared.n_nodes, exact_epsilon(self.epsilon) / 2
        flow = CappedFlow.of(self)
        error = flow.error(n)
        gamma = threshold(n, self.sigma, half)
        node_hash = hash_nodes(prepared.nodes, self.dimension, self.hash_key)
        embeddings = np.empty((len(sources), self.dimension))
        for i, (row, source) in enumerate(zip(flow.rows(prepared, sources), sources, strict=True)):
            stream = noise.derive("row", int(source))
            chosen = sparsify(
                row,
                sensitivity=self.sigma,
                epsilon=half,
                gamma=gamma,
                error=error,
                noise=stream.derive("choice"),
            )
            # A function of the private choice only: S empty leaves w = 0, and m = 1 noises it
            # like any other.
            m = max(int(chosen.sum()), 1)
            calibration = calibrate(
                coordinates=self.dimension,
                sensitivity=m * math.log1p(self.sigma * n / m) * (1 + 2**-48),  # rounded up
                epsilon=half,
                error=embedding_float_error(n, error),
            )
            embedding = instant_embedding(np.where(chosen, row, 0.0)[None], node_hash)[0]
            embeddings[i] = add_laplace(embedding, calibration, stream.derive("values"))
        return embeddings
