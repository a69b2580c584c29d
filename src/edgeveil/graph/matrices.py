"""Adjacency matrices: scipy.sparse, dense, edge_index arrays, MATLAB and MatrixMarket files.

Files are parsed here: scipy's readers crash the process on damaged ones.
"""

from __future__ import annotations

import math
import shlex
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph.graph import Directed, Graph
from edgeveil.graph.lines import content, data_lines, parse, tidy
from edgeveil.graph.nodes import NodeSet


def row_nodes(n: int, nodes: NodeSet | None, what: str) -> NodeSet:
    """The node set of a graph whose nodes are numbered 0 .. n-1."""
    if nodes is None:
        return NodeSet.range(n)
    if len(nodes) != n:
        raise InputError(f"{what} has {n} nodes, the node list {len(nodes)}")
    return nodes


def read_matrix(
    matrix: Any, *, nodes: NodeSet | None, directed: Directed, what: str = "the matrix"
) -> Graph:
    """Read a scipy.sparse or dense adjacency matrix; every entry that is not 0 is an edge."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(str(size) for size in matrix.shape)
        raise InputError(f"{what} is {shape}, an adjacency matrix is square")
    check_compressed(matrix, what)
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{what} holds {matrix.dtype}, an adjacency matrix holds real numbers")
    try:
        u, v, values = _entries(matrix)
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise InputError(f"{what} holds NaN: write 0 where there is no edge")
        return Graph.from_edges(
            u,
            v,
            row_nodes(matrix.shape[0], nodes, what),
            weighted=int((values != 1).sum()),
            must_be_symmetric=directed == "refuse",
            directed=directed == "keep",
        )
    except MemoryError as error:
        raise InputError(f"{what} has {matrix.shape[0]} nodes, too many for memory") from error


def check_compressed(matrix: Any, what: str) -> None:
    """Refuse compressed matrices with indices out of range: scipy would crash."""
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
            # scipy skips this if the last row starts at 0 or before
            if np.any(np.diff(matrix.indptr) < 0):
                raise ValueError("rows that end before they start")
        except ValueError as error:
            raise InputError(f"{what} is damaged: its indices do not fit its shape") from error


def _entries(matrix: Any) -> tuple[npt.NDArray[Any], ...]:
    """Rows, columns and values of the entries that are not 0."""
    if isinstance(matrix, np.ndarray):
        u, v = np.nonzero(matrix)
        return u, v, matrix[u, v]
    # Entries stored more than once add up in every scipy format, and may cancel out.
    # A copy: sum_duplicates works in place.
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    entries = rows.tocoo()
    edges = entries.data != 0
    return entries.row[edges], entries.col[edges], entries.data[edges]


def read_array(array: npt.NDArray[Any], *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a dense square matrix, or an edge_index: 2 x m integers, one arc per column."""
    if np.ma.is_masked(array):
        raise InputError("the array is masked: fill it, with 0 where there is no edge")
    array = np.asarray(array)
    integers = array.dtype.kind in "iu"
    if integers and array.shape == (2, 2):
        raise InputError(
            "a 2 x 2 integer array may be a matrix or an edge_index; "
            "pass scipy.sparse.csr_array(matrix), or a table with two columns"
        )
    if not (integers and array.ndim == 2 and array.shape[0] == 2):
        return read_matrix(array, nodes=nodes, directed=directed, what="the array")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError("an index in edge_index does not fit into 64 bits")
    nodes_from_edges = nodes is None
    if nodes is None:
        nodes = NodeSet.range(int(array.max()) + 1 if array.size else 0)
    array = array.astype(np.int64, copy=False)
    return Graph.from_edges(
        array[0],
        array[1],
        nodes,
        must_be_symmetric=directed == "refuse",
        nodes_from_edges=nodes_from_edges,
        directed=directed == "keep",
    )


# -- MatrixMarket -------------------------------------------------------------------------

_KINDS = (
    ("%%matrixmarket",),
    ("matrix",),
    ("coordinate",),
    ("real", "double", "integer", "unsigned-integer", "pattern"),
    ("general", "symmetric"),
)


