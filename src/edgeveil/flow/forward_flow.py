"""Forward flow: absorb everything that arrives, cap only what is passed on.

a^(i) = r0 + (1 - alpha) W^T h^(i-1), h^(i) = min(a^(i), d T), output alpha a^(R); at the fixed
point A = r0 + (1 - restart) P^T H, H = min(A, d T~), output restart A. One edge moves it no
more than `push_flow_cap` at the same cap, and no node's own value is cut
(docs/theory/forward-cap.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.flow.bounds import (
    check_flow_rounds,
    check_sigma,
    fixed_point_cap,
    forward_edge_cap,
)
from edgeveil.flow.push_flow import Matrix, Recursion, capped_rows
from edgeveil.flow.walk import check_restart, lazy_restart
from edgeveil.graph import Graph

__all__ = ["check_forward_rounds", "forward_flow"]


def check_forward_rounds(rounds: int | None, *, sigma: float, restart: float) -> int | None:
    """Refuse rounds that are neither None nor at least 2: one round passes nothing on."""
    checked = check_flow_rounds(rounds, sigma=sigma, restart=restart)
    if checked is not None and checked < 2:
        raise ParameterError(f"rounds must be at least 2, or None, got {rounds!r}")
    return checked


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
    graph : Graph
        The graph.
    sources : iterable of int
        Indices of the source nodes.
    sigma : float
        The L1 sensitivity to keep.
    model : {"joint", "public"}
        ``joint``: edges at the source may count in full. ``public``: every edge is capped.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        R >= 2; None for the fixed point, within 2^-12 min(sigma, 1) in L1.

    Returns
    -------
    array of shape (number of sources, n)
        Row i is the flow of source i.
    """
    one_of("model", model, "joint", "public")
    sigma, restart = check_sigma(sigma), check_restart(restart)
    rounds = check_forward_rounds(rounds, sigma=sigma, restart=restart)
    if rounds is None:
        cap = fixed_point_cap(sigma, restart, forward=True)
        recursion = Recursion.fixed_point(restart, sigma, cap)
    else:
        cap = forward_edge_cap(sigma, lazy_restart(restart), rounds)
        recursion = Recursion.lazy(restart, rounds, cap)
    return capped_rows(graph, sources, recursion, joint=model == "joint", forward=True)
