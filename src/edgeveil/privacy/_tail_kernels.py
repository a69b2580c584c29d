"""Compiled loops for `_tail`: noise and marks of many rows, and what of them is released.

Arrays of all rows lie flat, with the start of each row. There are no bounds checks: every index
is below a size that the loop tests first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled
from edgeveil.privacy._sampler import _decide, _fill_noisy

_NO_SIGN = np.uint64(2**64 - 2)
_NO_PLACE = np.int64(2**63 - 1)


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
def draw_rows(
    words: Any,  # IN   of each row: two for each value, then those for its marks
    word_starts: Any,  # IN   (rows + 1)
    values: Any,  # IN   of all rows
    starts: Any,  # IN   (rows + 1)
    scale: Any,  # T, mask of L, acceptance, margin: as for `_sampler._fill_noisy`
    lattice: Any,  # per_step, step, block, per_block, limit: as for `_sampler._fill_noisy`
    law: Any,  # first, limits, coordinates
    reach: Any,  # the threshold as quotient and remainder by 2**a, floats
    noisy: Any,  # OUT  as long as `values`
    marks: Any,  # OUT  as long as `values`: undecided
    room: Any,  # IN   marks of row i lie from i * room on
    places: Any,  # OUT  (rows * room) of marks, rising
    totals: Any,  # OUT  (rows * room) their noisy values
    open_totals: Any,  # OUT  (rows * room) undecided
    counts: Any,  # OUT  (rows) number of marks; -1: `exact_marks` must decide the row
    pairs: Any,  # OUT  (rows) the word, counted in its row's marks, where excesses begin
) -> None:
    """Noise on the values and marks among zeros, as far as the words decide."""
    T, mask, accept, margin = scale
    per_step, step, block, per_block, limit = lattice
    for i in range(len(starts) - 1):
        first, last, at = starts[i], starts[i + 1], word_starts[i]
        behind = at + 2 * (last - first)
        _fill_noisy(
            words[at:behind], T, mask, accept, margin,
            values[first:last], per_step, step, block, per_block, limit,
            noisy[first:last], marks[first:last],
        )  # fmt: skip
        own = words[behind : word_starts[i + 1]]
        some = slice(i * room, (i + 1) * room)
        counts[i], pairs[i] = _place(own, law, places[some])
        if counts[i] > 0:
            excess = own[pairs[i] : pairs[i] + 2 * counts[i]]
            out, undecided = totals[some], open_totals[some]
            for j in range(counts[i]):
                high, low, _, undecided[j] = _decide(
                    excess[2 * j] & _NO_SIGN, excess[2 * j + 1], T, mask, accept, margin
                )
                # As in `_fill_noisy`: exact but for roundings that hang on the sum alone.
                below = reach[1] + low
                carry = np.floor(below * per_block)
                total = (reach[0] + (high + carry)) * block + (below - carry * block)
                out[j] = total * step + 0.0


@compiled
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


@compiled
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
    places: Any,  # IN   of non-zero values, rising within a row
    noisy: Any,  # IN
    starts: Any,  # IN   (rows + 1)
    at_least: Any,
    mark_places: Any,  # IN   rising within a row
    mark_totals: Any,  # IN
    mark_starts: Any,  # IN   (rows)
    counts: Any,  # IN   (rows)
    out_places: Any,  # OUT  room for all values that reach it and all marks
    out_values: Any,  # OUT
    out_starts: Any,  # OUT  (rows + 1)
) -> None:
    """What reaches the threshold: values there, and marks that lie on no value."""
    used = 0
    out_starts[0] = 0
    for i in range(len(starts) - 1):
        mark, end = mark_starts[i], mark_starts[i] + counts[i]
        coming = mark_places[mark] if mark < end else _NO_PLACE
        for j in range(starts[i], starts[i + 1]):
            place = np.int64(places[j])
            while coming <= place:
                if coming < place:  # the mark on a value is dropped: that has noise of its own
                    out_places[used], out_values[used] = coming, mark_totals[mark]
                    used += 1
                mark += 1
                coming = mark_places[mark] if mark < end else _NO_PLACE
            if noisy[j] >= at_least:
                out_places[used], out_values[used] = place, noisy[j]
                used += 1
        while mark < end:
            out_places[used], out_values[used] = mark_places[mark], mark_totals[mark]
            used, mark = used + 1, mark + 1
        out_starts[i + 1] = used
