"""Two columns of ids -> their indices in a node set, without a loop over the edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._csr import MOST_NODES
from edgeveil.errors import InputError
from edgeveil.graph import Graph, index_type
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    from edgeveil.io.text import Layout

Array = npt.NDArray[Any]

# A table over the whole range of integers beats other ways to number them while it is at most
# this many times as long as the input; the constant keeps small inputs on the fast way.
_TABLE_FACTOR, _TABLE_FREE = 2, 1 << 20
_LARGE = 1 << 20  # ids; below, loading a compiled loop takes longer than it saves
_BLOCK = 1 << 20  # ids that are compared at a time


class RowError(Exception):
    """Something is wrong with row `row` (from 0); the caller knows what a row is called."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


class Indexed(NamedTuple):
    """Two columns as their distinct values and the index of each row among these."""

    ids: pl.Series
    first: Array
    second: Array


@dataclass(frozen=True)
class Piece:
    """Edges that were read together: a whole file, or as much of it as is held at a time."""

    edges: Indexed | tuple[pl.Series, pl.Series]  # two columns of integers, or two of strings
    weighted: int  # how many weights other than 1 there were
    explain: Callable[[RowError], InputError]  # says where in the file the row is
    layout: Layout | None = None  # of text

    def index(self) -> Indexed:
        """The edges, indexed by their distinct ids."""
        return self.edges if isinstance(self.edges, Indexed) else index_columns(*self.edges)

    def places(self, nodes: NodeSet, listed: pl.Series) -> tuple[Array, Array]:
        """The edges as indices in a node list, whose ids are `listed`; InputError for others."""
        import polars as pl

        text = nodes.kind == "str"
        if len(self.edges[0]) and (self.edges[0].dtype == pl.String) != text:
            mine, other = ("integers", "text") if text else ("text", "integers")
            reason = f"the ids of the edges are {mine}, those of the node list {other}"
            raise self.explain(RowError(reason, 0))
        if nodes.kind == "range":  # needs no table
            u, v = (np.asarray(column) for column in self.edges)
            outside = (np.minimum(u, v) < 0) | (np.maximum(u, v) >= len(nodes))
        else:
            ids, u, v = self.index()
            place = places_among(listed, ids)
            u, v = place[u], place[v]
            outside = (u < 0) | (v < 0)
        if outside.any():
            many = int(outside.sum())
            reason = f"an edge names a node that is not in the node list ({many} edges do)"
            raise self.explain(RowError(reason, int(outside.argmax())))
        return u, v


def graph_of(piece: Piece, nodes: NodeSet | None, *, directed: bool) -> Graph:
    """Build the graph of edges; without `nodes` the ids that occur, sorted, are the node set."""
    found = nodes is None
    if nodes is None:
        ids, u, v = in_order(piece.index())
        nodes = sorted_nodes(ids)
    else:
        u, v = piece.places(nodes, column_of(nodes))
    return Graph.from_edges(
        u, v, nodes, weighted=piece.weighted, nodes_from_edges=found, directed=directed
    )


def column_of(nodes: NodeSet) -> pl.Series:
    """The ids of a node list, for `Piece.places`."""
    import polars as pl

    if nodes.kind == "str":
        return pl.Series("id", nodes.ids.tolist(), dtype=pl.String)
    return pl.Series("id", nodes.ids if nodes.kind == "int" else [], dtype=pl.Int64)


def sorted_nodes(ids: pl.Series) -> NodeSet:
    """Make a node set of sorted, distinct ids through arrays, without a loop over them."""
    import polars as pl

    if len(ids) == 0:
        return NodeSet.range(0)
    if ids.dtype != pl.String:
        if ids[0] == 0 and ids[-1] == len(ids) - 1:
            return NodeSet.range(len(ids))
        return NodeSet("int", {"ids": ids.to_numpy()}, in_order=True)
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(ids.str.len_bytes().to_numpy(), out=offsets[1:])
    # by blocks: the longest text of polars is 4 GB
    joined = (ids.slice(at, _BLOCK).str.join().item() for at in range(0, len(ids), _BLOCK))
    text = np.frombuffer("".join(joined).encode(), np.uint8)
    return NodeSet("str", {"text": text, "offsets": offsets}, in_order=True)


