"""Two columns of ids -> their indices in a node set, without a Python loop over the edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.words import counted
from edgeveil.errors import InputError
from edgeveil.graph._csr import MOST_NODES
from edgeveil.graph.columns import ReadOptions, refuse_two_kinds
from edgeveil.graph.graph import Graph, index_type
from edgeveil.graph.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    from edgeveil.graph.text import TextLayout

Array = npt.NDArray[Any]

# Integers are numbered by a table over their whole range if it is at most this many times as long
# as the input, or at most _TABLE_FREE long.
_TABLE_FACTOR, _TABLE_FREE = 2, 1 << 20
_LARGE = 1 << 20  # ids; for fewer, loading a compiled loop takes longer than it saves
_BLOCK = 1 << 21  # ids looked up and compared at a time


SHOWN = 10  # rows in a message


class RowError(Exception):
    """Row `row` (from 0) is wrong; the caller knows what a row is called in the message."""

    def __init__(self, reason: str, row: int, rows: Array | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.rows = np.array([row]) if rows is None else rows  # all that are wrong, sorted

    def all_of(self, unit: str, numbers: Sequence[int]) -> str:
        """How many rows are wrong, and the numbers of the first; empty if it is one."""
        if len(self.rows) < 2:
            return ""
        first = ", ".join(map(str, numbers)) + (", ..." if len(numbers) < len(self.rows) else "")
        return f" ({len(self.rows)} {unit}: {first})"


class IndexedEdges(NamedTuple):
    """Two columns as their distinct values and the index of each row among these."""

    ids: pl.Series
    first: Array
    second: Array


@dataclass(frozen=True)
class Chunk:
    """Edges read together: a whole file, or a part that fits into memory."""

    edges: IndexedEdges | tuple[pl.Series, pl.Series]  # two columns of integers, or two of strings
    weighted: int  # number of weights other than 1
    explain: Callable[[RowError], InputError]  # names the row's place in the file
    layout: TextLayout | None = None  # of text
    times: pl.Series | None = None  # unparsed, if asked for

    @property
    def is_text(self) -> bool:
        """Whether there are ids, and they are text."""
        return len(self.edges[0]) > 0 and not self.edges[0].dtype.is_integer()

    def index(self) -> IndexedEdges:
        """The edges, indexed by their distinct ids."""
        return self.edges if isinstance(self.edges, IndexedEdges) else index_columns(*self.edges)

    def indices_in(self, nodes: NodeSet, index: IdIndex) -> tuple[Array, Array]:
        """The edges as indices in a node list of the same kind; `index` is that of the list."""
        if nodes.kind == "range":  # needs no table
            u, v = (np.asarray(column) for column in self.edges)
            outside = (np.minimum(u, v) < 0) | (np.maximum(u, v) >= len(nodes))
        else:
            ids, u, v = self.index()
            place = index.add(ids)
            u, v = place[u], place[v]
            outside = np.maximum(u, v) >= len(nodes)
        if outside.any():
            many = int(outside.sum())
            reason = (
                f"an edge names a node that is not in the node list ({counted(many, 'edge', 'do')})"
            )
            raise self.explain(RowError(reason, int(outside.argmax())))
        return u, v


def graph_of_chunk(chunk: Chunk, options: ReadOptions, where: str, *, directed: bool) -> Graph:
    """Build the graph; without a node list the node set is the ids that occur, sorted."""
    nodes, u, v = endpoints_of(chunk, options.nodes)
    if not options.one_kind:
        refuse_two_kinds(where, len(nodes), lambda: [(u, v)])
    return Graph.from_edges(
        u,
        v,
        nodes,
        weighted=chunk.weighted,
        nodes_from_edges=options.nodes is None,
        directed=directed,
    )


def with_text_ids(graph: Graph) -> Graph:
    """The graph with its ids as text, in the same order."""
    return graph if graph.nodes.kind == "str" else replace(graph, nodes=graph.nodes.as_text())


def endpoints_of(chunk: Chunk, nodes: NodeSet | None) -> tuple[NodeSet, Array, Array]:
    """The node set, and the edges as indices in it; without `nodes` the ids that occur, sorted."""
    if nodes is not None:
        # A list of text made the ids of the edges text already.
        alike = nodes.as_text() if chunk.is_text else nodes
        try:
            return alike, *chunk.indices_in(alike, index_of(alike, len(chunk.edges[-1])))
        except InputError as error:
            if nodes.kind == alike.kind:
                raise
            kinds = "the ids of the edges are text, those of the node list integers"
            raise InputError(f"{error}; {kinds}") from None
    ids, u, v = chunk.index()
    return sorted_nodes(sort_ids(ids, u, v)), u, v


def index_of(nodes: NodeSet, expected: int) -> IdIndex:
    """Index of a node list, for `Chunk.indices_in`; empty for a range, which needs none."""
    import polars as pl

    numbers = IdIndex(pl.String() if nodes.kind == "str" else pl.Int64(), len(nodes) + expected)
    if nodes.kind != "range":
        numbers.add(pl.Series("id", nodes.ids.tolist(), dtype=numbers.ids.dtype))
    return numbers


def sorted_nodes(ids: pl.Series) -> NodeSet:
    """Make a node set of sorted, distinct ids, without a Python loop."""
    import polars as pl

    if len(ids) == 0:
        return NodeSet.range(0)
    if ids.dtype != pl.String:
        if ids[0] == 0 and ids[-1] == len(ids) - 1:
            return NodeSet.range(len(ids))
        return NodeSet("int", {"ids": ids.to_numpy()}, in_order=True)
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(ids.str.len_bytes().to_numpy(), out=offsets[1:])
    # by blocks: a string in polars has at most 4 GB
    joined = (ids.slice(at, _BLOCK).str.join().item() for at in range(0, len(ids), _BLOCK))
    text = np.frombuffer("".join(joined).encode(), np.uint8)
    return NodeSet("str", {"text": text, "offsets": offsets}, in_order=True)


def index_columns(first: pl.Series, second: pl.Series) -> IndexedEdges:
    """Index two columns, both of integers or both of strings, by their distinct values."""
    if first.dtype.is_integer() and (near := _index_by_range(first.to_numpy(), second.to_numpy())):
        return near
    numbers = IdIndex(first.dtype, len(first) + len(second))
    u, v = numbers.add(first), numbers.add(second)
    return IndexedEdges(numbers.ids, u, v)


def sort_ids(ids: pl.Series, *columns: Array) -> pl.Series:
    """Sort distinct ids (strings by code points), and renumber the columns in place."""
    if ids.is_sorted():
        return ids
    numbers, ordered = IdIndex(ids.dtype, sum(map(len, columns))), ids.sort()
    numbers.add(ids)
    rank = np.empty(len(ids), dtype=np.int32)
    rank[numbers.add(ordered)] = np.arange(len(ids))
    for column in columns:
        for start in range(0, len(column), _BLOCK):  # bounds the temporary memory
            column[start : start + _BLOCK] = rank[column[start : start + _BLOCK]]
    return ordered


class IdIndex:
    """Distinct ids, numbered from 0 on in order of first occurrence.

    Few ids are kept in a dict. Many are numbered by a compiled hash table that does not compare
    keys in full; the result is then compared exactly, and if two ids collided, the table is
    rebuilt with another hash function. For 4 million ids the table takes 0.08 s (integers) and
    0.22 s (names), a polars join 0.38 and 1.07, a dict 2.1 and 2.8.
    """

    def __init__(self, kind: pl.DataType, expected: int) -> None:
        import polars as pl

        self.ids = pl.Series("id", [], dtype=kind)
        self._dict: dict[Any, int] | None = {} if expected < _LARGE else None
        self._seed = 0
        if self._dict is None:
            self._rebuild(1 << 18)

    def add(self, ids: pl.Series) -> npt.NDArray[np.int32]:
        """The number of every id; ids not seen before get the next numbers."""
        codes = np.empty(len(ids), dtype=np.int32)
        for start in range(0, len(ids), _BLOCK):
            block, into = ids.slice(start, _BLOCK), codes[start : start + _BLOCK]
            while not self._add(block, into):
                pass
        return codes

    def _add(self, block: pl.Series, codes: npt.NDArray[np.int32]) -> bool:
        """Number some ids; False if the table was rebuilt and the call must be repeated."""
        import polars as pl

        before = len(self.ids)
        if (numbers := self._dict) is not None:
            codes[:] = [numbers.setdefault(node, len(numbers)) for node in block.to_list()]
            new = pl.Series(list(islice(numbers, before, None)), dtype=block.dtype)
            self.ids = pl.concat([self.ids, new])
            return True
        from edgeveil.graph._csr_kernels import number_by_hash

        rows = np.empty(len(block), dtype=np.int64)
        bits = len(self._table).bit_length() - 1
        keys = _keys(block, self._seed)
        count = number_by_hash(keys, self._factor, self._table, bits, before, codes, rows)
        if count < 0:
            self._rebuild(4 * len(self._table))
            return False
        ids = self.ids
        if count > before:
            ids = pl.concat([ids, block[rows[: count - before]].alias("id")], rechunk=True)
        if ids[codes].equals(block):
            self.ids = ids
            return True
        self._seed += 1
        self._rebuild(len(self._table))
        return False

    def _rebuild(self, size: int) -> None:
        """Put all ids so far into a new table, with a hash function under which none collide."""
        from edgeveil.graph._csr_kernels import number_by_hash

        if size // 2 > MOST_NODES + 1:
            raise InputError(f"a graph has at most {MOST_NODES:,} nodes, there are more ids")
        codes = np.empty(len(self.ids), dtype=np.int32)
        rows = np.empty(len(self.ids), dtype=np.int64)
        bits = max(size, 4 * len(self.ids)).bit_length() - 1
        while True:
            self._table = np.zeros(1 << bits, dtype=np.uint64)
            self._factor = np.random.default_rng().integers(2**63, dtype=np.uint64) << 1 | 1
            keys = _keys(self.ids, self._seed)
            if number_by_hash(keys, self._factor, self._table, bits, 0, codes, rows) == len(codes):
                return
            self._seed += 1


def _index_by_range(a: Array, b: Array) -> IndexedEdges | None:
    """Index integers by a table over their range; None if that would be too long."""
    import polars as pl

    if not len(a):
        return IndexedEdges(pl.Series("id", [], dtype=pl.Int64), a, b)
    low, high = int(min(a.min(), b.min())), int(max(a.max(), b.max()))
    if high - low >= _TABLE_FACTOR * (len(a) + len(b)) + _TABLE_FREE:
        return None
    if low:
        a, b = a - low, b - low
    occurs = np.zeros(high - low + 1, dtype=np.bool_)
    occurs[a] = True
    occurs[b] = True
    ids = pl.Series("id", np.flatnonzero(occurs) + low)
    if len(ids) < len(occurs):
        rank = np.cumsum(occurs, dtype=index_type(len(occurs))) - 1
        a, b = rank[a], rank[b]
    return IndexedEdges(ids, a, b)


def _keys(ids: pl.Series, seed: int) -> npt.NDArray[np.uint64]:
    """64-bit keys: integers themselves, hashes of strings."""
    return (ids if ids.dtype.is_integer() else ids.hash(seed)).to_numpy().view(np.uint64)
