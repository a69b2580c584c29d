"""Rankings to compare with that are no releases, behind the mechanisms' protocol.

They have one path with everything else through the evaluation. None is offered as a mechanism:
a random order is nothing to release, and the other two show private data without noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.flow.bounds import Bound
from edgeveil.flow.push_flow import push_flow_cap
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows
from edgeveil.nodes import NodeSet
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.statistic import Exact, Noised

__all__ = ["CapWithoutNoise", "OwnListWithDegrees", "RandomOrder"]

_NOWHERE = "none: an analysis, not a release"


class WithoutNoise:
    """Exact rows behind the seam: for the curator only."""

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The rows."""
        raise NotImplementedError

    def guarantee(self, n_sources: int) -> Guarantee:
        """Promise nothing: there is no noise."""
        return Guarantee(epsilon=math.inf, model="none", n_sources=n_sources, theorem=_NOWHERE)

    def shared(self, graph: Graph) -> None:
        """Nothing is shared between sources."""

    def learn(self, noised: Noised, nodes: NodeSet) -> Any:
        """Nothing is shared between sources."""
        raise AssertionError("nothing is shared")

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The rows, as they are."""
        yield Exact(self.exact_rows(graph, own.sources))

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """Give them as they are."""
        return noised[0].values


@dataclass(frozen=True, kw_only=True)
class RandomOrder(WithoutNoise):
    """All scores equal. The metrics count ties at their expected value: a random order's."""

    name: ClassVar[str] = "random"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "to compare with"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """Zeros."""
        return np.zeros((len(sources), graph.n_nodes))


@dataclass(frozen=True, kw_only=True)
class OwnListWithDegrees(WithoutNoise):
    """The source, then its neighbours by degree, then all others by degree. Not private."""

    name: ClassVar[str] = "own list + exact degrees"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "to compare with"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """Degrees, raised above all others for the source and its neighbours."""
        n = graph.n_nodes
        rows = np.tile(graph.degrees.astype(np.float64), (len(sources), 1))
        for row, source in zip(rows, sources, strict=True):
            row[graph.neighbours(int(source))] += n
            row[source] = 2.0 * n
        return rows


@dataclass(frozen=True, kw_only=True)
class CapWithoutNoise(WithoutNoise):
    """The capped push flow of the paper, without its noise. Not private.

    Parameters as for `edgeveil.mechanisms.DPPushFlowCap`.
    """

    name: ClassVar[str] = "push-flow-cap without noise"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "to compare with"

    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "paper"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow."""
        return push_flow_cap(graph, sources, **vars(self))