def places_among(known: pl.Series, ids: pl.Series) -> Array:
    """Give the index of every id among distinct known ones, -1 where there is none."""
    every, of_known, of_ids = index_columns(known, ids)
    place = np.full(len(every), -1, dtype=np.int64)
    place[of_known] = np.arange(len(known))
    return place[of_ids]


def index_columns(first: pl.Series, second: pl.Series) -> Indexed:
    """Index two columns, both of integers or both of strings, by their distinct values."""
    import polars as pl

    if first.dtype != pl.String and (near := _index_near(first.to_numpy(), second.to_numpy())):
        return near
    both = pl.concat([first.alias("id"), second.alias("id")])
    index, rows = _number(_keys(both))
    ids = both[rows]
    for start in range(0, len(index), _BLOCK):
        # ids were told apart by their hashes: two with one hash must not become one node
        if not ids[index[start : start + _BLOCK]].equals(both.slice(start, _BLOCK)):
            ids = both.unique().sort()
            index = both.rank("dense").fill_null(0).to_numpy() - (not both.has_nulls())
            break
    return Indexed(ids, index[: len(first)], index[len(first) :])


def in_order(found: Indexed) -> Indexed:
    """Sort the distinct values, strings by their bytes: the order of code points."""
    if found.ids.is_sorted():
        return found
    ids = found.ids.sort()
    rank = places_among(ids, found.ids).astype(index_type(len(ids)))
    return Indexed(ids, rank[found.first], rank[found.second])


def _index_near(a: Array, b: Array) -> Indexed | None:
    """Index integers by a table over their whole range; None if that would be too long."""
    import polars as pl

    some = [ends for ends in (a, b) if len(ends)]
    if not some:
        return Indexed(pl.Series("id", [], dtype=pl.Int64), a, b)
    low, high = int(min(ends.min() for ends in some)), int(max(ends.max() for ends in some))
    if high - low >= _TABLE_FACTOR * (len(a) + len(b)) + _TABLE_FREE:
        return None
    if low:
        a, b = a - low, b - low
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[a] = True
    seen[b] = True
    ids = pl.Series("id", np.flatnonzero(seen) + low)
    if len(ids) < len(seen):
        rank = np.cumsum(seen, dtype=index_type(len(seen))) - 1
        a, b = rank[a], rank[b]
    return Indexed(ids, a, b)


def _keys(ids: pl.Series) -> npt.NDArray[np.uint64]:
    """Integers as they are, strings by their hashes, which are many times faster to tell apart."""
    return (ids if ids.dtype.is_integer() else ids.hash()).to_numpy().view(np.uint64)


def _number(keys: npt.NDArray[np.uint64]) -> tuple[Array, Array]:
    """Give the number of every key, the same for equal keys, and a row of each number.

    Different keys with one number are possible, if very rare: the caller looks.
    """
    if len(keys) < _LARGE:
        _, rows, codes = np.unique(keys, return_index=True, return_inverse=True)
        return codes, rows
    from edgeveil._csr_kernels import number_keys

    codes = np.empty(len(keys), dtype=index_type(len(keys)))
    factor = np.random.default_rng().integers(2**63, dtype=np.uint64) << 1 | 1
    bits = len(keys).bit_length() - 3  # in the hope that most keys occur several times
    while True:
        rows = np.empty(1 << (bits - 1), dtype=np.int64)
        table = np.zeros(1 << bits, dtype=np.uint64)
        count = number_keys(keys, factor, bits, table, codes, rows)
        if count >= 0:
            return codes, rows[:count]
        if len(rows) > MOST_NODES:
            raise InputError(f"a graph has at most {MOST_NODES:,} nodes, there are more ids")
        bits = min(bits + 2, 32)  # a number and half a key share 64 bits
