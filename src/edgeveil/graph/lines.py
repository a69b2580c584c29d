"""Text files as lines: opening, decompressing, splitting. For edge lists, node lists, matrices."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError

if TYPE_CHECKING:
    import polars as pl

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")

# For guessing a layout only: 007 looks like an integer, but is text as an id (nodes.INTEGER).
_is_integer = re.compile(r"[+-]?[0-9]+").fullmatch
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}[^/]")  # a single letter is a Windows drive

# Limits of decompression: this many bytes, or this many times the file's size if that is more
_MOST_UNPACKED = 1 << 28
_MOST_TIMES = 100
_BLOCK = 1 << 20
HEAD = 1 << 16  # bytes from which the layout of a text file is detected


def suffix_of(path: Path) -> str:
    """The suffix that names the format, in lower case, without ``.gz``."""
    return Path(path.stem if is_gzip(path) else path.name).suffix.lower()


def is_gzip(path: Path) -> bool:
    """Whether the file is compressed."""
    return path.suffix.lower() == ".gz"


def is_integer(text: str) -> bool:
    """Whether the text looks like an integer, in ASCII digits."""
    return _is_integer(text) is not None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it ends in ``.gz``; errors become an InputError."""
    try:
        with gzip.open(path) if is_gzip(path) else path.open("rb") as handle:
            yield handle  # type: ignore[misc]  # a GzipFile has the same methods
    except InputError:
        raise
    except FileNotFoundError as error:
        refuse_url(path)
        raise InputError(f"there is no file {path}") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read: permission denied") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is not a whole gzip file: truncated or damaged") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise InputError(f"{path} cannot be read: {reason}") from error


def refuse_url(path: str | os.PathLike[str]) -> None:
    """Refuse a URL (s3://bucket/file); as a Path it has a single slash."""
    if match := _ADDRESS.match(os.fspath(path)):
        raise InputError(
            f"{match[1]}:// is a URL, and graphs are read from local files: "
            "download it first, or read it with another library (polars.scan_parquet, for "
            "instance) and pass the table to edgeveil.as_graph"
        )


def check_readable(path: Path) -> None:
    """Raise an InputError if a file cannot be opened, the same for all formats."""
    with _opened(path):
        pass


def read_blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield a text file by blocks, without a byte order mark.

    Stops at decompression bombs: edge lists decompress to 2 to 10 times their size, a forged file
    to 1,000 times.
    """
    unpacked = 0
    with _opened(path) as handle:
        most = max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size)
        while block := handle.read(size):
            first, unpacked = unpacked == 0, unpacked + len(block)
            if unpacked > most:
                raise InputError(
                    f"{path} unpacks to more than {_MOST_TIMES} times its size, over "
                    f"{most >> 20} MB; if that is right, unpack it and read the plain file"
                )
            yield block.removeprefix(_BYTE_ORDER_MARK) if first else block


def content(path: Path) -> bytes:
    """Read a text file, decompressed if it ends in ``.gz``, without a byte order mark."""
    # -1: one block, not copied
    return _line_ends(b"".join(read_blocks(path, _BLOCK if is_gzip(path) else -1)))


def _line_ends(data: bytes) -> bytes:
    """Lines that end in several carriage returns, or in these alone, as others do."""
    if b"\r" not in data:
        return data
    if b"\n" not in data:
        return data.replace(b"\r", b"\n")
    return re.sub(rb"\r+\n", b"\n", data) if b"\r\r" in data else data


def whole_lines(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, about `size` bytes each, with the number of their first line."""
    line, rest = 1, b""
    for block in read_blocks(path, max(size, HEAD)):
        block = rest + block
        cut = _end_of_lines(block, patience=4 * size + HEAD)
        if cut:
            yield line, _line_ends(block[:cut])
            line += block.count(b"\n", 0, cut)
        rest = block[cut:]
    if rest:
        yield line, _line_ends(rest)


def _end_of_lines(block: bytes, patience: int) -> int:
    """The end of the last line outside of quotes; 0 if there is none.

    In a block longer than `patience` quotes are ignored: one is never closed.
    """
    last = end = block.rfind(b"\n") + 1
    if b'"' not in block or len(block) > patience:
        return last
    while end and block.count(b'"', 0, end) % 2:
        end = block.rfind(b"\n", 0, end - 1) + 1
    return end


