"""Capped recursions for one block of sources: R rounds, or the fixed point.

The fixed point of g = F(g) = min(start + follow * D^-1 A g, cap) is the solution of a quadratic
programme with one bound per node, so projected successive over-relaxation converges to it. A
lane is done when the residual that its own sweep certifies is small enough; F contracts the L1
norm by 1 - restart, so the residual bounds the error. A lane that is not done after as many
sweeps as plain rounds would need gets the plain rounds (docs/theory/tight-bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.flow._kernels import Kernels
from edgeveil.flow._layout import Layout, block_zeros
from edgeveil.flow._two_precisions import Lanes, Progress
from edgeveil.flow.bounds import fixed_point_error, fixed_point_rounds
from edgeveil.flow.walk import check_restart, check_rounds, lazy_restart

__all__ = ["CappedBlock", "Recursion"]

_FLOAT_SLACK = 1 - 2.0**-16  # more than the roundings of a certificate
_ENTRIES_PER_CALL = 1 << 28  # so that a long run can be interrupted


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """The numbers of g <- min(start + follow (own g + mean of the neighbours), cap)."""

    restart: float  # the ordinary walk's
    absorb: float  # share of the flow that is absorbed: alpha lazy, restart ordinary
    follow: float
    own: float
    rounds: int
    residual: float | None  # None: exactly `rounds`; else the fixed point, up to this
    cap: float
    isolated: float  # what an uncapped source without neighbours keeps in all

    @classmethod
    def lazy(cls, restart: float, rounds: int, cap: float) -> Recursion:
        """The paper's recursion on the lazy walk."""
        restart, rounds = check_restart(restart), check_rounds(rounds)
        alpha = lazy_restart(restart)
        return cls(
            restart=restart,
            absorb=alpha,
            follow=(1 - alpha) / 2,
            own=1.0,
            rounds=rounds,
            residual=None,
            cap=cap,
            isolated=-math.expm1(rounds * math.log1p(-alpha)),
        )

    @classmethod
    def fixed_point(cls, restart: float, sigma: float, cap: float) -> Recursion:
        """The ordinary walk's fixed point, within `fixed_point_error` of `sigma`."""
        return cls(
            restart=restart,
            absorb=restart,
            follow=1 - restart,
            own=0.0,
            rounds=fixed_point_rounds(sigma, restart),
            residual=fixed_point_error(sigma) * _FLOAT_SLACK,
            cap=cap,
            isolated=1.0,
        )

    def relaxation(self) -> float:
        """The over-relaxation that is best for a walk without caps."""
        return 2 / (1 + math.sqrt(1 - self.follow * self.follow))


class CappedBlock:
    """Working memory for one block of sources, reused from block to block."""

    def __init__(
        self,
        layout: Layout,
        recursion: Recursion,
        loops: Kernels,
        kind: npt.DTypeLike = np.float64,
    ) -> None:
        n = len(layout.degree)
        self._layout = layout
        self._recursion = recursion
        self._loops = loops
        self._slot = np.zeros(n, dtype=np.int32)
        self._own_rows = np.empty(0, dtype=np.int64)
        self._start = self._caps = block_zeros(0, loops.lanes, kind)
        self._sources = 0
        self.g = block_zeros(n, loops.lanes, kind)
        self._other = block_zeros(0, loops.lanes, kind)  # only rounds need it

    def load(
        self, sources: npt.NDArray[np.int64], joint: bool, prepush_restart: float | None
    ) -> None:
        """Set the initial residuals and caps of the lanes' sources, given as layout rows."""
        layout, lanes, kind = self._layout, self._loops.lanes, self.g.dtype
        inverse = layout.inverse_degree
        starting = [
            (np.array([s]), inverse[s])
            if prepush_restart is None
            else (
                layout.neighbours(s),
                (1 - prepush_restart) ** 2 * inverse[s] * inverse[layout.neighbours(s)],
            )
            for s in sources
        ]
        self.g[:] = 0
        self._slot[self._own_rows] = 0
        self._own_rows = np.unique(np.concatenate([sources, *(rows for rows, _ in starting)]))
        self._slot[self._own_rows] = np.arange(1, len(self._own_rows) + 1)
        self._start = block_zeros(len(self._own_rows) + 1, lanes, kind)
        cap = min(self._recursion.cap, float(np.finfo(kind).max))
        self._caps = np.full((len(self._own_rows) + 1, lanes), cap, dtype=kind)
        for lane, (source, (rows, residual)) in enumerate(zip(sources, starting, strict=True)):
            self._start[self._slot[rows], lane] = residual
            if joint:
                self._caps[self._slot[source], lane] = math.inf
        self._sources = len(sources)

    def rounds(self, rounds: int) -> None:
        """So many rounds from 0. The first one needs no sums."""
        self.g[:] = 0
        if rounds > 0:
            self.g[self._own_rows] = np.minimum(self._start[1:], self._caps[1:])
            self._go_on(rounds - 1, self._caps, self._recursion.cap)

    def arriving(self) -> npt.NDArray[np.float64]:
        """What one more round brings, were there no caps; `g` stays as it is."""
        g = self.g
        self._go_on(1, np.full_like(self._caps, math.inf), math.inf)
        arrived, self.g, self._other = self.g, g, self.g
        return arrived

    def _go_on(self, rounds: int, caps: npt.NDArray[np.float64], edge_cap: float) -> None:
        layout, recursion = self._layout, self._recursion
        if len(self._other) != len(self.g):
            self._other = block_zeros(len(self.g), self._loops.lanes, self.g.dtype)
        at_once = max(1, _ENTRIES_PER_CALL // max(1, len(layout.indices)))
        while rounds > 0:
            now = min(rounds, at_once)
            self._loops.capped_rounds(
                layout.indptr,
                layout.indices,
                layout.inverse_degree,
                self._slot,
                self._start,
                caps,
                edge_cap,
                recursion.follow,
                recursion.own,
                now,
                self.g,
                self._other,
            )
            if now % 2:
                self.g, self._other = self._other, self.g
            rounds -= now

    def go_on_from(self, other: CappedBlock, lanes: Lanes, places: Lanes) -> None:
        """`g` is all there is; see `SweptBlock`."""

    def sweep(self, enough: float) -> Iterator[Lanes]:
        """Give lanes when they are certified; see `SweptBlock`."""
        layout, recursion = self._layout, self._recursion
        exact = self.g.dtype == np.float64
        omega = recursion.relaxation() if exact else 1.0
        following = omega if exact else 2.0
        residual = np.empty((1, self._loops.lanes))
        progress = Progress(self._sources, self.g.dtype, recursion.restart, -math.inf)
        for _ in range(recursion.rounds):
            self._loops.capped_sweep(
                layout.indptr,
                layout.indices,
                layout.degree,
                layout.inverse_degree,
                self._slot,
                self._start,
                self._caps,
                recursion.cap,
                recursion.follow,
                omega,
                self.g,
                residual,
            )
            following = 1 / (1 - recursion.follow * recursion.follow * following / 4)
            omega = following  # rises to `relaxation`
            done = progress.ended(residual[0, : self._sources], enough)
            if len(done):
                yield done
            if len(progress.waiting) == 0:
                return
        if exact:
            self.rounds(recursion.rounds)
        yield progress.waiting
