"""Iterate in single precision as far as it goes, then finish in double.

A block's row is one cache line, of 8 sources in double precision or 16 in single, and a sweep
takes as long for the one as for the other. So the early sweeps, whose errors are far above
single precision's roundings, cost half. What is given out always comes from a sweep in double
precision and with its certificate.

Every lane changes over by its own residual, so that a source's bits depend on no other source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from edgeveil.flow._kernels import LANES, SINGLE_LANES, Kernels, blocks, copy_lanes

__all__ = ["Lanes", "Progress", "SweptBlock", "TwoPrecisions"]

_ENOUGH_IN_SINGLE = 2.0**-20  # a residual that single precision reaches
_LAST_STEP = 6  # what a sweep makes of a residual, usually at least: the last one is in double

_NEAR_ITS_END = 2.0**-16  # of single precision, whose roundings are 2^-24
_IDLE = {np.dtype(np.float32): 6, np.dtype(np.float64): 16}  # sweeps without a better residual

Lanes = npt.NDArray[np.int64]


class Progress:
    """Which lanes of a block are done: by their residuals, or because these fall no further.

    Parameters
    ----------
    lanes : int
        Number of sources in the block.
    kind : dtype
        Precision of the sweeps. Single precision may be left at any time.
    restart : float
        Restart probability: roundings add up over 1 / restart steps.
    floor : float
        In double precision a residual that has stopped falling is good enough below this; -inf
        where nothing but `enough` is.
    """

    def __init__(self, lanes: int, kind: np.dtype[Any], restart: float, floor: float) -> None:
        self.waiting = np.arange(lanes)
        self._least = np.full(lanes, math.inf)
        self._idle = np.zeros(lanes, dtype=np.int64)
        self._patience = _IDLE[kind]
        # Not from the start: a residual may rise for many sweeps before it falls.
        self._floor = _NEAR_ITS_END / restart if kind == np.float32 else floor

    def ended(self, residual: npt.NDArray[np.float64], enough: float) -> Lanes:
        """Give the lanes that are done after one more sweep, each once."""
        better = residual < self._least
        self._idle = np.where(better, 0, self._idle + 1)
        self._least = np.where(better, residual, self._least)
        stuck = (self._least <= self._floor) & (self._idle >= self._patience)
        ends = ((residual <= enough) | stuck)[self.waiting]
        done, self.waiting = self.waiting[ends], self.waiting[~ends]
        return done


class SweptBlock(Protocol):
    """Some sources side by side, and how to bring them nearer to what is sought."""

    g: npt.NDArray[Any]  # (n, lanes) float32 or float64

    def sweep(self, enough: float) -> Iterator[Lanes]:
        """Sweep, and give lanes when their own residuals are `enough`, each lane once.

        They are as they should be until the next sweep.
        """
        ...

    def go_on_from(self, other: Any, lanes: Lanes, places: Lanes) -> None:
        """Take over what there is besides `g` from lanes of another block of this kind."""
        ...


B = TypeVar("B", bound=SweptBlock)


class TwoPrecisions(Generic[B]):
    """Blocks of both kinds, made once and used again.

    Parameters
    ----------
    make : callable
        Gives a block for kernels of some width and a float type.
    """

    def __init__(self, make: Callable[[Kernels, npt.DTypeLike], B]) -> None:
        self._make = make
        self._made: dict[tuple[int, int, npt.DTypeLike], B] = {}

    def solve(
        self, count: int, load: Callable[[B, slice], None], enough: float
    ) -> Iterator[tuple[slice, B, Lanes]]:
        """Solve for `count` sources; give which ones a block holds, it, and its lanes now ready.

        Parameters
        ----------
        count : int
            Number of sources.
        load : callable
            Sets a block to the start for some of the sources.
        enough : float
            The residual to reach.
        """
        for outer, wide in blocks(count, SINGLE_LANES):
            rough = self._block(0, wide, np.float32)
            load(rough, outer)
            parts: list[tuple[slice, B]] = []
            for i, (inner, loops) in enumerate(blocks(outer.stop - outer.start, LANES)):
                parts.append((inner, self._block(i, loops, np.float64)))
                load(parts[-1][1], _shifted(inner, outer.start))
            for lanes in rough.sweep(max(_LAST_STEP * enough, _ENOUGH_IN_SINGLE)):
                for inner, exact in parts:
                    ours = lanes[(lanes >= inner.start) & (lanes < inner.stop)]
                    if len(ours):
                        copy_lanes(rough.g, ours, exact.g, ours - inner.start)
                        exact.go_on_from(rough, ours, ours - inner.start)
            for inner, exact in parts:
                for lanes in exact.sweep(enough):
                    yield _shifted(inner, outer.start), exact, lanes

    def _block(self, number: int, loops: Kernels, kind: npt.DTypeLike) -> B:
        key = number, loops.lanes, kind
        if key not in self._made:
            self._made[key] = self._make(loops, kind)
        return self._made[key]


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
