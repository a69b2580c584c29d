"""DPForwardCap: capped flow that cuts no node's own value, a baseline beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.flow.bounds import flow_error_bound
from edgeveil.flow.push_flow import Recursion, capped_recursion, capped_rows
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    Asking,
    LocalViews,
    Mechanism,
    Rows,
    laplace_uncertainty,
)
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Statistic


class DPForwardCap(Mechanism):
    """Flow capped on the edges but not where it is absorbed, plus Laplace noise sigma / epsilon.

    For the same noise a node's own value is not cut at its cap, which is what the paper's
    prepush is for, without its bias. Proof: docs/theory/forward-cap.md.

    Parameters
    ----------
    epsilon, sigma, model, restart
        As for `CappedFlow`.
    rounds : int or None
        Rounds of pushing, at least 2; None for the fixed point, which allows most flow
        (docs/theory/tight-bounds.md).
    """

    name = "forward-cap"
    when_to_use = "as push-flow-cap, with nodes' own values uncut"
    theorem = "docs/theory/forward-cap.md"

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recursion()  # refuses wrong parameters

    def _recursion(self) -> Recursion:
        return capped_recursion(self.sigma, self.model, self.restart, self.rounds, forward=True)

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow that arrives at each node, all of which is absorbed."""
        return capped_rows(graph, sources, self._recursion())

    def calibration(self, n_nodes: int) -> Calibration:
        """One edge moves a row by at most sigma in L1."""
        error = flow_error_bound(
            n_nodes, sigma=self.sigma, restart=self.restart, rounds=self.rounds
        )
        epsilon = exact_epsilon(self.epsilon)
        return calibrate(coordinates=n_nodes, sensitivity=self.sigma, epsilon=epsilon, error=error)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Asking:
        """The rows, before their noise."""
        yield Statistic(self.exact_rows(graph, views.sources), self.calibration(graph.n_nodes))

    def uncertainty(self, rows: Rows, shared: Any, views: LocalViews) -> Rows:
        """Around the row without noise; what caps cut off is not covered."""
        return laplace_uncertainty(rows, self.calibration(rows.shape[1]))

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most."""
        return capped_flow_pairs(self.model)

    @classmethod
    def tight_case(cls) -> tuple[DPForwardCap, Pair]:
        """Three rounds of a walk that nearly always restarts."""
        return cls(epsilon=1.0, restart=0.98, rounds=3), wedge()
