"""Compiled loops over plain text: two columns -> integers.

Plain: every line is one id, the delimiter, one id; no quotes, comments, blank lines or blanks
around an id. Whatever is not plain is refused with -1 and read by other, slower means. Eight
bytes are looked at as one little-endian word. Inlined functions take words and no arrays:
numba would count references to an array at each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inlined, load_word, trailing_zeros

__all__ = ["HIGH", "NEWLINE", "ONES", "RETURN", "count_bytes", "integer_rows", "last_word"]

NEWLINE, RETURN = 10, 13
_MINUS, _QUOTE = 45, 34
ONES = np.uint64(0x0101010101010101)
HIGH = np.uint64(0x8080808080808080)
_LOW7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_ZEROS = np.uint64(0x3030303030303030)  # the digit 0, eight times
_TO_HIGH = np.uint64(0x7676767676767676)  # moves 10 and more into the high bit
_PAIRS = np.uint64(0x000000FF000000FF)
_POWERS = np.array([10**i for i in range(9)], dtype=np.uint64)
_MOST_DIGITS = 19  # the most that a 64-bit integer has; no number of 19 digits wraps round


@compiled
def count_bytes(data: Any) -> tuple[int, int, int]:
    """Count line feeds, carriage returns and quotes."""
    lines = 0
    returns = 0
    quotes = 0
    for byte in data:
        lines += byte == NEWLINE
        returns += byte == RETURN
        quotes += byte == _QUOTE
    return lines, returns, quotes


@compiled
def last_word(data: Any, i: int, size: int) -> Any:
    """Give the word at byte i, with zeros from byte `size` on."""
    word = np.uint64(0)
    for j in range(i, min(i + 8, size)):
        word |= np.uint64(data[j]) << np.uint64(8 * (j - i))
    return word


# -- integers -----------------------------------------------------------------------------


@inlined
def _digits(word: Any) -> Any:
    """Give how many of a word's bytes are digits before the first that is none."""
    value = word ^ _ZEROS
    return trailing_zeros((((value & _LOW7) + _TO_HIGH) | value) & HIGH) >> 3


@inlined
def _number(word: Any, digits: int) -> Any:
    """Give the number that a word's first 1 to 8 bytes spell, by three multiplications."""
    value = (word ^ _ZEROS) << np.uint64(64 - 8 * digits)
    value = value * np.uint64(10) + (value >> np.uint64(8))
    left = (value & _PAIRS) * np.uint64(100 + (1000000 << 32))
    right = ((value >> np.uint64(16)) & _PAIRS) * np.uint64(1 + (10000 << 32))
    return (left + right) >> np.uint64(32)


@compiled
def _integer(data: Any, i: int) -> tuple[Any, int]:
    """Give the integer at byte i and where it ends; -1 for the end if it is not plain."""
    size = len(data)
    negative = i < size and data[i] == _MINUS
    if negative:
        i += 1
    start = i
    value = np.uint64(0)
    digits = 8
    while digits == 8 and i < size and i - start <= _MOST_DIGITS:
        word = load_word(data, i) if i + 8 <= size else last_word(data, i, size)
        digits = _digits(word)
        if digits:
            value = value * _POWERS[digits] + _number(word, digits)
            i += digits
    if i == start or i - start > _MOST_DIGITS or value >> np.uint64(63):
        return 0, -1
    number = np.int64(value)
    return (-number if negative else number), i


@compiled
def integer_rows(
    data: Any,  # IN  (size) uint8, whole lines
    delimiter: int,
    first: Any,  # OUT (rows) as many as data has lines
    second: Any,  # OUT (rows)
) -> int:
    """Read the two integers of every line.

    Returns the number of rows, -1 if a line is not plain, -2 if a number does not fit.
    """
    size = len(data)
    most = np.int64(np.iinfo(first.dtype).max)
    i = 0
    row = 0
    while i < size:
        digits = 0
        if i + 8 <= size:
            word = load_word(data, i)
            digits = _digits(word)
        if 0 < digits < 8:
            a: Any = np.int64(_number(word, digits))
            i += digits
        else:  # long, negative, or at the end of the text
            a, i = _integer(data, i)
        if i < 0 or i >= size or data[i] != delimiter:
            return -1
        i += 1
        digits = 0
        if i + 8 <= size:
            word = load_word(data, i)
            digits = _digits(word)
        if 0 < digits < 8:
            b: Any = np.int64(_number(word, digits))
            i += digits
        else:
            b, i = _integer(data, i)
        if i < 0:
            return -1
        if i + 1 < size and data[i] == RETURN:
            i += 1
        if i < size and data[i] != NEWLINE:
            return -1
        i += 1
        if max(a, b) > most or min(a, b) < -most:
            return -2
        if row == len(first):  # cannot be; but nothing may be written beyond the end
            return -1
        first[row] = a
        second[row] = b
        row += 1
    return row
