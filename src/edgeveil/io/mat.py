"""MATLAB files (up to version 7.2), whose structure is checked before scipy reads them.

scipy's compiled reader trusts the sizes and types in the file: a forged or damaged one makes it
crash, and the whole process with it. Format: "MAT-File Format", The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph
from edgeveil.io.matrix import read_matrix, refuse_broken
from edgeveil.nodes import NodeSet

__all__ = ["check_mat", "load_mat", "read_mat"]

_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_TYPES |= {13: "u8"}
_SPARSE, _NUMBERS, _OPAQUE = 5, range(6, 16), 17
_HEADER = 128
# A dense matrix of few ones packs 500 to 1, so the ratio alone proves nothing; what unpacks to
# more than a gibibyte and is nearly all the same is refused.
_ALWAYS_UNPACKED, _LARGEST_RATIO = 2**30, 100


class _Part(NamedTuple):
    """A data element: its type, its content, and where the next one starts."""

    type: int
    content: memoryview
    after: int


class _TooLargeError(Exception):
    """A compressed variable that would fill the memory."""

    def __init__(self, packed: int, size: int) -> None:
        super().__init__(size)
        self.packed, self.size = packed, size


def read_mat(path: Path, *, key: str, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read the matrix `key` of a MATLAB file."""
    return read_matrix(load_mat(path, key), nodes=nodes, directed=directed, what=f"{key} in {path}")


def load_mat(path: Path, key: str) -> Any:
    """Give the array or sparse matrix `key` of a MATLAB file."""
    from scipy.io import loadmat, whosmat

    check_mat(path, key)  # outside of the net below: scipy crashes on what it would refuse
    try:
        variables = loadmat(path, variable_names=[key])
        listed = ", ".join(name for name, _, _ in whosmat(path)) or "none"
    except NotImplementedError as error:
        raise InputError(f"{path} is a MATLAB 7.3 file; save it with -v7 first") from error
    except Exception as error:
        raise InputError(f"{path} is not a readable MATLAB file") from error
    if key not in variables or key.startswith("__"):
        raise InputError(f"{path} has no variable {key!r}; its variables are: {listed}")
    value = variables[key]
    if not (sp.issparse(value) or isinstance(value, np.ndarray)):
        raise InputError(f"{key} in {path} is not a matrix")
    refuse_broken(value, f"{key} in {path}")
    return value


def check_mat(path: Path, key: str) -> None:
    """Raise InputError if reading the matrix `key` could lead out of the file or fill the memory.

    Files of version 4 and 7.3 are left to scipy, which reads the first without compiled code
    and refuses the second.
    """
    damaged = InputError(f"{path} is not a readable MATLAB file")
    try:
        view = np.memmap(path, np.uint8, "r").data
    except ValueError as error:  # an empty file
        raise damaged from error
    if 0 in view[:4] or len(view) < _HEADER:
        return
    order = {b"IM": "<", b"MI": ">"}.get(bytes(view[126:128]))
    if order is None:
        raise damaged
    if 2 in view[124:126]:
        return
    try:
        faults = [_fault(matrix, order, key) for matrix in _matrices(view, order)]
    except _TooLargeError as error:
        raise InputError(
            f"{path} has a variable of {error.packed:,} bytes that unpacks to {error.size:,}; "
            "save the graph as a sparse matrix"
        ) from error
    except (struct.error, zlib.error, ValueError) as error:
        raise damaged from error
    if any(faults):
        raise InputError(f"{key} in {path} {next(filter(None, faults))}")


def _matrices(view: memoryview, order: str) -> Iterator[memoryview]:
    """The content of every variable."""
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
        yield content
        at += size


def _unpacked(packed: memoryview, order: str) -> tuple[int, memoryview]:
    """Type and content of a compressed variable: never more than its head says, and checked."""
    stream = zlib.decompressobj()
    kind, size = struct.unpack(f"{order}II", stream.decompress(packed, 8))
    if size > max(_ALWAYS_UNPACKED, _LARGEST_RATIO * len(packed)):
        raise _TooLargeError(len(packed), size)
    # One byte more, or 0 would mean no limit; it also makes zlib compare its checksum.
    content = stream.decompress(stream.unconsumed_tail, size + 1)
    if len(content) < size:
        raise ValueError("cut off")
    return kind, memoryview(content)[:size]


def _part(view: memoryview, at: int, order: str) -> _Part:
    """The data element at a place; small ones are packed into eight bytes."""
    (word,) = struct.unpack_from(f"{order}I", view, at)
    if word >> 16:
        kind, size, start, after = word & 0xFFFF, word >> 16, at + 4, at + 8
        if size > 4:
            raise ValueError("too large for a small element")
    else:
        kind, (size,) = word, struct.unpack_from(f"{order}I", view, at + 4)
        start, after = at + 8, at + 8 + -(-size // 8) * 8
    if start + size > len(view):
        raise ValueError("cut off")
    return _Part(kind, view[start : start + size], after)


def _fault(view: memoryview, order: str, key: str) -> str:
    """What is wrong with a variable, if it is the wanted one; ValueError for a wrong head."""
    flags = _part(view, 0, order)
    if flags.type != _UINT32 or len(flags.content) != 8:
        raise ValueError("no flags")
    (word,) = struct.unpack_from(f"{order}I", flags.content)
    kind, is_complex = word & 0xFF, bool(word & 0x800)
    if kind == _OPAQUE:
        return ""  # scipy goes past it
    sizes = _part(view, flags.after, order)
    name = _part(view, sizes.after, order)
    if sizes.type != _INT32 or name.type != _INT8:
        raise ValueError("no shape or name")
    shape = np.frombuffer(sizes.content, f"{order}i4").tolist()
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError("no shape")
    if bytes(name.content) != key.encode():
        return ""
    if kind == _SPARSE:
        fits = len(shape) == 2 and _fits_sparse(view, name.after, order, shape, is_complex)
    elif kind in _NUMBERS:
        fits = _fits_dense(view, name.after, order, shape, is_complex)
    else:
        return "is not a matrix of numbers"
    return "" if fits else "is damaged: its parts do not fit together"


def _fits_dense(view: memoryview, at: int, order: str, shape: list[int], is_complex: bool) -> bool:
    """Whether there are as many values as the shape says."""
    count = math.prod(shape)
    for _ in range(1 + is_complex):
        values = _part(view, at, order)
        if len(_numbers(values, order)) != count:
            return False
        at = values.after
    return True


def _fits_sparse(view: memoryview, at: int, order: str, shape: list[int], is_complex: bool) -> bool:
    """Whether rows, column starts and values of a sparse matrix belong together."""
    rows, starts = (p := _part(view, at, order)), _part(view, p.after, order)
    if {rows.type, starts.type} - {_INT32, _UINT32}:
        return False
    index, start = _numbers(rows, order), _numbers(starts, order)
    if len(start) < shape[1] + 1:
        return False
    start = start[: shape[1] + 1].astype(np.int64)
    stored, at = int(start[-1]), starts.after
    if start[0] != 0 or np.any(np.diff(start) < 0) or stored > len(index):
        return False
    index = index[:stored]
    if stored and not (index.min() >= 0 and index.max() < shape[0]):
        return False
    for _ in range(1 + is_complex):
        values = _part(view, at, order)
        if len(_numbers(values, order)) < stored:
            return False
        at = values.after
    return True


def _numbers(part: _Part, order: str) -> npt.NDArray[Any]:
    """The content as numbers; ValueError if it is none."""
    if part.type not in _TYPES:
        raise ValueError("no numbers")
    return np.frombuffer(part.content, order + _TYPES[part.type])
