"""PushFlow and PushFlowCap: R rounds, or the fixed point.

Both are the recursion h_v <- min(r0_v + beta (h_v + sum_u h_u / d_u), d_v T_v), beta =
(1 - alpha) / 2, on the total pushed flow h. PushFlow and PushFlowCap give p0 + alpha h (the
paper's Lemma 4.2); PushFlow is the case T = infinity. The paper's own formulation is in
`tests/oracle.py`. The fixed point of the capped recursion is computed in the ordinary walk's
form, H = min(r0 + (1 - restart) P^T H, d T~) with output p0 + restart H
(docs/theory/tight-bounds.md, Lemma 2).

The fixed point is the solution of a quadratic programme with one bound per node, so projected
successive over-relaxation (SOR) converges to it. The recursion contracts the L1 norm by
1 - restart, so the residual bounds the error: a lane has converged when its residual is small
enough. A lane that has not converged after as many sweeps as plain rounds would need gets the plain
rounds (docs/theory/tight-bounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_bool, check_choice
from edgeveil._internal.paper_names import with_paper_names
from edgeveil.errors import ParameterError
from edgeveil.flow._blocks import Block, Lanes, block_zeros, layout_of, solve
from edgeveil.flow._kernels import Kernels, Layout, lane_blocks, unload
from edgeveil.flow.bounds import (
    check_bound,
    check_sigma,
    edge_cap,
    fixed_point_cap,
    fixed_point_error,
    fixed_point_rounds,
)
from edgeveil.flow.walk import check_restart, check_rounds, check_sources, lazy_restart
from edgeveil.graph.graph import Graph
from edgeveil.graph.objects import as_graph

_FLOAT_SLACK = 1 - 2.0**-16  # covers the rounding error of a computed residual
_ENTRIES_PER_CALL = 1 << 28  # per compiled call, so that a long run can be interrupted

Matrix = npt.NDArray[np.float64]


@with_paper_names
def push_flow(
    graph: Any, sources: Iterable[int], *, restart: float = 0.15, rounds: int = 100
) -> Matrix:
    """Approximate Personalized PageRank by R rounds of pushing (algorithm 1). Not private.

    Parameters
    ----------
    graph : Graph
        The graph, or anything that `edgeveil.as_graph` takes.
    sources : iterable of int
        Indices of the source nodes: their places in ``graph.nodes``.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int
        R: no residual exceeds exp(-alpha R), alpha the lazy walk's restart probability.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the xi-approximate PageRank of source i.
    """
    restart, rounds = check_restart(restart), check_rounds(rounds)
    recursion = Recursion(restart=restart, rounds=rounds, cap=math.inf, joint=True)
    return capped_rows(as_graph(graph), sources, recursion)


@with_paper_names
def push_flow_cap(
    graph: Any,
    sources: Iterable[int],
    *,
    sigma: float,
    model: str = "joint",
    restart: float = 0.15,
    rounds: int | None = 100,
    prepush: bool = False,
    bound: str = "tight",
) -> Matrix:
    """Push flow that one edge can move by at most `sigma` in L1 (algorithm 2). No noise yet.

    Parameters
    ----------
    graph : Graph
        The graph, or anything that `edgeveil.as_graph` takes.
    sources : iterable of int
        Indices of the source nodes: their places in ``graph.nodes``.
    sigma : float
        The L1 sensitivity to keep.
    model : {"joint", "public"}
        ``joint``: edges at the source are not capped (T_s = infinity), because only its member
        sees the result. ``public``: every edge is capped.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        R. None: the fixed point (R = infinity), within
        2^-12 min(sigma, 1) in L1; it allows a tenth more flow at restart 0.15.
    prepush : bool
        The paper's heuristic: start with the source's flow already at its neighbours. Joint
        model only, because that start shows the source's edges uncapped.
    bound : {"tight", "paper"}
        Which theorem sets the cap: docs/theory/tight-bounds.md, or the paper's, which allows
        less flow for the same sigma and is kept for reproduction.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the capped flow of source i.
    """
    recursion = capped_recursion(sigma, model, restart, rounds, prepush=prepush, bound=bound)
    return capped_rows(as_graph(graph), sources, recursion)


def capped_recursion(
    sigma: float,
    model: str,
    restart: float,
    rounds: int | None,
    *,
    prepush: bool = False,
    bound: str = "tight",
) -> Recursion:
    """Check the parameters of a capped flow, before any graph is read."""
    sigma, restart = check_sigma(sigma), check_restart(restart)
    joint = check_choice("model", model, "joint", "public") == "joint"
    if check_bool("prepush", prepush) and not joint:
        raise ParameterError("prepush shows the source's own edges: it needs model='joint'")
    if rounds is None:
        cap = fixed_point_cap(sigma, restart, bound=check_bound(bound))
        return Recursion.fixed_point(restart, sigma, cap, joint=joint, prepush=prepush)
    cap = edge_cap(sigma, lazy_restart(restart), check_rounds(rounds), bound)
    return Recursion(restart=restart, rounds=rounds, cap=cap, joint=joint, prepush=prepush)


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """Parameters of g <- min(start + follow (to_self g + mean of the neighbours), cap)."""

    restart: float  # the ordinary walk's
    cap: float
    rounds: int
    residual: float | None = None  # None: exactly `rounds`, lazy; else the fixed point, up to this
    joint: bool  # the source has no cap
    prepush: bool = False

    @classmethod
    def fixed_point(
        cls, restart: float, sigma: float, cap: float, *, joint: bool, prepush: bool = False
    ) -> Recursion:
        """The ordinary walk's fixed point, within `fixed_point_error` of `sigma`."""
        rounds, residual = fixed_point_rounds(sigma, restart), fixed_point_error(sigma)
        residual *= _FLOAT_SLACK
        return cls(
            restart=restart,
            cap=cap,
            rounds=rounds,
            residual=residual,
            joint=joint,
            prepush=prepush,
        )

    @property
    def lazy(self) -> bool:
        """Whether the walk is the paper's lazy one; a fixed point is the ordinary walk's."""
        return self.residual is None

    @property
    def absorb(self) -> float:
        """Share of the flow that is absorbed: the restart probability of the walk in use."""
        return lazy_restart(self.restart) if self.lazy else self.restart

    @property
    def follow(self) -> float:
        """Share that goes to the neighbours; if the walk is lazy, as much stays at the node."""
        return (1 - self.absorb) / (1 + self.lazy)

    @property
    def isolated(self) -> float:
        """Output at a source without neighbours and without a cap."""
        return -math.expm1(self.rounds * math.log1p(-self.absorb)) if self.lazy else 1.0

    def relaxation(self, sweep: int | None = None) -> float:
        """Relaxation factor of a sweep, by Chebyshev's recursion; None: its limit."""
        square = self.follow * self.follow
        if sweep is None:
            return 2 / (1 + math.sqrt(1 - square))
        omega = 2.0
        for _ in range(sweep - 1):
            omega = 1 / (1 - square * omega / 4)
        return 1.0 if sweep == 1 else omega


