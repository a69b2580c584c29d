"""DPSparsePPR: noise on the large coordinates only (algorithm 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows
from edgeveil.mechanisms.capped_flow import PaperFlow
from edgeveil.mechanisms.hard_pairs import Pair, wedge
from edgeveil.nodes import NodeSet
from edgeveil.privacy.statistic import Noised, Statistic


@dataclass(frozen=True, kw_only=True)
class DPSparsePPR(PaperFlow):
    """Choose the large coordinates privately, then noise those; all others are 0.

    Half of epsilon goes to the choice (DPSparsification), half to the values. Proof:
    docs/theory/sparse.md. Parameters as for `PaperFlow`.
    """

    name: ClassVar[str] = "sparse-ppr"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "a short list of large scores is all that is needed"
    theorem: ClassVar[str] = "docs/theory/sparse.md"

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self.flow_noise(len(nodes), self.half)

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The flow twice: to choose coordinates, and for their values."""
        rows, noise = self.flow(graph, own.sources), self.flow_noise(graph.n_nodes, self.half)
        yield Statistic(rows.copy(), noise)
        yield Statistic(rows, noise)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """The values where the choice says so; that coordinate i is chosen is algorithm 6."""
        choice, values = (part.values for part in noised)
        return np.where(self.is_large(choice), values, 0.0)

    @classmethod
    def hardest(cls) -> tuple[DPSparsePPR, Pair]:
        """With one round and prepush a wedge attains the bound of the flow."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()
