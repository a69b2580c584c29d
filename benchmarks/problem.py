"""One graph with everything that contenders for exact PageRank share, and the true answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.graphs import some_sources
from benchmarks.settings import ERROR, RESTART
from edgeveil import Graph

__all__ = ["Problem", "chebyshev_steps", "l1_error", "nth", "power_steps"]

Matrix = npt.NDArray[np.float64]
Sources = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Attributes.

    walk : the matrix (1 - restart) A D^-1, ready to be multiplied from the left
    sources : all sources of a block; the first of them are `checked`
    truth : PageRank of the checked sources, (n, checked), by power iteration to its end
    power_rounds, chebyshev_rounds : the fewest that bring the checked sources below ERROR
    """

    graph: Graph
    adjacency: sp.csr_array
    walk: sp.csr_array
    sources: Sources
    checked: Sources
    truth: Matrix
    power_rounds: int
    chebyshev_rounds: int

    @classmethod
    def of(cls, graph: Graph, block: int, checked: int) -> Problem:
        adjacency = graph.adjacency()
        walk = adjacency.copy()
        walk.data = ((1 - RESTART) / np.maximum(graph.degrees, 1))[walk.indices]
        sources = some_sources(graph, block)
        looked_at = sources[:checked]
        truth = _truth(walk, looked_at)
        power, chebyshev = power_steps(walk, looked_at), chebyshev_steps(walk, looked_at)
        return cls(
            graph=graph,
            adjacency=adjacency,
            walk=walk,
            sources=sources,
            checked=looked_at,
            truth=truth,
            power_rounds=_rounds_needed(power, truth),
            chebyshev_rounds=_rounds_needed(chebyshev, truth),
        )


def power_steps(walk: sp.csr_array, sources: Sources) -> Iterator[Matrix]:
    """Power iteration from all mass at the source, which keeps the mass right from the start."""
    lanes = np.arange(len(sources))
    p = np.zeros((walk.shape[0], len(sources)))
    p[sources, lanes] = 1.0
    while True:
        p = walk @ p
        p[sources, lanes] += RESTART
        yield p


def chebyshev_steps(walk: sp.csr_array, sources: Sources) -> Iterator[Matrix]:
    """Chebyshev semi-iteration on the same equation."""
    lanes = np.arange(len(sources))
    before = np.zeros((walk.shape[0], len(sources)))
    p = before.copy()
    p[sources, lanes] = RESTART
    omega = 2.0
    while True:
        omega = 1 / (1 - (1 - RESTART) ** 2 * omega / 4)
        new = walk @ p
        new[sources, lanes] += RESTART
        new -= before
        new *= omega
        new += before
        before, p = p, new
        yield p


def nth(steps: Iterator[Matrix], k: int) -> Matrix:
    """The iterate after k rounds."""
    return next(islice(steps, k - 1, None))


def l1_error(rows: Matrix, truth: Matrix) -> float:
    """The largest L1 distance of a row from its column of the truth."""
    return float(np.abs(rows - truth.T).sum(axis=1).max())


def _truth(walk: sp.csr_array, sources: Sources) -> Matrix:
    """Power iteration until 1e-14 is all that changes: then the error is below 1e-13."""
    steps = power_steps(walk, sources)
    p = next(steps)
    for _ in range(300):
        before, p = p, next(steps)
        if np.abs(p - before).sum(axis=0).max() < 1e-14:
            break
    return p


def _rounds_needed(steps: Iterator[Matrix], truth: Matrix) -> int:
    return next(k for k in count(1) if l1_error(next(steps).T, truth) <= ERROR)
