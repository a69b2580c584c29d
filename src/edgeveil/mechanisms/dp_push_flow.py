"""DPPushFlow: uncapped push flow for graphs with a promised minimum degree (algorithm 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil.errors import PromiseError
from edgeveil.flow.bounds import Bound, float_error_bound
from edgeveil.flow.push_rounds import push_flow
from edgeveil.flow.walk import check_rounds, lazy_restart
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    Rows,
    Statistics,
    laplace_uncertainty,
)
from edgeveil.mechanisms.hard_pairs import Pair, two_cliques, wedge_with_cliques
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Statistic


class DPPushFlow(Mechanism):
    """Push flow plus Laplace noise for graphs that are promised to have minimum degree >= D.

    The promise is public knowledge, not something read off the graph; a graph that breaks it
    is refused before anything is drawn, and that refusal is outside of the guarantee. The
    noise scales with 1 / D^2 in the joint and 1 / D in the public model. Neighbouring graphs
    differ in one edge (joint: not at the source) and both keep the promise. Proof:
    docs/theory/dp-push-flow.md. Cost per source: `rounds` passes over the edges.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    promised_min_degree : int
        D, which every graph that could have been the input is promised to reach.
    model : {"joint", "public"}
        Who may see a row: only the member at its source, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int
        Rounds of pushing.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the noise. The paper's is larger; it is kept for
        reproduction.
    """

    name = "push-flow"
    when_to_use = "every possible graph is known to have a high minimum degree"
    theorem = "docs/theory/dp-push-flow.md"

    epsilon: float
    promised_min_degree: int
    model: Model = "joint"
    restart: float = 0.15
    rounds: int = 100
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rounds(self.rounds)
        check_int("promised_min_degree", self.promised_min_degree)

    @classmethod
    def paper(cls, epsilon: float, promised_min_degree: int, **others: Any) -> Self:
        """As in the paper: R = 100 and its own bound; `others` replace any of it."""
        options: dict[str, Any] = {"rounds": 100, "bound": "paper", **others}
        return cls(epsilon=epsilon, promised_min_degree=promised_min_degree, **options)

    @property
    def sensitivity(self) -> Fraction:
        """Largest L1 change of a row by one edge, under the promise."""
        alpha, d = Fraction(lazy_restart(self.restart)), int(self.promised_min_degree)
        unit = (1 - alpha) / alpha
        if self.bound == "paper":
            return 2 * unit / (d * d if self.model == "joint" else d)
        restart = 2 * alpha / (1 + alpha)  # of the walk that is computed, exactly
        if self.model == "joint":
            return 2 * unit * (1 - restart) / (d * (d + 1))
        return unit * min(Fraction(1), restart + (1 - restart) * (2 - restart) / d) / (d + 1)

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon per member (joint), or per source and added up (public); with the promise."""
        promise = f"every node has at least {self.promised_min_degree} neighbours"
        return replace(super().guarantee(n_members), promise=promise)

    def check_promise(self, graph: Graph) -> None:
        """Refuse a graph that breaks the promise."""
        if graph.n_nodes and graph.degrees.min() < self.promised_min_degree:
            raise PromiseError(
                f"the graph does not keep the promise that every node has at least "
                f"{self.promised_min_degree} neighbours; nothing was drawn or released. "
                "Use push-flow-cap, which needs no promise"
            )

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow of `rounds` rounds; its L1 distance from PageRank is (1 - alpha)^rounds."""
        return push_flow(graph, sources, restart=self.restart, rounds=self.rounds)

    def calibration(self, n_nodes: int) -> Calibration:
        """One edge moves a row by at most `sensitivity` in L1."""
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sensitivity,
            epsilon=exact_epsilon(self.epsilon),
            error=float_error_bound(n_nodes, lazy_restart(self.restart)),
        )

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """The rows, before their noise."""
        self.check_promise(graph)  # on every path
        yield Statistic(self.exact_rows(graph, views.sources), self.calibration(graph.n_nodes))

    def uncertainty(self, rows: Rows, shared: Any, views: LocalViews) -> Rows:
        """Around the row without noise; what further rounds would add is not covered."""
        return laplace_uncertainty(rows, self.calibration(rows.shape[1]))

    def hard_pairs(self) -> Iterator[Pair]:
        """Two cliques of the promised degree; joint: the edge starts beside the source."""
        own, public = self.promised_min_degree + 1, self.model == "public"
        yield from (two_cliques(max(own, 2), own * k, at_source=public) for k in (1, 2, 4))
        if not public and own > 2:
            yield wedge_with_cliques(own - 1)

    @classmethod
    def tight_case(cls) -> tuple[DPPushFlow, Pair]:
        """Two friends with a clique each, and a walk that nearly always restarts."""
        return cls(epsilon=1.0, promised_min_degree=2, restart=0.98), wedge_with_cliques(2)
