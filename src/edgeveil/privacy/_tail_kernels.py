"""Compiled loops for `_tail`: noise for many rows, and selection of what is released.

The rows of an array are stored one after the other, with an array of their starts. Indices are
not checked: every loop tests the size first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._internal.compiled import compiled, inner


@compiled
def sample_positions(
    words: Any,  # IN   (rows, `CountLaw.words`)
    law: Any,  # `CountLaw.for_loops`
    positions: Any,  # OUT  (rows, most) distinct, increasing
    counts: Any,  # OUT  (rows) how many; -1: `exact_positions` must decide the row
    used: Any,  # OUT  (rows) words used
) -> None:
    """Where zeros reach the threshold: a binomial count, then as many distinct positions."""
    for i in range(len(words)):
        counts[i], used[i] = _sample_row(words[i], law, positions[i])


@inner
def _sample_row(words: Any, law: Any, positions: Any) -> Any:
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
    # Two more words for each excess.
    return (count, used) if used + 2 * count <= len(words) else (-1, 0)


@compiled
def merge_rows(
    positions: Any,  # IN   increasing within a row
    noisy: Any,  # IN   noisy values there
    starts: Any,  # IN   (rows + 1)
    zeros: Any,  # IN   positions, values and starts of the zeros that reach the threshold
    threshold: Any,
    kept: Any,  # OUT  positions, values and starts (rows + 1)
) -> None:
    """What reaches the threshold: given values, and zeros at positions that have no value."""
    zero_positions, zero_values, zero_starts = zeros
    out_positions, out_values, out_starts = kept
    used = 0
    out_starts[0] = 0
    for i in range(len(starts) - 1):
        at, end = zero_starts[i], zero_starts[i + 1]
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
