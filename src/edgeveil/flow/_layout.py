"""The graph as the kernels want it: rows by falling degree, indices as narrow as they can be.

Hubs are read most often; with their rows side by side they share cache. Indices of 16 bits
halve what a round reads besides the flow. A graph too large to copy keeps its own arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._kept import Kept
from edgeveil.errors import InputError
from edgeveil.flow._kernels import label_components, reorder
from edgeveil.graph import Graph

_LARGEST_COPY = 1 << 26  # stored entries; a copy is no larger than the graph itself
_CACHE_LINE = 64


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


_layouts: Kept[Layout] = Kept()
_components: Kept[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = Kept()


def layout_of(graph: Graph) -> Layout:
    """Give the graph's layout, made once and kept as long as the graph lives."""
    return _layouts.get(graph, lambda: _make_layout(graph))


def components_of(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Label of every row's connected component, and the sum of degrees of each; found once."""

    def find() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        label = np.full(len(layout.degree), -1)
        count = label_components(layout.indptr, layout.indices, label, np.empty_like(label))
        return label, np.bincount(label, weights=layout.degree, minlength=count).astype(np.float64)

    return _components.get(layout, find)


def block_zeros(rows: int, lanes: int, number: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Zeros of shape (rows, lanes) whose rows begin at cache lines."""
    # empty, not zeros: numpy asks for large pages for it
    size = np.dtype(number).itemsize
    memory = np.empty(rows * lanes + _CACHE_LINE // size, dtype=number)
    first = -memory.ctypes.data % _CACHE_LINE // size
    block = memory[first : first + rows * lanes].reshape(rows, lanes)
    block[:] = 0
    return block


def _make_layout(graph: Graph) -> Layout:
    if graph.directed:
        raise InputError("walks are for undirected graphs: read this one with directed=True")
    degrees, n = graph.degrees, graph.n_nodes
    indptr, indices = graph.indptr, graph.indices
    node_at = row_of = np.arange(n)
    if len(indices) <= _LARGEST_COPY:
        node_at = np.argsort(-degrees, kind="stable")
        row_of = np.empty(n, dtype=np.int64)
        row_of[node_at] = np.arange(n)
        new_indptr = np.zeros(n + 1, dtype=indptr.dtype)
        np.cumsum(degrees[node_at], out=new_indptr[1:])
        new_indices = np.empty(len(indices), dtype=np.uint16 if n <= 1 << 16 else indices.dtype)
        reorder(indptr, indices, node_at, row_of, new_indptr, new_indices)
        indptr, indices = new_indptr, new_indices
    degree = degrees[node_at].astype(np.float64)
    # 1 / d, and 0 where d = 0: never infinity, never NaN
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    layout = Layout(
        indptr=indptr,
        indices=indices,
        degree=degree,
        inverse_degree=inverse,
        node_at=node_at,
        row_of=row_of,
    )
    for array in vars(layout).values():
        array.setflags(write=False)
    return layout
