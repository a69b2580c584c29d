"""Two columns of ids -> two arrays of indices on a node set, without a loop over the edges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph
from edgeveil.io.factors import (
    Factors,
    factorise,
    index_type_for,
    node_set_of_text,
    string_indices,
    strings_of,
)
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "INTEGER",
    "RowError",
    "graph_of_codes",
    "graph_of_columns",
    "graph_of_integers",
    "graph_of_names",
    "is_integer",
    "join",
]

IntArray = npt.NDArray[np.int64]
Part = tuple[npt.NDArray[Any], npt.NDArray[Any]]

# ASCII digits only: other scripts' digits stay text
INTEGER = r"^[+-]?[0-9]+$"
_is_integer = re.compile(INTEGER).match

# A table over the whole range of ids beats sorting them while it is at most this many times
# as long as the input; the constant keeps small inputs with gappy ids on the fast way.
_TABLE_FACTOR = 4
_TABLE_FREE = 1 << 20

# From so many rows on compiled loops pay
_LARGE = 1 << 20


class RowError(Exception):
    """Something is wrong with row `row` (from 0); the caller knows what a row is called."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def is_integer(text: str) -> bool:
    """Tell whether the text is an integer in ASCII digits."""
    return _is_integer(text) is not None and not text.endswith("\n")


def graph_of_columns(
    first: pl.Series, second: pl.Series, nodes: NodeSet | None, *, weighted: int
) -> Graph:
    """Build the graph whose edges are the rows of two id columns.

    Parameters
    ----------
    first, second : polars.Series
        Both Int64 or both String, without missing values.
    nodes : NodeSet or None
        The public node set; None takes the ids that occur, sorted.
    weighted : int
        How many rows had a weight other than 1.

    Raises
    ------
    RowError
        If a row names a node that is not in `nodes`.
    """
    import polars as pl

    if first.dtype == pl.String:
        _refuse_other_kind("text", nodes)  # before the work
        return graph_of_names(factorise(first, second), nodes, weighted=weighted)
    if first.chunk_lengths() != second.chunk_lengths():
        first, second = first.rechunk(), second.rechunk()
    chunks = zip(first.get_chunks(), second.get_chunks(), strict=True)
    parts = [(a.to_numpy(), b.to_numpy()) for a, b in chunks]
    return graph_of_integers(parts, nodes, weighted=weighted)


def graph_of_integers(
    parts: list[Part],
    nodes: NodeSet | None,
    *,
    weighted: int,
    span: tuple[int, int] | None = None,
) -> Graph:
    """Build the graph whose edges are the rows of two columns of integers, of one kind.

    Parameters
    ----------
    parts : list of pairs of arrays
        The columns, in parts. The list is used up, so that its arrays can be freed.
    nodes, weighted
        As in `graph_of_columns`.
    span : pair of int, optional
        The lowest and the highest integer, where they are known.
    """
    _refuse_other_kind("integers", nodes)
    parts[:] = [(_read_only(a), _read_only(b)) for a, b in parts if len(a)]
    entries = sum(len(a) for a, _ in parts)
    if nodes is not None:
        indices = _int_indices([column for part in parts for column in part], nodes)
        parts.clear()
        return _graph_of_indices(_pairs(indices), nodes, weighted=weighted, found=False)
    if entries == 0:
        return _graph_of_indices(parts, NodeSet.range(0), weighted=weighted, found=True)
    low, high = span or _span(parts)
    # A row for every integer in between, while that is less than the entries take
    if entries < _LARGE or high - low >= entries:
        nodes, parts = _number(parts, low, high)
        return _graph_of_indices(parts, nodes, weighted=weighted, found=True)
    from edgeveil._csr_kernels import rows_of_parts

    seen = np.zeros(high - low + 1, dtype=np.bool_)
    rows = rows_of_parts(parts, len(seen), low=low, seen=seen)
    if rows is None:
        raise AssertionError("an integer is not between the lowest and the highest")
    nodes = _node_set_of(np.flatnonzero(seen) + low)
    return Graph.from_rows(rows, nodes, entries=entries, weighted=weighted, nodes_from_edges=True)


def graph_of_codes(parts: list[Part], nodes: NodeSet, *, weighted: int) -> Graph:
    """Build the graph whose edges are pairs of indices into nodes that came from the edges."""
    return _graph_of_indices(parts, nodes, weighted=weighted, found=True)


def graph_of_names(factors: Factors, nodes: NodeSet | None, *, weighted: int) -> Graph:
    """Build the graph whose edges are the rows of two factorised columns of names."""
    _refuse_other_kind("text", nodes)
    found = nodes is None
    u, v = factors.first, factors.second
    if nodes is None:
        nodes = node_set_of_text(factors.names)
    else:
        place = string_indices(factors.names, strings_of(nodes))
        u, v = place[u], place[v]
    return _graph_of_indices([(u, v)], nodes, weighted=weighted, found=found)


def _graph_of_indices(parts: list[Part], nodes: NodeSet, *, weighted: int, found: bool) -> Graph:
    """Build the graph with these edges; an index of -1 stands for a node outside of the list."""
    entries = sum(len(u) for u, _ in parts)
    if not found:
        _refuse_strangers(parts)
    if entries < _LARGE:
        u, v = join(parts)
        return Graph.from_edges(u, v, nodes, weighted=weighted, nodes_from_edges=found)
    from edgeveil._csr_kernels import rows_of_parts

    parts[:] = [(_read_only(u), _read_only(v)) for u, v in parts]
    rows = rows_of_parts(parts, len(nodes))
    if rows is None:
        raise AssertionError("an index is outside of the nodes")
    return Graph.from_rows(rows, nodes, entries=entries, weighted=weighted, nodes_from_edges=found)


