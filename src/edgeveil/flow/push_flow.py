"""PushFlow, PushFlowCap and forward flow: check, allocate, call the kernel.

All are the recursion h_v <- min(r0_v + beta (h_v + sum_u h_u / d_u), d_v T_v), beta =
(1 - alpha) / 2, on the total pushed flow h. PushFlow and PushFlowCap give p0 + alpha h (the
paper's Lemma 4.2); PushFlow is the case T = infinity. The paper's own formulation is in
`tests/oracle.py`. The fixed point of the capped recursion is computed in the ordinary walk's
form, H = min(r0 + (1 - restart) P^T H, d T~) with output p0 + restart H
(docs/theory/tight-bounds.md, Lemma 2).

Forward flow absorbs everything that arrives and caps only what is passed on: a^(i) = r0 +
(1 - alpha) W^T h^(i-1), h^(i) = min(a^(i), d T), output alpha a^(R); at the fixed point A = r0 +
(1 - restart) P^T H, H = min(A, d T~), output restart A. One edge moves it no more than
`push_flow_cap` at the same cap, and no node's own value is cut (docs/theory/forward-cap.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.flow._blocks import Lanes, solve
from edgeveil.flow._capped import CappedBlock
from edgeveil.flow._capped import Recursion as Recursion
from edgeveil.flow._kernels import blocks, unload
from edgeveil.flow._layout import layout_of
from edgeveil.flow.bounds import (
    check_bound,
    check_sigma,
    edge_cap,
    fixed_point_cap,
    forward_edge_cap,
)
from edgeveil.flow.walk import check_restart, check_rounds, check_sources, lazy_restart
from edgeveil.graph import Graph

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
        R: no residual exceeds exp(-alpha R), alpha the lazy walk's restart probability.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the xi-approximate PageRank of source i.
    """
    restart, rounds = check_restart(restart), check_rounds(rounds)
    recursion = Recursion(restart=restart, rounds=rounds, cap=math.inf, joint=True)
    return capped_rows(graph, sources, recursion)


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
    recursion = capped_recursion(sigma, model, restart, rounds, prepush, bound)
    return capped_rows(graph, sources, recursion)


def capped_recursion(
    sigma: float, model: str, restart: float, rounds: int | None, prepush: bool, bound: str
) -> Recursion:
    """Check the parameters of `push_flow_cap`, before any graph is near."""
    sigma, restart = check_sigma(sigma), check_restart(restart)
    joint = one_of("model", model, "joint", "public") == "joint"
    if not isinstance(prepush, bool):
        raise ParameterError(f"prepush must be True or False, got {prepush!r}")
    if prepush and not joint:
        raise ParameterError("prepush shows the source's own edges: it needs model='joint'")
    if rounds is None:
        cap = fixed_point_cap(sigma, restart, bound=check_bound(bound))
        return Recursion.fixed_point(restart, sigma, cap, joint=joint, prepush=prepush)
    cap = edge_cap(sigma, lazy_restart(restart), check_rounds(rounds), bound)
    return Recursion(restart=restart, rounds=rounds, cap=cap, joint=joint, prepush=prepush)


def forward_flow(
    graph: Graph,
    sources: Iterable[int],
    *,
    sigma: float,
    model: str = "joint",
    restart: float = 0.15,
    rounds: int | None = None,
) -> Matrix:
    """Flow that one edge can move by at most `sigma` in L1, capped on the edges only. No noise.

    Parameters
    ----------
    graph, sources, sigma, model, restart
        As for `push_flow_cap`.
    rounds : int or None
        R >= 2; None for the fixed point, within 2^-12 min(sigma, 1) in L1.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the flow of source i.
    """
    return capped_rows(graph, sources, forward_recursion(sigma, model, restart, rounds))


def forward_recursion(sigma: float, model: str, restart: float, rounds: int | None) -> Recursion:
    """Check the parameters of `forward_flow`, before any graph is near."""
    sigma, restart = check_sigma(sigma), check_restart(restart)
    joint = one_of("model", model, "joint", "public") == "joint"
    if rounds is None:
        cap = fixed_point_cap(sigma, restart, forward=True)
        return Recursion.fixed_point(restart, sigma, cap, joint=joint, forward=True)
    if check_rounds(rounds) < 2:  # one round passes nothing on
        raise ParameterError(f"rounds must be at least 2, or None, got {rounds!r}")
    cap = forward_edge_cap(sigma, lazy_restart(restart), rounds)
    return Recursion(restart=restart, rounds=rounds, cap=cap, joint=joint, forward=True)


def capped_rows(graph: Graph, sources: Iterable[int], recursion: Recursion) -> Matrix:
    """Run a capped recursion for all sources, a block of lanes at a time."""
    listed = check_sources(sources, graph.n_nodes)
    layout = layout_of(graph)
    restart, forward = recursion.restart, recursion.forward
    starts = layout.row_of[listed]
    rows = np.empty((len(listed), graph.n_nodes))

    def solved() -> Iterator[tuple[slice, CappedBlock, Lanes]]:
        if recursion.residual is not None:
            yield from solve(
                lambda loops, kind: CappedBlock(layout, recursion, loops, kind),
                len(listed),
                lambda block, part: block.load(starts[part]),
                recursion.residual,
            )
            return
        block_of = cache(lambda loops: CappedBlock(layout, recursion, loops))
        for part, loops in blocks(len(listed)):
            block = block_of(loops)
            block.load(starts[part])
            block.rounds(recursion.rounds - 1 if forward else recursion.rounds)
            yield part, block, block.columns

    for part, block, lanes in solved():
        flow = block.arriving() if forward else block.g
        unload(flow, lanes, layout.degree, layout.row_of, recursion.absorb, rows[part])
    # Nowhere to push: an uncapped source keeps its flow. Publicly its cap is 0, so it pushes
    # nothing; where arriving flow counts, what it started with is absorbed once.
    at_isolated = recursion.absorb if forward else 0.0
    if recursion.joint:
        at_isolated = recursion.isolated
    for source, out in zip(listed, rows, strict=True):
        neighbours = graph.neighbours(source)
        if len(neighbours) == 0:
            out[source] = at_isolated
        elif recursion.prepush:
            out[source] += restart
            out[neighbours] += restart * (1 - restart) / len(neighbours)
    return rows
