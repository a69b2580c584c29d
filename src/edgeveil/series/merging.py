"""Merge a snapshot into the rows of a history on disk, or remove the edges of forgotten members.

Rows go through memory in blocks of some hundred thousand entries. An entry's key is its row within
the block and its column, so that sorted keys are sorted rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.graph.graph import UNKNOWN, Graph, index_type
from edgeveil.graph.saved import appendable, save_array

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

_BLOCK = 1 << 18  # measured: fits the cache; four and sixteen times as many entries are slower


class Rows(NamedTuple):
    """Consecutive rows: their lengths, and all their entries."""

    degrees: Array
    indices: Array
    first_seen: Array
    current: Array


class Merge:
    """A history and the next snapshot, row by row.

    Parameters
    ----------
    old, current
        The history so far.
    snapshot : Graph
        The next snapshot, directed or not like the history.
    places : array
        Index in the history of every node of the snapshot.
    n : int
        Number of nodes of the history after the merge.
    number : int
        Number of the snapshot, in which new edges are first seen.
    returned : indices
        Members who were forgotten before. An edge to one of them gets no number: it does
        not count for anybody else.
    """

    def __init__(
        self,
        old: Graph,
        current: Array,
        snapshot: Graph,
        places: IntArray,
        n: int,
        number: int,
        returned: Sequence[int] = (),
    ) -> None:
        self._old, self._current, self._snapshot = old, current, snapshot
        self._n, self._number = n, number
        self._row_of = np.full(n, -1, dtype=np.int64)  # of the snapshot, by index in the history
        self._row_of[places] = np.arange(len(places))
        self._same_order = bool(np.all(np.diff(places) > 0))
        self._places = None if np.array_equal(places, np.arange(len(places))) else places
        self._returned = np.zeros(n, dtype=np.bool_)
        self._returned[list(returned)] = True
        self.changed = False  # whether the snapshot differs from the last one

    def rows(self) -> Iterator[Rows]:
        """Yield all rows of the history with the snapshot."""
        here = self._row_of >= 0
        lengths = np.zeros(self._n, dtype=np.int64)
        lengths[: self._old.n_nodes] = self._old.degrees
        lengths[here] += self._snapshot.degrees[self._row_of[here]]
        for first, last in _blocks(lengths):
            yield self._block(first, last)

    def _block(self, first: int, last: int) -> Rows:
        """Merge the rows of the history from `first` to `last`."""
        bits = max(1, (self._n - 1).bit_length())
        lengths, entries = _slice(self._old, first, last)
        columns, first_seen = self._old.indices[entries], self._old.first_seen[entries]  # type: ignore[index]
        degrees = np.zeros(last - first, dtype=np.int64)
        degrees[: len(lengths)] = lengths
        keys = np.repeat(np.arange(len(lengths)) << bits, lengths) | columns

        rows = self._row_of[first:last]
        places = np.flatnonzero(rows >= 0)
        arriving = self._keys(places, rows[places], bits)
        at = np.searchsorted(keys, arriving)
        new = np.ones(len(arriving), dtype=np.bool_)
        inside = at < len(keys)
        new[inside] = keys[at[inside]] != arriving[inside]
        # behind as many old entries as there are below it, and the new ones among those before
        at += np.cumsum(new) - new

        is_old = np.ones(len(keys) + np.count_nonzero(new), dtype=np.bool_)
        is_old[at[new]] = False
        indices = np.empty(len(is_old), dtype=np.int32)
        indices[is_old] = columns
        indices[~is_old] = arriving[new] & ((1 << bits) - 1)
        all_first_seen = np.full(len(is_old), self._number, dtype=np.uint16)
        all_first_seen[is_old] = first_seen
        current = np.zeros(len(is_old), dtype=np.bool_)
        current[at] = True
        all_first_seen[current & (all_first_seen == UNKNOWN)] = self._number  # it begins again
        all_first_seen[self._returned[indices]] = UNKNOWN
        degrees += np.bincount(arriving[new] >> bits, minlength=len(degrees))
        was_current = self._current[entries]
        if not self.changed:
            self.changed = not (is_old.all() and np.array_equal(current, was_current))
        return Rows(degrees, indices, all_first_seen, current)

    def _keys(self, places: IntArray, rows: IntArray, bits: int) -> IntArray:
        """The sorted keys of some rows of the snapshot, at these rows of the block."""
        indptr = self._snapshot.indptr
        starts, ends = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        lengths = ends - starts
        if len(rows) and np.array_equal(starts[1:], ends[:-1]):
            columns = self._snapshot.indices[starts[0] : ends[-1]]
        else:
            shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
            columns = self._snapshot.indices[np.arange(len(shifts)) + shifts]
        columns = columns if self._places is None else self._places[columns]
        keys: IntArray = np.repeat(places << bits, lengths) | columns
        if not self._same_order:
            keys.sort()
        return keys


def stored_rows(graph: Graph, current: Array) -> Iterator[tuple[int, Rows]]:
    """Yield all rows of a history in blocks, each with the number of its first row."""
    assert graph.first_seen is not None
    for first, last in _blocks(graph.degrees):
        degrees, some = _slice(graph, first, last)
        yield first, Rows(degrees, graph.indices[some], graph.first_seen[some], current[some])


def rows_anew(graph: Graph, current: Array, number: int) -> Iterator[Rows]:
    """Yield all rows of a history that starts anew with its last snapshot, `number`.

    Edges that have ended lose their number; edges to members who have returned get one.
    """
    for _, rows in stored_rows(graph, current):
        first_seen = np.where(rows.first_seen == UNKNOWN, number, rows.first_seen)
        yield rows._replace(first_seen=np.where(rows.current, first_seen, UNKNOWN))


def rows_without(graph: Graph, current: Array, gone: Array) -> Iterator[Rows]:
    """Yield all rows of a history without the edges of the nodes marked in `gone`."""
    for first, (degrees, indices, first_seen, now) in stored_rows(graph, current):
        rows = np.repeat(np.arange(len(degrees)), degrees)
        kept = ~(gone[first + rows] | gone[indices])
        left = np.bincount(rows[kept], minlength=len(degrees))
        yield Rows(left, indices[kept], first_seen[kept], now[kept])


def write_rows(folder: Path, blocks: Iterable[Rows]) -> None:
    """Write the arrays of all rows to a folder."""
    kinds = {"indices": np.int32, "first_seen": np.uint16, "current": np.bool_}
    degrees = [np.zeros(1, dtype=np.int64)]
    with ExitStack() as files:
        into = {
            name: files.enter_context(appendable(folder / f"{name}.npy", kind))
            for name, kind in kinds.items()
        }
        for rows in blocks:
            degrees.append(rows.degrees)
            for name, file in into.items():
                file.write(np.ascontiguousarray(getattr(rows, name), kinds[name]).data)
    indptr = np.cumsum(np.concatenate(degrees), dtype=np.int64)
    save_array(folder / "indptr.npy", indptr.astype(index_type(int(indptr[-1])), copy=False))


def _slice(graph: Graph, first: int, last: int) -> tuple[Array, slice]:
    """Lengths and entries of the rows from `first` to `last`, as far as they exist."""
    first, last = min(first, graph.n_nodes), min(last, graph.n_nodes)
    return graph.degrees[first:last], slice(int(graph.indptr[first]), int(graph.indptr[last]))


def _blocks(lengths: Array) -> Iterator[tuple[int, int]]:
    """Yield (first row, end) of blocks of at most `_BLOCK` entries, or of one longer row."""
    ends = np.cumsum(lengths)
    first, before = 0, 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, before + _BLOCK, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
