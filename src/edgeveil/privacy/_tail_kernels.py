"""Compiled loops for `_tail`: noise of many rows, and what of them is released.

Also a digest of what is released, by which `mechanisms.run` sees that nobody wrote to it.

Arrays of all rows lie flat, with the start of each row. There are no bounds checks: every index
is below a size that the loop tests first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inlined, inner
from edgeveil.privacy._sampler import PREFIX_BITS, _decide, _fill_noisy

_NO_SIGN = np.uint64(2**64 - 2)
_NOT_PREFIX = np.uint64(64 - PREFIX_BITS)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_LEFT, _RIGHT = np.uint64(29), np.uint64(35)  # a rotation: no bit stays at the top


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
    begins: Any,  # IN   (rows + 1) where the words of each row begin
    values: Any,  # IN   of all rows
    starts: Any,  # IN   (rows + 1)
    scale: Any,  # T, mask of L, acceptance, margin: as for `_sampler._fill_noisy`
    lattice: Any,  # per_step, step, block, per_block, limit: as for `_sampler._fill_noisy`
    stays_below: Any,  # threshold, quarters of t per unit, low, high: `_Sampler.stays_below`
    noisy: Any,  # OUT  as long as `values`; -inf: below the threshold
    undecided: Any,  # OUT  as long as `values`
) -> None:
    """Noise on the values, two words each, as far as the words decide.

    Where the first word shows that a value stays below the threshold, the draw is not worked out.
    """
    T, mask, accept, margin = scale
    per_step, step, block, per_block, limit = lattice
    at_least, quarters, low, high = stays_below
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            at = begins[i] + 2 * (j - starts[i])
            if abs(values[j]) < np.inf:  # not NaN: what is not finite counts as 0
                gap = min((at_least - values[j]) * quarters, float(len(low)))
                if gap >= 2.0:
                    prefix = np.int64(words[at] >> _NOT_PREFIX)
                    if low[np.int64(gap) - 1] < prefix and prefix < high:
                        noisy[j], undecided[j] = -np.inf, False
                        continue
            _fill_noisy(
                words[at : at + 2], T, mask, accept, margin, values[j : j + 1],
                per_step, step, block, per_block, limit, noisy[j : j + 1], undecided[j : j + 1],
            )  # fmt: skip


@compiled
def draw_exceedances(
    words: Any,  # IN
    begins: Any,  # IN   (rows) where the words of each row of zeros begin
    size: Any,  # how many these are
    law: Any,  # first, limits, coordinates, last word that is used
    scale: Any,  # as in `noise_rows`
    room: Any,  # those of row i lie from i * room on
    places: Any,  # OUT  (rows * room) positions, rising
    highs: Any,  # OUT  (rows * room) their excesses, high * 2**a + low
    lows: Any,  # OUT
    undecided: Any,  # OUT  (rows * room) excesses
    counts: Any,  # OUT  (rows) how many; -1: `exact_exceedances` must decide the row
    pairs: Any,  # OUT  (rows) the word, counted from `begins`, where excesses begin
) -> None:
    """Where zeros exceed the threshold, and by how much, as far as the words decide."""
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
    """Count (-1: undecided) and words used; OUT ``places``: distinct, rising."""
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
    places: Any,  # IN   rising within a row
    noisy: Any,  # IN   noisy values there
    starts: Any,  # IN   (rows + 1)
    zeros: Any,  # IN   positions, noisy values, starts, counts of the zeros that exceed
    at_least: Any,
    out_places: Any,  # OUT  room for all that is kept
    out_values: Any,  # OUT
    out_starts: Any,  # OUT  (rows + 1)
) -> None:
    """What reaches the threshold: given values, and zeros at positions that have no value."""
    zero_places, zero_values, zero_starts, counts = zeros
    used = 0
    out_starts[0] = 0
    for i in range(len(starts) - 1):
        at, end = zero_starts[i], zero_starts[i] + counts[i]
        for j in range(starts[i], starts[i + 1]):
            while at < end and zero_places[at] < places[j]:
                out_places[used], out_values[used] = zero_places[at], zero_values[at]
                used, at = used + 1, at + 1
            if at < end and zero_places[at] == places[j]:
                at += 1  # a value has noise of its own
            if noisy[j] >= at_least:
                out_places[used], out_values[used] = places[j], noisy[j]
                used += 1
        while at < end:
            out_places[used], out_values[used] = zero_places[at], zero_values[at]
            used, at = used + 1, at + 1
        out_starts[i + 1] = used


@compiled
def totals(reach: Any, highs: Any, lows: Any, lattice: Any) -> Any:
    """Threshold plus excess as floats. As in `_sampler._fill_noisy`: a function of the sum alone.

    The threshold and the excesses are high * 2**a + low steps.
    """
    _, step, block, per_block, _ = lattice
    found = np.empty(len(highs))
    for i in range(len(highs)):
        below = reach[1] + lows[i]
        carry = np.floor(below * per_block)
        found[i] = ((reach[0] + (highs[i] + carry)) * block + (below - carry * block)) * step + 0.0
    return found


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
