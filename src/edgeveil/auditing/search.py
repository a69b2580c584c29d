"""Search for neighbouring graphs on which a function changes most.

A bound on the sensitivity is refuted by one pair of graphs. `every_graph` makes the search
exhaustive where that is possible, `anneal` goes on beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs

__all__ = ["anneal", "every_graph"]


def every_graph(n: int) -> Iterator[tuple[int, Graph]]:
    """All 2^(n(n-1)/2) graphs on n labelled nodes, each with its edge set as a bit mask.

    Bit k of the mask is the k-th pair in lexicographic order, so the neighbours of graph
    ``mask`` are the graphs ``mask ^ (1 << k)``.
    """
    pairs = list(combinations(range(n), 2))
    for mask in range(1 << len(pairs)):
        yield mask, graph_of_pairs(n, [p for k, p in enumerate(pairs) if mask >> k & 1])


def anneal(
    measure: Callable[[Pair], float],
    *,
    n: int,
    model: str,
    seed: int,
    steps: int = 1000,
    start: Pair | None = None,
) -> tuple[Pair, float]:
    """Simulated annealing for the pair of neighbouring graphs with the largest `measure`.

    Parameters
    ----------
    measure : callable
        What to maximise, for instance ``||p - p'||_1 / sigma``.
    n : int
        Number of nodes, at least 3.
    model : {"joint", "public"}
        ``joint`` keeps the differing edge away from the source.
    seed : int
        For the search's own moves (no privacy hangs on it).
    steps : int
        Number of pairs to try.
    start : Pair, optional
        Where to begin, on n nodes; a random pair if left out.

    Returns
    -------
    pair : Pair
        The best pair found.
    best : float
        Its measure.
    """
    if n < 3:
        raise ParameterError(f"the search needs at least 3 nodes, got {n}")
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(n), 2)))
    present = rng.random(len(pairs)) < rng.uniform(0.1, 0.9)
    edge, source = int(rng.integers(len(pairs))), 0
    if start is not None:
        present = _has_edges(start.neighbour, pairs)
        edge = int(np.flatnonzero(present != _has_edges(start.graph, pairs))[0])
        source = start.source

    def pair_of(present: npt.NDArray[np.bool_], edge: int, source: int) -> Pair | None:
        if model == "joint" and source in pairs[edge]:
            return None
        without, added = present.copy(), present.copy()
        without[edge], added[edge] = False, True
        return Pair(
            graph=graph_of_pairs(n, pairs[without]),
            neighbour=graph_of_pairs(n, pairs[added]),
            source=source,
        )

    while (current := pair_of(present, edge, source)) is None:
        edge = int(rng.integers(len(pairs)))
    score = best = measure(current)
    best_pair = current
    for step in range(steps):
        temperature = 0.1 * max(best, 1e-300) * (1 - step / steps)
        new_present, new_edge, new_source = present.copy(), edge, source
        move = rng.random()
        if move < 0.8:
            flips = rng.integers(len(pairs), size=1 + int(rng.integers(3)))
            new_present[flips] ^= True
        elif move < 0.9:
            new_edge = int(rng.integers(len(pairs)))
        else:
            new_source = int(rng.integers(n))
        candidate = pair_of(new_present, new_edge, new_source)
        if candidate is None:
            continue
        value = measure(candidate)
        if value >= score or rng.random() < math.exp((value - score) / max(temperature, 1e-300)):
            present, edge, source, score = new_present, new_edge, new_source, value
        if value > best:
            best, best_pair = value, candidate
    return best_pair, best


def _has_edges(graph: Graph, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of the pairs of nodes are edges of the graph."""
    dense = graph.adjacency().toarray()
    return np.asarray(dense[pairs[:, 0], pairs[:, 1]] != 0)
