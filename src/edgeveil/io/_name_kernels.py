"""Compiled loops over plain text: names -> their numbers, and the distinct names.

Plain as in `_text_kernels`, and so is the buffer. What is known of the distinct names, by number:

    listed   the names one after the other, each with a line feed after it
    begins   where each begins in the list
    words    2 words of each: its first 8 bytes, zeros where it is shorter; its next 7 bytes and
             above them its length, or for a name of more than 15 bytes a hash of all but the
             first 8 bytes and above it 255
    index    2**k lines of the cache, at most half full on average: 8 tags, and the number + 1
             of the name that each tag stands for, 0 where there is none. A line is filled from
             the left, and the next one when it is full.

A tag is 31 bits of a name's hash, and other bits of it choose the line; so a tag nearly always
finds the name, but it never decides: the words are compared, and of a name of more than 15 bytes
the text. The hash has multipliers drawn at random for each file. Names that were made to want
the same line in spite of that are noticed: no search goes on for more than `_MOST_LINES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgeveil._compiled import compiled, inlined, load_word, trailing_zeros
from edgeveil.io._text_kernels import NEWLINE, RETURN

__all__ = [
    "add_names",
    "find_names",
    "index_names",
    "is_nan_or_integer",
    "name_keys",
    "number_codes",
    "write_names",
]

_HASH, _PERCENT, _BLANK, _TAB = 35, 37, 32, 9
_FIRST_BYTES = np.array([(1 << 8 * k) - 1 for k in range(9)], dtype=np.uint64)
_LONG = np.uint64(255 << 56)
_MOST_LINES = 64  # far more than chance ever fills in a row
_BATCH = 64  # names; their memory is asked for at once, so that the waits for it overlap


def _prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    """Ask for the memory where a row of an array begins, and do not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(matrix.strides, 0)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.bitcast(matrix.data, byte)
        place = builder.gep(start, [builder.mul(arguments[1], stride)])
        ask = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, *3 * [number]])
        )
        # to read (0), to keep (3), data (1)
        builder.call(ask, [place, *(ir.Constant(number, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _equal_tags(typing_context: Any, index: Any, line: Any, tag: Any) -> Any:
    """Give a word whose bit k tells whether tag k of a line is `tag`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tags, number = ir.VectorType(ir.IntType(32), 8), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        words = builder.mul(arguments[1], ir.Constant(ir.IntType(64), 16))
        place = builder.bitcast(builder.gep(data, [words]), tags.as_pointer())
        undefined = ir.Constant(tags, ir.Undefined)
        one = builder.insert_element(undefined, arguments[2], ir.Constant(number, 0))
        first = ir.Constant(ir.VectorType(number, 8), [0] * 8)
        same = builder.icmp_unsigned(
            "==", builder.load(place, align=4), builder.shuffle_vector(one, undefined, first)
        )
        return builder.zext(builder.bitcast(same, ir.IntType(8)), ir.IntType(64))

    return types.uint64(index, types.int64, types.uint32), generate


prefetch: Any = intrinsic(_prefetch)
equal_tags: Any = intrinsic(_equal_tags)


@inlined
def _hashed(head: Any, rest: Any, one: Any, two: Any, three: Any) -> Any:
    h = head * one
    h = (h ^ (h >> np.uint64(32)) ^ rest) * two
    return (h ^ (h >> np.uint64(32))) * three


@inlined
def _tag(h: Any) -> Any:
    return np.uint32(h) | np.uint32(1)


@inlined
def _shift(lines: int) -> Any:
    """Give by how much to shift a hash for one of so many lines, at least two."""
    return np.uint64(64 - trailing_zeros(np.uint64(lines)))


@compiled
def _hash_of_rest(data: Any, i: int, end: int, seed: Any) -> Any:
    """Give word 1 of a name of more than 15 bytes: of its bytes from i to `end`."""
    rest = np.uint64(0)
    while i < end:
        word = load_word(data, i) & _FIRST_BYTES[min(end - i, 8)]
        rest = (rest ^ (rest >> np.uint64(32))) * seed + word
        i += 8
    return (rest ^ (rest >> np.uint64(32))) * seed | _LONG


@inlined
def _is_blank(byte: int) -> bool:
    return byte in (_BLANK, _TAB)


@compiled
def index_names(
    words: Any,  # IN
    names: int,
    seeds: Any,  # IN  (4)
    index: Any,  # OUT an empty one
) -> None:
    """Make the index of all names."""
    lines = len(index)
    shift = _shift(lines)
    one, two, three = seeds[0], seeds[1], seeds[2]
    for code in range(names):
        h = _hashed(words[code, 0], words[code, 1], one, two, three)
        line = np.int64(h >> shift)
        k = 0
        while index[line, 8 + k]:
            k += 1
            if k == 8:
                k = 0
                line = (line + 1) & (lines - 1)
        index[line, k] = _tag(h)
        index[line, 8 + k] = code + 1


@compiled
def find_names(
    data: Any,  # IN  the buffer
    begin: int,  # where its text begins
    ends: Any,  # IN  as find_ends gave them
    count: int,  # of ends
    delimiter: int,
    odd: bool,  # whether it holds carriage returns, blanks, tabs or marks of comments
    returns: bool,  # whether it holds carriage returns: then as many as lines
    seeds: Any,  # IN  (4) odd random words
    index: Any,  # IN
    words: Any,  # IN  with one row at least
    begins: Any,  # IN
    listed: Any,  # IN  and 8 bytes more
    first: Any,  # OUT (rows) with room for all rows of this text
    second: Any,  # OUT (rows)
    row: int,  # the next one
    missed: Any,  # OUT (count, 6) of names not found: words, length, hash, begin, row and column
) -> int:
    """Give the known names of every line their numbers.

    Returns how many were not found, -1 if a line is not plain.
    """
    one, two, three, four = seeds[0], seeds[1], seeds[2], seeds[3]
    shift = _shift(len(index))
    batch = np.empty((_BATCH, 5), np.uint64)
    codes = np.empty(_BATCH, np.int64)
    misses = 0
    if count & 1 or row + (count >> 1) > min(len(first), len(second)) or count > len(missed):
        return -1
    for k in range(0, count, _BATCH):
        size = min(_BATCH, count - k)
        for j in range(size):
            end: Any = np.int64(ends[k + j])
            after = end + 1
            if data[end] != (NEWLINE if j & 1 else delimiter):
                return -1
            if odd:
                if j & 1 and returns:
                    if data[end - 1] != RETURN:
                        return -1  # so one is elsewhere
                    end -= 1
                if j & 1 == 0 and (data[begin] == _HASH or data[begin] == _PERCENT):
                    return -1
                if _is_blank(data[begin]) or (end > begin and _is_blank(data[end - 1])):
                    return -1
            length = end - begin
            if length <= 0:
                return -1
            head = load_word(data, begin) & _FIRST_BYTES[min(length, 8)]
            rest = load_word(data, begin + 8) & _FIRST_BYTES[min(max(length - 8, 0), 7)]
            rest |= np.uint64(length) << np.uint64(56)
            if length > 15:
                rest = _hash_of_rest(data, begin + 8, end, four)
            h = _hashed(head, rest, one, two, three)
            prefetch(index, np.int64(h >> shift))
            batch[j, 0] = head
            batch[j, 1] = rest
            batch[j, 2] = np.uint64(length)
            batch[j, 3] = h
            batch[j, 4] = np.uint64(begin)
            begin = after
        for j in range(size):
            h = batch[j, 3]
            line = np.int64(h >> shift)
            same = equal_tags(index, line, _tag(h))
            # no branch: without the tag it is the last name of the line, or number 0
            code: Any = np.int64(index[line, 8 + trailing_zeros(same | np.uint64(128))]) - 1
            code = max(code, 0)
            prefetch(words, code)
            codes[j] = code
        for j in range(size):
            code = codes[j]
            other = words[code, 0] ^ batch[j, 0] | words[code, 1] ^ batch[j, 1]
            if other == 0 and batch[j, 1] >= _LONG:
                place, at = begins[code], np.int64(batch[j, 4])
                left: Any = np.int64(batch[j, 2])
                after = place + left
                while left > 0 and other == 0:  # at the latest a line feed in the list differs
                    word = load_word(listed, place) ^ load_word(data, at)
                    other |= word & _FIRST_BYTES[min(left, 8)]
                    place += 8
                    at += 8
                    left -= 8
                if other == 0 and listed[after] != NEWLINE:
                    other = _LONG
            if other:
                for i in range(5):
                    missed[misses, i] = batch[j, i]
                missed[misses, 5] = np.uint64(2 * row + j)
                misses += 1
        for j in range(0, size, 2):
            first[row + (j >> 1)] = codes[j]
            second[row + (j >> 1)] = codes[j + 1]
        row += size >> 1
    return misses


@compiled
def add_names(
    data: Any,  # IN  the buffer
    missed: Any,  # IN  as find_names gave them
    misses: int,
    index: Any,  # IN OUT all with room for so many names
    words: Any,  # IN OUT
    begins: Any,  # IN OUT
    listed: Any,  # IN OUT
    listed_size: int,
    names: int,  # known
    first: Any,  # OUT (rows)
    second: Any,  # OUT (rows)
) -> tuple[int, int]:
    """Number the names that were not found: give the size of the list and the number of names.

    The size is -1 if too many want the same line. One function: calls count references.
    """
    lines = len(index)
    shift = _shift(lines)
    for miss in range(misses):
        if miss + 16 < misses:
            prefetch(index, np.int64(missed[miss + 16, 3] >> shift))
        head, rest, size, h = missed[miss, 0], missed[miss, 1], missed[miss, 2], missed[miss, 3]
        begin: Any = np.int64(missed[miss, 4])
        length: Any = np.int64(size)
        line: Any = np.int64(h >> shift)
        lane = searched = 0
        code: Any = np.int64(-1)
        while index[line, 8 + lane]:
            if index[line, lane] == _tag(h):
                code = np.int64(index[line, 8 + lane]) - 1
                if words[code, 0] != head or words[code, 1] != rest:
                    code = np.int64(-1)
                elif rest >= _LONG:
                    place = begins[code]
                    for i in range(length):
                        if listed[place + i] != data[begin + i]:
                            code = np.int64(-1)
                            break
                    if code >= 0 and listed[place + length] != NEWLINE:
                        code = np.int64(-1)
                if code >= 0:
                    break
            lane += 1
            if lane == 8:
                lane = 0
                line = (line + 1) & (lines - 1)
                searched += 1
                if searched == _MOST_LINES:
                    return -1, names
        if code < 0:
            code = np.int64(names)
            names += 1
            index[line, lane] = _tag(h)
            index[line, 8 + lane] = names
            words[code, 0] = head
            words[code, 1] = rest
            begins[code] = listed_size
            for i in range(length):
                listed[listed_size + i] = data[begin + i]
            listed[listed_size + length] = NEWLINE
            listed_size += length + 1
        row = np.int64(missed[miss, 5] >> np.uint64(1))
        if missed[miss, 5] & np.uint64(1):
            second[row] = code
        else:
            first[row] = code
    return listed_size, names


# -- the list of names --------------------------------------------------------------------


@compiled
def is_nan_or_integer(
    listed: Any,  # IN  names, each with a line feed after it
    begins: Any,  # IN  (names + 1) where each begins
) -> tuple[bool, bool]:
    """Tell whether some name is NaN, and whether all are integers."""
    numbers = True
    for code in range(len(begins) - 1):
        begin, end = begins[code], begins[code + 1] - 1
        if end - begin == 3 and (
            listed[begin] | 32 == 110
            and listed[begin + 1] | 32 == 97
            and listed[begin + 2] | 32 == 110
        ):
            return True, False
        if numbers:
            begin += listed[begin] in (43, 45)  # a sign
            numbers = begin < end
            for i in range(begin, end):
                numbers = numbers and 48 <= listed[i] <= 57
    return False, numbers


@compiled
def name_keys(
    listed: Any,  # IN  names, each with a line feed after it
    begins: Any,  # IN  (names + 1) where each begins
    keys: Any,  # OUT (names)
) -> None:
    """Give the eight bytes of each name after the common beginning of all, first byte highest.

    Names in order have keys in order; names with one key may be in any.
    """
    names = len(keys)
    common = begins[1] - 1 if names else 0
    for code in range(1, names):
        start = begins[code]
        common = min(common, begins[code + 1] - 1 - start)
        for k in range(common):
            if listed[start + k] != listed[k]:
                common = k
                break
    for code in range(names):
        key: Any = np.uint64(0)
        start = begins[code] + common
        size = min(begins[code + 1] - 1 - start, 8)
        for k in range(size):
            key = key << np.uint64(8) | np.uint64(listed[start + k])
        if size:
            key <<= np.uint64(8 * (8 - size))
        keys[code] = key


@compiled
def write_names(
    listed: Any,  # IN  names, each with a line feed after it
    begins: Any,  # IN  (names + 1)
    order: Any,  # IN  (names)
    text: Any,  # OUT the names in this order, without line feeds
    offsets: Any,  # OUT (names + 1) where each begins in the text
) -> None:
    """Write the names in another order."""
    place = np.int64(0)
    for rank in range(len(order)):
        if rank + 32 < len(order):  # one after the other: where it begins, and what is there
            prefetch(begins, order[rank + 32])
            prefetch(listed, begins[order[rank + 16]])
        offsets[rank] = place
        begin, end = begins[order[rank]], begins[order[rank] + 1] - 1
        for k in range(end - begin):
            text[place + k] = listed[begin + k]
        place += end - begin
    offsets[len(order)] = place


@compiled
def number_codes(codes: Any, numbers: Any) -> None:
    """Put numbers[code] in the place of every code."""
    for i in range(len(codes)):
        codes[i] = numbers[codes[i]]
