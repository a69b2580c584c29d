"""Pieces of edges on the disk -> the rows of the graph on the disk, in bounded memory.

The ends of a piece's edges become keys, which `edgeveil._csr` explains, in one file per piece, in
buckets of neighbouring rows. Then the same buckets of all pieces are read together, as many as
fit, sorted, and their columns appended to the indices of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._csr import Keys, columns_over_keys, deal_pairs
from edgeveil._files import flush, write_atomically, write_note
from edgeveil.graph import index_type
from edgeveil.io.growing import GrowingArray

__all__ = ["Pieces", "Tally", "deal_piece", "write_rows"]

Array = npt.NDArray[Any]

_BLOCK = 1 << 20  # degrees that are summed at a time


class Tally(NamedTuple):
    """How far the rows are: the buckets done, the columns written, and what was dropped."""

    buckets: int = 0
    columns: int = 0
    repeated: int = 0
    dropped: int = 0


def deal_piece(u: Array, v: Array, n: int, shift: int, file: Path, *, directed: bool) -> None:
    """Write the keys of a piece: a head (loops, starts of the buckets), then all keys."""
    made = deal_pairs(u, v, n, shift, directed=directed)
    assert made is not None, "indices come from the node set"
    head = np.concatenate([[made.self_loops], made.starts]).astype(np.int64)

    def write(to: Path) -> None:
        with to.open("wb") as handle:
            head.tofile(handle)
            made.keys.tofile(handle)

    write_atomically(file, write)


class Pieces:
    """The files of `deal_piece`, read by buckets.

    Parameters
    ----------
    files : sequence of Path
        One per piece.
    n : int
        Number of nodes.
    shift : int
        Bits of a row within its bucket.
    """

    def __init__(self, files: Sequence[Path], n: int, shift: int) -> None:
        self.n, self.shift, self._files = n, shift, files
        self.bits = max(1, (n - 1).bit_length())
        self.buckets = ((n - 1) >> shift) + 1
        self.kind = np.dtype(np.uint32 if shift + self.bits + 1 <= 32 else np.uint64)
        self._head = self.buckets + 2
        heads = [np.fromfile(file, dtype=np.int64, count=self._head) for file in files]
        self.self_loops = int(sum(head[0] for head in heads))
        self._starts = [head[1:] for head in heads]
        self.sizes = sum((np.diff(s) for s in self._starts), np.zeros(self.buckets, np.int64))

    def keys(self, first: int, last: int) -> Keys:
        """Read the buckets from `first` up to `last`."""
        starts = np.zeros(last - first + 1, dtype=np.int64)
        np.cumsum(self.sizes[first:last], out=starts[1:])
        keys, cursor = np.empty(int(starts[-1]), dtype=self.kind), starts[:-1].copy()
        for own, found in self._slices(first, last):
            sizes = np.diff(own)
            for k in range(last - first):
                keys[cursor[k] : cursor[k] + sizes[k]] = found[own[k] : own[k + 1]]
            cursor += sizes
        return Keys(keys, starts, self.shift, 0)

    def keys_of_rows(self, bucket: int, most: int) -> Iterator[tuple[int, int, Keys]]:
        """Read one bucket by ranges of rows with at most so many keys, or of one row.

        Gives the first row, the row behind the last one, and the keys as if the bucket began
        with the first. Every range reads the bucket again: this is for buckets that do not fit.
        """
        above = self.bits + 1
        counts = np.zeros(min(1 << self.shift, self.n - (bucket << self.shift)), dtype=np.int64)
        for _, found in self._slices(bucket, bucket + 1):
            counts += np.bincount((found >> above).astype(np.intp), minlength=len(counts))
        until, row = np.cumsum(counts), 0
        while row < len(counts):
            before = until[row - 1] if row else 0
            end = max(row + 1, int(np.searchsorted(until, before + most, side="right")))
            kept = [
                found[(found >> above >= row) & (found >> above < end)]
                - self.kind.type(row << above)
                for _, found in self._slices(bucket, bucket + 1)
            ]
            keys = np.concatenate(kept)
            del kept  # while the keys are sorted they are all that is held
            yield row, end, Keys(keys, np.array([0, len(keys)]), self.shift, 0)
            row = end

    def _slices(self, first: int, last: int) -> Iterator[tuple[Array, Array]]:
        """Read the buckets of each piece, and where they begin in what was read."""
        for file, starts in zip(self._files, self._starts, strict=True):
            own = starts[first : last + 1]
            with file.open("rb") as handle:
                handle.seek(8 * self._head + int(own[0]) * self.kind.itemsize)
                yield own - own[0], np.fromfile(handle, self.kind, int(own[-1] - own[0]))


def write_rows(
    pieces: Pieces, folder: Path, memory: int, progress: Callable[[int, int], None]
) -> Tally:
    """Write indices.npy and indptr.npy; interrupted, the same call goes on.

    Parameters
    ----------
    pieces : Pieces
        All edges.
    folder : Path
        Where the arrays go; what is known so far is noted beside it.
    memory : int
        Bytes of keys to be held at a time, beside a single row.
    progress : callable
        Told after every group of buckets how many of how many are done.
    """
    note, file = folder.with_name("rows.json"), folder.with_name("degrees")
    tally = Tally(*json.loads(note.read_text())) if note.exists() else Tally()
    most = max(1, memory // pieces.kind.itemsize)
    if tally == Tally():
        np.zeros(0, dtype=np.int32).tofile(file)
    with file.open("r+b") as handle:
        handle.truncate(4 * pieces.n)
    with GrowingArray(folder / "indices.npy", np.int32, tally.columns) as indices:
        while tally.buckets < pieces.buckets:
            progress(tally.buckets, pieces.buckets)
            tally = _write_group(pieces, tally, most, indices, file)
            indices.flush()
            write_note(note, tally)
    progress(pieces.buckets, pieces.buckets)
    _write_starts(file, pieces.n, tally.columns, folder / "indptr.npy")
    return tally


def _write_group(
    pieces: Pieces, tally: Tally, most: int, indices: GrowingArray, degrees: Path
) -> Tally:
    """Append the columns of as many buckets as fit, at least of one."""
    first, last = tally.buckets, _end_of_group(pieces, tally.buckets, most)
    begin, end = first << pieces.shift, min(last << pieces.shift, pieces.n)
    counts = np.zeros(end - begin, dtype=np.int32)
    if pieces.sizes[first] <= most // 4:
        groups = iter([(0, len(counts), pieces.keys(first, last))])
    else:
        groups = pieces.keys_of_rows(first, most // 4)
    repeated, dropped = tally.repeated, tally.dropped
    for row, after, keys in groups:
        found = columns_over_keys(keys, pieces.bits, counts[row:after])
        indices.append(keys.keys.view(np.int32)[: found[0]])
        repeated, dropped = repeated + found[1], dropped + found[2]
        del keys
    with degrees.open("r+b") as handle:
        handle.seek(4 * begin)
        counts.tofile(handle)
        flush(handle)
    return Tally(last, indices.length, repeated, dropped)


def _end_of_group(pieces: Pieces, first: int, most: int) -> int:
    """Give the bucket behind those that are read together; a large one is alone.

    While a bucket is sorted, copies of its keys take three times the room of these: so all that
    fit are at most `most` keys, and none of them has more than a quarter of that.
    """
    sizes = pieces.sizes[first:]
    large = np.flatnonzero(sizes > most // 4)
    fitting = min(
        int(np.searchsorted(np.cumsum(sizes), most, side="right")),
        int(large[0]) if len(large) else len(sizes),
        (most // 2) >> pieces.shift,  # rows are counted as well
    )
    return first + max(1, fitting)


def _write_starts(degrees: Path, n: int, total: int, file: Path) -> None:
    """Write where every row begins, in the type that `Graph.from_edges` would choose."""
    with GrowingArray(file, index_type(total)) as starts, degrees.open("rb") as handle:
        starts.append(np.zeros(1))
        before = 0
        for begin in range(0, n, _BLOCK):
            sums = np.cumsum(np.fromfile(handle, np.int32, min(_BLOCK, n - begin)), dtype=np.int64)
            starts.append(sums + before)
            before += int(sums[-1])
