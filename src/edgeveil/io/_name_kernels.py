"""Compiled loops over plain text: names -> their numbers, and the distinct names.

Plain as in `_text_kernels`. The names seen so far are a table of slots, 2**k x 4 words, at most
half full:

    0  the name's first 8 bytes, zeros where it is shorter
    1  its next 8 bytes; for a name of more than 16 bytes a hash of all but the first 8
    2  length << 32 | its number + 1; 0 in an empty slot
    3  where it begins in the text

Equal words 0 to 2 mean equal names up to 16 bytes; longer ones are compared in the text. So a
hash never decides that two names are one. Its multipliers are drawn at random for each file:
nobody can write names that all want the same slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inlined, load_word, trailing_zeros
from edgeveil.io._text_kernels import HIGH, NEWLINE, ONES, RETURN, last_word

__all__ = ["add_names", "copy_names", "list_names", "move_names", "name_keys", "name_rows"]

_HASH, _PERCENT, _BLANK, _TAB = 35, 37, 32, 9
_ONE = np.uint64(1)
_LOW32 = np.uint64(0xFFFFFFFF)
_BATCH = 256  # names


@inlined
def _slot(head: Any, rest: Any, length: Any, one: Any, two: Any, three: Any, slots: int) -> Any:
    """Give the slot where the search for a name begins."""
    h = (head ^ np.uint64(length)) * one
    h = (h ^ (h >> np.uint64(32)) ^ rest) * two
    h = (h ^ (h >> np.uint64(32))) * three
    return np.int64((h ^ (h >> np.uint64(32))) & np.uint64(slots - 1))


@inlined
def _ends(word: Any, marks: Any, feeds: Any) -> Any:
    """Mark the lowest byte of a word that ends a name (marks above it may be wrong)."""
    x = word ^ marks
    y = word ^ feeds
    return (((x - ONES) & ~x) | ((y - ONES) & ~y)) & HIGH


@compiled
def _long_name(
    data: Any, begin: int, size: int, marks: Any, feeds: Any, seeds: Any
) -> tuple[Any, Any, int]:
    """Give words 0 and 1 of a name of any length, and where it ends: `size` at the latest."""
    head = np.uint64(0)
    rest = np.uint64(0)
    i = begin
    while i < size:
        word = load_word(data, i) if i + 8 <= size else last_word(data, i, size)
        count = min(trailing_zeros(_ends(word, marks, feeds)) >> 3, size - i)
        if count:
            word &= ~np.uint64(0) >> np.uint64(64 - 8 * count)
            if i == begin:
                head = word
            elif i == begin + 8:
                rest = word
            else:
                rest = (rest ^ (rest >> np.uint64(32))) * seeds[3] + word
        i += count
        if count < 8:
            break
    return head, rest, i


@compiled
def _is_same_text(data: Any, a: Any, b: Any, length: int) -> bool:
    for k in range(length):  # noqa: SIM110 numba knows no generators
        if data[a + k] != data[b + k]:
            return False
    return True


@inlined
def _is_blank(byte: int) -> bool:
    return byte in (_BLANK, _TAB)


@compiled
def move_names(
    table: Any,  # IN
    seeds: Any,  # IN  (4)
    larger: Any,  # OUT an empty table with more slots
) -> None:
    """Put all names of a table into a larger one."""
    slots = len(larger)
    one, two, three = seeds[0], seeds[1], seeds[2]
    for old in range(len(table)):
        if table[old, 2]:
            length = np.int64(table[old, 2] >> np.uint64(32))
            slot = _slot(table[old, 0], table[old, 1], length, one, two, three, slots)
            while larger[slot, 2]:
                slot = (slot + 1) & (slots - 1)
            for k in range(4):
                larger[slot, k] = table[old, k]


@compiled
def _number_names(
    data: Any,  # IN  (size) uint8
    table: Any,  # IN OUT with room for the batch
    seeds: Any,  # IN  (4)
    names: int,  # in the table so far
    heads: Any,  # IN  (batch) word 0 of each name
    rests: Any,  # IN  (batch) word 1
    lengths: Any,  # IN  (batch)
    begins: Any,  # IN  (batch)
    count: int,  # names in the batch
    codes: Any,  # OUT (batch + 1) the number of each name
) -> int:
    """Number a batch of names and give how many the table holds then.

    All their slots are fetched before the first is looked at: the waits for memory overlap.
    """
    slots = len(table)
    one, two, three = seeds[0], seeds[1], seeds[2]
    fetched = np.uint64(0)
    for k in range(count):
        slot = _slot(heads[k], rests[k], lengths[k], one, two, three, slots)
        fetched |= table[slot, 2]
        codes[k] = slot
    codes[count] = np.int64(fetched & _ONE)  # or the compiler would leave the fetching out
    for k in range(count):
        head, rest, length, slot = heads[k], rests[k], lengths[k], codes[k]
        code: Any = np.int64(-1)
        while True:
            mark = table[slot, 2]
            if mark == 0:
                break
            if (
                table[slot, 0] == head
                and table[slot, 1] == rest
                and mark >> np.uint64(32) == np.uint64(length)
            ):
                place = np.int64(table[slot, 3])
                if length <= 16 or _is_same_text(data, place, begins[k], length):
                    code = np.int64(mark & _LOW32) - 1
                    break
            slot = (slot + 1) & (slots - 1)
        if code < 0:
            code = names
            names += 1
            table[slot, 0] = head
            table[slot, 1] = rest
            table[slot, 2] = np.uint64(length) << np.uint64(32) | np.uint64(names)
            table[slot, 3] = np.uint64(begins[k])
        codes[k] = code
    return names


@compiled
def name_rows(
    data: Any,  # IN  (size) uint8, without quotes
    i: int,  # where to go on
    stop: int,  # where this thread's lines end
    delimiter: int,
    returns: bool,  # whether lines end in a carriage return and a line feed
    seeds: Any,  # IN  (4) odd random words
    table: Any,  # IN OUT
    names: int,  # in the table
    first: Any,  # OUT (rows) as many as this thread has lines
    second: Any,  # OUT (rows)
    row: int,  # the next one
) -> tuple[int, int, int]:
    """Number the names of every line in the order in which they come.

    Returns where it came to (before `stop` if the table has no room, -1 if a line is not
    plain), the number of names, and the next row.
    """
    marks = ONES * np.uint64(delimiter)
    feeds = ONES * np.uint64(NEWLINE)
    heads = np.empty(_BATCH, np.uint64)
    rests = np.empty(_BATCH, np.uint64)
    lengths = np.empty(_BATCH, np.int64)
    begins = np.empty(_BATCH, np.int64)
    codes = np.empty(_BATCH + 1, np.int64)
    while i < stop and 2 * (names + _BATCH) <= len(table):
        count = 0
        while i < stop and count < _BATCH:
            ends = np.uint64(0)
            if i + 16 <= stop:
                one = load_word(data, i)
                two = load_word(data, i + 8)
                ends = _ends(one, marks, feeds)
                more = _ends(two, marks, feeds)
            if ends:
                size = trailing_zeros(ends) >> 3
                head = one & ((_ONE << np.uint64(8 * size)) - _ONE)
                rest = np.uint64(0)
                end = i + size
            elif i + 16 <= stop and more:
                size = trailing_zeros(more) >> 3
                head = one
                rest = two & ((_ONE << np.uint64(8 * size)) - _ONE)
                end = i + 8 + size
            else:
                head, rest, end = _long_name(data, i, stop, marks, feeds, seeds)
            second_half = count & 1
            after = end + 1
            if second_half:
                if end < stop and data[end] != NEWLINE:
                    return -1, names, row
                if returns:  # the words hold it too: take them once more without
                    if end <= i or data[end - 1] != RETURN:
                        return -1, names, row
                    head, rest, end = _long_name(data, i, end - 1, marks, feeds, seeds)
            elif end >= stop or data[end] != delimiter or data[i] == _HASH or data[i] == _PERCENT:
                return -1, names, row
            if end <= i or end - i >= 1 << 31 or _is_blank(data[i]) or _is_blank(data[end - 1]):
                return -1, names, row
            heads[count] = head
            rests[count] = rest
            lengths[count] = end - i
            begins[count] = i
            count += 1
            i = after
        if count & 1 or row + (count >> 1) > len(first):
            return -1, names, row
        names = _number_names(
            data, table, seeds, names, heads, rests, lengths, begins, count, codes
        )
        for k in range(0, count, 2):
            first[row] = codes[k]
            second[row] = codes[k + 1]
            row += 1
    return i, names, row


@compiled
def add_names(
    data: Any,  # IN  (size) uint8
    seeds: Any,  # IN  (4)
    table: Any,  # IN OUT with room for all names of both
    names: int,  # in the table
    other: Any,  # IN  another thread's table
    moved: Any,  # OUT (names of the other) their numbers in the one table
) -> int:
    """Put the names of one table into another; give the number of names there."""
    heads = np.empty(_BATCH, np.uint64)
    rests = np.empty(_BATCH, np.uint64)
    lengths = np.empty(_BATCH, np.int64)
    begins = np.empty(_BATCH, np.int64)
    codes = np.empty(_BATCH + 1, np.int64)
    old = np.empty(_BATCH, np.int64)
    count = 0
    slots = len(other)
    for slot in range(slots):
        mark = other[slot, 2]
        if mark:
            heads[count] = other[slot, 0]
            rests[count] = other[slot, 1]
            lengths[count] = np.int64(mark >> np.uint64(32))
            begins[count] = np.int64(other[slot, 3])
            old[count] = np.int64(mark & _LOW32) - 1
            count += 1
        if count == _BATCH or slot == slots - 1:
            names = _number_names(
                data, table, seeds, names, heads, rests, lengths, begins, count, codes
            )
            for k in range(count):
                moved[old[k]] = codes[k]
            count = 0
    return names


@compiled
def list_names(
    table: Any,  # IN
    begins: Any,  # OUT (names) where each name begins in the text
    ends: Any,  # OUT (names + 1) where each name ends if all are written with line feeds
) -> None:
    """List the names of a table by their numbers."""
    for slot in range(len(table)):
        if table[slot, 2]:
            number = np.int64(table[slot, 2] & _LOW32)
            begins[number - 1] = table[slot, 3]
            ends[number] = np.int64(table[slot, 2] >> np.uint64(32)) + 1
    ends[0] = 0
    for code in range(len(begins)):
        ends[code + 1] += ends[code]


@compiled
def copy_names(
    data: Any,  # IN  (size) uint8
    begins: Any,  # IN  (names)
    ends: Any,  # IN  (names + 1)
    text: Any,  # OUT (ends[-1])
) -> None:
    """Write the names, each with a line feed after it."""
    for code in range(len(begins)):
        source = begins[code]
        start = ends[code]
        last = ends[code + 1] - 1
        for k in range(last - start):
            text[start + k] = data[source + k]
        text[last] = NEWLINE


@compiled
def name_keys(
    text: Any,  # IN  names, each with a line feed after it
    ends: Any,  # IN  (names + 1)
    keys: Any,  # OUT (names)
) -> None:
    """Give the eight bytes of each name after the common beginning of all, first byte highest.

    Names in order have keys in order; names with one key may be in any.
    """
    names = len(ends) - 1
    common = ends[1] - 1 if names else 0
    for code in range(1, names):
        start = ends[code]
        common = min(common, ends[code + 1] - 1 - start)
        for k in range(common):
            if text[start + k] != text[k]:
                common = k
                break
    for code in range(names):
        key: Any = np.uint64(0)
        start = ends[code] + common
        size = min(ends[code + 1] - 1 - start, 8)
        for k in range(size):
            key = key << np.uint64(8) | np.uint64(text[start + k])
        if size:
            key <<= np.uint64(8 * (8 - size))
        keys[code] = key
