"""A .npy file that grows at its end."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._files import flush

_HEAD = 128  # numpy leaves room in the header of a one-dimensional array for any length


class GrowingArray:
    """An array on the disk to which blocks are appended; at the end it is what numpy saves.

    Parameters
    ----------
    file : Path
        The file.
    dtype : dtype
        Of its numbers.
    length : int
        Keep so many numbers of a file that is there, and go on behind them.
    """

    def __init__(self, file: Path, dtype: npt.DTypeLike, length: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self.length = length
        self._handle = file.open("r+b" if length else "w+b")
        self._handle.truncate(_HEAD + length * self.dtype.itemsize)
        self._handle.seek(0, 2)

    def append(self, block: npt.NDArray[Any]) -> None:
        """Write a block at the end."""
        np.ascontiguousarray(block, dtype=self.dtype).tofile(self._handle)
        self.length += len(block)

    def flush(self) -> None:
        """Return when all blocks are on the disk."""
        flush(self._handle)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._handle:
            if kind is None:
                about = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
                self._handle.seek(0)
                np.lib.format.write_array_header_1_0(self._handle, about)
                assert self._handle.tell() == _HEAD
                self.flush()
