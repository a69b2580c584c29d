"""The calls of edgeveil that several parts measure, all through public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.settings import ERROR, RESTART, ROUNDS, SIGMA
from edgeveil import Graph, NoiseSource
from edgeveil.flow import personalized_pagerank, push_flow_cap
from edgeveil.mechanisms import TwoHop
from edgeveil.mechanisms.run import rows_after, shared_part

__all__ = ["CALLS", "call"]

Sources = npt.NDArray[np.int64]
Solve = Callable[[Sources], object]

CALLS = ("exact", "capped", "fixed point", "two-hop")


def call(name: str, graph: Graph) -> tuple[Solve, Callable[[], object]]:
    """A function of sources, and a light call that loads and prepares what the first one would."""
    if name == "exact":
        return (
            lambda sources: personalized_pagerank(graph, sources, restart=RESTART, tol=ERROR),
            lambda: personalized_pagerank(graph, [0], restart=RESTART, tol=0.5),
        )
    if name == "capped":
        return (
            lambda sources: push_flow_cap(graph, sources, sigma=SIGMA, rounds=ROUNDS),
            lambda: push_flow_cap(graph, [0], sigma=SIGMA, rounds=1),
        )
    if name == "fixed point":
        return (
            lambda sources: push_flow_cap(graph, sources, sigma=SIGMA, rounds=None),
            lambda: push_flow_cap(graph, [0], sigma=1.0, rounds=None),
        )
    noise, mechanism = NoiseSource.secure(), TwoHop(epsilon=1.0)
    shared = shared_part(mechanism, graph, noise.derive("shared"))

    def rows(sources: Sequence[int]) -> npt.NDArray[np.float64]:
        return rows_after(mechanism, graph, shared, sources, noise.derive("rows"))

    return lambda sources: rows(sources.tolist()), lambda: rows([0])
