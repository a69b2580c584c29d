"""Run a mechanism many times on one graph, with fresh noise each time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.run import make_rows, shared_part
from edgeveil.privacy.noise import NoiseSource

__all__ = ["draw"]

_BATCH = 1024


def draw(
    mechanism: Mechanism,
    graph: Graph,
    source: int,
    trials: int,
    noise: NoiseSource,
    report: Callable[[int], None],
) -> Rows:
    """Rows of `trials` independent releases for one source: array (trials, columns).

    Parameters
    ----------
    mechanism : Mechanism
        What to run; all of its code is run in every trial.
    graph : Graph
        The graph.
    source : int
        Index of the source.
    trials : int
        How many releases.
    noise : NoiseSource
        Parent of all streams; not used for anything else.
    report : callable
        Told after every step how many trials it made.
    """
    # With nothing shared, many releases for one source are many rows of one call.
    batch = _BATCH if mechanism.shared(graph) is None else 1
    parts = []
    for first in range(0, trials, batch):
        size = min(batch, trials - first)
        streams = [noise.derive("trial", first + i) for i in range(size)]
        shared = shared_part(mechanism, graph, streams[0].derive("shared"))
        made, _ = make_rows(mechanism, graph, shared, [source] * size, streams)
        # Lists are tables, and end: as a row of numbers, with a number for "nobody".
        parts.append(np.nan_to_num(made.reshape(size, -1), nan=-1.0))
        report(size)
    return np.concatenate(parts)
