"""Large, plain edge lists of names: as `plain_text`, with every name numbered as it comes."""

from __future__ import annotations

import os
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.io.lines import BYTE_ORDER_MARK
from edgeveil.io.plain_text import (
    GrowingPair,
    NotPlainError,
    Part,
    Piece,
    Source,
    grown,
    read_pieces,
)
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Names", "names_as_strings", "read_plain_names"]

_BLANK = ord(" ")

Column = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]


class Names(NamedTuple):
    """Two columns of names."""

    parts: list[Part]  # of indices into the nodes
    nodes: NodeSet  # the names that occur, in order
    is_nan: bool  # whether one of them is NaN, a missing value
    is_integer: bool  # whether all of them are integers


def read_plain_names(source: Source, delimiter: str) -> Names | None:
    """Read two columns of names and number them; None if a line is not plain."""
    from concurrent.futures import ThreadPoolExecutor

    from edgeveil._compiled import in_threads
    from edgeveil.io._name_kernels import is_nan_or_integer, number_codes

    known = _Known(_seeds())
    try:
        with source.open() as handle:
            handle.seek(source.start)
            if handle.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK:  # a second one
                return None
        readers = [_Reader(source, *span, ord(delimiter)) for span in source.spans()]
        # In turns: all readers look names up, each in its thread; then what is new is added
        with ThreadPoolExecutor(len(readers)) as pool:
            waiting = readers
            while waiting:
                found = pool.map(_Reader.find, waiting, repeat(known))
                waiting = [reader for reader, more in zip(waiting, found, strict=True) if more]
                for reader in waiting:
                    reader.add(known)
        listed, begins = known.in_list()
        listed.tobytes().decode()
    except (NotPlainError, UnicodeDecodeError, OSError):  # the other readers find words for it
        return None
    del known
    parts = [reader.columns.part(reader.row) for reader in readers]
    nodes, order = _sorted(listed, begins, delimiter)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    in_threads(number_codes, ((column, rank) for part in parts for column in part))
    return Names(parts, nodes, *is_nan_or_integer(listed, begins))


