"""Rows of different lengths in one flat array: row i lies at ``starts[i] : starts[i + 1]``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
Indices = npt.NDArray[np.integer]


def starts_of(counts: npt.NDArray[Any]) -> Offsets:
    """Starts of rows with these numbers of entries (at most 1 each, if they are a mask).

    >>> starts_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64, copy=False)


def take_rows(starts: Indices, rows: Indices) -> tuple[Offsets, Offsets]:
    """Some rows, one after the other: their new starts, and the places of their entries.

    An index of -1 is an empty row.

    >>> starts, places = take_rows(np.array([0, 2, 2, 5]), np.array([2, -1, 0]))
    >>> starts.tolist(), places.tolist()
    ([0, 3, 3, 5], [2, 3, 4, 0, 1])
    """
    counts = np.where(rows >= 0, np.diff(starts)[rows], 0)
    taken = starts_of(counts)
    return taken, np.repeat(starts[rows] - taken[:-1], counts) + np.arange(taken[-1])


def row_sums(starts: Indices, numbers: npt.NDArray[Any]) -> Offsets:
    """The sum of the whole numbers (or truth values) in each row.

    >>> row_sums(np.array([0, 2, 2, 5]), np.array([1, 1, 2, 3, 4])).tolist()
    [2, 0, 9]
    """
    return np.diff(starts_of(numbers)[starts])
