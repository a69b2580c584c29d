"""Pairs of node indices in files -> the rows of the graph on disk, in bounded memory.

`edgeveil.graph._csr` explains keys and buckets. For every group of buckets that fits into memory
all files are read: the arcs of its rows are selected and sorted, and their columns appended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import flush, write_note
from edgeveil.graph._csr import (
    bucket_shift,
    count_buckets,
    key_type,
    scatter_pairs,
    sort_buckets,
)
from edgeveil.graph.graph import index_type

_BLOCK = 1 << 20  # degrees that are summed at a time
_HEAD = 128  # bytes of the header of a one-dimensional array of any length

Array = npt.NDArray[Any]


class Tally(NamedTuple):
    """Progress: buckets done, columns written, and what was dropped."""

    buckets: int = 0
    columns: int = 0
    repeated: int = 0
    dropped: int = 0
    self_loops: int = 0


def write_rows(
    files: Sequence[Path],
    rank: Array | None,
    n: int,
    folder: Path,
    memory: int,
    progress: Callable[[str, int, int], None],
    *,
    directed: bool,
) -> Tally:
    """Write indices.npy and indptr.npy to a folder; the same call resumes after an interruption.

    `files` hold pairs of numbers in two rows, `rank` the node of each number (None: itself); they
    must not change. `memory` is for keys and degrees, beside two files; one bucket is processed in
    any case. Progress is saved beside the folder.
    """

    def pairs() -> Iterator[tuple[Array, Array]]:
        for file in files:
            u, v = np.load(file)
            yield (u, v) if rank is None else (rank[u], rank[v])

    entries = sum(np.load(file, mmap_mode="r").shape[1] for file in files)
    shift = bucket_shift(n, entries * (2 - directed))
    counts = np.zeros(max(1, ((n - 1) >> shift) + 1), dtype=np.int64)
    loops = 0
    for number, (u, v) in enumerate(pairs()):
        progress("chunks counted", number, len(files))
        found = count_buckets(u, v, n, shift, counts, directed=directed)
        assert found >= 0, "indices come from the node set"
        loops += found
    note, degrees_file = folder.with_name("rows.json"), folder.with_name("degrees.npy")
    tally = Tally(*json.loads(note.read_text())) if note.exists() else Tally(self_loops=loops)
    bucket_bytes = counts * np.dtype(key_type(n, shift)).itemsize + (4 << shift)
    with (
        appendable(folder / "indices.npy", np.int32, tally.columns) as indices,
        appendable(degrees_file, np.int32, min(tally.buckets << shift, n)) as degrees,
    ):
        while tally.buckets < len(counts):
            progress("buckets of rows", tally.buckets, len(counts))
            first = tally.buckets
            fitting = np.searchsorted(np.cumsum(bucket_bytes[first:]), memory, side="right")
            last = first + max(1, int(fitting))
            own = np.zeros(min(last << shift, n) - (first << shift), dtype=np.int32)
            part = counts[first:last]
            keys = scatter_pairs(pairs(), n, shift, part, first=first, directed=directed)
            total, repeated, dropped = sort_buckets(keys, max(1, (n - 1).bit_length()), own)
            indices.write(keys.keys.view(np.int32)[:total].data)
            del keys  # free the memory before the next group
            degrees.write(own.data)
            flush(indices)
            flush(degrees)
            columns, dropped = tally.columns + total, tally.dropped + dropped
            tally = Tally(last, columns, tally.repeated + repeated, dropped, loops)
            write_note(note, tally)
    progress("buckets of rows", len(counts), len(counts))
    _write_starts(degrees_file, tally.columns, folder / "indptr.npy")
    return tally


def _write_starts(degrees_file: Path, total: int, file: Path) -> None:
    """Write indptr, in the type that `Graph.from_edges` would choose."""
    degrees: Any = np.load(degrees_file, mmap_mode="r")
    kind = index_type(total)
    with appendable(file, kind) as starts:
        before = np.zeros(1, dtype=np.int64)
        starts.write(before.astype(kind).data)
        for begin in range(0, len(degrees), _BLOCK):
            sums = before + np.cumsum(degrees[begin : begin + _BLOCK], dtype=np.int64)
            starts.write(sums.astype(kind).data)
            before = sums[-1:]


@contextmanager
def appendable(file: Path, kind: type[Any], length: int = 0) -> Iterator[IO[bytes]]:
    """Open a .npy file for appending, after its first `length` numbers; others are cut off.

    Append by ``write(array.data)``: `tofile` misses an error at the very end of the write.
    """
    dtype = np.dtype(kind)
    with file.open("r+b" if length else "w+b") as handle:
        handle.truncate(_HEAD + length * dtype.itemsize)
        handle.seek(0, 2)
        yield handle
        length = (handle.seek(0, 2) - _HEAD) // dtype.itemsize
        handle.seek(0)
        about = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(handle, about)
        assert handle.tell() == _HEAD
        flush(handle)
