"""Two columns of ids -> their indices in a node set, without a loop over the edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Graph, index_type
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    from edgeveil.io.layout import Layout

Array = npt.NDArray[Any]

# ASCII digits only: other scripts' digits stay text
INTEGER = r"^[+-]?[0-9]+$"
_is_integer = re.compile(INTEGER).match

# A table over the whole range of integers beats other ways to number them while it is at most
# this many times as long as the input; the constant keeps small inputs on the fast way.
_TABLE_FACTOR = 4
_TABLE_FREE = 1 << 20
# From so many ids on a compiled loop pays; below, loading it takes longer than it saves.
_LARGE = 1 << 20


class RowError(Exception):
    """Something is wrong with row `row` (from 0); the caller knows what a row is called."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


class Indexed(NamedTuple):
    """Two columns as their sorted distinct values and the index of each row among these."""

    ids: pl.Series
    first: Array
    second: Array


def is_integer(text: str) -> bool:
    """Tell whether the text is an integer in ASCII digits."""
    return _is_integer(text) is not None and not text.endswith("\n")


Edges: TypeAlias = "Indexed | tuple[pl.Series, pl.Series]"
"""Names indexed already, or two columns, both of integers or both of strings."""


@dataclass(frozen=True)
class Piece:
    """Edges that were read together: a whole file, or as much of it as is held at a time."""

    edges: Edges
    weighted: int  # how many weights other than 1 there were
    explain: Callable[[RowError], InputError]  # says where in the file the row is
    layout: Layout | None = None  # of text

    def index(self) -> Indexed:
        """The edges, indexed by their distinct ids."""
        return self.edges if isinstance(self.edges, Indexed) else index_columns(*self.edges)

    def places(self, find: Callable[[Edges], tuple[Array, Array]]) -> tuple[Array, Array]:
        """The edges by a function of `places_in`; InputError if an id is not in the node list."""
        try:
            return find(self.edges)
        except RowError as error:
            raise self.explain(error) from error


def graph_of(piece: Piece, nodes: NodeSet | None, *, directed: bool) -> Graph:
    """Build the graph of edges; without `nodes` the ids that occur, sorted, are the node set."""
    found = nodes is None
    if nodes is None:
        ids, u, v = piece.index()
        nodes = sorted_nodes(ids)
    else:
        u, v = piece.places(places_in(nodes))
    return Graph.from_edges(
        u, v, nodes, weighted=piece.weighted, nodes_from_edges=found, directed=directed
    )


def index_columns(first: pl.Series, second: pl.Series) -> Indexed:
    """Index two columns, both of integers or both of strings, by their distinct values."""
    import polars as pl

    is_text = first.dtype == pl.String
    if not is_text and (near := _index_near(first.to_numpy(), second.to_numpy())):
        return near
    both = pl.concat([first.alias("id"), second.alias("id")])
    # Strings by their hashes, several times faster; compared in the end, so that two names with
    # one hash are never taken for one node.
    codes, rows = _number((_hashes(both) if is_text else both).to_numpy().view(np.uint64))
    ids = both.gather(rows)
    order = ids.arg_sort().to_numpy()  # strings by UTF-8 bytes: the order of code points
    ids = ids.gather(order)
    rank = np.empty(len(order), dtype=codes.dtype)
    rank[order] = np.arange(len(order))
    index = rank[codes]
    if is_text and not ids.gather(index).eq_missing(both).all():
        ids = both.unique().sort()
        index = _places(both, ids)
    return Indexed(ids, index[: len(first)], index[len(first) :])


def _index_near(a: Array, b: Array) -> Indexed | None:
    """Index integers by a table over their whole range; None if that would be too long."""
    import polars as pl

    if len(a) == 0:
        return Indexed(pl.Series("id", [], dtype=pl.Int64), a, b)
    low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
    if high - low >= _TABLE_FACTOR * len(a) + _TABLE_FREE:
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


def _hashes(column: pl.Series) -> pl.Series:
    return column.hash()