def capped_rows(graph: Graph, sources: Iterable[int], recursion: Recursion) -> Matrix:
    """Run a capped recursion for all sources, a block of lanes at a time."""
    listed = check_sources(sources, graph.n_nodes)
    layout, restart = layout_of(graph), recursion.restart
    rows = np.empty((len(listed), graph.n_nodes))
    for part, block, lanes in run_blocks(layout, recursion, layout.row_of[listed]):
        unload(block.g, lanes, layout, recursion.absorb, rows[part])
    # An isolated source cannot push: uncapped (joint) it keeps its flow. In the public model its
    # cap is 0, so it pushes nothing.
    at_isolated = recursion.isolated if recursion.joint else 0.0
    for source, out in zip(listed, rows, strict=True):
        neighbours = graph.neighbours(source)
        if len(neighbours) == 0:
            out[source] = at_isolated
        elif recursion.prepush:
            out[source] += restart
            out[neighbours] += restart * (1 - restart) / len(neighbours)
    return rows


def run_blocks(
    layout: Layout, recursion: Recursion, starts: npt.NDArray[np.int64]
) -> Iterator[tuple[slice, CappedBlock, Lanes]]:
    """Run a recursion from these layout rows.

    Gives which of them a block holds, the block, and the lanes that are ready now.
    """
    if recursion.residual is not None:
        yield from solve(
            lambda loops, kind: CappedBlock(layout, recursion, loops, kind),
            len(starts),
            lambda block, part: block.load(starts[part]),
            recursion.residual,
        )
        return
    block_for = cache(partial(CappedBlock, layout, recursion))  # by width: memory is reused
    for part, loops in lane_blocks(len(starts)):
        block = block_for(loops)
        block.load(starts[part])
        block.rounds(recursion.rounds)
        yield part, block, block.columns


