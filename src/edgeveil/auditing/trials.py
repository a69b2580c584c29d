"""Run a mechanism many times on one graph, with fresh noise each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism, Rows
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
    prepared = _prepared_for_all(mechanism, graph, source)
    parts = []
    if prepared is None:
        for i in range(trials):
            stream = noise.derive("trial", i)
            shared = mechanism.prepare(graph, stream.derive("shared"))
            parts.append(mechanism.rows(shared, [source], stream.derive("rows")))
            report(1)
    else:
        streams = cast(NoiseSource, _RowStreams(noise))
        for first in range(0, trials, _BATCH):
            size = min(_BATCH, trials - first)
            parts.append(mechanism.rows(prepared[0], [source] * size, streams))
            report(size)
    return np.concatenate(parts)


class _RowStreams:
    """Stands in for the rows' NoiseSource when one source is asked for many times.

    A mechanism derives the stream of a row by the name of its source, so a source that is
    asked for twice in one call would get the same noise twice. Here every call of `derive`
    gives a new stream. The streams themselves are ordinary ones: what a mechanism does with
    the stream of a row, good or bad, stays as it is.
    """

    def __init__(self, noise: NoiseSource) -> None:
        self.calls = 0
        self._noise = noise

    def derive(self, *labels: str | int) -> NoiseSource:
        self.calls += 1
        return self._noise.derive("trial", self.calls, *labels)


def _prepared_for_all(mechanism: Mechanism, graph: Graph, source: int) -> tuple[Any] | None:
    """What `prepare` gives, if all trials may share it and be asked for together; else None.

    They may if `prepare` draws nothing and `rows` derives exactly one stream for each row.
    Were there two for a row, the stand-in would make noise independent that is not.
    """
    probe = _RowStreams(NoiseSource.secure())
    stand_in = cast(NoiseSource, probe)
    try:
        prepared = mechanism.prepare(graph, stand_in)
        drawn = probe.calls
        mechanism.rows(prepared, [source] * 2, stand_in)
    except (AttributeError, ParameterError):  # it draws from the stand-in itself
        return None
    return (prepared,) if (drawn, probe.calls) == (0, 2) else None
