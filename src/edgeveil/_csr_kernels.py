"""The compiled loops that deal arcs into buckets of rows; `_csr` says what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled

# m entries, n nodes, K buckets; arrays that are only read may be read-only.


@compiled
def count_arcs(
    u: Any,  # IN  (m)
    v: Any,  # IN  (m)
    n: int,
    shift: int,
    both: bool,  # whether an entry is an arc each way
    counts: Any,  # IN OUT (K) arcs of each bucket, loops left out; K > (n - 1) >> shift
) -> int:
    """Add to the counts, and give the number of loops; -1 if an index is not in 0 .. n-1."""
    loops = 0
    for i in range(len(u)):
        a = np.int64(u[i])
        b = np.int64(v[i])
        if a < 0 or b < 0 or a >= n or b >= n:
            return -1
        if a == b:
            loops += 1
        else:
            counts[a >> shift] += 1
            if both:
                counts[b >> shift] += 1
    return loops


@compiled
def deal_arcs(
    u: Any,  # IN  (m) every index was checked by count_arcs
    v: Any,  # IN  (m)
    shift: int,
    bits: int,
    both: bool,
    first: int,  # the bucket of cursor[0]; arcs of other buckets are left out
    cursor: Any,  # IN OUT (K) where the next key of a bucket goes, from the counts of count_arcs
    keys: Any,  # OUT (arcs of these buckets)
) -> None:
    """Write the keys of the arcs of every entry into the buckets of their rows."""
    within, last = (1 << shift) - 1, first + len(cursor)
    for i in range(len(u)):
        a = np.int64(u[i])
        b = np.int64(v[i])
        if a != b:
            bucket = a >> shift
            if first <= bucket < last:
                place = cursor[bucket - first]
                cursor[bucket - first] = place + 1
                keys[place] = (a & within) << (bits + 1) | b << 1
            bucket = b >> shift
            if both and first <= bucket < last:
                place = cursor[bucket - first]
                cursor[bucket - first] = place + 1
                keys[place] = (b & within) << (bits + 1) | a << 1 | 1
