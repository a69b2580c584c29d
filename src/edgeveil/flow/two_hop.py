"""Weighted counts of common neighbours: the second hop, in units that one edge moves by 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._compiled import compiled
from edgeveil.graph import Graph

__all__ = ["two_hop_sums", "two_hop_sums_of_lists"]

Vector = npt.NDArray[np.float64]


def two_hop_sums(graph: Graph, source: int, weights: Vector) -> Vector:
    """Sum of the weights of the common neighbours of `source` and each node; friends' halved.

    One edge that does not touch the source moves the vector by at most 1 in L1, exactly, if
    the weights come from `edgeveil.estimate.rows.exact_weights` (docs/theory/two-hop.md).

    Parameters
    ----------
    graph : Graph
        The graph.
    source : int
        Index of the source.
    weights : array of shape (n,)
        In [0, 1], the same for all graphs.
    """
    own = graph.neighbours(source)
    sums = np.empty(graph.n_nodes)
    _spread(graph.indptr, graph.indices, own, weights[own], sums)
    return sums


def two_hop_sums_of_lists(
    graph: Graph,
    lists: npt.NDArray[np.integer],
    starts: npt.NDArray[np.int64],
    weights: Vector,
) -> npt.NDArray[np.float64]:
    """`two_hop_sums` of several sources, each with weights of its own.

    Parameters
    ----------
    graph : Graph
        The graph.
    lists : array of int
        The neighbours of the first source, then of the next.
    starts : array of shape (m + 1,)
        Those of source i are ``lists[starts[i] : starts[i + 1]]``.
    weights : array
        The weight of each neighbour in `lists`, exact.

    Returns
    -------
    array of shape (m, n)
        The sums, freshly made.
    """
    out = np.empty((len(starts) - 1, graph.n_nodes))
    _spread_lists(graph.indptr, graph.indices, lists, starts, weights, out)
    return out


@compiled
def _spread(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    own: Any,  # IN  (k) the nodes that give
    weights: Any,  # IN  (k)
    sums: Any,  # OUT (n)
) -> None:
    """Add the weight of each of `own` to all of its neighbours, then halve the sums of `own`."""
    sums[:] = 0.0
    # The sums are exact, so their order does not matter.
    for i in range(len(own)):
        weight, theirs = weights[i], indices[indptr[own[i]] : indptr[own[i] + 1]]
        for k in range(len(theirs)):
            sums[np.uint64(theirs[k])] += weight  # unsigned: no test for indices from the end
    # An edge between two friends moves both of their sums; an edge to a stranger only one.
    for i in range(len(own)):
        sums[own[i]] /= 2


@compiled
def _spread_lists(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    weights: Any,  # IN  as long as `lists`
    out: Any,  # OUT (m, n)
) -> None:
    """Do it for every source."""
    for i in range(len(out)):
        first, last = starts[i], starts[i + 1]
        _spread(indptr, indices, lists[first:last], weights[first:last], out[i])
