"""Files of edges, at once or piece by piece, so that what is held at a time is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from edgeveil.io.columns import Piece
from edgeveil.io.layout import layout_of
from edgeveil.io.lines import blocks, content, suffix_of
from edgeveil.io.picking import SAMPLE, Columns, pick_columns
from edgeveil.io.table import collected, sample_of, scanned, table_piece
from edgeveil.io.text import text_piece
from edgeveil.nodes import NodeSet

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
PARQUET = (".parquet", ".pq")

# Measured: bytes that a row of a piece takes at the peak, names included, and bytes per byte of
# text. Larger pieces than these bring nothing.
_PER_ROW, _PER_BYTE = 256, 32
_MOST_ROWS, _MOST_BYTES = 1 << 25, 1 << 28
_HEAD = 1 << 16  # bytes from which the layout of a text file is known


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read; see `edgeveil.read_graph`. `as_text`: ids are text in any case."""

    nodes: NodeSet | None = None
    header: bool | None = None
    columns: Columns | None = None
    delimiter: str | None = None
    as_text: bool = False


def pieces_of(path: Path, reading: Reading, memory: int | None = None) -> Iterator[Piece]:
    """Yield the edges of a file, at once or in pieces that take so many bytes of memory.

    A file without edges gives no piece.
    """
    if suffix_of(path) in PARQUET:
        return _pieces_of_parquet(path, reading, memory)
    return _pieces_of_text(path, reading, memory)


def count_rows(path: Path) -> int:
    """Give the number of rows of a Parquet file, or a guess at the lines of a text file."""
    if suffix_of(path) in PARQUET:
        import polars as pl

        return int(collected(path, scanned(path).select(pl.len())).item())
    head = next(blocks(path, _HEAD), b"")
    packed = 4 if path.suffix.lower() == ".gz" else 1  # lists of edges: 2 to 10 times
    return packed * path.stat().st_size * head.count(b"\n") // max(1, len(head)) + 1


def _pieces_of_parquet(path: Path, reading: Reading, memory: int | None) -> Iterator[Piece]:
    total = count_rows(path)
    rows = total if memory is None else min(memory // _PER_ROW, _MOST_ROWS)
    head = collected(path, scanned(path).limit(SAMPLE))
    names = head.columns
    picked = pick_columns(names, sample_of(head), reading.columns, reading.nodes, str(path))
    wanted = [names[i] for i in picked if i is not None]
    places = 0, 1, 2 if len(wanted) > 2 else None
    for start in range(0, total, max(1, rows)):
        frame = collected(path, scanned(path).select(wanted).slice(start, max(1, rows)))
        yield table_piece(frame, places, str(path), as_text=reading.as_text, start=start)


def _pieces_of_text(path: Path, reading: Reading, memory: int | None) -> Iterator[Piece]:
    layout = None
    for line, block in _whole_lines(path, memory):
        body = block
        if layout is None:
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
            body, layout = block[found.body :], found  # no copy if that is all of it
            del block
        else:
            layout = replace(layout, line=line)
        yield text_piece(body, layout, reading.nodes, as_text=reading.as_text)


def _whole_lines(path: Path, memory: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line."""
    if memory is None:
        yield 1, content(path)
        return
    size = max(1, min(memory // _PER_BYTE, _MOST_BYTES))
    line, rest = 1, b""
    for block in blocks(path, max(size, _HEAD)):
        block = rest + block
        cut = _end_of_lines(block, patience=4 * size + _HEAD)
        if cut:
            yield line, block[:cut]
            line += block.count(b"\n", 0, cut)
        rest = block[cut:]
    if rest:
        yield line, rest


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
