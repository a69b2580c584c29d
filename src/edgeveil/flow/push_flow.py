"""PushFlow and PushFlowCap: allocate, check, call the kernel.

Both are the recursion h_v <- min(r0_v + beta (h_v + sum_u h_u / d_u), d_v T_v), beta =
(1 - alpha) / 2, on the total pushed flow h, with output p0 + alpha h (the paper's Lemma 4.2);
PushFlow is the case T = infinity. `oracle` has the paper's own formulation. The fixed point
of the capped recursion is computed in the ordinary walk's form, which needs fewer rounds:
H <- min(r0 + (1 - restart) P^T H, d T~), p0 + restart H (docs/theory/tight-bounds.md, Lemma 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.flow import _kernels
from edgeveil.flow._kernels import LANES
from edgeveil.flow._layout import Layout, layout_of
from edgeveil.flow.bounds import (
    check_bound,
    check_flow_rounds,
    check_sigma,
    edge_cap,
    fixed_point_cap,
    fixed_point_rounds,
)
from edgeveil.flow.walk import check_restart, check_rounds, check_sources, lazy_restart
from edgeveil.graph import Graph

__all__ = ["Recursion", "capped_rows", "push_flow", "push_flow_cap"]

Matrix = npt.NDArray[np.float64]


def push_flow(
    graph: Graph, sources: Iterable[int], *, restart: float = 0.15, rounds: int = 100
) -> Matrix:
    """Approximate Personalized PageRank by R rounds of pushing (algorithm 1). Not private.

    Parameters
    ----------
    graph : Graph
        The graph.
    sources : iterable of int
        Indices of the source nodes.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int
        R; see `rounds_for_precision`.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the xi-approximate PageRank of source i.
    """
    return capped_rows(graph, sources, Recursion.lazy(restart, rounds, math.inf), joint=True)


def push_flow_cap(
    graph: Graph,
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
        The graph.
    sources : iterable of int
        Indices of the source nodes.
    sigma : float
        The L1 sensitivity to keep.
    model : {"joint", "public"}
        ``joint``: edges at the source may count in full (T_s = infinity), for its owner alone
        sees the result. ``public``: every edge is capped.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        R; see `rounds_for_precision`. None: the fixed point (R = infinity), within
        2^-12 min(sigma, 1) in L1; it allows twice the flow for the same sigma.
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
    if model not in ("joint", "public"):
        raise ParameterError(f"model must be 'joint' or 'public', got {model!r}")
    if prepush and model != "joint":
        raise ParameterError("prepush shows the source's own edges: it needs model='joint'")
    check_bound(bound)
    sigma, restart = check_sigma(sigma), check_restart(restart)
    rounds = check_flow_rounds(rounds, sigma=sigma, restart=restart)
    if rounds is None:
        recursion = Recursion.ordinary(
            restart,
            fixed_point_rounds(sigma, restart),
            fixed_point_cap(sigma, restart, bound=bound),
        )
    else:
        cap = edge_cap(sigma, lazy_restart(restart), rounds, bound)
        recursion = Recursion.lazy(restart, rounds, cap)
    return capped_rows(graph, sources, recursion, joint=model == "joint", prepush=prepush)


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """The numbers of g <- min(start + follow (own g + mean of the neighbours), cap)."""

    restart: float  # the ordinary walk's
    absorb: float  # share of the flow that is absorbed: alpha lazy, restart ordinary
    follow: float
    own: float
    rounds: int
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
            cap=cap,
            isolated=-math.expm1(rounds * math.log1p(-alpha)),
        )

    @classmethod
    def ordinary(cls, restart: float, rounds: int, cap: float) -> Recursion:
        """The ordinary walk's, towards the fixed point."""
        return cls(
            restart=restart,
            absorb=restart,
            follow=1 - restart,
            own=0.0,
            rounds=rounds,
            cap=cap,
            isolated=1.0,
        )


def capped_rows(
    graph: Graph,
    sources: Iterable[int],
    recursion: Recursion,
    *,
    joint: bool,
    prepush: bool = False,
    forward: bool = False,
) -> Matrix:
    """Run a capped recursion for all sources, a block of lanes at a time.

    `forward` leaves the caps out in the last round, which gives all the flow that arrives.
    """
    listed = check_sources(sources, graph.n_nodes)
    layout = layout_of(graph)
    block = _Block(layout, recursion, joint)
    restart = recursion.restart
    # Nowhere to push: an uncapped source keeps its flow. Publicly its cap is 0, so it pushes
    # nothing; where arriving flow counts, what it started with is absorbed once.
    at_isolated = recursion.isolated if joint else recursion.absorb if forward else 0.0
    rows = np.empty((len(listed), graph.n_nodes))
    for first in range(0, len(listed), LANES):
        lanes = layout.row_of[listed[first : first + LANES]]
        block.load(lanes, restart if prepush else None)
        flow = block.run(forward)
        for lane, source in enumerate(lanes):
            out = recursion.absorb * (flow[:, lane] * layout.degree)
            if layout.degree[source] == 0:
                out[source] = at_isolated
            elif prepush:
                neighbours = layout.neighbours(source)
                out[source] += restart
                out[neighbours] += restart * (1 - restart) / len(neighbours)
            rows[first + lane, layout.node_at] = out
    return rows


class _Block:
    """Working memory for one block of sources, reused from block to block."""

    def __init__(self, layout: Layout, recursion: Recursion, joint: bool) -> None:
        n = len(layout.degree)
        self._layout = layout
        self._recursion = recursion
        self._joint = joint
        self._special = np.zeros(n, dtype=np.uint8)
        self._start = np.zeros((n, LANES))
        self._caps = np.full((n, LANES), recursion.cap)
        self._g = np.zeros((n, LANES))
        self._g_next = np.zeros((n, LANES))

    def load(self, lanes: npt.NDArray[np.int64], prepush_restart: float | None) -> None:
        """Set the initial residuals and caps of the lanes' sources."""
        touched = np.flatnonzero(self._special)
        self._start[touched] = 0.0
        self._caps[touched] = self._recursion.cap
        self._special[touched] = 0
        self._g[:] = 0.0
        inverse = self._layout.inverse_degree
        for lane, source in enumerate(lanes):
            self._special[source] = 1
            if self._joint:
                self._caps[source, lane] = math.inf
            if prepush_restart is None:
                self._start[source, lane] = inverse[source]
            else:
                neighbours = self._layout.neighbours(source)
                residual = (1 - prepush_restart) ** 2 * inverse[source]
                self._special[neighbours] = 1
                self._start[neighbours, lane] = residual * inverse[neighbours]

    def run(self, forward: bool) -> Matrix:
        """Give g after all rounds; `forward` runs the last one without caps."""
        layout, recursion = self._layout, self._recursion
        g, g_next = self._g, self._g_next
        edge_cap = recursion.cap
        for i in range(recursion.rounds):
            if forward and i == recursion.rounds - 1:
                edge_cap = math.inf
                self._caps[self._special == 1] = math.inf  # `load` sets them anew
            _kernels.capped_round(
                layout.indptr,
                layout.indices,
                layout.inverse_degree,
                self._special,
                self._start,
                self._caps,
                edge_cap,
                recursion.follow,
                recursion.own,
                g,
                g_next,
            )
            g, g_next = g_next, g
        self._g, self._g_next = g, g_next
        return g
