"""Pairs of ids -> CSR rows, by sorting every edge once and then turning it round.

An entry (u, v) becomes the key (lo, hi, direction), lo < hi. The keys go into buckets of
neighbouring lo that fit the processor's cache, are sorted there by radix, and give each edge
once: the upper triangle, in order. Walking it in that order deals every lo out to the bucket of
its hi, where it lies in order too, and each bucket becomes rows while it is in the cache. Keys
are as narrow as they can be, the upper triangle is written over them, and the lower one waits in
the rows themselves: besides input and output there is one key per entry (4 or 8 bytes), the end
of every row and, for keys of 8 bytes, 2 bytes per edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._compiled import in_threads, pieces, threads_for
from edgeveil._csr_passes import (
    count_buckets,
    deal_lower,
    fill_buckets,
    fill_rows,
    rank_seen,
    sort_buckets,
)

__all__ = ["Rows", "rows_of_pairs", "rows_of_parts"]

Array = npt.NDArray[Any]
Parts = Sequence[tuple[Array, Array]]

# Measured at 10M and 100M entries: 8,192 to 16,384 keys to a bucket, 2,048 buckets at most
_BUCKET = 1 << 13
_MOST_BUCKETS_LOG = 11
_DIGIT = 11  # bits that one pass of the radix sort takes


class Rows(NamedTuple):
    """A symmetric CSR structure, and what was dropped on the way to it."""

    indptr: Array
    indices: Array
    self_loops: int
    repeated: int
    both_directions: int


def rows_of_pairs(u: Array, v: Array, n: int, threads: int | None = None) -> Rows | None:
    """Build the rows of the undirected simple graph with these entries; see `rows_of_parts`."""
    return rows_of_parts([(u, v)], n, threads=threads)


def rows_of_parts(
    parts: Parts,
    n: int,
    *,
    low: int = 0,
    seen: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> Rows | None:
    """Build the rows of the undirected simple graph with these entries.

    Parameters
    ----------
    parts : pairs of contiguous arrays, both of int32 or both of int64, of one length
        The entries. A list is emptied once its entries have been read, to free them.
    n : int
        Number of ids.
    low : int
        The lowest id: ids are low .. low + n - 1, and id i has the index i - low.
    seen : array of n bool, optional
        All False; comes back True for every id in the entries. Then the others get no row, and
        an index counts only the ids seen.
    threads : int, optional
        Default: as many as pay.

    Returns
    -------
    Rows or None
        None if an id is outside of its range.
    """
    entries = sum(len(u) for u, _ in parts)
    if n == 0 or entries == 0:
        return None if entries else Rows(*_empty(0 if seen is not None else n), 0, 0, 0)
    threads = threads or threads_for(entries)
    wide = np.int64 if n > np.iinfo(np.int32).max else np.int32
    # counts and row starts: at most 2 * entries
    count_type = np.int64 if 2 * entries > np.iinfo(np.int32).max else np.int32
    bits = max(1, (n - 1).bit_length())
    bucket_bits = min(_MOST_BUCKETS_LOG, (entries // _BUCKET).bit_length(), bits)
    # a key has shift + bits + 1 bits, and must have at most 63
    shift = min(bits - bucket_bits, 62 - bits)
    buckets = ((n - 1) >> shift) + 1

    # 1. every entry into its bucket
    shares = _shares(parts, entries, threads)
    counts = np.zeros((threads, buckets), dtype=np.int64)
    # one for each thread: they would wait for one another's stores
    marks = np.zeros((threads, 0 if seen is None else n), dtype=np.bool_)
    loops = in_threads(
        _count_share,
        (
            (share, low, n, shift, mark, own)
            for share, mark, own in zip(shares, marks, counts, strict=True)
        ),
    )
    if min(loops) < 0:
        return None
    starts = np.zeros(buckets + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    cursors = starts[:-1] + np.cumsum(counts, axis=0) - counts
    kept = int(starts[-1])
    keys = np.empty(kept, dtype=np.uint32 if shift + bits + 1 <= 32 else np.int64)
    in_threads(
        _fill_share,
        ((share, low, shift, bits, own, keys) for share, own in zip(shares, cursors, strict=True)),
    )
    del shares
    if isinstance(parts, list):
        parts.clear()

    # 2. each edge once, in order
    upper = keys.view(wide)
    stride = keys.itemsize // upper.itemsize
    digits = -(-(shift + bits + 1) // _DIGIT)
    width = -(-(shift + bits + 1) // digits)
    place_type = np.uint32 if kept <= np.iinfo(np.uint32).max else np.int64
    tallies = np.empty((threads, digits, 1 << width), dtype=place_type)
    ends = np.zeros(n, dtype=np.int32 if kept * stride <= np.iinfo(np.int32).max else np.int64)
    above = np.empty(buckets, dtype=np.int64)
    below = np.zeros((threads, buckets), dtype=np.int64)
    cuts = np.searchsorted(starts, [i for i, _ in pieces(kept, threads)]).tolist()
    spans = list(pairwise([0, *cuts[1:], buckets]))
    found = in_threads(
        sort_buckets,
        (
            (*span, starts, keys, upper, stride, shift, bits, width, tally, ends, mark, above, own)
            for span, tally, mark, own in zip(spans, tallies, marks, below, strict=True)
        ),
    )
    repeated, both = (sum(counted) for counted in zip(*found, strict=True))

    # 3. every lo to the bucket of its hi, behind the place of that bucket's upper triangle
    rank = np.empty(0, dtype=wide)
    size = n
    if seen is not None and not np.logical_or(marks.any(axis=0), ends, out=seen).all():
        rank = np.empty(n + 1, dtype=wide)
        size = int(rank_seen(seen, rank))
    row_starts = np.zeros(buckets + 1, dtype=np.int64)
    np.cumsum(above + below.sum(axis=0), out=row_starts[1:])
    cursors = (row_starts[:-1] + above) + np.cumsum(below, axis=0) - below
    indices = np.empty(int(row_starts[-1]), dtype=wide)
    skips = np.cumsum(above)  # the offsets are of the lower triangle only
    packed = shift + bits < 8 * indices.itemsize
    offsets = np.empty(
        0 if packed else len(indices) // 2, dtype=np.uint16 if shift <= 16 else np.uint32
    )
    in_threads(
        deal_lower,
        (
            (
                *(*span, starts, upper, stride, shift, bits, ends, rank, own),
                *(skips, offsets, indices),
            )
            for span, own in zip(spans, cursors, strict=True)
        ),
    )

    # 4. the rows of every bucket
    indptr = np.empty(size + 1, dtype=count_type)
    indptr[size] = len(indices)
    cuts = np.searchsorted(row_starts, [i for i, _ in pieces(len(indices), threads)]).tolist()
    in_threads(
        fill_rows,
        (
            (
                *(*span, starts, upper, stride, shift, bits, ends, rank, row_starts, above),
                *(skips, offsets, indptr, indices),
            )
            for span in pairwise([0, *cuts[1:], buckets])
        ),
    )
    return Rows(indptr, indices, sum(loops), repeated, both)


def _empty(n: int) -> tuple[Array, Array]:
    return np.zeros(n + 1, dtype=np.int32), np.empty(0, dtype=np.int32)


def _shares(parts: Parts, entries: int, threads: int) -> list[list[tuple[Array, Array]]]:
    """Deal the entries out to the threads, in order."""
    shares: list[list[tuple[Array, Array]]] = []
    for start, stop in pieces(entries, threads):
        shares.append([])
        at = 0
        for u, v in parts:
            i, j = max(start - at, 0), min(stop - at, len(u))
            if i < j:
                shares[-1].append((u[i:j], v[i:j]))
            at += len(u)
    return shares


def _count_share(share: Parts, *rest: Any) -> int:
    """Count a thread's entries; -1 if an id is outside of its range, else the loops."""
    loops = 0
    for u, v in share:
        found = count_buckets(u, v, *rest)
        if found < 0:
            return -1
        loops += found
    return loops


def _fill_share(share: Parts, *rest: Any) -> None:
    for u, v in share:
        fill_buckets(u, v, *rest)
