"""The one place where the evaluation runs a mechanism.

`one_release` is one release. `repeated_rows` is many, with what they have in common without noise
computed once, where a mechanism is a function of the graph plus noise and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism, NoiseLast, Rows
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import Statistic, randomise

__all__ = ["Draw", "one_release", "repeated_rows", "with_noise"]

# Gives, for each of several releases, its rows and what all of its sources share.
Draw = Callable[[Graph, Any, Sequence[int], int, NoiseSource], Iterator[tuple[Rows, Any]]]


def one_release(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource
) -> tuple[Rows, Any]:
    """Rows of the release that draws from `noise`, and what all of its sources share."""
    shared = shared_part(mechanism, graph, noise.derive("shared"))
    return rows_after(mechanism, graph, shared, sources, noise.derive("rows")), shared


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
    if not isinstance(mechanism, NoiseLast):
        yield from (one_release(mechanism, graph, sources, stream) for stream in streams)
        return
    known = _last_exact(graph, _at_one(mechanism), tuple(map(int, sources)))
    for stream in streams:
        yield with_noise(graph, mechanism, known, sources, stream.derive("rows")), None


def with_noise(
    graph: Graph,
    mechanism: NoiseLast,
    known: Rows,
    sources: Sequence[int],
    noise: NoiseSource,
) -> Rows:
    """Rows of the mechanism from its exact rows; `noise` is the release's stream for rows."""
    asked = Statistic(known.copy(), mechanism.calibration(graph.n_nodes))
    return randomise(asked, [noise.derive("row", int(source)) for source in sources]).values


def _at_one(mechanism: Any) -> Any:
    """The mechanism at an epsilon that all of its kind share: exact rows do not depend on it."""
    return replace(mechanism, epsilon=1.0)


@lru_cache(maxsize=1)
def _last_exact(graph: Graph, mechanism: NoiseLast, sources: tuple[int, ...]) -> Rows:
    """Kept, because the next epsilon has the same ones."""
    rows = mechanism.exact_rows(graph, np.array(sources, dtype=np.int64))
    rows.flags.writeable = False
    return rows
