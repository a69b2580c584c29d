"""Pairs of node indices in files -> the rows of the graph on the disk, in bounded memory.

`edgeveil._csr` explains keys and buckets. All files are read for every group of buckets that fits
into memory: arcs of its rows are picked out, sorted, and their columns appended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeveil._csr import columns_over_keys, count_buckets, deal_pairs, width_of_buckets
from edgeveil._files import write_note
from edgeveil.graph import index_type
from edgeveil.io.growing import GrowingArray

_BLOCK = 1 << 20  # degrees that are summed at a time


class Tally(NamedTuple):
    """How far the rows are: the buckets done, the columns written, and what was dropped."""

    buckets: int = 0
    columns: int = 0
    repeated: int = 0
    dropped: int = 0
    self_loops: int = 0


def write_rows(
    files: Sequence[Path],
    n: int,
    folder: Path,
    memory: int,
    progress: Callable[[str, int, int], None],
    *,
    directed: bool,
) -> Tally:
    """Write indices.npy and indptr.npy; interrupted, the same call goes on.

    Parameters
    ----------
    files : sequence of Path
        Arrays of pairs, two rows each. Nobody else may write to them.
    n : int
        Number of nodes.
    folder : Path
        Where the arrays go; what is known so far is noted beside it.
    memory : int
        Bytes of keys to be held at a time, beside a file and a single bucket.
    progress : callable
        Told what is counted, how many are done, and how many there are.
    """
    entries = sum(np.load(file, mmap_mode="r").shape[1] for file in files)
    shift = width_of_buckets(n, entries * (2 - directed))
    bits = max(1, (n - 1).bit_length())
    counts = np.zeros(max(1, ((n - 1) >> shift) + 1), dtype=np.int64)
    loops = 0
    for number, file in enumerate(files):
        progress("pieces counted", number, len(files))
        u, v = np.load(file)
        found = count_buckets(u, v, n, shift, counts, directed=directed)
        assert found >= 0, "indices come from the node set"
        loops += found
    note, degrees_file = folder.with_name("rows.json"), folder.with_name("degrees.npy")
    tally = Tally(*json.loads(note.read_text())) if note.exists() else Tally(self_loops=loops)
    most, rows = memory // 8, min(tally.buckets << shift, n)
    with (
        GrowingArray(folder / "indices.npy", np.int32, tally.columns) as indices,
        GrowingArray(degrees_file, np.int32, rows) as degrees,
    ):
        while tally.buckets < len(counts):
            progress("buckets of rows", tally.buckets, len(counts))
            first = tally.buckets
            fitting = int(np.searchsorted(np.cumsum(counts[first:]), most, side="right"))
            last = first + max(1, min(fitting, most >> shift))  # rows are counted as well
            own = np.zeros(min(last << shift, n) - (first << shift), dtype=np.int32)
            pairs = (np.load(file) for file in files)
            keys = deal_pairs(pairs, n, shift, counts[first:last], first=first, directed=directed)
            total, repeated, dropped = columns_over_keys(keys, bits, own)
            indices.append(keys.keys.view(np.int32)[:total])
            degrees.append(own)
            indices.flush()
            degrees.flush()
            repeated, dropped = tally.repeated + repeated, tally.dropped + dropped
            tally = Tally(min(last, len(counts)), indices.length, repeated, dropped, loops)
            write_note(note, tally)
    progress("buckets of rows", len(counts), len(counts))
    _write_starts(degrees_file, tally.columns, folder / "indptr.npy")
    return tally


def _write_starts(degrees_file: Path, total: int, file: Path) -> None:
    """Write where every row begins, in the type that `Graph.from_edges` would choose."""
    degrees: Any = np.load(degrees_file, mmap_mode="r")
    with GrowingArray(file, index_type(total)) as starts:
        starts.append(np.zeros(1))
        before = 0
        for begin in range(0, len(degrees), _BLOCK):
            sums = np.cumsum(degrees[begin : begin + _BLOCK], dtype=np.int64)
            starts.append(sums + before)
            before += int(sums[-1])
