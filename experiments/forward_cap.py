"""DPForwardCap: capped flow that cuts no node's own value, a baseline beside the paper's.

Forward flow absorbs all inflow and caps only what is passed on: a^(i) = r0 +
(1 - alpha) W^T h^(i-1), h^(i) = min(a^(i), d T), output alpha a^(R); at the fixed point A = r0 +
(1 - restart) P^T H, H = min(A, d T~), output restart A. One edge moves it no more than
`push_flow_cap` at the same cap, and no node's own value is cut (docs/theory/forward-cap.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.flow._blocks import layout_of
from edgeveil.flow._kernels import unload
from edgeveil.flow.bounds import check_sigma, rounds_constant
from edgeveil.flow.push_rounds import CappedBlock, Recursion, run_blocks
from edgeveil.flow.walk import check_restart, check_rounds, check_sources, lazy_restart
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import LocalViews, Rows, check_model, laplace_uncertainty
from edgeveil.mechanisms.capped_flow import CappedFlow
from edgeveil.mechanisms.hard_pairs import Pair, wedge

_SAFE = 1 - 2.0**-48  # rounded down by more than the evaluation in floats can err


def forward_edge_cap(sigma: float, alpha: float, rounds: int) -> float:
    """Cap T for R >= 2 rounds that absorb everything and cap only what is passed on.

    T = sigma / ((1 - alpha) C_(R-1)) with C of `rounds_constant`: docs/theory/forward-cap.md,
    Theorem 1.
    """
    return check_sigma(sigma) / ((1 - alpha) * rounds_constant(alpha, rounds - 1)) * _SAFE


def forward_fixed_point_cap(sigma: float, restart: float) -> float:
    """Cap T~ for the output restart * A: docs/theory/forward-cap.md, Theorem 2."""
    return check_sigma(sigma) / (2 * (1 - restart) * max(1.0, 2 * restart)) * _SAFE


def forward_recursion(sigma: float, model: str, restart: float, rounds: int | None) -> Recursion:
    """Check the parameters of a forward flow, before any graph is read."""
    sigma, restart = check_sigma(sigma), check_restart(restart)
    joint = check_model(model) == "joint"
    if rounds is None:
        cap = forward_fixed_point_cap(sigma, restart)
        return Recursion.fixed_point(restart, sigma, cap, joint=joint)
    if check_rounds(rounds) < 2:  # one round passes nothing on
        raise ParameterError(f"rounds must be at least 2, or None, got {rounds!r}")
    cap = forward_edge_cap(sigma, lazy_restart(restart), rounds)
    return Recursion(restart=restart, rounds=rounds, cap=cap, joint=joint)


def forward_rows(graph: Graph, sources: Iterable[int], recursion: Recursion) -> Rows:
    """Run a recursion whose last round skips the caps."""
    listed, layout = check_sources(sources, graph.n_nodes), layout_of(graph)
    capped = replace(recursion, rounds=recursion.rounds - 1) if recursion.lazy else recursion
    rows = np.empty((len(listed), graph.n_nodes))
    for part, block, lanes in run_blocks(layout, capped, layout.row_of[listed]):
        unload(inflow(block), lanes, layout, recursion.absorb, rows[part])
    # An isolated source absorbs its flow: all of it (joint), or once.
    isolated = np.flatnonzero(graph.degrees[listed] == 0)
    at_isolated = recursion.isolated if recursion.joint else recursion.absorb
    rows[isolated, listed[isolated]] = at_isolated
    return rows


def inflow(block: CappedBlock) -> npt.NDArray[np.float64]:
    """The uncapped result of one more round, valid until the next one; `g` is not changed."""
    block.more_rounds(1, np.full_like(block.caps, math.inf), math.inf)
    block.g, block.spare = block.spare, block.g
    return block.spare


class DPForwardCap(CappedFlow):
    """Flow capped on the edges but not where it is absorbed, plus Laplace noise sigma / epsilon.

    For the same noise a node's own value is not cut at its cap, which is what the paper's
    prepush is for, without its bias. Proof: docs/theory/forward-cap.md. Parameters as for
    `CappedFlow`, without prepush and the paper's bound; at least 2 rounds, or None.
    """

    name = "forward-cap"
    when_to_use = "as push-flow-cap, with nodes' own values uncut"
    theorem = "docs/theory/forward-cap.md"

    rounds: int | None = None

    def recursion(self) -> Recursion:
        """The recursion of `forward_rows`."""
        if self.prepush is not False or self.bound != "tight":
            name = "bound" if self.prepush is False else "prepush"
            raise ParameterError(f"{name} must be the default, got {getattr(self, name)!r}")
        return forward_recursion(self.sigma, self.model, self.restart, self.rounds)

    def flow(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow that arrives at each node, all of which is absorbed."""
        return forward_rows(graph, sources, self.recursion())

    def uncertainty(self, rows: Rows, shared: Any, views: LocalViews) -> Rows:
        """Around the row without noise; what caps cut off is not covered."""
        return laplace_uncertainty(rows, self.calibration(rows.shape[1]))

    @classmethod
    def tight_case(cls) -> tuple[DPForwardCap, Pair]:
        """Three rounds of a walk that nearly always restarts."""
        return cls(epsilon=1.0, restart=0.98, rounds=3), wedge()
