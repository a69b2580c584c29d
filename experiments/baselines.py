"""The paper's parameters, and rankings to compare with that are no releases but exact values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from edgeveil.flow.bounds import Bound
from edgeveil.flow.push_rounds import push_flow_cap
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import NonPrivate
from edgeveil.mechanisms.base import LocalViews, Statistics
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.statistic import Exact

__all__ = ["PAPER_FLOW", "CapWithoutNoise", "OwnListWithDegrees"]

PAPER_FLOW = {"rounds": 100, "restart": 0.15, "prepush": True, "bound": "paper"}
"""Parameters of the paper's capped flow in the joint model, beside sigma."""


class OwnListWithDegrees(NonPrivate):
    """The source, then its neighbours by degree, then all others by degree. Not private."""

    name = "own list + exact degrees"
    when_to_use = "to compare with"

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """Degrees, raised above all others for the source and its neighbours."""
        n = graph.n_nodes
        rows = np.tile(graph.degrees.astype(np.float64), (len(views.sources), 1))
        for row, source in zip(rows, views.sources, strict=True):
            row[graph.neighbours(int(source))] += n
            row[source] = 2.0 * n
        yield Exact(rows)


class CapWithoutNoise(NonPrivate):
    """The capped push flow of the paper, without its noise. Not private.

    Parameters as for `edgeveil.mechanisms.DPPushFlowCap`.
    """

    name = "push-flow-cap without noise"
    when_to_use = "to compare with"

    sigma: float = 1e-6
    model: Model = "joint"
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "paper"

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """The flow."""
        parameters = {name: value for name, value in asdict(self).items() if name != "tol"}
        yield Exact(push_flow_cap(graph, views.sources, **parameters))
