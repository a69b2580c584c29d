"""Two columns of ids -> Graph, without a loop over the edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph, index_type
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "INTEGER",
    "Indexed",
    "RowError",
    "graph_of_columns",
    "graph_of_indexed",
    "index_columns",
    "is_integer",
    "places_in",
    "text_of",
]

Array = npt.NDArray[Any]

# ASCII digits only: other scripts' digits stay text
INTEGER = r"^[+-]?[0-9]+$"
_is_integer = re.compile(INTEGER).match

# A table over the whole range of integers beats other ways to number them while it is at most
# this many times as long as the input; the constant keeps small inputs on the fast way.
_TABLE_FACTOR = 4
_TABLE_FREE = 1 << 20


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


def graph_of_columns(
    first: pl.Series, second: pl.Series, nodes: NodeSet | None, *, weighted: int, directed: bool
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
    directed : bool
        Keep directions: a row leads from the first id to the second.

    Raises
    ------
    RowError
        If a row names a node that is not in `nodes`.
    """
    edges = index_columns(first, second)
    return graph_of_indexed(edges, nodes, weighted=weighted, directed=directed)


def graph_of_indexed(
    edges: Indexed, nodes: NodeSet | None, *, weighted: int, directed: bool
) -> Graph:
    """Build the graph of columns that are indexed already; see `graph_of_columns`."""
    ids, u, v = edges
    found = nodes is None
    if nodes is None:
        nodes = _node_set(ids)
    else:
        place = places_in(nodes)(ids)
        u, v = place[u], place[v]
        outside = (u < 0) | (v < 0)
        if outside.any():
            raise RowError(
                "an edge names a node that is not in the node list "
                f"({int(outside.sum())} edges do)",
                int(outside.argmax()),
            )
    return Graph.from_edges(
        u, v, nodes, weighted=weighted, nodes_from_edges=found, directed=directed
    )


def index_columns(first: pl.Series, second: pl.Series) -> Indexed:
    """Index two columns, both of integers or both of strings, by their distinct values."""
    import polars as pl

    if first.dtype != pl.String:
        return _index_integers(first.to_numpy(), second.to_numpy())
    both = pl.concat([first.alias("id"), second.alias("id")])
    # By hashes, several times faster than by the strings themselves; compared in the end, so
    # that two names with one hash are never taken for one node.
    codes, distinct = _number(_hashes(both))
    chosen = np.empty(len(distinct), dtype=np.int64)
    chosen[codes] = np.arange(len(codes))  # any one row of each hash
    names = both.gather(chosen)
    order = names.arg_sort().to_numpy()  # by UTF-8 bytes: the order of code points
    names = names.gather(order)
    index = _inverse(order)[codes]
    if not names.gather(index).eq_missing(both).all():
        names = both.unique().sort()
        index = _places_of_names(both, names)
    return Indexed(names, index[: len(first)], index[len(first) :])


def _index_integers(a: Array, b: Array) -> Indexed:
    import polars as pl

    if len(a) == 0:
        return Indexed(pl.Series("id", [], dtype=pl.Int64), a, b)
    low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
    if high - low >= _TABLE_FACTOR * len(a) + _TABLE_FREE:
        both = np.concatenate([a, b])
        codes, distinct = _number(both.view(np.uint64))
        values = distinct.view(np.int64)
        order = np.argsort(values)
        index = _inverse(order)[codes]
        return Indexed(pl.Series("id", values[order]), index[: len(a)], index[len(a) :])
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


def _hashes(column: pl.Series) -> npt.NDArray[np.uint64]:
    return column.hash().to_numpy()


