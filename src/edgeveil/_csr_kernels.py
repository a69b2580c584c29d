"""Pairs of indices -> CSR rows, by sorting every edge once and then turning it round.

An entry (u, v) becomes the key (lo, hi, direction), lo < hi. The keys go into buckets of
neighbouring lo that fit the processor's cache, are sorted there by radix, and give each edge
once: the upper triangle, in order. Walking it in that order puts every lo into row hi, which
makes the lower triangle, sorted too. Keys are as narrow as they can be, and the upper triangle
is written over them, so that besides input and output there is one key per entry (4 or 8
bytes) and two counts per node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._compiled import compiled, in_threads, pieces, threads_for

__all__ = ["Rows", "rows_of_pairs"]

# Measured at 10M and 100M entries: 8,192 to 16,384 keys to a bucket, 2,048 buckets at most
_BUCKET = 1 << 13
_MOST_BUCKETS_LOG = 11
_DIGIT = 11  # bits that one pass of the radix sort takes


class Rows(NamedTuple):
    """A symmetric CSR structure, and what was dropped on the way to it."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    self_loops: int
    repeated: int
    both_directions: int


def rows_of_pairs(
    u: npt.NDArray[Any], v: npt.NDArray[Any], n: int, threads: int | None = None
) -> Rows | None:
    """Build the rows of the undirected simple graph with these entries.

    Parameters
    ----------
    u, v : contiguous arrays of int32 or of int64, of one length
        The entries.
    n : int
        Number of nodes.
    threads : int, optional
        Default: as many as pay.

    Returns
    -------
    Rows or None
        None if an index is outside of 0 .. n-1.
    """
    entries = len(u)
    if n == 0 or entries == 0:
        return None if entries else Rows(*_empty(n), 0, 0, 0)
    threads = threads or threads_for(entries)
    wide = np.int64 if n > np.iinfo(np.int32).max else np.int32
    # counts and row starts: at most 2 * entries
    count_type = np.int64 if 2 * entries > np.iinfo(np.int32).max else np.int32
    bits = max(1, (n - 1).bit_length())
    bucket_bits = min(_MOST_BUCKETS_LOG, (entries // _BUCKET).bit_length(), bits)
    # a key has shift + bits + 1 bits, and must have at most 63
    shift = min(bits - bucket_bits, 62 - bits)
    buckets = ((n - 1) >> shift) + 1

    up = np.zeros(n, dtype=count_type)
    parts = [(u[i:j], v[i:j]) for i, j in pieces(entries, threads)]
    counts = np.zeros((threads, buckets), dtype=np.int64)
    loops = in_threads(
        _count_buckets, ((*part, n, shift, own) for part, own in zip(parts, counts, strict=True))
    )
    if min(loops) < 0:
        return None
    starts = np.zeros(buckets + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    cursors = starts[:-1] + np.cumsum(counts, axis=0) - counts
    kept = int(starts[-1])
    keys = np.empty(kept, dtype=np.uint32 if shift + bits + 1 <= 32 else np.int64)
    in_threads(
        _fill_buckets,
        ((*part, shift, bits, own, keys) for part, own in zip(parts, cursors, strict=True)),
    )

    upper = keys.view(wide)
    stride = keys.itemsize // upper.itemsize
    digits = -(-(shift + bits + 1) // _DIGIT)
    width = -(-(shift + bits + 1) // digits)
    place_type = np.uint32 if kept <= np.iinfo(np.uint32).max else np.int64
    tallies = np.empty((threads, digits, 1 << width), dtype=place_type)
    downs = [np.zeros(n, dtype=count_type) for _ in range(threads)]
    cuts = np.searchsorted(starts, [i for i, _ in pieces(kept, threads)]).tolist()
    cuts = [0, *cuts[1:], buckets]
    found = in_threads(
        _sort_buckets,
        (
            (i, j, starts, keys, upper, stride, shift, bits, width, tally, up, down)
            for (i, j), tally, down in zip(pairwise(cuts), tallies, downs, strict=True)
        ),
    )
    repeated, both = (sum(counted) for counted in zip(*found, strict=True))
    for other in downs[1:]:
        np.add(downs[0], other, out=downs[0])
    indptr = np.empty(n + 1, dtype=count_type)
    nnz = int(_start_rows(up, downs[0], indptr))
    del downs

    indices = np.empty(nnz, dtype=wide)
    cuts = np.searchsorted(indptr[1:], [i for i, _ in pieces(nnz, threads)]).tolist()
    cuts = [0, *cuts[1:], n]
    in_threads(
        _fill_rows,
        ((i, j, starts, shift, stride, upper, up, indptr, indices) for i, j in pairwise(cuts)),
    )
    return Rows(indptr, indices, sum(loops), repeated, both)


def _empty(n: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    return np.zeros(n + 1, dtype=np.int32), np.empty(0, dtype=np.int32)


# n nodes, m entries, K buckets; arrays that are only read may be read-only.


@compiled
def _count_buckets(
    u: Any,  # IN  (m)
    v: Any,  # IN  (m)
    n: int,
    shift: int,
    counts: Any,  # OUT (K) entries of each bucket, loops left out
) -> int:
    """Count, and give the number of loops; -1 if an index is outside of 0 .. n-1."""
    loops = 0
    for i in range(len(u)):
        a = np.int64(u[i])
        b = np.int64(v[i])
        if a < 0 or b < 0 or a >= n or b >= n:
            return -1
        if a == b:
            loops += 1
        else:
            counts[min(a, b) >> shift] += 1
    return loops


@compiled
def _fill_buckets(
    u: Any,  # IN  (m) checked by _count_buckets
    v: Any,  # IN  (m)
    shift: int,
    bits: int,
    cursor: Any,  # IN OUT (K) where the next key of a bucket goes
    keys: Any,  # OUT (m without loops)
) -> None:
    """Write the key of every entry, (lo within its bucket, hi, direction), into its bucket."""
    low = (1 << shift) - 1
    for i in range(len(u)):
        a = np.int64(u[i])
        b = np.int64(v[i])
        if a == b:
            continue
        lo = min(a, b)
        bucket = lo >> shift
        place = cursor[bucket]
        keys[place] = (lo & low) << (bits + 1) | max(a, b) << 1 | np.int64(b < a)
        cursor[bucket] = place + 1


@compiled
def _radix_sort(keys: Any, spare: Any, width: int, tally: Any) -> bool:
    """Sort `keys`, `width` bits at a time; tell whether the result is in `spare`."""
    size = len(keys)
    digits = len(tally)
    mask = (1 << width) - 1
    tally[:, :] = 0
    for i in range(size):
        key = np.int64(keys[i])
        for digit in range(digits):
            tally[digit, key & mask] += 1
            key >>= width
    source, target = keys, spare
    for digit in range(digits):
        total: Any = np.int64(0)
        for value in range(mask + 1):
            count = np.int64(tally[digit, value])
            tally[digit, value] = total
            total += count
        for i in range(size):
            key = np.int64(source[i])
            own = (key >> (digit * width)) & mask
            place = np.int64(tally[digit, own])
            target[place] = key
            tally[digit, own] = place + 1
        source, target = target, source
    return digits & 1 == 1


@compiled
def _sort_buckets(
    first: int,
    last: int,  # this thread's buckets
    starts: Any,  # IN  (K + 1)
    keys: Any,  # IN OUT, used up
    upper: Any,  # OUT: the same memory as indices, from starts[bucket] * stride on
    stride: int,
    shift: int,
    bits: int,
    width: int,
    tally: Any,  # (digits, 2**width) for the sort
    up: Any,  # OUT (n) neighbours above; this thread's rows only
    down: Any,  # OUT (n) neighbours below that this thread's rows give; its own array
) -> tuple[int, int]:
    """Sort every bucket, write each edge once, and count repeats and edges given both ways."""
    size = 0
    for bucket in range(first, last):
        size = max(size, starts[bucket + 1] - starts[bucket])
    spare = np.empty(size, keys.dtype)
    mask = (np.int64(1) << (bits + 1)) - 1
    repeated = 0
    both = 0
    for bucket in range(first, last):
        start = starts[bucket]
        end = starts[bucket + 1]
        if not _radix_sort(keys[start:end], spare, width, tally):
            spare[: end - start] = keys[start:end]  # what follows overwrites the keys
        base = bucket << shift
        place = start * stride
        previous = np.int64(-1)
        for i in range(end - start):
            key = np.int64(spare[i])
            if key >> 1 != previous >> 1:
                hi = (key & mask) >> 1
                upper[place] = hi
                place += 1
                down[hi] += 1
                up[base + (key >> (bits + 1))] += 1
            elif key == previous:
                repeated += 1
            else:
                both += 1
            previous = key
    return repeated, both


@compiled
def _start_rows(up: Any, down: Any, indptr: Any) -> Any:
    """Put the start of row v into indptr[v + 1], which _fill_rows moves on to its end."""
    total = np.int64(0)
    indptr[0] = 0
    for node in range(len(up)):
        indptr[node + 1] = total
        total += np.int64(up[node]) + np.int64(down[node])
    return total


@compiled
def _fill_rows(
    first: int,
    last: int,  # this thread's rows
    starts: Any,  # IN  (K + 1)
    shift: int,
    stride: int,
    upper: Any,  # IN
    up: Any,  # IN  (n)
    indptr: Any,  # IN OUT (n + 1) own rows: from their start to their end
    indices: Any,  # OUT (nnz)
) -> None:
    """Fill this thread's rows.

    Rows are walked in order, so when row v comes up all its neighbours below v are in place.
    """
    low = (1 << shift) - 1
    i = np.int64(0)
    for lo in range(last):
        if lo & low == 0:
            i = starts[lo >> shift] * stride
        end = i + up[lo]
        if lo >= first:
            place = np.int64(indptr[lo + 1])
            for j in range(i, end):
                indices[place + j - i] = upper[j]
            indptr[lo + 1] = place + end - i
        for j in range(i, end):
            hi = np.int64(upper[j])
            if hi >= last:
                break
            if hi >= first:
                place = np.int64(indptr[hi + 1])
                indices[place] = lo
                indptr[hi + 1] = place + 1
        i = end
