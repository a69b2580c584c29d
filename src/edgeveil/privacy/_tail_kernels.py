"""Compiled loops for `_tail`: noise and marks of many rows, and what of them is released.

Also a digest of what is released, by which `mechanisms.run` sees that nobody wrote to it.

Arrays of all rows lie flat, with the start of each row. There are no bounds checks: every index
is below a size that the loop tests first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inlined, inner
from edgeveil.privacy._sampler import _decide, _fill_noisy

_NO_SIGN = np.uint64(2**64 - 2)
BLOCK = 1024  # values that share a vector of marks
_ODD = np.uint64(0x9E3779B97F4A7C15)
_LEFT, _RIGHT = np.uint64(29), np.uint64(35)  # a rotation: no bit stays at the top


@compiled
def write_counters(names: Any, starts: Any, counters: Any) -> None:
    """OUT ``counters`` (starts[-1],): name and number of each pair of words, row after row."""
    for i in range(len(names)):
        for at in range(starts[i], starts[i + 1], 2):
            counters[at] = names[i]
            counters[at + 1] = (at - starts[i]) >> 1


@compiled
def rising(places: Any, starts: Any, width: Any) -> bool:
    """Whether places rise within every row, from 0 to width - 1."""
    fit = True
    for i in range(len(starts) - 1):
        before = -1
        for j in range(starts[i], starts[i + 1]):
            fit &= places[j] > before
            before = places[j]
        fit &= before < width
    return fit


@compiled
def noise_rows(
    words: Any,  # IN
    begins: Any,  # IN   (rows) where the words of each row begin
    values: Any,  # IN   of all rows
    starts: Any,  # IN   (rows + 1)
    scale: Any,  # T, mask of L, acceptance, margin: as for `_sampler._fill_noisy`
    lattice: Any,  # per_step, step, block, per_block, limit: as for `_sampler._fill_noisy`
    noisy: Any,  # OUT  as long as `values`
    marks: Any,  # OUT  as long as `values`: undecided
) -> None:
    """Noise on the values, two words each, as far as the words decide."""
    T, mask, accept, margin = scale
    per_step, step, block, per_block, limit = lattice
    for i in range(len(begins)):
        first, last = starts[i], starts[i + 1]
        _fill_noisy(
            words[begins[i] : begins[i] + 2 * (last - first)], T, mask, accept, margin,
            values[first:last], per_step, step, block, per_block, limit,
            noisy[first:last], marks[first:last],
        )  # fmt: skip


@compiled
def draw_marks(
    words: Any,  # IN
    begins: Any,  # IN   (vectors) where the words of each vector of zeros begin
    size: Any,  # how many these are
    law: Any,  # first, limits, coordinates, last word that is used
    scale: Any,  # as in `noise_rows`
    room: Any,  # marks of vector i lie from i * room on
    places: Any,  # OUT  (vectors * room) of marks, rising
    highs: Any,  # OUT  (vectors * room) their excesses, high * 2**a + low
    lows: Any,  # OUT
    undecided: Any,  # OUT  (vectors * room) of excesses
    counts: Any,  # OUT  (vectors) number of marks; -1: `exact_marks` must decide the vector
    pairs: Any,  # OUT  (vectors) the word, counted in its vector, where excesses begin
) -> None:
    """Marks among zeros, as far as the words decide."""
    T, mask, accept, margin = scale
    for i in range(len(begins)):
        own = words[begins[i] : begins[i] + size]
        counts[i], pairs[i] = _place(own, law, places[i * room : (i + 1) * room])
        for j in range(counts[i]):
            at, to = pairs[i] + 2 * j, i * room + j
            highs[to], lows[to], _, undecided[to] = _decide(
                own[at] & _NO_SIGN, own[at + 1], T, mask, accept, margin
            )


@inner
def _place(words: Any, law: Any, places: Any) -> Any:
    """Number of marks (-1: undecided) and words used; OUT ``places``: distinct, rising."""
    first, limits, coordinates, last_word = law
    at = np.searchsorted(limits, words[0], side="right")
    if at > 0 and limits[at - 1] == words[0]:
        return -1, 0
    count, have, used = first + at, 0, 1
    if count > len(places):
        return -1, 0
    # As many words as places are missing, until none is: words beyond the last missing place
    # are never looked at, so these are the places that one word after the other gives.
    while have < count:
        if used + count - have > len(words):
            return -1, 0
        end = used + count - have
        while used < end:
            word = words[used]
            used += 1
            if word <= last_word:
                places[have] = word % coordinates
                have += 1
        _sort(places[:have], coordinates)
        kept = 0
        for j in range(have):
            if kept == 0 or places[j] != places[kept - 1]:
                places[kept] = places[j]
                kept += 1
        have = kept
    return (count, used) if used + 2 * count <= len(words) else (-1, 0)


@inner
def _sort(places: Any, coordinates: Any) -> None:
    """Sort evenly spread numbers below ``coordinates``: by buckets, about one to each."""
    size = len(places)
    per_place = size / np.float64(coordinates)
    ends = np.zeros(size + 1, dtype=np.int64)
    buckets, before = np.empty(size, dtype=np.int64), places.copy()
    for j in range(size):
        # Does not fall with the place, however it is rounded.
        bucket: Any = min(np.int64(places[j] * per_place), size - 1)
        buckets[j] = bucket
        ends[bucket + 1] += 1
    for b in range(size):
        ends[b + 1] += ends[b]
    for j in range(size):
        bucket = buckets[j]
        places[ends[bucket]] = before[j]
        ends[bucket] += 1
    for j in range(1, size):  # within the buckets
        place, at = places[j], j
        while at > 0 and places[at - 1] > place:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place


@compiled
def merge_rows(
    rows: Any,  # IN   places, rising within a row, their values, starts (rows + 1)
    edge: Any,  # of values up to here the noise hangs on marks
    of_zeros: Any,  # IN   a vector for each row: places, highs, lows, starts, counts
    of_values: Any,  # IN   the same for each block of values
    blocks: Any,  # IN   (rows + 1) the first block of each row
    beyond: Any,  # IN   indices of values beyond the edge, noisy values, starts (rows + 1)
    reach: Any,  # the threshold and the distance from it to the edge, by 2**a: high, low of each
    lattice: Any,  # as in `noise_rows`
    at_least: Any,
    out_places: Any,  # OUT  room for all marks and all values beyond the edge that are kept
    out_values: Any,  # OUT
    out_starts: Any,  # OUT  (rows + 1)
) -> None:
    """What reaches the threshold: values there, and marks among zeros that lie on no value."""
    places, values, starts = rows
    mark_places, highs, lows, mark_starts, counts = of_zeros
    value_places, value_highs, value_lows, value_starts, value_counts = of_values
    indices, noisy, noisy_starts = beyond
    kept, totals = np.empty(len(out_places), dtype=np.int64), np.empty(len(out_places))
    used = 0
    out_starts[0] = 0
    for i in range(len(starts) - 1):
        count, first, end = 0, starts[i], starts[i + 1]
        for b in range(blocks[i], blocks[i + 1]):
            for j in range(value_starts[b], value_starts[b] + value_counts[b]):
                at = first + (b - blocks[i]) * BLOCK + value_places[j]
                if at < end and values[at] <= edge:
                    total = _total(values[at], reach[2:], value_highs[j], value_lows[j], lattice)
                    if total >= at_least:
                        kept[count], totals[count] = at, total
                        count += 1
        small = count  # in order, and so are those beyond the edge: merged from the last on
        for j in range(noisy_starts[i], noisy_starts[i + 1]):
            if noisy[j] >= at_least:
                count += 1
        to = count
        for j in range(noisy_starts[i + 1] - 1, noisy_starts[i] - 1, -1):
            if noisy[j] >= at_least:
                while small > 0 and kept[small - 1] > indices[j]:
                    small, to = small - 1, to - 1
                    kept[to], totals[to] = kept[small], totals[small]
                to -= 1
                kept[to], totals[to] = indices[j], noisy[j]
        low = first
        j = 0
        for mark in range(mark_starts[i], mark_starts[i] + counts[i]):
            place, high = mark_places[mark], end
            while low < high:  # the first value from this place on
                middle = (low + high) >> 1
                if places[middle] < place:
                    low = middle + 1
                else:
                    high = middle
            while j < count and kept[j] < low:
                out_places[used], out_values[used] = places[kept[j]], totals[j]
                used, j = used + 1, j + 1
            if low == end or places[low] != place:  # a value has noise of its own
                out_places[used] = place
                out_values[used] = _total(0.0, reach[:2], highs[mark], lows[mark], lattice)
                used += 1
        while j < count:
            out_places[used], out_values[used] = places[kept[j]], totals[j]
            used, j = used + 1, j + 1
        out_starts[i + 1] = used


@inner
def _total(value: Any, reach: Any, high: Any, low: Any, lattice: Any) -> Any:
    """A value with this much noise. As in `_sampler._fill_noisy`: a function of the sum alone."""
    per_step, step, block, per_block, limit = lattice
    if not abs(value) < np.inf:
        value = 0.0
    y = np.rint(min(max(value * per_step, -limit), limit))
    y_high = np.floor(y * per_block)
    below = (y - y_high * block) + (reach[1] + low)
    carry = np.floor(below * per_block)
    total = (y_high + (reach[0] + (high + carry))) * block + (below - carry * block)
    return total * step + 0.0


@compiled
def digest_words(words: Any) -> Any:
    """A digest of uint64 words and their order, in four lanes, word i in lane i mod 4.

    One word that changes always changes it; no hash against somebody who looks for collisions.
    """
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = len(words) // 4 * 4
    for i in range(0, whole, 4):
        a, b = _stir(a, words[i]), _stir(b, words[i + 1])
        c, d = _stir(c, words[i + 2]), _stir(d, words[i + 3])
    for i in range(whole, len(words)):
        a = _stir(a, words[i])
    return _stir(_stir(_stir(a, b), c), d)


@inlined
def _stir(state: Any, word: Any) -> Any:
    mixed = state ^ word
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _ODD
