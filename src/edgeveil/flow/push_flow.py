"""PushFlow and PushFlowCap: allocate, check, call the kernel.

Both are the recursion h_v <- min(r0_v + beta (h_v + sum_u h_u / d_u), d_v T_v), beta =
(1 - alpha) / 2, on the total pushed flow h, with output p0 + alpha h (the paper's Lemma 4.2);
PushFlow is the case T = infinity. The paper's own formulation is in `tests/oracle.py`. The
fixed point of the capped recursion is computed in the ordinary walk's form, H = min(r0 +
(1 - restart) P^T H, d T~) with output p0 + restart H (docs/theory/tight-bounds.md, Lemma 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.flow._capped import CappedBlock, Recursion
from edgeveil.flow._kernels import blocks, unload_capped
from edgeveil.flow._layout import layout_of
from edgeveil.flow._two_precisions import Lanes, TwoPrecisions
from edgeveil.flow.bounds import (
    check_bound,
    check_flow_rounds,
    check_sigma,
    edge_cap,
    fixed_point_cap,
)
from edgeveil.flow.walk import check_restart, check_sources, lazy_restart
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
    one_of("model", model, "joint", "public")
    if prepush and model != "joint":
        raise ParameterError("prepush shows the source's own edges: it needs model='joint'")
    check_bound(bound)
    sigma, restart = check_sigma(sigma), check_restart(restart)
    rounds = check_flow_rounds(rounds, sigma=sigma, restart=restart)
    if rounds is None:
        recursion = Recursion.fixed_point(
            restart, sigma, fixed_point_cap(sigma, restart, bound=bound)
        )
    else:
        cap = edge_cap(sigma, lazy_restart(restart), rounds, bound)
        recursion = Recursion.lazy(restart, rounds, cap)
    return capped_rows(graph, sources, recursion, joint=model == "joint", prepush=prepush)


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

    `forward` adds, or makes the last round, one without caps: all the flow that arrives.
    """
    listed = check_sources(sources, graph.n_nodes)
    layout = layout_of(graph)
    restart = recursion.restart
    starts = layout.row_of[listed]
    rows = np.empty((len(listed), graph.n_nodes))

    def load(block: CappedBlock, part: slice) -> None:
        block.load(starts[part], joint, restart if prepush else None)

    def solved() -> Iterator[tuple[slice, CappedBlock, Lanes]]:
        if recursion.residual is not None:
            two = TwoPrecisions(lambda loops, kind: CappedBlock(layout, recursion, loops, kind))
            yield from two.solve(len(listed), load, recursion.residual)
            return
        made: dict[int, CappedBlock] = {}
        for part, loops in blocks(len(listed)):
            if loops.lanes not in made:
                made[loops.lanes] = CappedBlock(layout, recursion, loops)
            block = made[loops.lanes]
            load(block, part)
            block.rounds(recursion.rounds - 1 if forward else recursion.rounds)
            yield part, block, np.arange(part.stop - part.start)

    for part, block, lanes in solved():
        flow = block.arriving() if forward else block.g
        unload_capped(flow, lanes, layout.degree, layout.row_of, recursion.absorb, rows[part])
    # Nowhere to push: an uncapped source keeps its flow. Publicly its cap is 0, so it pushes
    # nothing; where arriving flow counts, what it started with is absorbed once.
    at_isolated = recursion.isolated if joint else recursion.absorb if forward else 0.0
    for source, out in zip(listed, rows, strict=True):
        neighbours = graph.neighbours(source)
        if len(neighbours) == 0:
            out[source] = at_isolated
        elif prepush:
            out[source] += restart
            out[neighbours] += restart * (1 - restart) / len(neighbours)
    return rows
