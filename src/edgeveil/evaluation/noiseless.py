"""What a mechanism computes before its noise, once for many repeats and epsilons.

Two mechanisms are a noiseless function of the graph plus Laplace noise on its values:
`DPPushFlowCap` and `DPInstantEmbedding`. Their noiseless part does not depend on epsilon.
`with_noise(graph, m, noiseless_rows(graph, m, sources), sources, noise)` is ``m.rows(graph,
sources, noise)`` to the last bit; tests hold it to that under seeded noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.hashing import embedding_float_error, hash_nodes, instant_embedding
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlowCap
from edgeveil.mechanisms.protocol import Mechanism, Rows
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

__all__ = ["NoiseAtTheEnd", "adds_noise_at_the_end", "noiseless_rows", "with_noise"]

NoiseAtTheEnd = DPPushFlowCap | DPInstantEmbedding


def adds_noise_at_the_end(mechanism: Mechanism) -> TypeGuard[NoiseAtTheEnd]:
    """Whether this module knows the mechanism (just it: a subclass might do otherwise)."""
    return type(mechanism) in (DPPushFlowCap, DPInstantEmbedding)


def noiseless_rows(graph: Graph, mechanism: NoiseAtTheEnd, sources: Sequence[int]) -> Rows:
    """The flow, or its embedding. Not private."""
    rows = CappedFlow.of(mechanism).rows(graph, sources)
    if isinstance(mechanism, DPInstantEmbedding):
        return instant_embedding(
            rows, hash_nodes(graph.nodes, mechanism.dimension, mechanism.hash_key)
        )
    return rows


def with_noise(
    graph: Graph, mechanism: NoiseAtTheEnd, known: Rows, sources: Sequence[int], noise: NoiseSource
) -> Rows:
    """Rows of the mechanism from its noiseless rows; `noise` is the release's stream for rows."""
    n = graph.n_nodes
    error = CappedFlow.of(mechanism).error(n)
    sensitivity = mechanism.sigma
    if isinstance(mechanism, DPInstantEmbedding):
        sensitivity = n * math.log1p(mechanism.sigma) * (1 + 2**-48)
        error = embedding_float_error(n, error)
    calibration = calibrate(
        coordinates=known.shape[1],
        sensitivity=sensitivity,
        epsilon=exact_epsilon(mechanism.epsilon),
        error=error,
    )
    return np.stack(
        [
            add_laplace(row, calibration, noise.derive("row", int(source)))
            for row, source in zip(known, sources, strict=True)
        ]
    )
