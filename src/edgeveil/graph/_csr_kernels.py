"""Compiled loops that scatter arcs into buckets of rows (`_csr`) and number ids (`edges`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._internal.compiled import compiled

# m entries, n nodes, K buckets.


@compiled
def count_arcs(
    u: Any,  # IN  (m)
    v: Any,  # IN  (m)
    n: int,
    shift: int,
    both: bool,  # whether an entry stands for both directions
    counts: Any,  # IN OUT (K) arcs of each bucket, without self-loops; K > (n - 1) >> shift
) -> int:
    """Add to the counts; return the number of self-loops, -1 if an index is not in 0 .. n-1."""
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
def scatter_arcs(
    u: Any,  # IN  (m) every index was checked by count_arcs
    v: Any,  # IN  (m)
    shift: int,
    bits: int,
    both: bool,
    first: int,  # the bucket of cursor[0]; arcs of other buckets are skipped
    cursor: Any,  # IN OUT (K) where the next key of a bucket goes
    keys: Any,  # OUT (arcs of these buckets)
) -> None:
    """Write the keys of all arcs into the buckets of their rows."""
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


@compiled
def number_by_hash(
    keys: Any,  # IN  (m) 64-bit unsigned integers
    factor: Any,  # odd and random, so that an attacker cannot choose keys that collide
    table: Any,  # IN OUT (2**bits) 0: empty; else 32 bits of the hash, and the number from 1 on
    bits: int,
    count: int,  # numbers so far, less than 2**bits
    codes: Any,  # OUT (m) the number of every key
    rows: Any,  # OUT (m) an index in `keys` of every new number
) -> int:
    """Number the keys by open addressing; return how many numbers there are.

    -1 if they fill half of the table. Equal keys get one number. Very rarely different keys do,
    because the table stores 32 bits of the hash and not the key, which halves its size: the caller
    compares.
    """
    one, half, shift = np.uint64(1), np.uint64(32), np.uint64(64 - bits)
    last, number = np.uint64((1 << bits) - 1), np.uint64(2**32 - 1)
    before, most = count, 1 << (bits - 1)
    for i in range(len(keys)):
        key = keys[i]
        mixed = (key ^ key >> half) * factor
        mixed = (mixed ^ mixed >> half) * factor
        place, mark = mixed >> shift, mixed << half
        while True:
            slot = table[place]
            if slot == 0:
                if count >= most:
                    return -1
                rows[count - before] = i
                count += 1
                slot = table[place] = mark | np.uint64(count)
                break
            if slot & ~number == mark:
                break
            place = (place + one) & last
        codes[i] = (slot & number) - one
    return count
