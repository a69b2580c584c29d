"""The graph as the kernels want it, and blocks of sources that are iterated on it.

Rows go by falling degree: hubs are read most often, and side by side they share cache. Indices are
as narrow as they can be: those of 16 bits halve what a round reads besides the flow. A graph too
large to copy keeps its own arrays.

A block is iterated in single precision as far as it goes, then in double. Its row is one cache
line, of 8 sources in double precision or 16 in single, and a sweep takes as long for the one as for
the other: so the early sweeps, whose errors are far above single precision's roundings, cost
half. What is given out always comes from a sweep in double precision and with its certificate.
Every lane changes over by its own residual, so that a source's bits depend on no other source.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from edgeveil._kept import Kept
from edgeveil.errors import InputError
from edgeveil.flow._kernels import (
    LANES,
    SINGLE_LANES,
    Kernels,
    Layout,
    blocks,
    copy_lanes,
    label_components,
    reorder,
)
from edgeveil.graph import Graph

_LARGEST_COPY = 1 << 26  # stored entries; a copy is no larger than the graph itself
_CACHE_LINE = 64


_layouts: Kept[Layout] = Kept()
_components: Kept[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = Kept()


def layout_of(graph: Graph) -> Layout:
    """Give the graph's layout, made once and kept as long as the graph lives."""
    return _layouts.get(graph, lambda: _make_layout(graph))


def components_of(graph: Graph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Label of every row's connected component, and the sum of degrees of each; found once."""
    return _components.get(graph, lambda: _find_components(layout_of(graph)))


def _find_components(layout: Layout) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    label = np.full(len(layout.degree), -1)
    count = label_components(layout.indptr, layout.indices, label, np.empty_like(label))
    return label, np.bincount(label, weights=layout.degree, minlength=count).astype(np.float64)


def block_zeros(rows: int, lanes: int, number: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Zeros of shape (rows, lanes) whose rows begin at cache lines."""
    # empty, not zeros: numpy asks for large pages for it
    size = np.dtype(number).itemsize
    memory = np.empty(rows * lanes + _CACHE_LINE // size, dtype=number)
    first = -memory.ctypes.data % _CACHE_LINE // size
    block = memory[first : first + rows * lanes].reshape(rows, lanes)
    block[:] = 0
    return block


def _make_layout(graph: Graph) -> Layout:
    if graph.directed:
        raise InputError("walks are for undirected graphs: read this one with directed=True")
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


_ENOUGH_IN_SINGLE = 2.0**-20  # a residual that single precision reaches
_LAST_STEP = 6  # what a sweep makes of a residual, usually at least: the last one is in double

_NEAR_ITS_END = 2.0**-16  # of single precision, whose roundings are 2^-24
_IDLE = {np.dtype(np.float32): 6, np.dtype(np.float64): 16}  # sweeps without a better residual

Lanes = npt.NDArray[np.int64]


class Block:
    """Working memory for some sources side by side, used again for others.

    A subclass knows how to `load` sources and to `sweep_once`.
    """

    # In double precision a residual that has stopped falling is good enough below this.
    floor = -math.inf
    most_sweeps = math.inf

    def __init__(self, layout: Layout, loops: Kernels, restart: float, kind: npt.DTypeLike) -> None:
        self.layout, self.loops, self.restart = layout, loops, restart
        self.g: npt.NDArray[Any] = block_zeros(len(layout.degree), loops.lanes, kind)
        self.columns = np.arange(0)  # lanes with a source
        self.slot = np.zeros(len(layout.degree), dtype=np.int32)
        self.own_rows = np.empty(0, dtype=np.int64)

    def clear(self, count: int, own_rows: npt.NDArray[np.int64]) -> None:
        """Begin with `count` sources; these rows get slots, with starts of 0."""
        self.g[:] = 0
        self.columns = np.arange(count)
        self.slot[self.own_rows] = 0
        self.own_rows = np.unique(own_rows)
        self.slot[self.own_rows] = np.arange(1, len(self.own_rows) + 1)
        self.start = block_zeros(len(self.own_rows) + 1, self.loops.lanes, self.g.dtype)

    def sweep_once(self, number: int) -> npt.NDArray[np.float64]:
        """Sweep for the time of this number, from 1, and give a bound on each lane's residual."""
        raise NotImplementedError

    def give_up(self) -> None:
        """Bring all lanes to their end in another way, after `most_sweeps`."""

    def go_on_from(self, other: Any, lanes: Lanes, places: Lanes) -> None:
        """Take over lanes of another block of this kind."""
        copy_lanes(other.g, lanes, self.g, places)

    def sweep(self, enough: float) -> Iterator[Lanes]:
        """Sweep, and give lanes when their own residuals are `enough`, each lane once.

        They are as they should be until the next sweep.
        """
        # Not from the start: a residual may rise for many sweeps before it falls. Roundings add
        # up over 1 / restart steps; single precision may be left at any time.
        single = self.g.dtype == np.float32
        floor = _NEAR_ITS_END / self.restart if single else self.floor
        waiting = self.columns
        least, idle = np.full(len(waiting), math.inf), np.zeros(len(waiting), dtype=np.int64)
        for number in itertools.count(1):
            residual = self.sweep_once(number)[: len(least)]
            idle = np.where(residual < least, 0, idle + 1)
            least = np.minimum(residual, least)
            stuck = (least <= floor) & (idle >= _IDLE[self.g.dtype])
            ends = ((residual <= enough) | stuck)[waiting]
            if ends.any():
                yield waiting[ends]
            waiting = waiting[~ends]
            if len(waiting) == 0:
                return
            if number >= self.most_sweeps:
                self.give_up()
                yield waiting
                return


B = TypeVar("B", bound=Block)


def solve(
    make: Callable[[Kernels, npt.DTypeLike], B],
    count: int,
    load: Callable[[B, slice], None],
    enough: float,
) -> Iterator[tuple[slice, B, Lanes]]:
    """Solve for `count` sources; give which ones a block holds, it, and its lanes now ready.

    `make` gives a block for kernels of some width and a float type, `load` sets it to the start for
    some of the sources, `enough` is the residual to reach.
    """
    block = cache(lambda number, loops, kind: make(loops, kind))  # made once and used again
    for outer, wide in blocks(count, SINGLE_LANES):
        rough = block(0, wide, np.float32)
        load(rough, outer)
        parts: list[tuple[int, slice, B]] = []
        for i, (inner, loops) in enumerate(blocks(outer.stop - outer.start, LANES)):
            part = slice(outer.start + inner.start, outer.start + inner.stop)
            parts.append((inner.start, part, block(i, loops, np.float64)))
            load(parts[-1][2], part)
        for lanes in rough.sweep(max(_LAST_STEP * enough, _ENOUGH_IN_SINGLE)):
            for first, part, exact in parts:
                places = lanes - first
                here = (places >= 0) & (places < part.stop - part.start)
                if here.any():
                    exact.go_on_from(rough, lanes[here], places[here])
        for _, part, exact in parts:
            for lanes in exact.sweep(enough):
                yield part, exact, lanes
