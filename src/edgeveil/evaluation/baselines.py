"""Rankings to compare with that are no releases, behind the mechanisms' protocol.

They have one path with everything else through the evaluation. None is offered as a mechanism:
a random order is nothing to release, and the other two show private data without noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeveil.flow.bounds import Bound
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import NoiseSource

__all__ = ["CapWithoutNoise", "OwnListWithDegrees", "RandomOrder"]

_NOWHERE = "none: an analysis, not a release"


@dataclass(frozen=True, kw_only=True)
class RandomOrder:
    """All scores equal. The metrics count ties at their expected value: a random order's."""

    name: ClassVar[str] = "random"
    columns: ClassVar[Columns] = "nodes"

    def guarantee(self, n_sources: int) -> Guarantee:
        """Nothing of the graph is used."""
        return Guarantee(epsilon=0.0, model="joint", n_sources=n_sources, theorem=_NOWHERE)

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Zeros."""
        return np.zeros((len(sources), prepared.n_nodes))


@dataclass(frozen=True, kw_only=True)
class OwnListWithDegrees:
    """The source, then its neighbours by degree, then all others by degree. Not private."""

    name: ClassVar[str] = "own list + exact degrees"
    columns: ClassVar[Columns] = "nodes"

    def guarantee(self, n_sources: int) -> Guarantee:
        """Promise nothing: the degrees are exact."""
        return _no_protection(n_sources)

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Degrees, raised above all others for the source and its neighbours."""
        n = prepared.n_nodes
        rows = np.tile(prepared.degrees.astype(np.float64), (len(sources), 1))
        for row, source in zip(rows, sources, strict=True):
            row[prepared.neighbours(source)] += n
            row[source] = 2.0 * n
        return rows


@dataclass(frozen=True, kw_only=True)
class CapWithoutNoise:
    """The capped push flow of the paper, without its noise. Not private.

    Parameters as for `edgeveil.DPPushFlowCap`.
    """

    name: ClassVar[str] = "push-flow-cap without noise"
    columns: ClassVar[Columns] = "nodes"

    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "paper"

    def guarantee(self, n_sources: int) -> Guarantee:
        """Promise nothing: there is no noise."""
        return _no_protection(n_sources)

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """The flow."""
        return CappedFlow.of(self).rows(prepared, sources)


def _no_protection(n_sources: int) -> Guarantee:
    return Guarantee(epsilon=math.inf, model="none", n_sources=n_sources, theorem=_NOWHERE)
