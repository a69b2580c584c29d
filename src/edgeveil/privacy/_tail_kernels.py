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
    scale: Any,  # as for `_sampler._fill_noisy`
    lattice: Any,  # as for `_sampler._fill_noisy`
    stays_below: Any,  # threshold, quarters of t per unit, low, high: `_Sampler.stays_below`
    noisy: Any,  # OUT  as long as `values`; -inf: below the threshold
    undecided: Any,  # OUT  as long as `values`
) -> None:
    """Noise on the values, two words each, where the words decide.

    Where the first word shows that a value stays below the threshold, the draw is not computed.
    """
    threshold, quarters, low, high = stays_below
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            at = begins[i] + 2 * (j - starts[i])
            if abs(values[j]) < np.inf:  # not NaN: what is not finite counts as 0
                gap = min((threshold - values[j]) * quarters, float(len(low)))
                if gap >= 2.0:
                    prefix = np.int64(words[at] >> _NOT_PREFIX)
                    if low[np.int64(gap) - 1] < prefix and prefix < high:
                        noisy[j], undecided[j] = -np.inf, False
                        continue
            own, to = words[at : at + 2], slice(j, j + 1)
            _fill_noisy(own, scale, values[to], lattice, noisy[to], undecided[to])


@compiled
def draw_exceedances(
    words: Any,  # IN
    begins: Any,  # IN   (rows) where the words for the zeros of each row begin
    size: Any,  # how many these are
    law: Any,  # `CountLaw.for_loops`
    scale: Any,  # as for `_sampler._fill_noisy`
    room: Any,  # those of row i are stored from i * room on
    found: Any,  # OUT  positions (rows * room), increasing; their excesses (2, rows * room),
    # high * 2**a + low; excesses undecided (rows * room); counts (rows), -1: `exact_exceedances`
    # must decide the row; the word, counted from `begins`, where excesses begin (rows)
) -> None:
    """Where zeros reach the threshold, and by how much, where the words decide."""
    positions, excess, undecided, counts, pairs = found
    for i in range(len(begins)):
        own = words[begins[i] : begins[i] + size]
        counts[i], pairs[i] = _sample_positions(own, law, positions[i * room : (i + 1) * room])
        for j in range(counts[i]):
            at, to = pairs[i] + 2 * j, i * room + j
            excess[0, to], excess[1, to], _, undecided[to] = _decide(
                own[at] & _NO_SIGN, own[at + 1], scale
            )


@inner
def _sample_positions(words: Any, law: Any, positions: Any) -> Any:
    """Count (-1: undecided) and words used; OUT ``positions``: distinct, increasing."""
    first, limits, coordinates, last_word = law
    at = np.searchsorted(limits, words[0], side="right")
    if at > 0 and limits[at - 1] == words[0]:
        return -1, 0
    count, have, used = first + at, 0, 1
    if count > len(positions):
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
                positions[have] = word % coordinates
                have += 1
        distinct = np.unique(positions[:have])
        have = len(distinct)
        positions[:have] = distinct
    return (count, used) if used + 2 * count <= len(words) else (-1, 0)


@compiled
def merge_rows(
    positions: Any,  # IN   increasing within a row
    noisy: Any,  # IN   noisy values there
    starts: Any,  # IN   (rows + 1)
    zeros: Any,  # IN   `_Exceedances`
    threshold: Any,
    found: Any,  # OUT  positions, values and starts (rows + 1) of what is kept
) -> None:
    """What reaches the threshold: given values, and zeros at positions that have no value."""
    zero_positions, zero_values, zero_starts, counts = zeros
    out_positions, out_values, out_starts = found
    used = 0
    out_starts[0] = 0
    for i in range(len(starts) - 1):
        at, end = zero_starts[i], zero_starts[i] + counts[i]
        for j in range(starts[i], starts[i + 1]):
            while at < end and zero_positions[at] < positions[j]:
                out_positions[used], out_values[used] = zero_positions[at], zero_values[at]
                used, at = used + 1, at + 1
            if at < end and zero_positions[at] == positions[j]:
                at += 1  # a given value has its own noise
            if noisy[j] >= threshold:
                out_positions[used], out_values[used] = positions[j], noisy[j]
                used += 1
        while at < end:
            out_positions[used], out_values[used] = zero_positions[at], zero_values[at]
            used, at = used + 1, at + 1
        out_starts[i + 1] = used
