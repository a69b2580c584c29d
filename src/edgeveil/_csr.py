"""Pairs of node indices -> the CSR rows of the simple graph, undirected or directed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_NODES", "Rows", "rows_of_pairs"]

Array = npt.NDArray[Any]

MOST_NODES = 2**31 - 1  # columns are 32-bit integers, and a key must fit into 63 bits


class Rows(NamedTuple):
    """A CSR structure, symmetric unless directed, and what was dropped on the way to it."""

    indptr: Array
    indices: Array
    self_loops: int
    repeated: int
    both_directions: int


def rows_of_pairs(u: Array, v: Array, n: int, *, directed: bool = False) -> Rows | None:
    """Build the rows of the graph with these entries; None if an index is not in 0 .. n-1.

    An entry (u, v) is the arc u -> v and, undirected, v -> u as well. The key of an arc is its
    row, its column, and one bit that says whether it was turned round: sorted keys are the rows.
    """
    if len(u) and (min(u.min(), v.min()) < 0 or max(u.max(), v.max()) >= n):
        return None
    u, v = (ends.astype(np.int64) if ends.dtype == np.uint64 else ends for ends in (u, v))
    loops = u == v
    self_loops = int(np.count_nonzero(loops))
    bits = max(1, (n - 1).bit_length())
    arcs = [(u, v)] if directed else [(u, v), (v, u)]
    keys = np.empty((len(arcs), len(u)), dtype=np.int64)
    for turned, (row, column) in enumerate(arcs):
        own = keys[turned]
        np.left_shift(row, bits, out=own, dtype=np.int64)
        own |= column
        own <<= 1
        own |= turned
        own[loops] = -1
    keys = keys.reshape(-1)
    keys.sort()
    keys = keys[len(arcs) * self_loops :]
    repeated = int(np.count_nonzero(keys[1:] == keys[:-1]))
    keys >>= 1
    fresh = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    gone = np.flatnonzero(~fresh)
    starts = np.searchsorted(keys, np.arange(n + 1) << bits)
    indices = np.empty(len(keys), dtype=np.int32)
    np.bitwise_and(keys, (1 << bits) - 1, out=indices, casting="unsafe")
    return Rows(
        starts - np.searchsorted(gone, starts),
        indices[fresh] if len(gone) else indices,
        self_loops,
        repeated // len(arcs),  # undirected, an arc and its reverse were both counted
        (len(gone) - repeated) // 2,
    )
