"""DPForwardCap: absorb everything, cap what is passed on, then noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.flow.bounds import flow_error_bound
from edgeveil.flow.push_flow import Recursion, capped_rows, forward_recursion
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, NoiseLast, Rows
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate

__all__ = ["DPForwardCap"]


@dataclass(frozen=True, kw_only=True)
class DPForwardCap(NoiseLast):
    """Flow capped on the edges but not where it is absorbed, plus Laplace noise sigma / epsilon.

    For the same noise a node's own value is not cut at its cap, which is what the paper's
    prepush is for, without its bias. Neighbouring graphs differ in one edge (joint: not at
    the source). Proof: docs/theory/forward-cap.md. Cost per source: `rounds` passes over the
    edges (fixed point: at most 137 at the defaults, about 20 in practice).

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    sigma : float
        L1 sensitivity that the flow is capped to; smaller means less noise and more bias.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        At least 2; None for the fixed point, which allows most flow.
    """

    name: ClassVar[str] = "forward-cap"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "as push-flow-cap, with nodes' own values uncut"
    theorem: ClassVar[str] = "docs/theory/forward-cap.md"

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        self._recursion()

    def _recursion(self) -> Recursion:
        return forward_recursion(self.sigma, self.model, self.restart, self.rounds)

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow, capped where it is passed on."""
        return capped_rows(graph, sources, self._recursion())

    def calibration(self, n_nodes: int) -> Calibration:
        """One edge moves a row by at most sigma in L1."""
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon),
            error=flow_error_bound(
                n_nodes, sigma=self.sigma, restart=self.restart, rounds=self.rounds
            ),
        )

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most."""
        return capped_flow_pairs(self.model)

    @classmethod
    def hardest(cls) -> tuple[DPForwardCap, Pair]:
        """Three rounds of a walk that nearly always restarts."""
        return cls(epsilon=1.0, restart=0.98, rounds=3), wedge()
