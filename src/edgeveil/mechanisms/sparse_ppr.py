"""DPSparsePPR: noise on the large coordinates only (algorithm 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.mechanisms.per_source import PerSource
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate
from edgeveil.privacy.sparsification import sparsify, threshold

__all__ = ["DPSparsePPR"]


@dataclass(frozen=True, kw_only=True)
class DPSparsePPR(PerSource):
    """Choose the large coordinates privately, then noise those; all others are 0.

    Half of epsilon goes to the choice (DPSparsification), half to the values. Neighbouring
    graphs differ in one edge (joint: not at the source). Proof: docs/theory/sparse.md. Cost
    per source: `rounds` passes over the edges. Parameters as for `DPPushFlowCap`.
    """

    name: ClassVar[str] = "sparse-ppr"
    columns: ClassVar[Columns] = "nodes"
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

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, private choice of coordinates, noise on those."""
        n, half = prepared.n_nodes, exact_epsilon(self.epsilon) / 2
        flow = CappedFlow.of(self)
        error = flow.error(n)
        rows = flow.rows(prepared, sources)
        gamma = threshold(n, self.sigma, half)
        # Calibrated for n coordinates whatever |S| is: a bound for n holds for fewer.
        calibration = calibrate(coordinates=n, sensitivity=self.sigma, epsilon=half, error=error)
        for row, source in zip(rows, sources, strict=True):
            stream = noise.derive("row", int(source))
            chosen = sparsify(
                row,
                sensitivity=self.sigma,
                epsilon=half,
                gamma=gamma,
                error=error,
                noise=stream.derive("choice"),
            )
            noisy = add_laplace(row[chosen], calibration, stream.derive("values"))
            row[:] = 0.0
            row[chosen] = noisy
        return np.asarray(rows)