def _number(keys: npt.NDArray[np.uint64]) -> tuple[Array, Array]:
    """Give the number of every key, the same for equal keys only, and one row of each number."""
    if len(keys) < _LARGE:
        _, rows, codes = np.unique(keys, return_index=True, return_inverse=True)
        return codes, rows
    from edgeveil.io._kernels import number_keys

    codes = np.empty(len(keys), dtype=index_type(len(keys)))
    factor = np.random.default_rng().integers(2**63, dtype=np.uint64) << 1 | 1
    bits = len(keys).bit_length() - 3  # in the hope that most keys occur several times
    while True:
        rows = np.empty(1 << (bits - 1), dtype=np.int64)
        count = number_keys(keys, factor, bits, codes, rows)
        if count >= 0:
            return codes, rows[:count]
        bits += 2


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
    slices = (ids.slice(at, _LARGE).to_list() for at in range(0, len(ids), _LARGE))
    text = np.frombuffer(b"".join("".join(some).encode() for some in slices), np.uint8)
    return NodeSet("str", {"text": text, "offsets": offsets}, in_order=True)


def places_in(nodes: NodeSet | pl.Series) -> Callable[[Edges], tuple[Array, Array]]:
    """Give the function from edges to their indices in a node list, or among distinct ids.

    It raises a `RowError` for an edge that names another node.
    """
    import polars as pl

    if isinstance(nodes, pl.Series):
        known = nodes
    elif nodes.kind == "str":
        known = pl.Series("id", nodes.ids.tolist(), dtype=pl.String)
    else:  # a range needs no table
        known = pl.Series("id", nodes.ids if nodes.kind == "int" else [], dtype=pl.Int64)
    text, n = known.dtype == pl.String, len(nodes)
    ids = np.empty(0, dtype=np.int64) if text else known.to_numpy()
    order = None if np.all(ids[:-1] < ids[1:]) else np.argsort(ids)

    def places(wanted: pl.Series) -> Array:
        if len(wanted) and (wanted.dtype == pl.String) != text:
            mine, other = ("integers", "text") if text else ("text", "integers")
            raise RowError(f"the ids of the edges are {mine}, those of the node list {other}", 0)
        if text:
            return _places(wanted.cast(pl.String), known)
        numbers = wanted.to_numpy()
        if len(ids) < n:
            return np.where((numbers >= 0) & (numbers < n), numbers, -1)
        at = np.searchsorted(ids, numbers, sorter=order).clip(max=max(0, n - 1))
        place = at if order is None else order[at]
        return np.where(ids[place] == numbers, place, -1) if n else at - 1

    def find(edges: Edges) -> tuple[Array, Array]:
        if not isinstance(edges, Indexed) and len(known) < n:
            u, v = places(edges[0]), places(edges[1])
        else:
            distinct, u, v = edges if isinstance(edges, Indexed) else index_columns(*edges)
            place = places(distinct)
            u, v = place[u], place[v]
        outside = (u < 0) | (v < 0)
        if outside.any():
            many = int(outside.sum())
            reason = f"an edge names a node that is not in the node list ({many} edges do)"
            raise RowError(reason, int(outside.argmax()))
        return u, v

    return find


def _places(column: pl.Series, known: pl.Series) -> Array:
    """Give the index of every string among distinct ones, -1 where there is none."""
    import polars as pl

    both = pl.concat([known.alias("id"), column.alias("id")])
    codes, rows = _number(_hashes(both).to_numpy())
    place = rows[codes[len(known) :]]  # the first row with the same hash
    place[place >= len(known)] = -1
    hit = place >= 0
    if known.gather(place[hit]).equals(column.filter(pl.Series(hit))):
        return place
    # two names with one hash
    listed = known.alias("id").to_frame().with_row_index("index").lazy()
    found = (
        column.alias("id")
        .to_frame()
        .lazy()
        .join(listed, on="id", how="left", maintain_order="left", nulls_equal=True)
        .select(pl.col("index").cast(pl.Int64).fill_null(-1))
        .collect()
    )
    return found["index"].to_numpy()
