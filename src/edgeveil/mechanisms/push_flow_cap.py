"""DPPushFlowCap: the paper's main mechanism (algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, NoiseLast, Rows
from edgeveil.mechanisms.capped_flow import CappedFlow
from edgeveil.mechanisms.hard_pairs import Pair, wedge
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import Calibration

__all__ = ["DPPushFlowCap"]


@dataclass(frozen=True, kw_only=True)
class DPPushFlowCap(CappedFlow, NoiseLast):
    """Capped push flow plus Laplace noise of scale sigma / epsilon on every node.

    Proof: docs/theory/dp-push-flow-cap.md. Parameters as for `CappedFlow`.
    """

    name: ClassVar[str] = "push-flow-cap"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "to compare with the paper, or where a bound on the L1 error is wanted"
    )
    theorem: ClassVar[str] = "docs/theory/dp-push-flow-cap.md"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The capped flow."""
        return self.flow(graph, sources)

    def calibration(self, n_nodes: int) -> Calibration:
        """The noise of the flow."""
        return self.flow_noise(n_nodes, exact_epsilon(self.epsilon))

    @classmethod
    def hardest(cls) -> tuple[DPPushFlowCap, Pair]:
        """With one round and prepush a wedge attains the bound."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()
