"""Two columns of ids -> two arrays of indices on a node set, without a loop over the edges."""

from __future__ import annotations

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

__all__ = ["INTEGER", "Factors", "RowError", "factorise", "graph_of_columns", "is_integer"]

IntArray = npt.NDArray[np.int64]

# ASCII digits only: other scripts' digits stay text
INTEGER = r"^[+-]?[0-9]+$"
_is_integer = re.compile(INTEGER).match

# A table over the whole range of ids beats sorting them while it is at most this many times
# as long as the input; the constant keeps small inputs with gappy ids on the fast way.
_TABLE_FACTOR = 4
_TABLE_FREE = 1 << 20


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
    first: pl.Series,
    second: pl.Series,
    nodes: NodeSet | None,
    *,
    weighted: int,
    factors: Factors | None = None,
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
    factors : Factors, optional
        Both columns factorised, where that is done already.

    Raises
    ------
    RowError
        If a row names a node that is not in `nodes`.
    """
    import polars as pl

    if nodes is not None and (first.dtype == pl.String) != (nodes.kind == "str"):
        kinds = ("text", "integers") if first.dtype == pl.String else ("integers", "text")
        raise RowError(f"the ids of the edges are {kinds[0]}, those of the node list {kinds[1]}", 0)
    found = nodes is None
    if first.dtype == pl.String:
        factors = factors or factorise(first, second)
        u, v = factors.first, factors.second
        if nodes is None:
            nodes = _node_set_of_text(factors.names)
        else:
            place = _string_indices(factors.names, _strings(nodes))
            u, v = place[u], place[v]
    else:
        a, b = first.to_numpy(), second.to_numpy()
        nodes = _distinct_ints(a, b) if nodes is None else nodes
        u, v = _int_indices(a, nodes), _int_indices(b, nodes)
    _refuse_strangers(u, v)
    return Graph.from_edges(u, v, nodes, weighted=weighted, nodes_from_edges=found)


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


def _distinct_ints(a: IntArray, b: IntArray) -> NodeSet:
    if len(a) == 0:
        return NodeSet.range(0)
    low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
    if _table_is_cheap(low, high, len(a)):
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        seen[a - low] = True
        seen[b - low] = True
        ids = np.flatnonzero(seen) + low
    else:
        ids = np.union1d(a, b)
    n = len(ids)
    if ids[0] == 0 and ids[-1] == n - 1:
        return NodeSet.range(n)
    return NodeSet.from_arrays("int", {"ids": ids})  # sorted and distinct by construction


def _int_indices(ids: IntArray, nodes: NodeSet) -> npt.NDArray[Any]:
    """Give the index of every id in `nodes`, -1 where there is none."""
    n = len(nodes)
    index_type = _index_type(n)
    if n == 0 or len(ids) == 0:
        return np.full(len(ids), -1, dtype=index_type)
    if nodes.kind == "range":
        return np.where((ids >= 0) & (ids < n), ids, -1).astype(index_type, copy=False)
    known = nodes.arrays["ids"]
    low, high = int(known.min()), int(known.max())
    if _table_is_cheap(low, high, max(len(ids), n)):
        table = np.full(high - low + 1, -1, dtype=index_type)
        table[known - low] = np.arange(n, dtype=index_type)
        if low <= ids.min() and ids.max() <= high:
            return table[ids - low]
        inside = (ids >= low) & (ids <= high)
        found: npt.NDArray[Any] = table[np.where(inside, ids, low) - low]
        found[~inside] = -1
        return found
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, ids, sorter=order), n - 1)
    index = order[place]
    found = np.where(known[index] == ids, index, -1)
    return found.astype(index_type, copy=False)


# -- strings ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factors:
    """Two columns of strings as their sorted distinct values and the index of each row."""

    names: pl.Series
    first: npt.NDArray[Any]
    second: npt.NDArray[Any]


def factorise(first: pl.Series, second: pl.Series) -> Factors:
    """Factorise two columns of strings together.

    By hashes, which is several times faster than by the strings themselves; the names are
    compared in the end, so that two names with one hash are never taken for one node.
    """
    import polars as pl

    both = pl.concat([first.alias("id"), second.alias("id")])
    like = _first_alike(_hashes(both))
    chosen = np.flatnonzero(like == np.arange(len(like)))
    names = both.gather(chosen)
    order = names.arg_sort().to_numpy()  # by UTF-8 bytes: the order of code points
    names = names.gather(order)
    code = np.empty(len(both), dtype=like.dtype)
    code[chosen[order]] = np.arange(len(chosen))
    index: npt.NDArray[Any] = code[like]
    del code, like
    if not names.gather(index).eq_missing(both).all():
        names = both.unique().sort()
        index = _string_indices(both, names)
    return Factors(names, index[: len(first)], index[len(first) :])


def _hashes(column: pl.Series) -> npt.NDArray[np.uint64]:
    return column.hash().to_numpy()


def _first_alike(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Give for every row one row that has the same hash, the same one for all of them.

    All rows write their number into a table at a slot that their hash chooses; one wins.
    Rows with the winner's hash are done, the others try again with other slots.
    """
    count = len(hashes)
    like = np.empty(count, dtype=_index_type(count))
    rows = np.arange(count, dtype=like.dtype)
    bits = max(8, count.bit_length() - 1)
    table = np.empty(1 << bits, dtype=like.dtype)
    factor = 0x9E3779B97F4A7C15  # odd: a round's slots are the top bits of hash * factor
    while len(rows):
        own = hashes if len(rows) == count else hashes[rows]
        slots = (own * np.uint64(factor)) >> np.uint64(64 - bits)
        table[slots] = rows
        winner = table[slots]
        done = hashes[winner] == own
        like[rows[done]] = winner[done]
        rows = rows[~done]
        factor = factor * 0xD1342543DE82EF95 % (1 << 64)
    return like


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
