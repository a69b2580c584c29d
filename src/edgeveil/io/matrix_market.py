"""MatrixMarket files, read here: scipy's reader can crash the process on a damaged one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
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
    layout, values, symmetry = _header(path, data)
    rows, entries, body = _sizes(path, data, layout)
    numbers = _numbers(path, data, body, layout, values)
    matrix: Any
    if layout == "coordinate":
        matrix = _coordinates(path, numbers, rows, entries, symmetry)
    else:
        matrix = _dense(path, numbers.to_series(0).to_numpy(), rows, symmetry)
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


def _coordinates(
    path: Path, numbers: pl.DataFrame, rows: int, entries: int, symmetry: str
) -> sp.coo_array:
    if len(numbers) != entries:
        raise InputError(
            f"{path} is not a readable MatrixMarket file: it holds {len(numbers)} entries "
            f"where {entries} are announced"
        )
    u, v = numbers.to_series(0).to_numpy() - 1, numbers.to_series(1).to_numpy() - 1
    values: npt.NDArray[Any] = (
        numbers.to_series(2).to_numpy() if numbers.width > 2 else np.ones(entries)
    )
    if entries and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= rows):
        raise InputError(
            f"{path} is not a readable MatrixMarket file: an entry is outside of its matrix"
        )
    if symmetry != "general":  # one triangle is stored
        off = u != v
        values = np.abs(values) if symmetry == "skew-symmetric" else values
        u, v = np.concatenate([u, v[off]]), np.concatenate([v, u[off]])
        values = np.concatenate([values, values[off]])
    return sp.coo_array((values, (u, v)), shape=(rows, rows))


def _dense(
    path: Path, values: npt.NDArray[np.float64], rows: int, symmetry: str
) -> npt.NDArray[np.float64]:
    triangle = {"general": rows * rows, "symmetric": rows * (rows + 1) // 2}
    wanted = triangle.get(symmetry, rows * (rows - 1) // 2)
    if len(values) != wanted:
        raise InputError(
            f"{path} is not a readable MatrixMarket file: it holds {len(values)} values "
            f"where {wanted} are announced"
        )
    if symmetry == "general":
        return values.reshape(rows, rows).T  # stored by columns
    # the lower triangle by columns is the upper one by rows
    upper = np.zeros((rows, rows))
    upper[np.triu_indices(rows, 1 if symmetry == "skew-symmetric" else 0)] = np.abs(values)
    return np.asarray(np.maximum(upper, upper.T))
