"""MATLAB files of version 5 to 7.2, read here: a damaged one crashes scipy, and the process.

Format: "MAT-File Format", The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph
from edgeveil.io.matrix import read_matrix, refuse_broken
from edgeveil.nodes import NodeSet

_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_TYPES |= {13: "u8"}
_SPARSE, _NUMBERS, _OPAQUE = 5, range(6, 16), 17  # classes of variables
_COMPLEX = 0x800
_HEADER = 128
# A dense matrix of few ones packs 500 to 1, so the ratio alone proves nothing; what unpacks to
# more than a gibibyte and is nearly all the same is refused.
_ALWAYS_UNPACKED, _LARGEST_RATIO = 2**30, 100

_DAMAGE = (StopIteration, LookupError, OverflowError, ValueError, struct.error, zlib.error)

Parts = Iterator[npt.NDArray[Any]]


class _TooLargeError(Exception):
    """A compressed variable that would fill the memory."""


def read_mat(path: Path, *, key: str, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read the matrix `key` of a MATLAB file."""
    return read_matrix(load_mat(path, key), nodes=nodes, directed=directed, what=f"{key} in {path}")


def load_mat(path: Path, key: str) -> Any:
    """Give the array or sparse matrix `key` of a MATLAB file."""
    names = []
    try:
        for parts in _variables(path):
            kind = int(next(parts)[0])
            if kind & 0xFF == _OPAQUE:  # an object of a class, which has no shape
                continue
            shape, name = next(parts).tolist(), next(parts).tobytes().decode("latin-1")
            names.append(name)
            if name == key:
                return _matrix(kind, shape, parts, f"{key} in {path}")
    except _TooLargeError as error:
        raise InputError(f"{path} {error}; save the graph as a sparse matrix") from error
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path} is not a readable MATLAB file") from error
    listed = ", ".join(names) or "none"
    raise InputError(f"{path} has no variable {key!r}; its variables are: {listed}")


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
            kind, content = _unpacked(content, order)
        if kind != _MATRIX:
            raise ValueError("not a variable")
        yield _parts(content, order)
        at += size


def _unpacked(packed: memoryview, order: str) -> tuple[int, memoryview]:
    """Type and content of a compressed variable: never more than its head says, and checked."""
    stream = zlib.decompressobj()
    kind, size = struct.unpack(f"{order}II", stream.decompress(packed, 8))
    if size > max(_ALWAYS_UNPACKED, _LARGEST_RATIO * len(packed)):
        raise _TooLargeError(f"has a variable of {len(packed):,} bytes that unpacks to {size:,}")
    # One byte more, or 0 would mean no limit; it also makes zlib compare its checksum.
    content = stream.decompress(stream.unconsumed_tail, size + 1)
    if len(content) < size:
        raise ValueError("cut off")
    return kind, memoryview(content)[:size]


def _parts(view: memoryview, order: str) -> Parts:
    """The data elements of a variable as numbers; small ones are packed into eight bytes."""
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
        yield numbers.astype(_TYPES[kind])  # a copy: aligned, of this machine, not of the file
        at = after


def _matrix(kind: int, shape: list[int], parts: Parts, what: str) -> Any:
    """The value of a variable whose parts are left to read."""
    import scipy.sparse as sp

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
        matrix = sp.csc_array((values[:stored], rows, starts), shape=(height, width))
    except (*_DAMAGE, TypeError) as error:
        raise InputError(f"{what} is damaged: its parts do not fit together") from error
    refuse_broken(matrix, what)
    return matrix
