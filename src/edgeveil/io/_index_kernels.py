"""Integer ids -> indices: by a table over their range, or by hashing where that is too wide."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._compiled import compiled, inlined

__all__ = [
    "find_integers",
    "hash_table",
    "list_integers",
    "look_up",
    "mark_seen",
    "number_integers",
]


@compiled
def mark_seen(
    ids: Any,  # IN  (m) all from low to low + len(seen) - 1
    low: int,
    seen: Any,  # OUT bool, over the whole range of the ids
) -> None:
    """Mark every id."""
    for i in range(len(ids)):
        seen[np.int64(ids[i]) - low] = True


@compiled
def look_up(
    ids: Any,  # IN  (m) any
    low: int,
    high: int,
    table: Any,  # IN  (high - low + 1) index of each id from low to high, or -1
    found: Any,  # OUT (m)
) -> None:
    """Give the index of every id, -1 where there is none."""
    for i in range(len(ids)):
        number = np.int64(ids[i])
        found[i] = table[number - low] if low <= number <= high else -1


# A hash table is 2**k x 2: an id, and its code + 1 (0: empty); at most half full. An id is
# compared itself, so two ids with one hash stay two. The multiplier is random: nobody can
# choose ids that all want the same slot.


def hash_table() -> tuple[np.uint64, npt.NDArray[np.int64]]:
    """Give an odd random word and an empty table."""
    seed = np.frombuffer(os.urandom(8), dtype=np.uint64)[0] | np.uint64(1)
    return seed, np.zeros((1 << 10, 2), dtype=np.int64)


@inlined
def _slot(number: Any, seed: Any, slots: int) -> Any:
    h = np.uint64(number) * seed
    h = (h ^ (h >> np.uint64(32))) * seed
    return np.int64((h ^ (h >> np.uint64(32))) & np.uint64(slots - 1))


@compiled
def _twice_as_large(table: Any, seed: Any) -> Any:
    slots = 2 * len(table)
    larger = np.zeros((slots, 2), np.int64)
    for old in range(len(table)):
        if table[old, 1]:
            slot = _slot(table[old, 0], seed, slots)
            while larger[slot, 1]:
                slot = (slot + 1) & (slots - 1)
            larger[slot, 0] = table[old, 0]
            larger[slot, 1] = table[old, 1]
    return larger


@compiled
def number_integers(
    ids: Any,  # IN  (m)
    seed: Any,  # an odd random word
    table: Any,  # IN OUT, used up
    count: int,  # ids in the table
    codes: Any,  # OUT (m) each id's number in the order in which they came
) -> tuple[int, Any]:
    """Number ids; give how many different ones there are now, and the table."""
    slots = len(table)
    for i in range(len(ids)):
        number = np.int64(ids[i])
        slot = _slot(number, seed, slots)
        while table[slot, 1] and table[slot, 0] != number:
            slot = (slot + 1) & (slots - 1)
        if table[slot, 1] == 0:
            count += 1
            table[slot, 0] = number
            table[slot, 1] = count
        codes[i] = table[slot, 1] - 1
        if 2 * count > slots:
            table = _twice_as_large(table, seed)
            slots = len(table)
    return count, table


@compiled
def find_integers(
    ids: Any,  # IN  (m)
    seed: Any,
    table: Any,  # IN
    found: Any,  # OUT (m) each id's number, -1 where it has none
) -> None:
    """Look ids up without adding them."""
    slots = len(table)
    for i in range(len(ids)):
        number = np.int64(ids[i])
        slot = _slot(number, seed, slots)
        while table[slot, 1] and table[slot, 0] != number:
            slot = (slot + 1) & (slots - 1)
        found[i] = table[slot, 1] - 1


@compiled
def list_integers(table: Any, ids: Any) -> None:
    """List the ids of a table by their numbers."""
    for slot in range(len(table)):
        if table[slot, 1]:
            ids[table[slot, 1] - 1] = table[slot, 0]
