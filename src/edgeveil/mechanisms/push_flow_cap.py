"""DPPushFlowCap: the paper's main mechanism (algorithm 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.mechanisms.per_source import PerSource
from edgeveil.mechanisms.protocol import (
    Columns,
    Rows,
    laplace_uncertainty,
)
from edgeveil.mechanisms.row_noise import add_row_noise
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, NoiseSource, calibrate

__all__ = ["DPPushFlowCap"]


@dataclass(frozen=True, kw_only=True)
class DPPushFlowCap(PerSource):
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
        Rounds of pushing. None: the fixed point, which allows twice the flow for the same
        sigma and restart 0.15 (docs/theory/tight-bounds.md).
    prepush : bool
        The paper's extra start (Section 6); joint model only.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the cap. The paper's allows less flow for the same
        sigma; it is kept for reproduction.
    """

    name: ClassVar[str] = "push-flow-cap"
    columns: ClassVar[Columns] = "nodes"
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

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, then noise, source by source."""
        rows = CappedFlow.of(self).rows(prepared, sources)
        return add_row_noise(rows, sources, self._calibration(prepared.n_nodes), noise)

    def uncertainty(self, prepared: Graph, sources: Sequence[int], rows: Rows) -> Rows:
        """Around the capped flow without noise: what the caps cut off is not in it."""
        return laplace_uncertainty(self._calibration(prepared.n_nodes), len(sources))

    def _calibration(self, n: int) -> Calibration:
        return calibrate(
            coordinates=n,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon),
            error=CappedFlow.of(self).error(n),
        )
