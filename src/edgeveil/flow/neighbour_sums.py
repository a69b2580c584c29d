"""Sums of the neighbours' messages: the statistic of classification and of private features.

The message of a node is a few whole numbers, each for a column. A *listener* gets, for every
column, the sum over its neighbours. There are no rows of nodes that do not listen: the
sensitivity of docs/theory/classification.md does not hold with them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.compiled import compiled
from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph

Sums = npt.NDArray[np.float64]

_PART = 1 << 14  # listeners that a thread takes at once


def neighbour_sums(
    graph: Graph,
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    units: npt.NDArray[np.int64],
    width: int,
    listens: npt.NDArray[np.bool_],
    *,
    threads: int | None = None,
) -> Sums:
    """What every listener hears from its neighbours in one round.

    Parameters
    ----------
    graph : Graph
        The private graph.
    starts : array of shape (n + 1,)
        Node v says ``units[j]`` in column ``columns[j]`` for j in ``starts[v] : starts[v + 1]``;
        nothing if that is empty.
    columns, units : arrays of int
        What is said. Units may be negative.
    width : int
        Number of columns.
    listens : array of bool of shape (n,)
        Who listens (public). Nobody else has a row.
    threads : int, optional
        By default as many as there are processors. The sums are the same for any number.

    Returns
    -------
    array of float64 of shape (listeners, width or 2 width)
        Whole numbers, freshly made: one row per listener, in the order of the nodes. Directed:
        columns for those whom a listener follows, then for its followers.
    """
    listens = np.asarray(listens)
    if listens.dtype != np.bool_ or listens.shape != (graph.n_nodes,):
        raise ParameterError("listens must be True or False for every node")
    directions = _directions(graph)
    listeners = np.flatnonzero(listens)
    out = np.zeros((len(listeners), width * len(directions)))
    messages = (
        np.ascontiguousarray(starts, dtype=np.int64),
        np.ascontiguousarray(columns, dtype=np.int64),
        np.ascontiguousarray(units, dtype=np.int64),
    )
    _check_messages(*messages, width, graph.n_nodes)
    parts = [slice(first, first + _PART) for first in range(0, len(listeners), _PART)]
    workers = max(1, min(len(parts), threads or os.cpu_count() or 1))
    with ThreadPoolExecutor(workers, thread_name_prefix="edgeveil") as pool:
        for number, (indptr, indices) in enumerate(directions):
            of_direction = out[:, number * width : (number + 1) * width]

            def add(
                part: slice, indptr: Any = indptr, indices: Any = indices, to: Any = of_direction
            ) -> None:
                _add_heard(indptr, indices, listeners[part], *messages, to[part])

            list(pool.map(add, parts))
    return out


def neighbour_sums_by_matrix(
    graph: Graph,
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    units: npt.NDArray[np.int64],
    width: int,
    listens: npt.NDArray[np.bool_],
) -> Sums:
    """The same as a product of sparse matrices: what `neighbour_sums` is tested against."""
    import scipy.sparse as sp

    messages = sp.csr_array((units.astype(float), columns, starts), shape=(graph.n_nodes, width))
    listeners = np.flatnonzero(listens)
    parts = []
    for indptr, indices in _directions(graph):
        shape = (graph.n_nodes, graph.n_nodes)
        adjacency = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
        parts.append((adjacency[listeners] @ messages).toarray())
    return np.hstack(parts)


def _directions(graph: Graph) -> list[tuple[Any, Any]]:
    """The lists of those whom a node hears, for each group of columns."""
    followed = (graph.indptr, graph.indices)
    return [followed, graph.transposed] if graph.directed else [followed]


def _check_messages(starts: Any, columns: Any, units: Any, width: int, n: int) -> None:
    """The compiled loop does not test indices."""
    fits = starts.shape == (n + 1,) and columns.shape == units.shape == (starts[-1],)
    if not fits or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise ParameterError("what the nodes say does not fit the number of nodes")
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise ParameterError(f"a node speaks of a column outside of the {width} given")


@compiled
def _add_heard(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    listeners: Any,  # IN  (m)
    starts: Any,  # IN  (n + 1)
    columns: Any,  # IN  (starts[-1])
    units: Any,  # IN  (starts[-1])
    out: Any,  # INOUT (m, width) rows of the listeners
) -> None:
    """Add what the neighbours of each listener say; sums of whole numbers, so exact."""
    for i in range(len(listeners)):
        u = listeners[i]
        for e in range(indptr[u], indptr[u + 1]):
            v = np.uint64(indices[e])
            for j in range(starts[v], starts[v + np.uint64(1)]):
                out[i, columns[j]] += units[j]
