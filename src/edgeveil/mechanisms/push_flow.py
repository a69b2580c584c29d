"""DPPushFlow: uncapped push flow for graphs with a promised minimum degree (algorithm 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from edgeveil.errors import ParameterError, PromiseError
from edgeveil.flow.bounds import Bound, check_bound, float_error_bound
from edgeveil.flow.push_flow import push_flow
from edgeveil.flow.walk import check_rounds, lazy_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import (
    Columns,
    Rows,
    check_model,
    laplace_uncertainty,
    per_source_guarantee,
)
from edgeveil.mechanisms.row_noise import add_row_noise
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import Calibration, NoiseSource, calibrate

__all__ = ["DPPushFlow"]


@dataclass(frozen=True, kw_only=True)
class DPPushFlow:
    """Push flow plus Laplace noise that is enough if every possible graph has min degree >= D.

    The promise is public knowledge, not something read off the graph; a graph that breaks it
    is refused before anything is drawn, and that refusal is outside of the guarantee. The
    noise goes with 1 / D^2 in the joint and 1 / D in the public model. Neighbouring graphs
    differ in one edge (joint: not at the source) and both keep the promise. Proof:
    docs/theory/dp-push-flow.md. Cost per source: `rounds` passes over the edges.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    promised_min_degree : int
        D, which every graph that could have been the input is promised to reach.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int
        Rounds of pushing.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the noise. The paper's is larger; it is kept for
        reproduction.
    """

    name: ClassVar[str] = "push-flow"
    columns: ClassVar[Columns] = "nodes"

    epsilon: float
    promised_min_degree: int
    model: Model = "joint"
    restart: float = 0.15
    rounds: int = 100
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_model(self.model)
        check_rounds(self.rounds)
        check_bound(self.bound)
        lazy_restart(self.restart)
        d = self.promised_min_degree
        if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
            raise ParameterError(f"promised_min_degree must be a positive integer, got {d!r}")

    @property
    def sensitivity(self) -> Fraction:
        """L1 change of a row by one edge, at most, under the promise."""
        alpha, d = Fraction(lazy_restart(self.restart)), int(self.promised_min_degree)
        unit = (1 - alpha) / alpha
        if self.bound == "paper":
            return 2 * unit / (d * d if self.model == "joint" else d)
        restart = 2 * alpha / (1 + alpha)  # of the walk that is computed, exactly
        if self.model == "joint":
            return 2 * unit * (1 - restart) / (d * (d + 1))
        return unit * min(Fraction(1), restart + (1 - restart) * (2 - restart) / d) / (d + 1)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon per recipient (joint) or per source, added up (public)."""
        return per_source_guarantee(
            epsilon=self.epsilon,
            model=self.model,
            n_sources=n_sources,
            theorem="docs/theory/dp-push-flow.md",
            promise=f"every node has at least {self.promised_min_degree} neighbours",
        )

    def check_promise(self, graph: Graph) -> None:
        """Refuse a graph that breaks the promise."""
        if graph.n_nodes and graph.degrees.min() < self.promised_min_degree:
            raise PromiseError(
                f"the graph does not keep the promise that every node has at least "
                f"{self.promised_min_degree} neighbours; nothing was drawn or released. "
                "Use push-flow-cap, which needs no promise"
            )

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Refuse a graph that breaks the promise, whoever calls."""
        self.check_promise(graph)
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Flow, then noise, source by source."""
        rows = push_flow(prepared, sources, restart=self.restart, rounds=self.rounds)
        return add_row_noise(rows, sources, self._calibration(prepared.n_nodes), noise)

    def uncertainty(self, prepared: Graph, sources: Sequence[int], rows: Rows) -> Rows:
        """Around the flow of `rounds` rounds, which is short of PageRank by (1-a)^rounds in all."""
        return laplace_uncertainty(self._calibration(prepared.n_nodes), len(sources))

    def _calibration(self, n: int) -> Calibration:
        return calibrate(
            coordinates=n,
            sensitivity=self.sensitivity,
            epsilon=exact_epsilon(self.epsilon),
            error=float_error_bound(n, lazy_restart(self.restart)),
        )
