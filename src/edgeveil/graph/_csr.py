"""Pairs of node indices -> the CSR rows of the simple graph, undirected or directed.

An entry (u, v) is the arc u -> v and, undirected, v -> u as well. The key of an arc is its row,
its column, and a bit that is set for the reversed arc. ArcKeys are scattered into buckets of
neighbouring rows that fit into the processor's cache (few entries: one bucket). Each bucket is
sorted, repeats are dropped, and the columns overwrite the keys: besides the input, only the keys (8
or 16 bytes per entry) and the row starts need memory. From 5 million entries this takes 0.07 s, one
sort of all keys 0.17 s.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MOST_NODES = 2**31 - 1  # columns are 32-bit integers, and a key must fit into 64 bits

# With fewer entries, loading the compiled loops takes longer than they save
_LARGE = 1 << 20
# Measured at 10M and 100M entries: the best number of keys in a bucket, and of buckets
_BUCKET = 1 << 14
_MOST_BUCKETS_LOG = 11


class CSRArrays(NamedTuple):
    """A CSR structure, symmetric unless directed, and counts of what was dropped."""

    indptr: Array
    indices: Array
    self_loops: int
    repeated: int
    both_directions: int


class ArcKeys(NamedTuple):
    """The keys of all arcs: bucket k is keys[starts[k] : starts[k + 1]], rows k << shift on."""

    keys: Array
    starts: Array
    shift: int


def csr_of_pairs(u: Array, v: Array, n: int, *, directed: bool = False) -> CSRArrays | None:
    """Build the rows of the graph with these entries; None if an index is not in 0 .. n-1."""
    bits = max(1, (n - 1).bit_length())
    # directed: half as many arcs, sorted at once
    if directed or len(u) < _LARGE:
        if len(u) and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= n):
            return None
        buckets = _one_bucket(u, v, bits, directed=directed)
        loops = len(u) - len(buckets.keys) // (2 - directed)
    else:
        shift = bucket_shift(n, 2 * len(u))
        counts = np.zeros(max(1, ((n - 1) >> shift) + 1), dtype=np.int64)
        loops = count_buckets(u, v, n, shift, counts, directed=False)
        if loops < 0:
            return None
        buckets = scatter_pairs([(u, v)], n, shift, counts)
    degrees = np.zeros(n, dtype=np.int32)
    total, repeated, dropped = sort_buckets(buckets, bits, degrees)
    # frees the rest of the memory without a copy; no view of the keys is left
    words = buckets.keys.itemsize // 4
    buckets.keys.resize(-(-total // words), refcheck=False)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(degrees, out=indptr[1:])
    return CSRArrays(
        indptr,
        buckets.keys.view(np.int32)[:total],
        loops,
        repeated if directed else repeated // 2,  # an arc and its reverse were both counted
        (dropped - repeated) // 2,
    )


def _one_bucket(u: Array, v: Array, bits: int, *, directed: bool = False) -> ArcKeys:
    """The keys of few entries, or of directed ones, in one bucket."""
    no_loop = u != v
    u, v = (ends[no_loop].astype(np.uint64) for ends in (u, v))
    keys = u << (bits + 1) | v << 1
    if not directed:
        keys = np.concatenate([keys, v << (bits + 1) | u << 1 | 1])
    return ArcKeys(keys, np.array([0, len(keys)]), bits)


def bucket_shift(n: int, arcs: int) -> int:
    """The number of bits of a row within its bucket, for a graph of n nodes with `arcs` arcs."""
    bits = max(1, (n - 1).bit_length())
    return bits - min(_MOST_BUCKETS_LOG, (arcs // _BUCKET).bit_length(), bits)


def key_type(n: int, shift: int) -> type[np.uint32 | np.uint64]:
    """The narrowest type for a key: a row within its bucket, a column and a bit."""
    return np.uint32 if shift + max(1, (n - 1).bit_length()) + 1 <= 32 else np.uint64


def count_buckets(u: Array, v: Array, n: int, shift: int, counts: Array, *, directed: bool) -> int:
    """Count the arcs of each bucket; return the number of self-loops, -1 if an index is wrong."""
    from edgeveil.graph._csr_kernels import count_arcs

    return count_arcs(*_normalised(u, v), n, shift, not directed, counts)


def scatter_pairs(
    pairs: Iterable[tuple[Array, Array]],
    n: int,
    shift: int,
    counts: Array,
    *,
    first: int = 0,
    directed: bool = False,
) -> ArcKeys:
    """The keys of many entries that belong to some buckets, from `first` on, in compiled loops.

    `counts` must come from `count_buckets` of the same entries: the loops do not check bounds.
    """
    from edgeveil.graph._csr_kernels import scatter_arcs

    bits = max(1, (n - 1).bit_length())
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    keys = np.empty(int(starts[-1]), dtype=key_type(n, shift))
    cursor = starts[:-1].copy()
    for u, v in pairs:
        scatter_arcs(*_normalised(u, v), shift, bits, not directed, first, cursor, keys)
    return ArcKeys(keys, starts, shift)


def _normalised(u: Array, v: Array) -> tuple[Array, Array]:
    """Arrays of one type: the loops are compiled for each type."""
    kind = np.int32 if u.dtype == v.dtype == np.int32 else np.int64
    u, v = (np.ascontiguousarray(ends, dtype=kind).view() for ends in (u, v))
    u.flags.writeable = v.flags.writeable = False
    return u, v


def sort_buckets(buckets: ArcKeys, bits: int, degrees: Array) -> tuple[int, int, int]:
    """Sort each bucket; write the columns over the keys, from the front, and the rows' degrees.

    Returns the number of columns, of keys that repeat another, and of keys dropped.
    """
    # A column is no longer than a key, so columns never overwrite keys that are still needed.
    columns = buckets.keys.view(np.int32)
    total = repeated = 0
    for bucket, (start, end) in enumerate(pairwise(buckets.starts.tolist())):
        keys = buckets.keys[start:end]
        keys.sort()
        repeated += int(np.count_nonzero(keys[1:] == keys[:-1]))
        arcs = keys >> 1
        fresh = arcs[1:] != arcs[:-1]
        if not fresh.all():
            arcs = arcs[np.concatenate([[True], fresh])]
        columns[total : total + len(arcs)] = arcs & ((1 << bits) - 1)
        total += len(arcs)
        rows = degrees[bucket << buckets.shift : (bucket + 1) << buckets.shift]
        rows[:] = np.bincount((arcs >> bits).astype(np.intp), minlength=len(rows))
    return total, repeated, len(buckets.keys) - total
