"""The graph in the kernels' layout, and iterative solvers for blocks of sources.

Layout: rows are sorted by falling degree, so that hubs, which are read most often, share cache
lines, and indices have 16 bits where they fit. Without this, flows take 1.5 to 2.5 times as long.
A graph that is too large to copy keeps its own arrays.

Mixed precision: a block is iterated in single precision first, then in double. A row is one cache
line, 8 sources in double precision or 16 in single, and a sweep takes the same time for both. So
early sweeps, whose errors are far above single precision's rounding, take half the time per source.
Results always come from sweeps in double precision, with the residual of the last one. Each source
switches by its own residual, so that its result does not depend on other sources.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from edgeveil._internal.weak_cache import WeakCache
from edgeveil.errors import InputError
from edgeveil.flow._kernels import (
    LANES,
    SINGLE_LANES,
    Kernels,
    Layout,
    label_components,
    lane_blocks,
    reorder,
)
from edgeveil.graph.graph import Graph

_LARGEST_COPY = 1 << 26  # graphs with more stored entries are not copied
_CACHE_LINE = 64


_layouts: WeakCache[Layout] = WeakCache()
_components: WeakCache[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = WeakCache()


def layout_of(graph: Graph) -> Layout:
    """The graph's layout, cached as long as the graph lives."""
    return _layouts.get(graph, lambda: _make_layout(graph))


