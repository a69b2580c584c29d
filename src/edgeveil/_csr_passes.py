"""The compiled passes from pairs of ids to CSR rows; `_csr_kernels` says what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled

__all__ = [
    "count_buckets",
    "deal_lower",
    "fill_buckets",
    "fill_rows",
    "rank_seen",
    "sort_buckets",
]

# n ids, m entries, K buckets; arrays that are only read may be read-only.


@compiled
def count_buckets(
    u: Any,  # IN  (m)
    v: Any,  # IN  (m)
    low: int,
    n: int,
    shift: int,
    seen: Any,  # OUT (n) ids with loops; or empty
    counts: Any,  # OUT (K) entries of each bucket, loops left out
) -> int:
    """Count, and give the number of loops; -1 if an id is outside of low .. low + n - 1."""
    loops = 0
    marks = len(seen) > 0
    for i in range(len(u)):
        a = np.int64(u[i]) - low
        b = np.int64(v[i]) - low
        if a < 0 or b < 0 or a >= n or b >= n:
            return -1
        if a == b:
            loops += 1
            if marks:
                seen[a] = True
        else:
            counts[min(a, b) >> shift] += 1
    return loops


@compiled
def fill_buckets(
    u: Any,  # IN  (m) checked by count_buckets
    v: Any,  # IN  (m)
    low: int,
    shift: int,
    bits: int,
    cursor: Any,  # IN OUT (K) where the next key of a bucket goes
    keys: Any,  # OUT (m without loops)
) -> None:
    """Write the key of every entry, (lo within its bucket, hi, direction), into its bucket."""
    within = (1 << shift) - 1
    for i in range(len(u)):
        a = np.int64(u[i]) - low
        b = np.int64(v[i]) - low
        if a == b:
            continue
        lo = min(a, b)
        bucket = lo >> shift
        place = cursor[bucket]
        keys[place] = (lo & within) << (bits + 1) | max(a, b) << 1 | np.int64(b < a)
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
        tally[0, key & mask] += 1
        if digits > 1:
            tally[1, (key >> width) & mask] += 1
        if digits > 2:
            tally[2, (key >> (2 * width)) & mask] += 1
        for digit in range(3, digits):
            tally[digit, (key >> (digit * width)) & mask] += 1
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
def sort_buckets(
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
    ends: Any,  # OUT (n) where a row of the upper triangle ends; 0 stays where it is empty
    seen: Any,  # OUT (n) ids that are some hi; or empty
    above: Any,  # OUT (K) edges whose lo is in the bucket; this thread's buckets only
    below: Any,  # OUT (K) edges of this thread whose hi is in the bucket
) -> tuple[int, int]:
    """Sort every bucket, write each edge once, and count repeats and edges given both ways."""
    size = 0
    for bucket in range(first, last):
        size = max(size, starts[bucket + 1] - starts[bucket])
    spare = np.empty(size, keys.dtype)
    mask = (np.int64(1) << (bits + 1)) - 1
    marks = len(seen) > 0
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
                below[hi >> shift] += 1
                if marks:
                    seen[hi] = True
                ends[base + (key >> (bits + 1))] = place
            elif key == previous:
                repeated += 1
            else:
                both += 1
            previous = key
        above[bucket] = place - start * stride
    return repeated, both


@compiled
def rank_seen(seen: Any, rank: Any) -> Any:
    """Number the ids seen, give the others the number of the next, and give how many there are."""
    count = np.int64(0)
    for i in range(len(seen)):
        rank[i] = count
        count += seen[i]
    rank[len(seen)] = count
    return count


@compiled
def deal_lower(
    first: int,
    last: int,  # this thread's buckets of the upper triangle
    starts: Any,  # IN  (K + 1)
    upper: Any,  # IN
    stride: int,
    shift: int,
    bits: int,
    ends: Any,  # IN  (n)
    rank: Any,  # IN  (n + 1) the index of every id; empty if that is the id
    cursor: Any,  # IN OUT (K) where the next lo of a bucket goes
    skips: Any,  # IN  (K) from a place in the indices to one in the offsets
    offsets: Any,  # OUT the row within its bucket; empty if that and lo go into one word
    indices: Any,  # OUT
) -> None:
    """Put lo of every edge into the bucket of hi."""
    within = (1 << shift) - 1
    packed = len(offsets) == 0
    ranked = len(rank) > 0
    for bucket in range(first, last):
        i = starts[bucket] * stride
        base = bucket << shift
        for lo in range(base, min(base + within + 1, len(ends))):
            end = np.int64(ends[lo])
            value = np.int64(rank[lo]) if ranked else lo
            while i < end:
                hi = np.int64(upper[i])
                target = hi >> shift
                place = cursor[target]
                cursor[target] = place + 1
                if packed:
                    indices[place] = (hi & within) << bits | value
                else:
                    indices[place] = value
                    offsets[place - skips[target]] = hi & within
                i += 1


@compiled
def fill_rows(
    first: int,
    last: int,  # this thread's buckets
    starts: Any,  # IN  (K + 1)
    upper: Any,  # IN
    stride: int,
    shift: int,
    bits: int,
    ends: Any,  # IN  (n)
    rank: Any,  # IN  (n + 1) or empty
    row_starts: Any,  # IN  (K + 1)
    above: Any,  # IN  (K)
    skips: Any,  # IN  (K)
    offsets: Any,  # IN  or empty
    indptr: Any,  # OUT
    indices: Any,  # IN OUT each bucket: room for the upper triangle and the lower one as dealt
) -> None:
    """Make rows of the two triangles: neighbours below, then neighbours above."""
    within = (1 << shift) - 1
    value_mask = (np.int64(1) << bits) - 1
    packed = len(offsets) == 0
    ranked = len(rank) > 0
    size = 0
    for bucket in range(first, last):
        size = max(size, row_starts[bucket + 1] - row_starts[bucket] - above[bucket])
    lower = np.empty(size, indices.dtype)
    cursor = np.empty(within + 1, np.int64)
    for bucket in range(first, last):
        start = row_starts[bucket] + above[bucket]
        skip = skips[bucket]
        count = row_starts[bucket + 1] - start
        cursor[:] = 0
        for k in range(count):
            word = np.int64(indices[start + k])
            lower[k] = word
            cursor[word >> bits if packed else np.int64(offsets[start + k - skip])] += 1
        base = bucket << shift
        place = row_starts[bucket]
        i = starts[bucket] * stride
        for row in range(min(within + 1, len(ends) - base)):
            indptr[np.int64(rank[base + row]) if ranked else base + row] = place
            own = cursor[row]
            cursor[row] = place
            place += own
            end = np.int64(ends[base + row])
            while i < end:
                hi = np.int64(upper[i])
                indices[place] = np.int64(rank[hi]) if ranked else hi
                place += 1
                i += 1
        for k in range(count):
            word = np.int64(lower[k])
            own = word >> bits if packed else np.int64(offsets[start + k - skip])
            place = cursor[own]
            indices[place] = word & value_mask if packed else word
            cursor[own] = place + 1
