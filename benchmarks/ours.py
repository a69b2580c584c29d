"""The calls of edgeveil that several parts measure, all through public functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.settings import ERROR, RESTART, ROUNDS, SIGMA
from edgeveil import Graph, NoiseSource, TwoHop, personalized_pagerank, push_flow_cap

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
    prepared = mechanism.prepare(graph, noise)
    return (
        lambda sources: mechanism.rows(prepared, sources.tolist(), noise),
        lambda: mechanism.rows(prepared, [0], noise),
    )