def _number(keys: npt.NDArray[np.uint64]) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Give the number of every key, and the distinct keys in the order of their numbers.

    Every key writes itself into a table, at a place that it gives itself. Keys whose place was
    taken by another one go on to the next round, with other places. The first table is small,
    for the processor's cache, in the hope that most keys occur several times.
    """
    rng = np.random.default_rng()
    kind = index_type(len(keys))
    numbers: Array = np.empty(len(keys), dtype=kind)
    rows: Array | slice = slice(None)
    own = keys
    found = [np.empty(0, dtype=np.uint64)]
    count, spared = 0, 3  # spared: powers of two
    while len(own):
        bits = max(4, len(own).bit_length() - spared)
        factor = rng.integers(2**63, dtype=np.uint64) << 1 | 1
        table = np.empty(1 << bits, dtype=np.uint64)
        used = np.zeros(1 << bits, dtype=np.bool_)
        for part in _blocks(own):
            places = (part * factor >> (64 - bits)).astype(np.intp)
            table[places] = part
            used[places] = True
        number = np.cumsum(used, dtype=kind) + (count - 1)
        mine, left = np.empty(len(own), dtype=kind), np.empty(len(own), dtype=np.bool_)
        for part, to, lost in zip(_blocks(own), _blocks(mine), _blocks(left), strict=True):
            places = (part * factor >> (64 - bits)).astype(np.intp)
            to[:] = number[places]
            np.not_equal(table[places], part, out=lost)
        numbers[rows] = mine  # those left are mended in the next round
        found.append(table[used])
        count += len(found[-1])
        spared = spared if 2 * np.count_nonzero(left) < len(own) else 0
        rows = np.flatnonzero(left) if isinstance(rows, slice) else rows[left]
        own = own[left]
    return numbers, np.concatenate(found)


def _blocks(array: Array) -> list[Array]:
    """Cut an array into blocks that stay in the processor's cache."""
    return [array[i : i + (1 << 16)] for i in range(0, len(array), 1 << 16)]


def _inverse(order: Array) -> Array:
    inverse = np.empty(len(order), dtype=index_type(len(order)))
    inverse[order] = np.arange(len(order))
    return inverse


# -- node sets ----------------------------------------------------------------------------


def _node_set(ids: pl.Series) -> NodeSet:
    """Make a node set of sorted, distinct ids through arrays, without a loop over them."""
    import polars as pl

    if len(ids) == 0:
        return NodeSet.range(0)
    if ids.dtype != pl.String:
        if ids[0] == 0 and ids[-1] == len(ids) - 1:
            return NodeSet.range(len(ids))
        return NodeSet.from_arrays("int", {"ids": ids.to_numpy()})
    return NodeSet.from_arrays("str", text_of(ids))


def text_of(ids: pl.Series) -> dict[str, Array]:
    """Give strings as their UTF-8 bytes, one after another, and where each begins."""
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(ids.str.len_bytes().to_numpy(), out=offsets[1:])
    step = 1 << 20  # one polars string holds at most 4 GB
    text = b"".join(
        ids.slice(start, step).str.join("").item().encode() for start in range(0, len(ids), step)
    )
    return {"text": np.frombuffer(text, np.uint8), "offsets": offsets}


def places_in(nodes: NodeSet) -> Callable[[pl.Series], Array]:
    """Give the function from ids to their indices in a node list, -1 where there is none."""
    import polars as pl

    if nodes.kind == "str":
        text, offsets = nodes.arrays["text"].tobytes(), nodes.arrays["offsets"].tolist()
        listed = [text[i:j].decode() for i, j in pairwise(offsets)]
        names = pl.Series("id", listed, dtype=pl.String)
        find = partial(_places_of_names, names=names)
    else:
        known = np.arange(len(nodes)) if nodes.kind == "range" else nodes.arrays["ids"]
        find = partial(_places_of_integers, known=known, order=np.argsort(known, kind="stable"))

    def places(ids: pl.Series) -> Array:
        if len(ids) and (ids.dtype == pl.String) != (nodes.kind == "str"):
            mine, other = ("text", "integers") if ids.dtype == pl.String else ("integers", "text")
            raise RowError(f"the ids of the edges are {mine}, those of the node list {other}", 0)
        if len(ids) == 0 or len(nodes) == 0:
            return np.full(len(ids), -1)
        return find(ids)

    return places


def _places_of_integers(column: pl.Series, known: Array, order: Array) -> Array:
    wanted = column.to_numpy()
    index = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[index] == wanted, index, -1)


def _places_of_names(column: pl.Series, names: pl.Series) -> Array:
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
    return found["index"].to_numpy()
