"""MatrixMarket files, read here: scipy's reader can crash the process on a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph
from edgeveil.io.lines import content, data_lines, fields, parse, tidy
from edgeveil.io.matrix import read_matrix
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

_VALUES = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric")


def read_matrix_market(path: Path, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a MatrixMarket file; a symmetric header stands for both directions."""
    data = content(path)
    kind, symmetry = _header(path, data)
    rows, announced, body = _sizes(path, data)
    numbers = [column.to_numpy() for column in _numbers(path, data, body, kind)]
    u, v, found = numbers[0] - 1, numbers[1] - 1, len(numbers[0])
    values = numbers[2] if len(numbers) > 2 else np.ones(found)
    bad = f"{path} is not a readable MatrixMarket file"
    if found != announced:
        raise InputError(f"{bad}: it holds {found} entries where {announced} are announced")
    if found and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= rows):
        raise InputError(f"{bad}: an entry is outside of its matrix")
    if symmetry == "symmetric":  # one triangle is stored
        off = u != v
        u, v = np.concatenate([u, v[off]]), np.concatenate([v, u[off]])
        values = np.concatenate([values, values[off]])
    import scipy.sparse as sp

    matrix = sp.coo_array((values, (u, v)), shape=(rows, rows))
    return read_matrix(matrix, nodes=nodes, directed=directed, what=str(path))


def _header(path: Path, data: bytes) -> tuple[str, str]:
    """Give the kind of values and the symmetry."""
    words = data.partition(b"\n")[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(f"{path} is not a readable MatrixMarket file: line 1 is no such header")
    for word, known in zip(words[2:], (("coordinate",), _VALUES, _SYMMETRIES), strict=True):
        if word not in known:
            raise InputError(f"{path} is a MatrixMarket file of a kind that is not read: {word!r}")
    return words[3], words[4]


def _sizes(path: Path, data: bytes) -> tuple[int, int, int]:
    """Give the number of rows, of entries, and where the entries begin."""
    number, start, line = next(data_lines(data), (0, 0, b""))
    words = line.split()
    if len(words) != 3 or not all(word.isdigit() and len(word) < 19 for word in words):
        raise InputError(
            f"{path} is not a readable MatrixMarket file: line {number} is no line of sizes"
        )
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise InputError(f"{path} is {rows} x {columns}, an adjacency matrix is square")
    return rows, entries, start + len(line)


def _numbers(path: Path, data: bytes, body: int, values: str) -> pl.DataFrame:
    """Give the entries as columns: row, column and, unless it is a pattern, value."""
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.Int64, pl.Int64]
    kinds += [] if values == "pattern" else [pl.Float64]
    try:
        frame = parse(tidy(data[body:], " "), " ", kinds, path)
        if any(column.has_nulls() for column in frame):
            raise InputError(f"{path} has a short line")
    except InputError as error:
        line = _first_bad_line(data, body, len(kinds))
        raise InputError(f"{path} is not a readable MatrixMarket file{line}") from error
    return frame


def _first_bad_line(data: bytes, body: int, width: int) -> str:
    for number, start, line in data_lines(data):
        if start >= body:
            found = fields(line.decode("ascii", "replace"), " ")
            try:
                good = len(found) == width and all(np.isfinite(float(field)) for field in found)
            except ValueError:
                good = False
            if not good:
                return f": line {number} is no entry of it"
    return ""