class CappedBlock(Block):
    """A block of capped flows."""

    def __init__(
        self, layout: Layout, recursion: Recursion, loops: Kernels, kind: npt.DTypeLike = np.float64
    ) -> None:
        super().__init__(layout, loops, recursion.restart, kind)
        self.max_sweeps = recursion.rounds
        self._recursion = recursion
        self.spare = block_zeros(0, loops.lanes, kind)  # second buffer of `rounds`, made on use

    def load(self, sources: npt.NDArray[np.int64]) -> None:
        """Set the initial residuals and caps of the lanes' sources, given as layout rows."""
        recursion, inverse = self._recursion, self.layout.inverse_degree
        starting = [np.array([source]) for source in sources]
        if recursion.prepush:
            starting = [self.layout.neighbours(source) for source in sources]
        self.clear(len(sources), np.concatenate([sources, *starting]))
        cap = min(recursion.cap, float(np.finfo(self.g.dtype).max))
        self.caps = np.full_like(self.start, cap)
        for lane, (source, rows) in enumerate(zip(sources, starting, strict=True)):
            share = (1 - recursion.restart) ** 2 * inverse[rows] if recursion.prepush else 1.0
            self.start[self.slot[rows], lane] = share * inverse[source]
            if recursion.joint:
                self.caps[self.slot[source], lane] = math.inf

    def rounds(self, rounds: int) -> None:
        """Run this many rounds from 0. The first one needs no sums."""
        self.g[:] = 0
        if rounds > 0:
            self.g[self.own_rows] = np.minimum(self.start[1:], self.caps[1:])
            self.more_rounds(rounds - 1, self.caps, self._recursion.cap)

    def more_rounds(self, rounds: int, caps: npt.NDArray[np.float64], edge_cap: float) -> None:
        """Run this many rounds from `g`, under other caps if need be."""
        recursion = self._recursion
        if len(self.spare) != len(self.g):
            self.spare = block_zeros(len(self.g), self.loops.lanes, self.g.dtype)
        at_once = max(1, _ENTRIES_PER_CALL // max(1, len(self.layout.indices)))
        while rounds > 0:
            count = min(rounds, at_once)
            self.loops.capped_rounds(
                self.layout,
                self.slot,
                self.start,
                caps,
                edge_cap,
                recursion.follow,
                float(recursion.lazy),
                count,
                self.g,
                self.spare,
            )
            if count % 2:
                self.g, self.spare = self.spare, self.g
            rounds -= count

    def sweep_once(self, number: int) -> npt.NDArray[np.float64]:
        """One sweep of projected over-relaxation."""
        recursion = self._recursion
        residual = np.empty((1, self.loops.lanes))
        self.loops.capped_sweep(
            self.layout,
            self.slot,
            self.start,
            self.caps,
            recursion.cap,
            recursion.follow,
            recursion.relaxation(number if self.g.dtype == np.float32 else None),
            self.g,
            residual,
        )
        return np.asarray(residual[0])

    def fall_back(self) -> None:
        """Plain rounds, in double precision; single precision leaves the rest to it."""
        if self.g.dtype == np.float64:
            self.rounds(self._recursion.rounds)