def components_of(graph: Graph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Component label of every row, and the sum of degrees of each component; cached."""
    return _components.get(graph, lambda: _find_components(layout_of(graph)))


def _find_components(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    label = np.full(len(layout.degree), -1)
    count = label_components(layout.indptr, layout.indices, label, np.empty_like(label))
    return label, np.bincount(label, weights=layout.degree, minlength=count).astype(np.float64)


def block_zeros(rows: int, lanes: int, number: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Zeros of shape (rows, lanes) whose rows begin at cache lines."""
    # empty, not zeros: numpy requests huge pages for it
    size = np.dtype(number).itemsize
    memory = np.empty(rows * lanes + _CACHE_LINE // size, dtype=number)
    first = -memory.ctypes.data % _CACHE_LINE // size
    block = memory[first : first + rows * lanes].reshape(rows, lanes)
    block[:] = 0
    return block


def _make_layout(graph: Graph) -> Layout:
    if graph.directed:
        raise InputError('walks are for undirected graphs: read this one with directed="ignore"')
    degrees, n = graph.degrees, graph.n_nodes
    indptr, indices = graph.indptr, graph.indices
    node_at = row_of = np.arange(n)
    if len(indices) <= _LARGEST_COPY:
        node_at = np.argsort(-degrees, kind="stable")
        row_of = np.empty(n, dtype=np.int64)
        row_of[node_at] = np.arange(n)
        new_indptr = np.zeros(n + 1, dtype=indptr.dtype)
        np.cumsum(degrees[node_at], out=new_indptr[1:])
        new_indices = np.empty(len(indices), dtype=np.uint16 if n <= 1 << 16 else indices.dtype)
        reorder(indptr, indices, node_at, row_of, new_indptr, new_indices)
        indptr, indices = new_indptr, new_indices
    degree = degrees[node_at].astype(np.float64)
    # 1 / d, and 0 where d = 0: never infinity, never NaN
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    layout = Layout(indptr, indices, degree, inverse, node_at, row_of)
    for array in layout:
        array.setflags(write=False)
    return layout


_SINGLE_RESIDUAL = 2.0**-20  # single precision is not iterated below this
# A sweep usually reduces the residual by this factor: single precision stops so far above the
# tolerance that one sweep in double precision reaches it.
_LAST_SWEEP = 6
_SINGLE_STALL = 2.0**-16  # over restart: below this, rounding may stop single precision
_PATIENCE = {np.dtype(np.float32): 6, np.dtype(np.float64): 16}  # sweeps without improvement

Lanes = npt.NDArray[np.int64]


class Block:
    """State of an iteration for the sources of a block; reused for the next block.

    A subclass implements `load` and `sweep_once`.
    """

    stall_below = -math.inf  # in double precision, a stalled residual below this is accepted
    max_sweeps = math.inf

    def __init__(self, layout: Layout, loops: Kernels, restart: float, kind: npt.DTypeLike) -> None:
        self.layout, self.loops, self.restart = layout, loops, restart
        self.g: npt.NDArray[Any] = block_zeros(len(layout.degree), loops.lanes, kind)
        self.columns = np.arange(0)  # lanes with a source
        self.slot = np.zeros(len(layout.degree), dtype=np.int32)
        self.own_rows = np.empty(0, dtype=np.int64)

    def clear(self, count: int, own_rows: npt.NDArray[np.int64]) -> None:
        """Start over with `count` sources; these rows get slots, with starts of 0."""
        self.g[:] = 0
        self.columns = np.arange(count)
        self.slot[self.own_rows] = 0
        self.own_rows = np.unique(own_rows)
        self.slot[self.own_rows] = np.arange(1, len(self.own_rows) + 1)
        self.start = block_zeros(len(self.own_rows) + 1, self.loops.lanes, self.g.dtype)

    def sweep_once(self, number: int) -> npt.NDArray[np.float64]:
        """Do sweep number `number` (from 1) and give a bound on each lane's residual."""
        raise NotImplementedError

    def fall_back(self) -> None:
        """Solve all lanes in another way, after `max_sweeps`."""

    def continue_from(self, other: Any, lanes: Lanes, places: Lanes) -> None:
        """Copy the state of lanes of another block, of the same or another precision."""
        self.g[:, places] = other.g[:, lanes]

    def sweep(self, tolerance: float) -> Iterator[Lanes]:
        """Sweep until all lanes have converged; give lanes as they do, each once.

        Their state is valid until the next sweep. A lane converges when its residual is at most
        `tolerance`, or has stalled: near the end of the precision (rounding errors add up over
        1 / restart steps) and without improvement for some sweeps. Only near the end, because a
        residual may rise for many sweeps before it falls.
        """
        single = self.g.dtype == np.float32
        stall_below = _SINGLE_STALL / self.restart if single else self.stall_below
        waiting = self.columns
        best, idle = np.full(len(waiting), math.inf), np.zeros(len(waiting), dtype=np.int64)
        for number in itertools.count(1):
            residual = self.sweep_once(number)[: len(best)]
            idle = np.where(residual < best, 0, idle + 1)
            best = np.minimum(residual, best)
            stalled = (best <= stall_below) & (idle >= _PATIENCE[self.g.dtype])
            converged = ((residual <= tolerance) | stalled)[waiting]
            if converged.any():
                yield waiting[converged]
            waiting = waiting[~converged]
            if len(waiting) == 0:
                return
            if number >= self.max_sweeps:
                self.fall_back()
                yield waiting
                return


B = TypeVar("B", bound=Block)


def solve(
    make: Callable[[Kernels, npt.DTypeLike], B],
    count: int,
    load: Callable[[B, slice], None],
    tolerance: float,
) -> Iterator[tuple[slice, B, Lanes]]:
    """Solve for `count` sources, first in single precision, then in double.

    Gives which sources a block holds, the block, and the lanes that have converged now. `make`
    gives a block for kernels of some width and a float type, `load` sets it to the start for some
    of the sources, `tolerance` is the residual to reach.
    """

    @cache  # the memory of a block is reused for the next sources
    def block(number: int, loops: Kernels, kind: npt.DTypeLike) -> B:
        return make(loops, kind)

    for outer, wide in lane_blocks(count, SINGLE_LANES):
        single = block(0, wide, np.float32)
        load(single, outer)
        doubles: list[tuple[int, slice, B]] = []  # first lane of `single`, sources, block
        for number, (inner, loops) in enumerate(lane_blocks(outer.stop - outer.start, LANES)):
            part = slice(outer.start + inner.start, outer.start + inner.stop)
            double = block(number, loops, np.float64)
            load(double, part)
            doubles.append((inner.start, part, double))
        for lanes in single.sweep(max(_LAST_SWEEP * tolerance, _SINGLE_RESIDUAL)):
            for first, part, double in doubles:
                places = lanes - first
                here = (places >= 0) & (places < part.stop - part.start)
                if here.any():
                    double.continue_from(single, lanes[here], places[here])
        for _, part, double in doubles:
            for lanes in double.sweep(tolerance):
                yield part, double, lanes
