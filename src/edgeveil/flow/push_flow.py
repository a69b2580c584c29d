"""PushFlow and PushFlowCap: allocate, check, call the kernel.

Both are the recursion h_v <- min(r0_v + beta (h_v + sum_u h_u / d_u), d_v T_v), beta =
(1 - alpha) / 2, on the total pushed flow h, with output p0 + alpha h (the paper's Lemma 4.2);
PushFlow is the case T = infinity. `oracle` has the paper's own formulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.flow import _kernels
from edgeveil.flow._kernels import LANES
from edgeveil.flow._layout import Layout, layout_of
from edgeveil.flow.bounds import edge_cap
from edgeveil.flow.walk import check_restart, check_rounds, check_sources, lazy_restart
from edgeveil.graph import Graph

__all__ = ["push_flow", "push_flow_cap"]

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
    return _capped(
        graph, sources, restart=restart, rounds=rounds, cap=math.inf, joint=True, prepush=False
    )


def push_flow_cap(
    graph: Graph,
    sources: Iterable[int],
    *,
    sigma: float,
    model: str = "joint",
    restart: float = 0.15,
    rounds: int = 100,
    prepush: bool = False,
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
    rounds : int
        R; see `rounds_for_precision`.
    prepush : bool
        The paper's heuristic: start with the source's flow already at its neighbours. Joint
        model only, because that start shows the source's edges uncapped.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the capped flow of source i.
    """
    if model not in ("joint", "public"):
        raise ParameterError(f"model must be 'joint' or 'public', got {model!r}")
    if prepush and model != "joint":
        raise ParameterError("prepush shows the source's own edges: it needs model='joint'")
    cap = edge_cap(sigma, lazy_restart(restart), check_rounds(rounds))
    return _capped(
        graph,
        sources,
        restart=restart,
        rounds=rounds,
        cap=cap,
        joint=model == "joint",
        prepush=prepush,
    )


def _capped(
    graph: Graph,
    sources: Iterable[int],
    *,
    restart: float,
    rounds: int,
    cap: float,
    joint: bool,
    prepush: bool,
) -> Matrix:
    """Run the capped recursion for all sources, a block of lanes at a time."""
    restart, rounds = check_restart(restart), check_rounds(rounds)
    alpha = lazy_restart(restart)
    listed = check_sources(sources, graph.n_nodes)
    layout = layout_of(graph)
    block = _Block(layout, cap, joint)
    rows = np.empty((len(listed), graph.n_nodes))
    for first in range(0, len(listed), LANES):
        lanes = layout.row_of[listed[first : first + LANES]]
        block.load(lanes, restart if prepush else None)
        flow = block.run(rounds, (1 - alpha) / 2)
        for lane, source in enumerate(lanes):
            out = alpha * (flow[:, lane] * layout.degree)
            if layout.degree[source] == 0:
                # Nowhere to push: the flow stays at the source. Publicly it is capped at 0.
                out[source] = -math.expm1(rounds * math.log1p(-alpha)) if joint else 0.0
            elif prepush:
                neighbours = layout.neighbours(source)
                out[source] += restart
                out[neighbours] += restart * (1 - restart) / len(neighbours)
            rows[first + lane, layout.node_at] = out
    return rows


class _Block:
    """Working memory for one block of sources, reused from block to block."""

    def __init__(self, layout: Layout, cap: float, joint: bool) -> None:
        n = len(layout.degree)
        self._layout = layout
        self._cap = cap
        self._joint = joint
        self._special = np.zeros(n, dtype=np.uint8)
        self._start = np.zeros((n, LANES))
        self._caps = np.full((n, LANES), cap)
        self._g = np.zeros((n, LANES))
        self._g_next = np.zeros((n, LANES))

    def load(self, lanes: npt.NDArray[np.int64], prepush_restart: float | None) -> None:
        """Set the initial residuals and caps of the lanes' sources."""
        touched = np.flatnonzero(self._special)
        self._start[touched] = 0.0
        self._caps[touched] = self._cap
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

    def run(self, rounds: int, beta: float) -> Matrix:
        """Give g after `rounds` synchronous rounds."""
        layout = self._layout
        g, g_next = self._g, self._g_next
        for _ in range(rounds):
            _kernels.capped_round(
                layout.indptr,
                layout.indices,
                layout.inverse_degree,
                self._special,
                self._start,
                self._caps,
                self._cap,
                beta,
                g,
                g_next,
            )
            g, g_next = g_next, g
        self._g, self._g_next = g, g_next
        return g