def read_matrix_market(path: Path, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a MatrixMarket file; a symmetric header stands for both directions."""
    data = content(path)
    bad = f"{path} is not a readable MatrixMarket file"
    words = data.partition(b"\n")[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(f"{bad}: line 1 is no such header")
    for word, choices in zip(words, _KINDS, strict=True):
        if word not in choices:
            raise InputError(f"{path} is a MatrixMarket file of a kind that is not read: {word!r}")
    number, start, line = next(data_lines(data), (0, 0, b""))
    sizes = line.split()
    if len(sizes) != 3 or not all(size.isdigit() and len(size) < 19 for size in sizes):
        raise InputError(f"{bad}: line {number} is no line of sizes")
    rows, columns, announced = map(int, sizes)
    if rows != columns:
        raise InputError(f"{path} is {rows} x {columns}, an adjacency matrix is square")
    u, v, values = _entries_of(path, data, start + len(line), words[3] == "pattern")
    if len(u) != announced:
        raise InputError(f"{bad}: it holds {len(u)} entries where {announced} are announced")
    if len(u) and (min(u.min(), v.min()) < 1 or max(u.max(), v.max()) > rows):
        raise InputError(f"{bad}: an entry is outside of its matrix")
    if words[4] == "symmetric":  # one triangle is stored
        off = u != v
        u, v = np.concatenate([u, v[off]]), np.concatenate([v, u[off]])
        values = np.concatenate([values, values[off]])
    import scipy.sparse as sp

    matrix = sp.coo_array((values, (u - 1, v - 1)), shape=(rows, rows))
    return read_matrix(matrix, nodes=nodes, directed=directed, what=str(path))


def _entries_of(path: Path, data: bytes, body: int, pattern: bool) -> tuple[npt.NDArray[Any], ...]:
    """Row, column and value of every entry in a MatrixMarket file, from byte `body` on."""
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.Int64, pl.Int64, *([] if pattern else [pl.Float64])]
    try:
        frame = parse(tidy(data[body:], " "), " ", kinds, path)
        if any(column.has_nulls() for column in frame):
            raise InputError(f"{path} has a short line")
    except InputError as error:
        raise InputError(
            f"{path} is not a readable MatrixMarket file: a line is no entry of it"
        ) from error
    u, v, *values = (column.to_numpy() for column in frame)
    return u, v, np.ones(len(frame)) if pattern else values[0]


# -- MATLAB files of version 5 to 7.2 ("MAT-File Format", The MathWorks) ---------------------

_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_TYPES |= {13: "u8"}
_SPARSE, _NUMBERS, _OPAQUE = 5, range(6, 16), 17  # classes of variables
_COMPLEX = 0x800
_HEADER = 128
# A dense matrix of few ones compresses 500 to 1, so only variables above a gibibyte are refused
# for their ratio.
_ALWAYS_UNPACKED, _LARGEST_RATIO = 2**30, 100

_DAMAGE = (StopIteration, LookupError, OverflowError, ValueError, struct.error, zlib.error)

Parts = Iterator[npt.NDArray[Any]]


def load_mat(path: Path, key: str) -> Any:
    """The array or sparse matrix `key` of a MATLAB file."""
    names = []
    for variable in _named_variables(path):
        if variable.name == key:
            return variable.matrix(path)
        names.append(variable.name)
    listed = ", ".join(names) or "none"
    raise InputError(f"{path} has no variable {key!r}; its variables are: {listed}")


def load_adjacency(path: Path) -> tuple[str, Any]:
    """Name and content of the matrix of a MATLAB file: ``network``, or the only square one."""
    names, square = [], list[_Variable]()
    for variable in _named_variables(path):
        if variable.name == "network":
            return variable.name, variable.matrix(path)
        names.append(variable.name)
        if variable.is_square:
            square.append(variable)
    if len(square) == 1:
        return square[0].name, square[0].matrix(path)
    if square:
        listed, first = ", ".join(variable.name for variable in square), square[0].name
        raise InputError(
            f"{path} holds several square matrices: {listed}. Which one is the graph? "
            f"Say key={first!r}, or on the command line --key {shlex.quote(first)}"
        )
    listed = ", ".join(names) or "none"
    raise InputError(f"{path} holds no square matrix of numbers; its variables are: {listed}")


class _Variable(NamedTuple):
    """A variable of a MATLAB file whose content is not parsed yet."""

    kind: int
    shape: list[int]
    name: str
    parts: Parts

    @property
    def is_square(self) -> bool:
        """Whether it may be an adjacency matrix; numbers by themselves are 1 x 1."""
        real = self.kind & 0xFF in (_SPARSE, *_NUMBERS) and not self.kind & _COMPLEX
        return real and len(self.shape) == 2 and self.shape[0] == self.shape[1] > 1

    def matrix(self, path: Path) -> Any:
        """The content."""
        return _matrix(self.kind, self.shape, self.parts, f"{self.name} in {path}")


def _named_variables(path: Path) -> Iterator[_Variable]:
    """The variables of a MATLAB file; an InputError if the file is damaged."""
    try:
        for parts in _variables(path):
            kind = int(next(parts)[0])
            if kind & 0xFF == _OPAQUE:  # an object, which has no shape
                continue
            shape, name = next(parts).tolist(), next(parts).tobytes().decode("latin-1")
            yield _Variable(kind, shape, name, parts)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path} is not a readable MATLAB file") from error


def _variables(path: Path) -> Iterator[Parts]:
    """The parts of every variable."""
    view = np.memmap(path, np.uint8, "r").data  # ValueError for an empty file
    order = {b"IM": "<", b"MI": ">"}.get(bytes(view[126:_HEADER]))
    if 0 in view[:4]:
        raise InputError(f"{path} is a MATLAB 4 file, or none; save it with -v7 first")
    if 2 in view[124:126]:
        raise InputError(f"{path} is a MATLAB 7.3 file; save it with -v7 first")
    if order is None:
        raise ValueError("no byte order")
    at = _HEADER
    while at < len(view):
        kind, size = struct.unpack_from(f"{order}II", view, at)
        at += 8
        content = view[at : at + size]
        if len(content) != size:
            raise ValueError("cut off")
        if kind == _COMPRESSED:
            kind, content = _unpacked(content, order, path)
        if kind != _MATRIX:
            raise ValueError("not a variable")
        yield _parts(content, order)
        at += size


def _unpacked(packed: memoryview, order: str, path: Path) -> tuple[int, memoryview]:
    """Type and content of a compressed variable, of the size in its header, checksum verified."""
    stream = zlib.decompressobj()
    kind, size = struct.unpack(f"{order}II", stream.decompress(packed, 8))
    if size > max(_ALWAYS_UNPACKED, _LARGEST_RATIO * len(packed)):
        raise InputError(
            f"{path} has a variable of {len(packed):,} bytes that unpacks to {size:,}; "
            "save the graph as a sparse matrix"
        )
    # One byte more: 0 would mean no limit, and zlib then verifies its checksum.
    content = stream.decompress(stream.unconsumed_tail, size + 1)
    if len(content) < size:
        raise ValueError("cut off")
    return kind, memoryview(content)[:size]


def _parts(view: memoryview, order: str) -> Parts:
    """The data elements of a variable; small ones are stored within their eight-byte tag."""
    at = 0
    while at < len(view):
        (word,) = struct.unpack_from(f"{order}I", view, at)
        if word >> 16:
            kind, size, start, after = word & 0xFFFF, word >> 16, at + 4, at + 8
        else:
            kind, (size,) = word, struct.unpack_from(f"{order}I", view, at + 4)
            start, after = at + 8, at + 8 + -(-size // 8) * 8
        if start + size > len(view) or (word >> 16 and size > 4):
            raise ValueError("cut off")
        numbers = np.frombuffer(view[start : start + size], order + _TYPES[kind])
        yield numbers.astype(_TYPES[kind])  # a copy: aligned, in native byte order
        at = after


def _matrix(kind: int, shape: list[int], parts: Parts, what: str) -> Any:
    """The matrix from the remaining data elements of a variable."""
    if kind & 0xFF not in (_SPARSE, *_NUMBERS) or kind & _COMPLEX:
        raise InputError(f"{what} is not a matrix of real numbers")
    try:
        if kind & 0xFF != _SPARSE:
            values = next(parts)
            if len(shape) < 2 or min(shape) < 0 or math.prod(shape) != len(values):
                raise ValueError("another size")
            return values.reshape(shape, order="F")
        rows, starts, values = next(parts), next(parts), next(parts)
        starts = starts[: shape[1] + 1].astype(np.int64)
        stored = int(starts[-1])
        rows = rows[:stored].astype(np.int64)
        height, width = shape
        import scipy.sparse as sp

        matrix = sp.csc_array((values[:stored], rows, starts), shape=(height, width))
    except (*_DAMAGE, TypeError) as error:
        raise InputError(f"{what} is damaged: its parts do not fit together") from error
    check_compressed(matrix, what)
    return matrix
