"""DPPushFlowCap: the paper's main mechanism (algorithm 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, NoiseLast, Rows
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate

__all__ = ["DPPushFlowCap"]


@dataclass(frozen=True, kw_only=True)
class DPPushFlowCap(NoiseLast):
    """Capped push flow plus Laplace noise of scale sigma / epsilon on every node.

    Neighbouring graphs differ in one edge (joint: not at the source). Proof:
    docs/theory/dp-push-flow-cap.md. Cost per source: `rounds` passes over the edges.

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
        Rounds of pushing. None: the fixed point, which allows a tenth more flow for the same
        sigma and restart 0.15 (docs/theory/tight-bounds.md).
    prepush : bool
        The paper's extra start (Section 6); joint model only.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the cap. The paper's allows less flow for the same
        sigma; it is kept for reproduction.
    """

    name: ClassVar[str] = "push-flow-cap"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "to compare with the paper, or where a bound on the L1 error is wanted"
    )
    theorem: ClassVar[str] = "docs/theory/dp-push-flow-cap.md"

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        CappedFlow.of(self)

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The capped flow."""
        return CappedFlow.of(self).rows(graph, sources)

    def calibration(self, n_nodes: int) -> Calibration:
        """One edge moves a row by at most sigma in L1."""
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon),
            error=CappedFlow.of(self).error(n_nodes),
        )

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most."""
        return capped_flow_pairs(self.model)

    @classmethod
    def hardest(cls) -> tuple[DPPushFlowCap, Pair]:
        """With one round and prepush a wedge attains the bound."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()
