"""DPSparsePPR: noise on the large coordinates only (algorithm 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow, paper_threshold
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, PerSource, Rows
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic

__all__ = ["DPSparsePPR"]


@dataclass(frozen=True, kw_only=True)
class DPSparsePPR(PerSource):
    """Choose the large coordinates privately, then noise those; all others are 0.

    Half of epsilon goes to the choice (DPSparsification), half to the values. Neighbouring
    graphs differ in one edge (joint: not at the source). Proof: docs/theory/sparse.md. Cost
    per source: `rounds` passes over the edges. Parameters as for `DPPushFlowCap`.
    """

    name: ClassVar[str] = "sparse-ppr"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "a short list of large scores is all that is needed"
    theorem: ClassVar[str] = "docs/theory/sparse.md"

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

    def calibration(self, n_nodes: int) -> Calibration:
        """The noise of each of the two parts, with half of epsilon."""
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon) / 2,
            error=CappedFlow.of(self).error(n_nodes),
        )

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The flow twice: to choose coordinates, and for their values."""
        rows, noise = CappedFlow.of(self).rows(graph, own.sources), self.calibration(graph.n_nodes)
        yield Statistic(rows.copy(), noise)
        yield Statistic(rows, noise)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """The values where the choice says so; that coordinate i is chosen is algorithm 6."""
        choice, values = (part.values for part in noised)
        gamma = paper_threshold(len(own.nodes), self.sigma, exact_epsilon(self.epsilon) / 2)
        return np.where(choice >= gamma, values, 0.0)

    def hard_pairs(self) -> Iterator[Pair]:
        """Those of the flow."""
        return capped_flow_pairs(self.model)

    @classmethod
    def hardest(cls) -> tuple[DPSparsePPR, Pair]:
        """With one round and prepush a wedge attains the bound of the flow."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()
