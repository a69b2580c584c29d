"""Compiled loops for `_tail`: noise for many rows, and selection of what is released.

The rows of an array are stored one after the other, with an array of their starts. Indices are
not checked: every loop tests the size first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inner
from edgeveil.privacy._sampler import PREFIX_BITS, _decide, _fill_noisy

_NO_SIGN = np.uint64(2**64 - 2)
_NOT_PREFIX = np.uint64(64 - PREFIX_BITS)


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
    # Each round reads as many words as positions are missing, so no word beyond the last one
    # needed: the positions are those that one word after the other gives.
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
        distinct = np.unique(places[:have])
        have = len(distinct)
        places[:have] = distinct
    return (count, used) if used + 2 * count <= len(words) else (-1, 0)


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
