"""Large, plain edge lists: the bytes -> two columns, in compiled loops and threads.

Nothing here is needed to read a file: what is not plain is answered with None, and the readers
of `text` do it, at several times the cost.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.io.indexing import Factors

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LARGE", "read_plain_integers", "read_plain_names"]

LARGE = 1 << 24  # bytes; below, loading the compiled loops takes longer than polars takes

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Column = npt.NDArray[Any]


def read_plain_integers(
    data: bytes, body: int, delimiter: str, *, narrow: bool
) -> tuple[Column, Column] | None:
    """Read two columns of integers.

    Parameters
    ----------
    data : bytes
        The text.
    body : int
        Where its lines begin.
    delimiter : str
        One character.
    narrow : bool
        Whether the numbers look as if they fit into 32 bits; then they are kept so if they do.

    Returns
    -------
    two arrays of int32 or int64, or None if a line is not plain
    """
    from edgeveil._compiled import in_threads
    from edgeveil.io._text_kernels import count_bytes, integer_rows

    text = np.frombuffer(data, dtype=np.uint8)
    cuts = _cuts(data, body)
    parts = [text[i:j] for i, j in pairwise(cuts)]
    lines = [count[0] for count in in_threads(count_bytes, ((part,) for part in parts))]
    starts = _starts(lines, data)
    for kind in (np.int32, np.int64) if narrow else (np.int64,):
        first, second = np.empty(starts[-1], dtype=kind), np.empty(starts[-1], dtype=kind)
        rows = in_threads(
            integer_rows,
            (
                (part, ord(delimiter), first[i:j], second[i:j])
                for part, i, j in zip(parts, starts[:-1], starts[1:], strict=True)
            ),
        )
        if rows == [j - i for i, j in pairwise(starts)]:
            return first, second
        if -2 not in rows:
            return None
    return None


def read_plain_names(data: bytes, body: int, delimiter: str) -> Factors | None:
    """Read two columns of names and factorise them; None if a line is not plain."""
    from edgeveil._compiled import in_threads
    from edgeveil.io._name_kernels import add_names
    from edgeveil.io._text_kernels import count_bytes

    text = np.frombuffer(data, dtype=np.uint8)
    cuts = _cuts(data, body)
    spans = list(pairwise(cuts))
    counts = in_threads(count_bytes, ((text[i:j],) for i, j in spans))
    lines, returns, quotes = (sum(column) for column in zip(*counts, strict=True))
    starts = _starts([count[0] for count in counts], data)
    # a carriage return is plain at the end of every line, a quote where blanks part the fields
    if returns not in (0, lines) or (quotes and delimiter != " "):
        return None
    if data.startswith(_BYTE_ORDER_MARK, body) or (returns and not data.endswith(b"\n")):
        return None
    if 2 * starts[-1] > np.iinfo(np.int32).max:
        return None
    first, second = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.int32)
    seeds = _seeds()
    found = in_threads(
        _number_names,
        (
            (text, *span, ord(delimiter), returns > 0, seeds, first[i:j], second[i:j])
            for span, i, j in zip(spans, starts[:-1], starts[1:], strict=True)
        ),
    )
    if None in [count for count, _ in found]:
        return None
    count, table = found[0]
    moves = [np.arange(count)]
    for others, other in found[1:]:
        table = _with_room(table, count + others, seeds)
        moves.append(np.empty(others, dtype=np.int64))
        count = add_names(text, seeds, table, count, other, moves[-1])
    del found
    listed = _listed(text, table, count, delimiter)
    if listed is None:
        return None
    names, order = listed
    rank = np.empty(count, dtype=np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    for move, i, j in zip(moves, starts[:-1], starts[1:], strict=True):
        moved = rank[move]
        for column in (first[i:j], second[i:j]):
            np.take(moved, column, out=column, mode="clip")
    return Factors(names.gather(order), first, second)


def _number_names(
    text: npt.NDArray[np.uint8],
    start: int,
    stop: int,
    delimiter: int,
    returns: bool,
    seeds: npt.NDArray[np.uint64],
    first: Column,
    second: Column,
) -> tuple[int | None, npt.NDArray[np.uint64]]:
    """Number the names from `start` to `stop`: give how many (None: not plain) and the table."""
    from edgeveil.io._name_kernels import name_rows

    table = np.zeros((1 << 12, 4), dtype=np.uint64)
    names = row = 0
    while start < stop:
        start, names, row = name_rows(
            text, start, stop, delimiter, returns, seeds, table, names, first, second, row
        )
        if start < 0:
            return None, table
        if start < stop:
            table = _with_room(table, len(table), seeds)
    return (names if row == len(first) else None), table


def _seeds() -> npt.NDArray[np.uint64]:
    """Give four odd random words."""
    return np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)


def _with_room(
    table: npt.NDArray[np.uint64], names: int, seeds: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Give a table that has room for so many names, half of its slots staying empty."""
    from edgeveil.io._name_kernels import move_names

    slots = len(table)
    while slots < 2 * names:
        slots *= 2
    if slots == len(table):
        return table
    larger = np.empty((slots, 4), dtype=np.uint64)  # not zeros: numpy then asks for huge pages
    larger.fill(0)
    move_names(table, seeds, larger)
    return larger


def _cuts(data: bytes, body: int) -> list[int]:
    """Cut the text at ends of lines, into one piece for each thread."""
    from edgeveil._compiled import pieces, threads_for

    size = len(data) - body
    inner = [body + i for i, _ in pieces(size, threads_for(size // 16))][1:]
    return [body, *((data.find(b"\n", cut - 1) + 1) or len(data) for cut in inner), len(data)]


def _starts(lines: list[int], data: bytes) -> list[int]:
    """Give the first row of every piece, and the number of rows."""
    ends = np.cumsum(lines)
    ends[-1] += not data.endswith(b"\n")
    return [0, *ends.tolist()]


def _listed(
    text: npt.NDArray[np.uint8], table: Any, count: int, delimiter: str
) -> tuple[pl.Series, npt.NDArray[np.int64]] | None:
    """Give the names of a table by their numbers, and the numbers in the order of the names.

    None if a name is not UTF-8.
    """
    import polars as pl

    from edgeveil.io._name_kernels import copy_names, list_names, name_keys

    begins, ends = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    list_names(table, begins, ends)
    listed = np.empty(ends[-1], dtype=np.uint8)
    copy_names(text, begins, ends, listed)
    try:
        names = pl.read_csv(
            listed.tobytes(),
            has_header=False,
            separator=delimiter,
            quote_char=None,
            schema={"id": pl.String},
        ).to_series(0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    if len(names) != count or names.has_nulls():
        return None
    # By the eight bytes after what all names begin with: nearly always that decides
    keys = np.empty(count, dtype=np.uint64)
    name_keys(listed, ends, keys)
    order = np.argsort(keys)
    keys = keys[order]
    same = np.zeros(count + 1, dtype=np.bool_)
    np.equal(keys[1:], keys[:-1], out=same[1:-1])
    tied = np.flatnonzero(same[1:] | same[:-1])
    # Names with one key lie together, and in the order of their keys already
    order[tied] = order[tied][names.gather(order[tied]).arg_sort().to_numpy()]
    return names, order
