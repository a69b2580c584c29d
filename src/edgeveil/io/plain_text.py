"""Large, plain edge lists: the bytes -> two columns, in compiled loops and threads.

Every thread reads its own lines, a piece at a time that stays in the processor's cache; the
text as a whole is never in memory. Nothing here is needed to read a file: what is not plain is
answered with None, and the readers of `text` do it, at several times the cost.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "LARGE",
    "GrowingPair",
    "Integers",
    "NotPlainError",
    "Part",
    "Piece",
    "Source",
    "grown",
    "read_pieces",
    "read_plain_integers",
]

LARGE = 1 << 24  # bytes; below, loading the compiled loops takes longer than polars takes
_PIECE = 1 << 20  # bytes; a longer line is not plain


Column = npt.NDArray[Any]
Part = tuple[Column, Column]


class Integers(NamedTuple):
    """Two columns of integers."""

    parts: list[Part]  # one after the other they are the rows of the file
    low: int
    high: int


class NotPlainError(Exception):
    """A line is not plain, or the file changed under our eyes."""


class _TooWideError(Exception):
    """A number does not fit into 32 bits."""


@dataclass(frozen=True)
class Source:
    """The lines of a text, from byte `start` to byte `stop` of a file or of bytes."""

    content: Path | bytes
    start: int
    stop: int

    def open(self) -> BinaryIO:
        """Give a handle of one's own."""
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)  # shares the bytes
        return self.content.open("rb", buffering=0)

    def spans(self) -> list[tuple[int, int]]:
        """Cut the text at ends of lines, into one span for each thread."""
        from edgeveil._compiled import pieces, threads_for

        size = self.stop - self.start
        cuts = [self.start]
        with self.open() as handle:
            for i, _ in pieces(size, threads_for(size // 16))[1:]:
                cut = max(self.start + i - 1, cuts[-1])
                handle.seek(cut)
                near = handle.read(_PIECE)
                cuts.append(min(cut + (near.find(b"\n") + 1 or len(near)), self.stop))
        return list(pairwise([*cuts, self.stop]))


class Piece(NamedTuple):
    """Whole lines: bytes begin .. end of the buffer, and where their fields end."""

    data: npt.NDArray[np.uint8]
    begin: int
    ends: npt.NDArray[np.int32]
    fields: int
    returns: int
    quotes: int
    odd: bool  # whether more than letters may be there: see find_ends
    done: float  # the share of the span that has been read


def read_pieces(source: Source, start: int, stop: int, delimiter: int) -> Iterator[Piece]:
    """Read a span, a piece at a time."""
    from edgeveil.io._text_kernels import MARGIN, find_ends

    raw = bytearray(MARGIN + _PIECE + 1 + MARGIN)
    view, data = memoryview(raw), np.frombuffer(raw, dtype=np.uint8)
    ends = np.empty(_PIECE + 1 + MARGIN, dtype=np.int32)
    place, kept = start, 0  # kept: bytes of a line that is not whole yet
    with source.open() as handle:
        handle.seek(start)
        while place < stop:
            size = min(_PIECE, kept + stop - place)
            while kept < size:
                got = handle.readinto(view[MARGIN + kept : MARGIN + size])  # type: ignore[attr-defined]
                if not got:
                    raise NotPlainError
                kept += got
                place += got
            if place == stop:
                if raw[MARGIN + size - 1] != ord("\n"):
                    raw[MARGIN + size] = ord("\n")
                    size += 1
                    kept += 1
                whole = size
            else:
                whole = raw.rfind(b"\n", MARGIN, MARGIN + size) + 1 - MARGIN
                if whole <= 0:
                    raise NotPlainError
            found = find_ends(data, MARGIN, MARGIN + whole, delimiter, ends)
            kept -= whole
            yield Piece(data, MARGIN, ends, *found, (place - kept - start) / (stop - start))
            data[MARGIN : MARGIN + kept] = data[MARGIN + whole : MARGIN + whole + kept]


class GrowingPair:
    """Two columns that grow; how long they get is guessed from the text read so far."""

    def __init__(self, kind: type[np.signedinteger[Any]]) -> None:
        self.first: Column = np.empty(0, dtype=kind)
        self.second: Column = np.empty(0, dtype=kind)

    def reserve(self, rows: int, done: float) -> None:
        """Have room for so many rows, and for what may come if this share has been read."""
        if rows > len(self.first):
            size = int(rows / done * 1.02) + 1
            self.first, self.second = grown(self.first, size), grown(self.second, size)

    def part(self, rows: int) -> Part:
        """Give the first rows."""
        return self.first[:rows], self.second[:rows]


def grown(array: Column, size: int) -> Column:
    """Give a longer array that begins with this one."""
    larger = np.empty(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


# -- integers -----------------------------------------------------------------------------


def read_plain_integers(source: Source, delimiter: str, *, narrow: bool) -> Integers | None:
    """Read two columns of integers.

    Parameters
    ----------
    source : Source
        The text.
    delimiter : str
        One character.
    narrow : bool
        Whether the numbers look as if they fit into 32 bits; then they are kept so if they do.

    Returns
    -------
    Integers, of int32 or int64, or None if a line is not plain
    """
    from edgeveil._compiled import in_threads

    for kind in (np.int32, np.int64) if narrow else (np.int64,):
        try:
            found = in_threads(
                _read_integers, ((source, *span, ord(delimiter), kind) for span in source.spans())
            )
        except _TooWideError:
            continue
        except (NotPlainError, OSError):  # the other readers find words for it
            return None
        return Integers(
            [part for part, _, _ in found],
            min(low for _, low, _ in found),
            max(high for _, _, high in found),
        )
    return None


def _read_integers(
    source: Source, start: int, stop: int, delimiter: int, kind: type[np.signedinteger[Any]]
) -> tuple[Part, int, int]:
    from edgeveil.io._text_kernels import integer_rows

    columns, row = GrowingPair(kind), 0
    limits = np.iinfo(kind)
    low, high = limits.max, limits.min
    for piece in read_pieces(source, start, stop, delimiter):
        columns.reserve(row + piece.fields // 2, piece.done)
        row, least, most = integer_rows(*piece[:4], delimiter, columns.first, columns.second, row)
        if row < 0:
            raise NotPlainError
        low, high = min(low, least), max(high, most)
        if low < limits.min or high > limits.max:
            raise _TooWideError
    return columns.part(row), low, high