class _Known:
    """The names seen so far, as `_name_kernels` describes them."""

    def __init__(self, seeds: Words) -> None:
        self.seeds = seeds
        self.index = _lines((1 << 10, 16), np.uint32)
        self.index.fill(0)
        self.words = _lines((1 << 12, 2), np.uint64)  # as many as half of the index
        self.words.fill(0)
        self.begins = np.empty(1 << 12, dtype=np.int64)
        self.count = 0
        self.listed = np.empty(0, dtype=np.uint8)
        self.size = 0  # of the list, in bytes

    def make_room(self, names: int, size: int) -> None:
        """Have room for the names of a buffer: so many more at most, in so many bytes.

        A buffer has margins, so there are always some bytes behind the list.
        """
        from edgeveil.io._name_kernels import index_names

        if self.count + names > np.iinfo(np.int32).max:  # the columns hold no more
            raise NotPlainError
        if self.count + names > len(self.words):
            words, lines = self.words, len(self.index)
            while self.count + names > 4 * lines:
                lines *= 2
            self.words = _lines((4 * lines, 2), np.uint64)
            self.words[: self.count] = words[: self.count]
            self.begins = grown(self.begins, 4 * lines)
            self.index = _lines((lines, 16), np.uint32)
            self.index.fill(0)  # numpy would not ask huge pages for zeros
            index_names(self.words, self.count, self.seeds, self.index)
        if self.size + size > len(self.listed):
            self.listed = grown(self.listed, 2 * (self.size + size))

    def in_list(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Give the list, and where each name begins in it and the last one ends."""
        begins = np.empty(self.count + 1, dtype=np.int64)
        begins[:-1] = self.begins[: self.count]
        begins[-1] = self.size
        return self.listed[: self.size], begins


class _Reader:
    """One thread's lines of names."""

    def __init__(self, source: Source, start: int, stop: int, delimiter: int) -> None:
        self.pieces = read_pieces(source, start, stop, delimiter)
        self.delimiter = delimiter
        self.columns = GrowingPair(np.int32)
        self.row = 0
        self.missed = np.empty((0, 6), dtype=np.uint64)
        self.misses = 0
        self.piece: Piece | None = None

    def find(self, known: _Known) -> bool:
        """Number the known names of the next piece; tell whether there was one."""
        from edgeveil.io._name_kernels import find_names

        piece = self.piece = next(self.pieces, None)
        if piece is None:
            return False
        # a carriage return is plain at the end of a line, a quote where blanks part the fields
        if piece.returns not in (0, piece.fields // 2) or (
            piece.quotes and self.delimiter != _BLANK
        ):
            raise NotPlainError
        self.columns.reserve(self.row + piece.fields // 2, piece.done)
        if piece.fields > len(self.missed):
            self.missed = np.empty((piece.fields * 2, 6), dtype=np.uint64)
        self.misses = find_names(
            *piece[:4],
            self.delimiter,
            piece.odd,
            piece.returns > 0,
            known.seeds,
            known.index,
            known.words,
            known.begins,
            known.listed,
            self.columns.first,
            self.columns.second,
            self.row,
            self.missed,
        )
        if self.misses < 0:
            raise NotPlainError
        self.row += piece.fields // 2
        return True

    def add(self, known: _Known) -> None:
        """Number the other names of this piece."""
        from edgeveil.io._name_kernels import add_names

        assert self.piece is not None
        known.make_room(self.misses, len(self.piece.data))
        known.size, known.count = add_names(
            self.piece.data,
            self.missed,
            self.misses,
            known.index,
            known.words,
            known.begins,
            known.listed,
            known.size,
            known.count,
            self.columns.first,
            self.columns.second,
        )
        if known.size < 0:
            raise NotPlainError


def _lines(shape: tuple[int, int], kind: type[np.unsignedinteger[Any]]) -> npt.NDArray[Any]:
    """Give a matrix whose rows begin where a line of the cache does, or halve one."""
    size, each = shape[0] * shape[1], 64 // np.dtype(kind).itemsize
    numbers = np.empty(size + each, dtype=kind)
    skip = -numbers.ctypes.data % 64 // numbers.itemsize
    return numbers[skip : skip + size].reshape(shape)


def _seeds() -> Words:
    """Give four odd random words."""
    return np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)


def _sorted(
    listed: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64], delimiter: str
) -> tuple[NodeSet, Column]:
    """Give the listed names as nodes in order, and the numbers of the names in this order."""
    from edgeveil.io._name_kernels import name_keys, write_names

    # By the eight bytes after what all names begin with: nearly always that decides
    count = len(begins) - 1
    keys = np.empty(count, dtype=np.uint64)
    name_keys(listed, begins, keys)
    order = np.argsort(keys)
    keys = keys[order]
    same = np.zeros(count + 1, dtype=np.bool_)
    np.equal(keys[1:], keys[:-1], out=same[1:-1])
    tied = np.flatnonzero(same[1:] | same[:-1])
    if len(tied):  # names with one key lie together, and in the order of their keys already
        ties = _strings(listed, delimiter).gather(order[tied])
        order[tied] = order[tied][ties.arg_sort().to_numpy()]
    arrays: dict[str, Column] = {
        "text": np.empty(len(listed) - count, dtype=np.uint8),
        "offsets": np.empty(count + 1, dtype=np.int64),
    }
    write_names(listed, begins, order, arrays["text"], arrays["offsets"])
    return NodeSet.from_arrays("str", arrays), order


def names_as_strings(nodes: NodeSet, delimiter: str) -> pl.Series:
    """Give the names that were read as strings."""
    text, offsets = nodes.arrays["text"], nodes.arrays["offsets"]
    count = len(nodes)
    listed = np.full(len(text) + count, ord("\n"), dtype=np.uint8)
    listed[np.arange(len(text)) + np.repeat(np.arange(count), np.diff(offsets))] = text
    return _strings(listed, delimiter)


def _strings(listed: npt.NDArray[np.uint8], delimiter: str) -> pl.Series:
    """Give listed names as strings; the delimiter is in none of them."""
    import polars as pl

    frame = pl.read_csv(
        b"first\n" + listed.tobytes(),  # or polars would take off what looks like a mark
        has_header=False,
        separator=delimiter,
        quote_char=None,
        schema={"id": pl.String},
    )
    return frame.to_series(0).slice(1)