def _refuse_other_kind(kind: str, nodes: NodeSet | None) -> None:
    if nodes is not None and (kind == "text") != (nodes.kind == "str"):
        other = "integers" if kind == "text" else "text"
        raise RowError(f"the ids of the edges are {kind}, those of the node list {other}", 0)


def _refuse_strangers(parts: list[Part]) -> None:
    if all(len(u) == 0 or (u.min() >= 0 and v.min() >= 0) for u, v in parts):
        return
    u, v = join(parts)
    outside = (u < 0) | (v < 0)
    raise RowError(
        f"an edge names a node that is not in the node list ({int(outside.sum())} edges do)",
        int(outside.argmax()),
    )


def join(parts: list[Part]) -> Part:
    """Give two columns in one part."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    first, second = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return first, second


def _pairs(columns: list[npt.NDArray[Any]]) -> list[Part]:
    return list(zip(columns[::2], columns[1::2], strict=True))


def _read_only(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give one kind of array: for each kind the loops would be compiled anew."""
    column = np.ascontiguousarray(column).view()
    column.flags.writeable = False
    return column


# -- integers -----------------------------------------------------------------------------


def _table_is_cheap(low: int, high: int, entries: int) -> bool:
    return high - low < _TABLE_FACTOR * entries + _TABLE_FREE


def _span(parts: list[Part]) -> tuple[int, int]:
    """Give the lowest and the highest integer."""
    columns = [column for part in parts for column in part]
    return min(int(c.min()) for c in columns), max(int(c.max()) for c in columns)


def _node_set_of(ids: IntArray) -> NodeSet:
    """Make a node set of sorted, distinct integers."""
    if ids[0] == 0 and ids[-1] == len(ids) - 1:
        return NodeSet.range(len(ids))
    return NodeSet.from_arrays("int", {"ids": ids})


def _number(parts: list[Part], low: int, high: int) -> tuple[NodeSet, list[Part]]:
    """Give the ids that occur, sorted, and the index of each."""
    columns = [column for part in parts for column in part]
    entries = sum(map(len, columns)) // 2
    if not _table_is_cheap(low, high, entries):
        if entries >= _LARGE:
            return _number_by_hash(columns)
        ids = np.unique(np.concatenate(columns)).astype(np.int64, copy=False)
    else:
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        for column in columns:
            if entries >= _LARGE:
                from edgeveil.io._index_kernels import mark_seen

                mark_seen(column, low, seen)
            else:
                seen[column.astype(np.int64, copy=False) - low] = True
        ids = np.flatnonzero(seen) + low
    nodes = _node_set_of(ids)
    return nodes, parts if nodes.kind == "range" else _pairs(_int_indices(columns, nodes))


def _number_by_hash(columns: list[npt.NDArray[Any]]) -> tuple[NodeSet, list[Part]]:
    from edgeveil.io._index_kernels import hash_table, list_integers, number_integers

    seed, table = hash_table()
    index_type = index_type_for(sum(map(len, columns)))
    codes: list[npt.NDArray[Any]] = []
    count = 0
    for column in columns:
        codes.append(np.empty(len(column), dtype=index_type))
        count, table = number_integers(column, seed, table, count, codes[-1])
    ids = np.empty(count, dtype=np.int64)
    list_integers(table, ids)
    del table
    order = np.argsort(ids)
    rank = np.empty(count, dtype=index_type_for(count))
    rank[order] = np.arange(count, dtype=rank.dtype)
    nodes = NodeSet.from_arrays("int", {"ids": ids[order]})
    return nodes, _pairs([rank[column] for column in codes])


def _int_indices(columns: list[npt.NDArray[Any]], nodes: NodeSet) -> list[npt.NDArray[Any]]:
    """Give the index of every id in `nodes`, -1 where there is none."""
    n, entries = len(nodes), sum(map(len, columns))
    index_type = index_type_for(n)
    if n == 0:
        return [np.full(len(ids), -1, dtype=index_type) for ids in columns]
    if nodes.kind == "range":
        return [
            ids if ids.min() >= 0 and ids.max() < n else np.where((ids >= 0) & (ids < n), ids, -1)
            for ids in columns
        ]
    known = nodes.arrays["ids"]
    low, high = int(known.min()), int(known.max())
    cheap = _table_is_cheap(low, high, max(entries // 2, n))
    if cheap:
        table = np.full(high - low + 1, -1, dtype=index_type)
        table[known - low] = np.arange(n, dtype=index_type)
    if entries >= 2 * _LARGE:
        from edgeveil.io._index_kernels import (
            find_integers,
            hash_table,
            look_up,
            number_integers,
        )

        found = [np.empty(len(ids), dtype=index_type) for ids in columns]
        if not cheap:
            seed, empty = hash_table()
            _, full = number_integers(known, seed, empty, 0, np.empty(n, dtype=index_type))
        for ids, own in zip(columns, found, strict=True):
            if cheap:
                look_up(ids, low, high, table, own)
            else:
                find_integers(ids, seed, full, own)
        return found
    if cheap:
        return [_in_table(ids.astype(np.int64, copy=False), low, high, table) for ids in columns]
    order = np.argsort(known, kind="stable")
    return [_by_search(ids, known, order).astype(index_type, copy=False) for ids in columns]


def _in_table(ids: IntArray, low: int, high: int, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    inside = (ids >= low) & (ids <= high)
    found: npt.NDArray[Any] = table[np.where(inside, ids, low) - low]
    found[~inside] = -1
    return found


def _by_search(ids: npt.NDArray[Any], known: IntArray, order: IntArray) -> npt.NDArray[Any]:
    place = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
    index = order[place]
    return np.where(known[index] == ids, index, -1)
