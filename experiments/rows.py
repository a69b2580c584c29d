"""Rows of many releases, with what they have in common without noise computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from edgeveil.evaluation.contest import releases
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlow, DPPushFlowCap
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import Statistic, randomise
from experiments.forward_cap import DPForwardCap

# Their rows are a function of the graph plus Laplace noise.
LaplaceRows = DPForwardCap | DPInstantEmbedding | DPPushFlow | DPPushFlowCap

__all__ = ["repeated_rows", "with_noise"]


def repeated_rows(
    graph: Graph,
    mechanism: Mechanism,
    sources: Sequence[int],
    repeats: int,
    noise: NoiseSource,
) -> Iterator[tuple[Rows, Any]]:
    """What `releases` gives; where rows are a function of the graph plus noise, it is run once."""
    if not isinstance(mechanism, LaplaceRows):
        yield from releases(graph, mechanism, sources, repeats, noise)
        return
    exact = _last_exact(graph, _at_one(mechanism), tuple(map(int, sources)))
    for repeat in range(repeats):
        stream = noise.derive("repeat", repeat).derive("rows")
        yield with_noise(graph, mechanism, exact, sources, stream), None


def with_noise(
    graph: Graph,
    mechanism: LaplaceRows,
    exact: Rows,
    sources: Sequence[int],
    noise: NoiseSource,
) -> Rows:
    """Rows of the mechanism from its exact rows; `noise` is the release's stream for rows."""
    statistic = Statistic(exact.copy(), mechanism.calibration(graph.n_nodes))
    return randomise(statistic, noise.derive("stage", 0), sources).values


def _at_one(mechanism: Any) -> Any:
    """The mechanism at an epsilon that all of its kind share: exact rows do not depend on it."""
    return replace(mechanism, epsilon=1.0)


@lru_cache(maxsize=1)
def _last_exact(graph: Graph, mechanism: LaplaceRows, sources: tuple[int, ...]) -> Rows:
    """Kept, because the next epsilon has the same ones."""
    rows = mechanism.exact_rows(graph, np.array(sources, dtype=np.int64))
    rows.flags.writeable = False
    return rows
