"""Compiled loops over plain text: where its fields end, and two columns -> integers.

Plain: every line is one id, the delimiter, one id; no quotes, comments, blank lines or blanks
around an id. Whatever is not plain is refused with -1 and read by other, slower means.

A piece of text lies in a buffer with `MARGIN` bytes before and behind it that may be read and
mean nothing; its last line ends in a line feed. 64 bytes are compared at once to find the ends
of fields, and a field of up to eight bytes is one little-endian word: no loop waits for the end
of one field to begin with the next. Inlined functions take words and no arrays: numba would
count references to an array at each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgeveil._compiled import compiled, inlined, load_word, trailing_zeros

__all__ = ["MARGIN", "NEWLINE", "RETURN", "find_ends", "integer_rows"]

MARGIN = 64
NEWLINE, RETURN = 10, 13
_MINUS, _QUOTE, _BLANK, _TAB, _HASH, _PERCENT = 45, 34, 32, 9, 35, 37
_ONE = np.uint64(1)
_HIGH = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)  # the digit 0, eight times
_TO_HIGH = np.uint64(0x7676767676767676)  # moves 10 and more into the high bit
_PAIRS = np.uint64(0x000000FF000000FF)
_MOST_DIGITS = 19  # the most that a 64-bit integer has; no number of 19 digits wraps round
_TOGETHER = 4  # ends written without asking whether there are so many


# -- the ends of fields -------------------------------------------------------------------


def _equal_bytes(typing_context: Any, array: Any, index: Any, byte: Any) -> Any:
    """Give a word whose bit k tells whether byte index + k of the array is `byte`.

    The caller sees to it that 0 <= index <= len(array) - 64.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(8), 64)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), block.as_pointer())
        undefined = ir.Constant(block, ir.Undefined)
        one = builder.insert_element(undefined, arguments[2], ir.Constant(ir.IntType(32), 0))
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        same = builder.icmp_unsigned(
            "==", builder.load(place, align=1), builder.shuffle_vector(one, undefined, nowhere)
        )
        return builder.bitcast(same, ir.IntType(64))

    return types.uint64(array, types.int64, types.uint8), generate


def _count_ones(typing_context: Any, word: Any) -> Any:
    """Give the number of one bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


equal_bytes: Any = intrinsic(_equal_bytes)
count_ones: Any = intrinsic(_count_ones)


@compiled
def find_ends(
    data: Any,  # IN  the buffer
    start: int,
    stop: int,  # where its text lies
    delimiter: int,
    ends: Any,  # OUT (stop - start + MARGIN) where fields end: at delimiters and line feeds
) -> tuple[int, int, int, bool]:
    """Give the number of ends, of carriage returns and of quotes.

    Also whether there are carriage returns, blanks, tabs or marks of comments in the fields.
    """
    count = 0
    returns = 0
    quotes = 0
    odd = np.uint64(0)
    mark, feed = np.uint8(delimiter), np.uint8(NEWLINE)
    for i in range(start, stop, 64):
        inside = ~np.uint64(0)
        if i + 64 > stop:
            inside >>= np.uint64(i + 64 - stop)
        found = (equal_bytes(data, i, mark) | equal_bytes(data, i, feed)) & inside
        returned = equal_bytes(data, i, np.uint8(RETURN)) & inside
        returns += count_ones(returned)
        quotes += count_ones(equal_bytes(data, i, np.uint8(_QUOTE)) & inside)
        blank = equal_bytes(data, i, np.uint8(_BLANK)) | equal_bytes(data, i, np.uint8(_TAB))
        comment = equal_bytes(data, i, np.uint8(_HASH)) | equal_bytes(data, i, np.uint8(_PERCENT))
        odd |= returned | (blank | comment) & inside & ~found
        size = count_ones(found)
        for k in range(count, count + size, _TOGETHER):
            for j in range(_TOGETHER):
                ends[k + j] = i + trailing_zeros(found)
                found &= found - _ONE
        count += size
    return count, returns, quotes, odd != 0


# -- integers -----------------------------------------------------------------------------


@inlined
def _number(value: Any) -> Any:
    """Give the number of eight digits, first byte first, by three multiplications."""
    value = value * np.uint64(10) + (value >> np.uint64(8))
    left = (value & _PAIRS) * np.uint64(100 + (1000000 << 32))
    right = ((value >> np.uint64(16)) & _PAIRS) * np.uint64(1 + (10000 << 32))
    return (left + right) >> np.uint64(32)


@compiled
def _integer(data: Any, i: int, end: int) -> tuple[Any, bool]:
    """Give the integer from byte i to `end`, and whether there is a plain one."""
    negative = i < end and data[i] == _MINUS
    if negative:
        i += 1
    if i >= end or end - i > _MOST_DIGITS:
        return np.int64(0), False
    value = np.uint64(0)
    while i < end:
        digit = data[i] ^ np.uint8(48)
        if digit > 9:
            return np.int64(0), False
        value = value * np.uint64(10) + np.uint64(digit)
        i += 1
    number: Any = np.int64(value)
    return (-number if negative else number), number >= 0


@compiled
def integer_rows(
    data: Any,  # IN  the buffer
    begin: int,  # where its text begins
    ends: Any,  # IN  as find_ends gave them
    count: int,  # of ends
    delimiter: int,
    first: Any,  # OUT (rows) with room for all rows of this text
    second: Any,  # OUT (rows)
    row: int,  # the next one
) -> tuple[int, int, int]:
    """Read the two integers of every line.

    Returns the next row, -1 if a line is not plain; and the lowest and the highest number, that
    the caller compares with what a column can hold.
    """
    low: Any = np.int64(np.iinfo(np.int64).max)
    high: Any = np.int64(np.iinfo(np.int64).min)
    if count & 1 or row + (count >> 1) > min(len(first), len(second)):
        return -1, low, high
    for k in range(0, count, 2):
        middle: Any = np.int64(ends[k])
        end: Any = np.int64(ends[k + 1])
        after = end + 1
        if data[middle] != delimiter or data[end] != NEWLINE:
            return -1, low, high
        if data[end - 1] == RETURN:
            end -= 1
        # from one to eight digits, as nearly always: both at once
        gap_a = 8 - (middle - begin)
        gap_b = 9 - (end - middle)
        none = (np.uint64(gap_a) | np.uint64(gap_b)) > np.uint64(7)
        a_word = load_word(data, middle - 8) ^ _ZEROS
        b_word = load_word(data, end - 8) ^ _ZEROS
        a_word &= ~np.uint64(0) << np.uint64((8 * gap_a) & 63)
        b_word &= ~np.uint64(0) << np.uint64((8 * gap_b) & 63)
        others = ((a_word + _TO_HIGH) | a_word | (b_word + _TO_HIGH) | b_word) & _HIGH
        if none or others:
            a, fine = _integer(data, begin, middle)
            b, fine_too = _integer(data, middle + 1, end)
            if not (fine and fine_too):
                return -1, low, high
        else:
            a, b = np.int64(_number(a_word)), np.int64(_number(b_word))
        low = min(low, a, b)
        high = max(high, a, b)
        first[row] = a
        second[row] = b
        row += 1
        begin = after
    return row, low, high
