"""MatrixMarket files, read here: scipy's reader can crash the process on a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph
from edgeveil.io.lines import content, data_lines, fields, parse, tidy
from edgeveil.io.matrix import read_matrix
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_matrix_market"]

_FORMATS = ("coordinate", "array")
_VALUES = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_matrix_market(path: Path, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a MatrixMarket file; a symmetric header stands for both directions."""
    data = content(path)
    layout, kind, symmetry = _header(path, data)
    rows, announced, body = _sizes(path, data, layout)
    numbers = [column.to_numpy() for column in _numbers(path, data, body, layout, kind)]
    found, values = len(numbers[0]), numbers[-1]
    bad = f"{path} is not a readable MatrixMarket file"
    what = "entries" if layout == "coordinate" else "values"
    if layout == "array":
        triangle = {"general": rows * rows, "symmetric": rows * (rows + 1) // 2}
        announced = triangle.get(symmetry, rows * (rows - 1) // 2)
    if found != announced:
        raise InputError(f"{bad}: it holds {found} {what} where {announced} are announced")
    if layout == "coordinate":
        u, v = numbers[0] - 1, numbers[1] - 1
        values = values if len(numbers) > 2 else np.ones(found)
    elif symmetry == "general":
        v, u = np.divmod(np.arange(found), max(rows, 1))  # stored by columns
    else:  # the lower triangle by columns is the upper one by rows
        v, u = np.triu_indices(rows, 1 if symmetry == "skew-symmetric" else 0)
    if found and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= rows):
        raise InputError(f"{bad}: an entry is outside of its matrix")
    values = np.abs(values) if symmetry == "skew-symmetric" else values
    if symmetry != "general":  # one triangle is stored
        off = u != v
        u, v = np.concatenate([u, v[off]]), np.concatenate([v, u[off]])
        values = np.concatenate([values, values[off]])
    matrix = sp.coo_array((values, (u, v)), shape=(rows, rows))
    return read_matrix(matrix, nodes=nodes, directed=directed, what=str(path))


def _header(path: Path, data: bytes) -> tuple[str, str, str]:
    words = data.partition(b"\n")[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(f"{path} is not a readable MatrixMarket file: line 1 is no such header")
    layout, values, symmetry = words[2:]
    for word, known in ((layout, _FORMATS), (values, _VALUES), (symmetry, _SYMMETRIES)):
        if word not in known:
            raise InputError(f"{path} is a MatrixMarket file of a kind that is not read: {word!r}")
    return layout, values, symmetry


def _sizes(path: Path, data: bytes, layout: str) -> tuple[int, int, int]:
    """Give the number of rows, of entries, and where the entries begin."""
    number, start, line = next(data_lines(data), (0, 0, b""))
    words = line.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(words) != wanted or not all(word.isdigit() and len(word) < 19 for word in words):
        raise InputError(
            f"{path} is not a readable MatrixMarket file: line {number} is no line of sizes"
        )
    rows, columns, *entries = (int(word) for word in words)
    if rows != columns:
        raise InputError(f"{path} is {rows} x {columns}, an adjacency matrix is square")
    return rows, entries[0] if entries else 0, start + len(line)


def _numbers(path: Path, data: bytes, body: int, layout: str, values: str) -> pl.DataFrame:
    """Give the entries as columns: row, column and value, as far as the kind has them."""
    import polars as pl

    kinds: list[type[pl.DataType]] = [] if values == "pattern" else [pl.Float64]
    if layout == "coordinate":
        kinds = [pl.Int64, pl.Int64, *kinds]
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
