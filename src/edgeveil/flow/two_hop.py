"""Weighted counts of common neighbours: the second hop, in units that one edge moves by 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edgeveil.flow._kernels import spread_weights
from edgeveil.graph import Graph

__all__ = ["exact_weights", "two_hop_sums"]

Vector = npt.NDArray[np.float64]


def exact_weights(weights: Vector) -> Vector:
    """Cut weights in [0, 1] down to so few bits that any sum of them is exact in float64.

    With n weights the step is 2^(L-52), L the bit length of n: a sum of at most n of them has
    at most 52 bits, and halving it adds one.
    """
    step = 2.0 ** (len(weights).bit_length() - 52)
    return np.asarray(np.floor(np.clip(weights, 0.0, 1.0) / step) * step)


def two_hop_sums(graph: Graph, source: int, weights: Vector) -> Vector:
    """Sum of the weights of the common neighbours of `source` and each node; friends' halved.

    One edge that does not touch the source moves the vector by at most 1 in L1, exactly, if
    the weights come from `exact_weights` (docs/theory/two-hop.md).

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
    sums = np.zeros(graph.n_nodes)
    # The sums are exact, so their order does not matter.
    spread_weights(graph.indptr, graph.indices, own, weights, sums)
    # An edge between two friends moves both of their sums; an edge to a stranger only one.
    sums[own] /= 2
    return sums
