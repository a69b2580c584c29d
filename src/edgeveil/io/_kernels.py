"""The compiled loop that numbers distinct keys; `columns` says what it is for."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled


@compiled
def number_keys(
    keys: Any,  # IN  (m) 64-bit unsigned integers
    factor: Any,  # odd, drawn at random: nobody can choose keys that share their places
    bits: int,
    codes: Any,  # OUT (m) the number of every key
    rows: Any,  # OUT (r) a row of every number; r < 2**bits, so that some place stays free
) -> int:
    """Number the distinct keys from 0 on, and give how many there are; -1 for more than r."""
    one, half, shift = np.uint64(1), np.uint64(32), np.uint64(64 - bits)
    last = np.uint64((1 << bits) - 1)
    table = np.zeros((1 << bits, 2), dtype=np.uint64)  # a key and its number, from 1; 0: free
    count = 0
    for i in range(len(keys)):
        key = keys[i]
        mixed = (key ^ key >> half) * factor
        place = ((mixed ^ mixed >> half) * factor) >> shift
        while table[place, 1] != 0 and table[place, 0] != key:
            place = (place + one) & last
        if table[place, 1] == 0:
            if count == len(rows):
                return -1
            rows[count] = i
            count += 1
            table[place, 0] = key
            table[place, 1] = np.uint64(count)
        codes[i] = table[place, 1] - one
    return count
