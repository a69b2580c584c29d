"""Files of edges, piece by piece, so that what is held at a time is bounded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from edgeveil.errors import InputError
from edgeveil.io.columns import RowError
from edgeveil.io.layout import layout_of
from edgeveil.io.lines import MOST_TIMES, MOST_UNPACKED, suffix_of
from edgeveil.io.picking import SAMPLE, Columns, pick_columns
from edgeveil.io.read import PARQUET
from edgeveil.io.table import id_columns, sample_of
from edgeveil.io.text import edges_of, line_number
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    from edgeveil.io.text import Edges

__all__ = ["Reading", "count_rows", "edges_by_pieces", "rows_within"]

# Measured: bytes that a row of a piece takes at the peak, names included, and bytes per byte of
# text. Larger pieces than these bring nothing.
_PER_ROW, _PER_BYTE = 256, 32
_MOST_ROWS, _MOST_BYTES = 1 << 25, 1 << 28
_HEAD = 1 << 16  # bytes from which the layout of a text file is known


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How parts are read; see `edgeveil.read_graph`. `as_text`: ids are text in any case."""

    nodes: NodeSet | None = None
    header: bool | None = None
    columns: Columns | None = None
    delimiter: str | None = None
    as_text: bool = False


def rows_within(memory: int) -> int:
    """Give how many rows a piece has, in so many bytes of memory."""
    return max(1, min(memory // _PER_ROW, _MOST_ROWS))


def edges_by_pieces(path: Path, reading: Reading, memory: int) -> Iterator[tuple[Edges, int]]:
    """Yield the edges of a file and the number of weights other than 1, piece by piece.

    Edges are two columns, both of integers or both of strings, or names indexed already.
    """
    if suffix_of(path) in PARQUET:
        return _pieces_of_parquet(path, reading, rows_within(memory))
    return _pieces_of_text(path, reading, min(memory // _PER_BYTE, _MOST_BYTES))


# -- Parquet ------------------------------------------------------------------------------


def count_rows(path: Path) -> int:
    """Give the number of rows of a Parquet file, or a guess at the lines of a text file."""
    if suffix_of(path) in PARQUET:
        import polars as pl

        return int(_collected(path, _scanned(path).select(pl.len())).item())
    head = next(_whole_lines(path, _HEAD), (1, b""))[1]
    packed = 4 if path.suffix.lower() == ".gz" else 1  # lists of edges: 2 to 10 times
    return packed * path.stat().st_size * head.count(b"\n") // max(1, len(head)) + 1


def _scanned(path: Path) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False)


def _collected(path: Path, frame: pl.LazyFrame) -> pl.DataFrame:
    import polars as pl

    try:
        return frame.collect()
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is not a readable Parquet file") from error


def _pieces_of_parquet(path: Path, reading: Reading, rows: int) -> Iterator[tuple[Edges, int]]:
    total = count_rows(path)
    head = _collected(path, _scanned(path).limit(SAMPLE))
    names = head.columns
    picked = pick_columns(names, sample_of(head), reading.columns, reading.nodes, str(path))
    wanted = [names[i] for i in picked if i is not None]
    for start in range(0, total, rows):
        frame = _collected(path, _scanned(path).select(wanted).slice(start, rows))
        weight = 2 if frame.width > 2 else None
        try:
            *ends, weighted = id_columns(frame, (0, 1, weight), as_text=reading.as_text)
        except RowError as error:
            row = start + error.row + 1
            raise InputError(f"{path}, row {row}: {error.reason}") from error
        yield (ends[0], ends[1]), weighted


# -- text ---------------------------------------------------------------------------------


def _pieces_of_text(path: Path, reading: Reading, size: int) -> Iterator[tuple[Edges, int]]:
    layout = None
    for line, block in _whole_lines(path, size):
        body = block
        if layout is None:
            if not block.strip():
                continue
            found = layout_of(
                path,
                block,
                header=reading.header,
                columns=reading.columns,
                delimiter=reading.delimiter,
                nodes=reading.nodes,
            )
            if not found.sample:  # no edge yet
                continue
            body, layout = block[found.body :], found
        else:
            layout = replace(layout, line=line)
        try:
            yield edges_of(body, layout, as_text=reading.as_text)
        except RowError as error:
            number = line_number(body, layout, error.row)
            raise InputError(f"{path}, line {number}: {error.reason}") from error


def _whole_lines(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line."""
    line, rest = 1, b""
    most = max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size)
    unpacked, wanted = 0, max(size, _HEAD)
    try:
        with _opened(path) as handle:
            while block := handle.read(wanted):
                unpacked, wanted = unpacked + len(block), max(1, size)
                if unpacked > most:
                    raise InputError(
                        f"{path} unpacks to more than {MOST_TIMES} times its size; if that is "
                        "right, unpack it and read the plain file"
                    )
                block = rest + block
                cut = _end_of_lines(block, patience=4 * size + _HEAD)
                if cut:
                    yield line, block[:cut].removeprefix(b"\xef\xbb\xbf" if line == 1 else b"")
                    line += block.count(b"\n", 0, cut)
                rest = block[cut:]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is not a whole gzip file: truncated or damaged") from error
    if rest:
        yield line, rest.removeprefix(b"\xef\xbb\xbf" if line == 1 else b"")


def _opened(path: Path) -> gzip.GzipFile | IO[bytes]:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _end_of_lines(block: bytes, patience: int) -> int:
    """Give the end of the last line that is not inside of quotes; 0 if there is none.

    A quote that is never closed is a fault of the file, and is not waited for for ever.
    """
    last = end = block.rfind(b"\n") + 1
    if b'"' not in block or len(block) > patience:
        return last
    while end and block.count(b'"', 0, end) % 2:
        end = block.rfind(b"\n", 0, end - 1) + 1
    return end
