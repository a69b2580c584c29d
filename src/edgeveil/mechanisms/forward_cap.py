"""DPForwardCap: absorb everything, cap what is passed on, then noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from edgeveil.flow.bounds import check_sigma, flow_error_bound
from edgeveil.flow.forward_flow import check_forward_rounds, forward_flow
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.per_source import PerSource
from edgeveil.mechanisms.protocol import (
    Columns,
    Rows,
    check_model,
    laplace_uncertainty,
)
from edgeveil.mechanisms.row_noise import add_row_noise
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, NoiseSource, calibrate

__all__ = ["DPForwardCap"]


@dataclass(frozen=True, kw_only=True)
class DPForwardCap(PerSource):
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
    columns: ClassVar[Columns] = "nodes"
    theorem: ClassVar[str] = "docs/theory/forward-cap.md"

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_sigma(self.sigma)
        check_model(self.model)
        check_restart(self.restart)
        check_forward_rounds(self.rounds, sigma=self.sigma, restart=self.restart)

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, then noise, source by source."""
        rows = forward_flow(
            prepared,
            sources,
            sigma=self.sigma,
            model=self.model,
            restart=self.restart,
            rounds=self.rounds,
        )
        return add_row_noise(rows, sources, self._calibration(prepared.n_nodes), noise)

    def uncertainty(self, prepared: Graph, sources: Sequence[int], rows: Rows) -> Rows:
        """Around the capped flow without noise: what the caps cut off is not in it."""
        return laplace_uncertainty(self._calibration(prepared.n_nodes), len(sources))

    def _calibration(self, n: int) -> Calibration:
        return calibrate(
            coordinates=n,
            sensitivity=self.sigma,
            epsilon=exact_epsilon(self.epsilon),
            error=flow_error_bound(n, sigma=self.sigma, restart=self.restart, rounds=self.rounds),
        )
