"""Capped recursions for one block of sources: R rounds, or the fixed point.

The fixed point of g = F(g) = min(start + follow * D^-1 A g, cap) is the solution of a quadratic
programme with one bound per node, so projected successive over-relaxation converges to it. A
lane is done when the residual that its own sweep certifies is small enough; F contracts the L1
norm by 1 - restart, so the residual bounds the error. A lane that is not done after as many
sweeps as plain rounds would need gets the plain rounds (docs/theory/tight-bounds.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.flow._blocks import Block
from edgeveil.flow._kernels import Kernels
from edgeveil.flow._layout import Layout, block_zeros
from edgeveil.flow.bounds import fixed_point_error, fixed_point_rounds
from edgeveil.flow.walk import lazy_restart

_FLOAT_SLACK = 1 - 2.0**-16  # more than the roundings of a certificate
_ENTRIES_PER_CALL = 1 << 28  # so that a long run can be interrupted


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """The numbers of g <- min(start + follow (own g + mean of the neighbours), cap)."""

    restart: float  # the ordinary walk's
    cap: float
    rounds: int
    residual: float | None = None  # None: exactly `rounds`, lazy; else the fixed point, up to this
    joint: bool  # the source has no cap
    prepush: bool = False
    forward: bool = False  # all the flow that arrives: a last round, or one more, without caps

    @classmethod
    def fixed_point(
        cls, restart: float, sigma: float, cap: float, *, joint: bool, **how: bool
    ) -> Recursion:
        """The ordinary walk's fixed point, within `fixed_point_error` of `sigma`."""
        rounds, residual = fixed_point_rounds(sigma, restart), fixed_point_error(sigma)
        residual *= _FLOAT_SLACK
        return cls(restart=restart, cap=cap, rounds=rounds, residual=residual, joint=joint, **how)

    @property
    def own(self) -> float:
        """1 for the paper's recursion on the lazy walk, 0 for the ordinary walk's fixed point."""
        return float(self.residual is None)

    @property
    def absorb(self) -> float:
        """Share of the flow that is absorbed: the restart probability of the walk in use."""
        return lazy_restart(self.restart) if self.own else self.restart

    @property
    def follow(self) -> float:
        """Share that goes on, to one's neighbours and as much to oneself if the walk is lazy."""
        return (1 - self.absorb) / (1 + self.own)

    @property
    def isolated(self) -> float:
        """What a source without neighbours and cap keeps in all."""
        return -math.expm1(self.rounds * math.log1p(-self.absorb)) if self.own else 1.0

    def relaxation(self, sweep: int | None = None) -> float:
        """The over-relaxation of a sweep, by Chebyshev's recursion; None: where it leads to."""
        square = self.follow * self.follow
        if sweep is None:
            return 2 / (1 + math.sqrt(1 - square))
        omega = 2.0
        for _ in range(sweep - 1):
            omega = 1 / (1 - square * omega / 4)
        return 1.0 if sweep == 1 else omega


class CappedBlock(Block):
    """A block of capped flows."""

    def __init__(
        self, layout: Layout, recursion: Recursion, loops: Kernels, kind: npt.DTypeLike = np.float64
    ) -> None:
        super().__init__(layout, loops, recursion.restart, kind)
        self.most_sweeps = recursion.rounds
        self._recursion = recursion
        self._other = block_zeros(0, loops.lanes, kind)  # only rounds need it

    def load(self, sources: npt.NDArray[np.int64]) -> None:
        """Set the initial residuals and caps of the lanes' sources, given as layout rows."""
        recursion, inverse = self._recursion, self.layout.inverse_degree
        starting = [np.array([source]) for source in sources]
        if recursion.prepush:
            starting = [self.layout.neighbours(source) for source in sources]
        self.clear(len(sources), np.concatenate([sources, *starting]))
        cap = min(recursion.cap, float(np.finfo(self.g.dtype).max))
        self._caps = np.full_like(self.start, cap)
        for lane, (source, rows) in enumerate(zip(sources, starting, strict=True)):
            share = (1 - recursion.restart) ** 2 * inverse[rows] if recursion.prepush else 1.0
            self.start[self.slot[rows], lane] = share * inverse[source]
            if recursion.joint:
                self._caps[self.slot[source], lane] = math.inf

    def rounds(self, rounds: int) -> None:
        """So many rounds from 0. The first one needs no sums."""
        self.g[:] = 0
        if rounds > 0:
            self.g[self.own_rows] = np.minimum(self.start[1:], self._caps[1:])
            self._go_on(rounds - 1, self._caps, self._recursion.cap)

    def arriving(self) -> npt.NDArray[np.float64]:
        """What one more round brings, were there no caps; `g` stays as it is."""
        g = self.g
        self._go_on(1, np.full_like(self._caps, math.inf), math.inf)
        arrived, self.g, self._other = self.g, g, self.g
        return arrived

    def _go_on(self, rounds: int, caps: npt.NDArray[np.float64], edge_cap: float) -> None:
        layout, recursion = self.layout, self._recursion
        rows = layout.indptr, layout.indices, layout.inverse_degree
        if len(self._other) != len(self.g):
            self._other = block_zeros(len(self.g), self.loops.lanes, self.g.dtype)
        at_once = max(1, _ENTRIES_PER_CALL // max(1, len(layout.indices)))
        while rounds > 0:
            now = min(rounds, at_once)
            numbers = edge_cap, recursion.follow, recursion.own, now
            own = self.slot, self.start, caps
            self.loops.capped_rounds(*rows, *own, *numbers, self.g, self._other)
            if now % 2:
                self.g, self._other = self._other, self.g
            rounds -= now

    def sweep_once(self, number: int) -> npt.NDArray[np.float64]:
        """One sweep of projected over-relaxation."""
        layout, recursion = self.layout, self._recursion
        residual = np.empty((1, self.loops.lanes))
        omega = recursion.relaxation(number if self.g.dtype == np.float32 else None)
        rows = layout.indptr, layout.indices, layout.degree, layout.inverse_degree
        own = self.slot, self.start, self._caps
        numbers = recursion.cap, recursion.follow, omega
        self.loops.capped_sweep(*rows, *own, *numbers, self.g, residual)
        return np.asarray(residual[0])

    def give_up(self) -> None:
        """Plain rounds; single precision is left as it is."""
        if self.g.dtype == np.float64:
            self.rounds(self._recursion.rounds)
