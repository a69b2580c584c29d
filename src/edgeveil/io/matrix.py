"""Adjacency matrices, scipy.sparse or dense, and edge_index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph
from edgeveil.nodes import NodeSet


def row_nodes(n: int, nodes: NodeSet | None, what: str) -> NodeSet:
    """Give the node set of something whose nodes are numbered 0 .. n-1."""
    if nodes is None:
        return NodeSet.range(n)
    if len(nodes) != n:
        raise InputError(f"{what} has {n} nodes, the node list {len(nodes)}")
    return nodes


def read_matrix(
    matrix: Any, *, nodes: NodeSet | None, directed: Directed, what: str = "the matrix"
) -> Graph:
    """Read a scipy.sparse or dense adjacency matrix; every entry that is not 0 is an edge."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(str(size) for size in matrix.shape)
        raise InputError(f"{what} is {shape}, an adjacency matrix is square")
    refuse_broken(matrix, what)
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{what} holds {matrix.dtype}, an adjacency matrix holds real numbers")
    try:
        u, v, values = _entries(matrix)
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise InputError(f"{what} holds NaN: it is not known whether there is an edge")
        return Graph.from_edges(
            *(u, v, row_nodes(matrix.shape[0], nodes, what)),
            weighted=int((values != 1).sum()),
            must_be_symmetric=not directed,
            directed=directed == "keep",
        )
    except MemoryError as error:
        raise InputError(f"{what} has {matrix.shape[0]} nodes, too many for memory") from error


def refuse_broken(matrix: Any, what: str) -> None:
    """Refuse compressed matrices whose indices run out of them: scipy would crash on these."""
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
            # scipy looks no further if the last row starts at 0 or before
            if np.any(np.diff(matrix.indptr) < 0):
                raise ValueError("rows that end before they start")
        except ValueError as error:
            raise InputError(f"{what} is damaged: its indices do not fit its shape") from error


def _entries(matrix: Any) -> tuple[npt.NDArray[Any], ...]:
    """Rows, columns and values of the entries that are not 0."""
    if isinstance(matrix, np.ndarray):
        u, v = np.nonzero(matrix)
        return u, v, matrix[u, v]
    # Entries stored more than once add up in every scipy format, so they may cancel out;
    # a copy, since sum_duplicates changes the caller's matrix in place
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    entries = rows.tocoo()
    kept = entries.data != 0
    return entries.row[kept], entries.col[kept], entries.data[kept]


def read_array(array: npt.NDArray[Any], *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a dense square matrix, or an edge_index: 2 x m integers, one arc per column."""
    if np.ma.is_masked(array):
        raise InputError("the array is masked: it is not known whether there is an edge")
    array = np.asarray(array)
    integers = array.dtype.kind in "iu"
    if integers and array.shape == (2, 2):
        raise InputError(
            "a 2 x 2 integer array may be a matrix or an edge_index; "
            "pass scipy.sparse.csr_array(matrix), or a table with two columns"
        )
    if not (integers and array.ndim == 2 and array.shape[0] == 2):
        return read_matrix(array, nodes=nodes, directed=directed, what="the array")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError("an index in edge_index does not fit into 64 bits")
    found = nodes is None
    if nodes is None:
        nodes = NodeSet.range(int(array.max()) + 1 if array.size else 0)
    array = array.astype(np.int64, copy=False)
    return Graph.from_edges(
        array[0],
        array[1],
        nodes,
        must_be_symmetric=not directed,
        nodes_from_edges=found,
        directed=directed == "keep",
    )
