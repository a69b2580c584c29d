"""The one place where the evaluation runs a mechanism.

`rows_of` is one release. `repeated_rows` is many, with what they have in common without noise
computed once: two mechanisms are a noiseless function of the graph, the same at every epsilon,
plus Laplace noise on its values. `with_noise(graph, m, noiseless_rows(graph, m, sources), sources,
noise)` is ``m.rows(graph, sources, noise)`` to the last bit; tests hold it to that under seeded
noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.hashing import embedding_float_error, hash_nodes, instant_embedding
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlowCap
from edgeveil.mechanisms.protocol import Mechanism, Rows
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

__all__ = ["Draw", "noiseless_rows", "repeated_rows", "rows_of", "with_noise"]

# Gives, for each of several releases, its rows and what all of its sources share.
Draw = Callable[[Graph, Any, Sequence[int], int, NoiseSource], Iterator[tuple[Rows, Any]]]

_NOISE_AT_THE_END = (DPPushFlowCap, DPInstantEmbedding)


def rows_of(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource
) -> tuple[Rows, Any]:
    """Rows of the release that draws from `noise`, and what all of its sources share."""
    prepared = mechanism.prepare(graph, noise.derive("shared"))
    return mechanism.rows(prepared, sources, noise.derive("rows")), prepared


def repeated_rows(
    graph: Graph,
    mechanism: Mechanism,
    sources: Sequence[int],
    repeats: int,
    noise: NoiseSource,
) -> Iterator[tuple[Rows, Any]]:
    """Rows of each repeat, and what its sources share; noiseless work is done once.

    Repeat r is what ``edgeveil.release`` gives with ``noise.derive("repeat", r)``.
    """
    streams = (noise.derive("repeat", repeat) for repeat in range(repeats))
    if type(mechanism) not in _NOISE_AT_THE_END:  # a subclass might do otherwise
        yield from (rows_of(mechanism, graph, sources, stream) for stream in streams)
        return
    known = _last_noiseless(graph, _at_one(mechanism), tuple(sources))
    for stream in streams:
        yield with_noise(graph, mechanism, known, sources, stream.derive("rows")), graph


def _at_one(mechanism: Any) -> Any:
    """The mechanism at an epsilon that all of its kind share."""
    return replace(mechanism, epsilon=1.0)


@lru_cache(maxsize=1)
def _last_noiseless(graph: Graph, mechanism: Any, sources: tuple[int, ...]) -> Rows:
    """Kept, because the next epsilon has the same one (any epsilon will do in `mechanism`)."""
    rows = noiseless_rows(graph, mechanism, sources)
    rows.flags.writeable = False
    return rows


def noiseless_rows(graph: Graph, mechanism: Any, sources: Sequence[int]) -> Rows:
    """The flow, or its embedding. Not private."""
    rows = CappedFlow.of(mechanism).rows(graph, sources)
    if isinstance(mechanism, DPInstantEmbedding):
        return instant_embedding(
            rows, hash_nodes(graph.nodes, mechanism.dimension, mechanism.hash_key)
        )
    return rows


def with_noise(
    graph: Graph, mechanism: Any, known: Rows, sources: Sequence[int], noise: NoiseSource
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