def data_lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number from 1, offset, line) of lines that are neither blank nor comments."""
    start, number, size = 0, 0, len(data)
    while start < size:
        end = data.find(b"\n", start)
        end = size if end < 0 else end
        number += 1
        line = data[start:end]
        if line.strip(b" \t\r")[:1] not in (b"", b"#", b"%"):
            yield number, start, line
        start = end + 1


def decode(line: bytes, where: str) -> str:
    """Decode a line of UTF-8 text."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text; convert the file first") from error


def fields(line: str, delimiter: str) -> list[str]:
    """Split one line; the delimiter " " means any run of spaces and tabs, without quotes."""
    line = line.rstrip("\r")
    if delimiter == " ":
        return re.split(r"[ \t]+", line.strip(" \t"))
    try:
        row = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field above csv's limit, or a lone carriage return
        row = line.split(delimiter)
    return [field.strip(" \t") for field in row] or [""]


def sniff_delimiter(line: str) -> str:
    """Guess the delimiter from the first line: tab, comma, semicolon, else spaces.

    Tabs come first, since names may contain commas; an empty field between tabs means spaces.
    """
    by_tab = fields(line, "\t")
    if len(by_tab) > 1 and all(by_tab[:2]):
        return "\t"
    return next((mark for mark in ",;" if mark in line), " ")


def tidy(data: bytes, delimiter: str) -> bytes:
    """Drop comments and blank lines; with a space as delimiter, squeeze runs of spaces and tabs.

    Passes over the whole buffer in C: 0.05 s a million lines, a loop over lines 0.3, parsing 0.05.
    """
    data = b"\n" + data.replace(b"\r\n", b"\n") + b"\n"
    if delimiter == " ":
        data = data.replace(b"\t", b" ")
        while b"  " in data:  # each pass halves the runs
            data = data.replace(b"  ", b" ")
        data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    return re.sub(rb"\n[\t\r ]*(?:[#%][^\n]*)?(?=\n)", b"", data)[1:]


def is_plain(data: bytes, delimiter: str) -> bool:
    """Whether no integer in the data has a sign or zeros that str(int()) would drop.

    Polars reads 007, +7 and "007" as 7. False also for such text in columns other than the ids.
    Takes as long as polars takes to parse two columns; an expression of `re` takes eight times as
    long.
    """
    ends = _bytes_in(b'\n"' + delimiter.encode())  # before a field
    marks = ends | _bytes_in(b" \t-+")  # before the digits of a field
    digits = _bytes_in(b"0123456789")
    for start in range(0, len(data), _BLOCK):
        before = data[start - 2 : start] if start else b"\n\n"
        text = np.frombuffer(before + data[start : start + _BLOCK + 1] + b"\n", np.uint8)
        if b"+" in data[start : start + _BLOCK]:
            signs = 2 + np.flatnonzero(text[2:] == ord("+"))
            if not digits[text[signs - 1]].all():
                return False
        zeros = 2 + np.flatnonzero(text[2:] == ord("0"))
        zeros = zeros[marks[text[zeros - 1]]]
        mark = text[zeros - 1]
        first = ends[mark] | ~digits[text[zeros - 2]]  # not a time: 2026-01-02 03:04
        if np.any(first & (digits[text[zeros + 1]] | (mark == ord("-")))):
            return False
    return True


def _bytes_in(marks: bytes) -> npt.NDArray[np.bool_]:
    """A table of all bytes that is True for these."""
    table = np.zeros(256, dtype=np.bool_)
    table[list(marks)] = True
    return table


def parse(
    data: bytes, delimiter: str, kinds: Sequence[type[pl.DataType]], path: Path
) -> pl.DataFrame:
    """Parse bytes as columns of these types; missing fields become null, surplus ones fail."""
    import polars as pl

    try:
        return pl.read_csv(
            data,
            has_header=False,
            separator=delimiter,
            quote_char=None if delimiter == " " else '"',
            schema={f"column {i}": kind for i, kind in enumerate(kinds)},
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is not plain text with one entry per line") from error
