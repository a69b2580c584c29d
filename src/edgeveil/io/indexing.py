"""Two columns of ids -> two arrays of indices on a node set, without a loop over the edges."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "INTEGER",
    "Factors",
    "RowError",
    "factorise",
    "graph_of_columns",
    "graph_of_integers",
    "graph_of_names",
    "is_integer",
]

IntArray = npt.NDArray[np.int64]

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
    return graph_of_integers(first.to_numpy(), second.to_numpy(), nodes, weighted=weighted)


def graph_of_integers(
    a: npt.NDArray[Any], b: npt.NDArray[Any], nodes: NodeSet | None, *, weighted: int
) -> Graph:
    """Build the graph whose edges are the rows of two columns of integers, of one kind."""
    _refuse_other_kind("integers", nodes)
    a, b = a.view(), b.view()
    a.flags.writeable = b.flags.writeable = False  # one kind of array, one compilation
    found = nodes is None
    if nodes is None:
        nodes, u, v = _number(a, b)
    else:
        u, v = _int_indices(a, nodes), _int_indices(b, nodes)
        _refuse_strangers(u, v)
    return Graph.from_edges(u, v, nodes, weighted=weighted, nodes_from_edges=found)


def graph_of_names(factors: Factors, nodes: NodeSet | None, *, weighted: int) -> Graph:
    """Build the graph whose edges are the rows of two factorised columns of names."""
    _refuse_other_kind("text", nodes)
    found = nodes is None
    u, v = factors.first, factors.second
    if nodes is None:
        nodes = _node_set_of_text(factors.names)
    else:
        place = _string_indices(factors.names, _strings(nodes))
        u, v = place[u], place[v]
        _refuse_strangers(u, v)
    return Graph.from_edges(u, v, nodes, weighted=weighted, nodes_from_edges=found)


def _refuse_other_kind(kind: str, nodes: NodeSet | None) -> None:
    if nodes is not None and (kind == "text") != (nodes.kind == "str"):
        other = "integers" if kind == "text" else "text"
        raise RowError(f"the ids of the edges are {kind}, those of the node list {other}", 0)


def _index_type(size: int) -> type[np.int32 | np.int64]:
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def _refuse_strangers(u: npt.NDArray[Any], v: npt.NDArray[Any]) -> None:
    if len(u) == 0 or (u.min() >= 0 and v.min() >= 0):
        return
    outside = (u < 0) | (v < 0)
    raise RowError(
        f"an edge names a node that is not in the node list ({int(outside.sum())} edges do)",
        int(outside.argmax()),
    )


# -- integers -----------------------------------------------------------------------------


def _table_is_cheap(low: int, high: int, entries: int) -> bool:
    return high - low < _TABLE_FACTOR * entries + _TABLE_FREE


def _number(
    a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> tuple[NodeSet, npt.NDArray[Any], npt.NDArray[Any]]:
    """Give the ids that occur, sorted, and the index of each."""
    if len(a) == 0:
        return NodeSet.range(0), a, b
    low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
    if not _table_is_cheap(low, high, len(a)):
        if len(a) >= _LARGE:
            return _number_by_hash(a, b)
        ids = np.union1d(a, b).astype(np.int64, copy=False)
    else:
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        for column in (a, b):
            if len(a) >= _LARGE:
                from edgeveil.io._index_kernels import mark_seen

                mark_seen(column, low, seen)
            else:
                seen[column.astype(np.int64, copy=False) - low] = True
        ids = np.flatnonzero(seen) + low
    if ids[0] == 0 and ids[-1] == len(ids) - 1:
        return NodeSet.range(len(ids)), a, b
    # sorted and distinct by construction
    nodes = NodeSet.from_arrays("int", {"ids": ids})
    return nodes, _int_indices(a, nodes), _int_indices(b, nodes)


def _number_by_hash(
    a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> tuple[NodeSet, npt.NDArray[Any], npt.NDArray[Any]]:
    from edgeveil.io._index_kernels import list_integers, number_integers

    seed, table = _hash_table()
    codes = [np.empty(len(a), dtype=_index_type(2 * len(a))) for _ in range(2)]
    count, table = number_integers(a, seed, table, 0, codes[0])
    count, table = number_integers(b, seed, table, count, codes[1])
    ids = np.empty(count, dtype=np.int64)
    list_integers(table, ids)
    del table
    order = np.argsort(ids)
    rank = np.empty(count, dtype=_index_type(count))
    rank[order] = np.arange(count, dtype=rank.dtype)
    return NodeSet.from_arrays("int", {"ids": ids[order]}), rank[codes[0]], rank[codes[1]]


def _hash_table() -> tuple[np.uint64, IntArray]:
    """Give an odd random word and an empty table."""
    seed = np.frombuffer(os.urandom(8), dtype=np.uint64)[0] | np.uint64(1)
    return seed, np.zeros((1 << 10, 2), dtype=np.int64)


def _int_indices(ids: npt.NDArray[Any], nodes: NodeSet) -> npt.NDArray[Any]:
    """Give the index of every id in `nodes`, -1 where there is none."""
    n = len(nodes)
    index_type = _index_type(n)
    if n == 0 or len(ids) == 0:
        return np.full(len(ids), -1, dtype=index_type)
    if nodes.kind == "range":
        if ids.min() >= 0 and ids.max() < n:
            return ids
        return np.where((ids >= 0) & (ids < n), ids, -1)
    known = nodes.arrays["ids"]
    low, high = int(known.min()), int(known.max())
    cheap = _table_is_cheap(low, high, max(len(ids), n))
    if cheap:
        table = np.full(high - low + 1, -1, dtype=index_type)
        table[known - low] = np.arange(n, dtype=index_type)
    if len(ids) >= _LARGE:
        from edgeveil.io._index_kernels import find_integers, look_up, number_integers

        found: npt.NDArray[Any] = np.empty(len(ids), dtype=index_type)
        if cheap:
            look_up(ids, low, high, table, found)
        else:
            seed, empty = _hash_table()
            _, full = number_integers(known, seed, empty, 0, np.empty(n, dtype=index_type))
            find_integers(ids, seed, full, found)
        return found
    ids = ids.astype(np.int64, copy=False)
    if cheap:
        inside = (ids >= low) & (ids <= high)
        found = table[np.where(inside, ids, low) - low]
        found[~inside] = -1
        return found
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, ids, sorter=order), n - 1)
    index = order[place]
    return np.where(known[index] == ids, index, -1).astype(index_type, copy=False)


# -- strings ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """Two columns of strings as their sorted distinct values and the index of each row."""

    names: pl.Series
    first: npt.NDArray[Any]
    second: npt.NDArray[Any]

    @classmethod
    def of_nothing(cls) -> Factors:
        """Two columns without rows."""
        import polars as pl

        none = np.empty(0, dtype=np.int32)
        return cls(pl.Series("id", [], dtype=pl.String), none, none)


def factorise(first: pl.Series, second: pl.Series) -> Factors:
    """Factorise two columns of strings together.

    By hashes, which is several times faster than by the strings themselves; the names are
    compared in the end, so that two names with one hash are never taken for one node.
    """
    import polars as pl

    both = pl.concat([first.alias("id"), second.alias("id")])
    codes, count = _number_hashes(_hashes(both))
    chosen = np.empty(count, dtype=codes.dtype)
    chosen[codes] = np.arange(len(codes), dtype=codes.dtype)  # any one row of each hash
    names = both.gather(chosen)
    order = names.arg_sort().to_numpy()  # by UTF-8 bytes: the order of code points
    names = names.gather(order)
    rank = np.empty(count, dtype=codes.dtype)
    rank[order] = np.arange(count, dtype=codes.dtype)
    index: npt.NDArray[Any] = rank[codes]
    del codes
    if not names.gather(index).eq_missing(both).all():
        names = both.unique().sort()
        index = _string_indices(both, names)
    return Factors(names, index[: len(first)], index[len(first) :])


def _hashes(column: pl.Series) -> npt.NDArray[np.uint64]:
    return column.hash().to_numpy()


def _number_hashes(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], int]:
    """Give every hash a number from 0 on, and how many there are."""
    if len(hashes) < _LARGE:
        distinct, codes = np.unique(hashes, return_inverse=True)
        return codes, len(distinct)
    from edgeveil.io._index_kernels import number_integers

    codes = np.empty(len(hashes), dtype=_index_type(len(hashes)))
    count, _ = number_integers(hashes.view(np.int64), *_hash_table(), 0, codes)
    return codes, count


def _node_set_of_text(names: pl.Series) -> NodeSet:
    """Make a node set of distinct strings through two arrays, without a loop over them."""
    if len(names) == 0:
        return NodeSet.range(0)
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(names.str.len_bytes().to_numpy(), out=offsets[1:])
    step = 1 << 20  # one polars string holds at most 4 GB
    text = b"".join(
        names.slice(start, step).str.join("").item().encode()
        for start in range(0, len(names), step)
    )
    arrays: dict[str, npt.NDArray[Any]] = {
        "text": np.frombuffer(text, dtype=np.uint8),
        "offsets": offsets,
    }
    return NodeSet.from_arrays("str", arrays)


def _strings(nodes: NodeSet) -> pl.Series:
    import polars as pl

    text, offsets = nodes.arrays["text"].tobytes(), nodes.arrays["offsets"].tolist()
    decoded = [text[i:j].decode() for i, j in pairwise(offsets)]
    return pl.Series("id", decoded, dtype=pl.String)


def _string_indices(column: pl.Series, names: pl.Series) -> npt.NDArray[Any]:
    """Give the index of every string in `names`, -1 where there is none."""
    import polars as pl

    known = names.alias("id").to_frame().with_row_index("index").lazy()
    found = (
        column.alias("id")
        .to_frame()
        .lazy()
        .join(known, on="id", how="left", maintain_order="left", nulls_equal=True)
        .select(pl.col("index").cast(pl.Int64).fill_null(-1))
        .collect()
    )
    return found["index"].to_numpy().astype(_index_type(len(names)), copy=False)
