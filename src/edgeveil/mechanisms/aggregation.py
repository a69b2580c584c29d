"""Aggregation: noisy sums of what is public about neighbours, for every node, once for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.estimate.classification import Messages
from edgeveil.estimate.hashing import hash_nodes
from edgeveil.estimate.public import NodeVectors
from edgeveil.flow.neighbour_sums import neighbour_sums
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    OnceForAll,
    Rows,
    Statistics,
)
from edgeveil.mechanisms.hard_pairs import Pair, single_pair
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate_whole
from edgeveil.privacy.statistic import Noised, Statistic
from edgeveil.results.provenance import Metadata
from edgeveil.results.release import Release


class Aggregation(OnceForAll):
    """For every node the sum of its neighbours' public vectors, with noise: once for everybody.

    Public model: anyone may see all rows. A vector has L1 norm at most a public bound; an edge
    moves the rows of its two ends by one vector each, so by twice the bound, and Laplace noise of
    scale 2 bound / epsilon on every entry protects each edge at epsilon for all rows together.
    Neighbouring graphs differ in one edge (directed: one arc; those whom a node follows, and its
    followers, have separate columns). **The vectors are not protected, and must not come from the
    edges.** Without vectors each node says 1 or -1 in a dimension, by a public hash: then rows are
    embeddings that may be published. Proof: docs/theory/classification.md. Cost:
    O(m + n dimension).

    Parameters
    ----------
    epsilon : float
        Privacy loss of all rows together, for any edge.
    dimension : int
        Numbers in a row; in directed graphs half of them for each direction.
    directed : bool
        Whether the graph is directed.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    values : NodeVectors, optional
        The public vectors; `edgeveil.aggregate` makes them.
    """

    name = "aggregation"
    output = "embeddings"
    when_to_use = (
        "the default for embeddings in the public model, and for sums of neighbours' public "
        "features: one epsilon for all rows"
    )
    theorem = "docs/theory/classification.md"
    model = "public"

    epsilon: float
    dimension: int = 64
    directed: bool = False
    hash_key: str = "edgeveil"
    values: NodeVectors | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.values, NodeVectors | None):
            raise ParameterError(
                f"values must be what edgeveil.aggregate makes of vectors, or None, "
                f"got {self.values!r}"
            )
        if self.dimension % self._blocks:
            raise ParameterError(
                f"dimension must be even for directed graphs, got {self.dimension!r}"
            )
        if self.values is not None and self.dimension != self.values.width * self._blocks:
            raise ParameterError(
                f"dimension must be {self.values.width * self._blocks}, as many as the values "
                f"have, got {self.dimension!r}"
            )

    @property
    def _blocks(self) -> int:
        return 2 if self.directed else 1

    @property
    def _width(self) -> int:
        return self.dimension // self._blocks

    @property
    def unit(self) -> float:
        """What a whole number in the sums stands for."""
        return 1.0 if self.values is None else self.values.unit

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon, once for all rows; what is summed up is not protected."""
        claim = super().guarantee(n_members)
        if self.values is None:
            return claim
        return replace(claim, not_protected="the values that are summed up, used as they are")

    def check_nodes(self, nodes: NodeSet) -> None:
        """Refuse other nodes than those of the values, and calibrate once before the charge."""
        if self.values is not None and nodes != self.values.nodes:
            raise ParameterError("the values were given for another node set than the graph's")
        self.noise(len(nodes))

    def noise(self, n: int) -> Calibration:
        """One edge moves two rows by what one node says each, in whole units: exactly."""
        most = 1 if self.values is None else self.values.most
        return calibrate_whole(
            coordinates=max(n * self.dimension, 1),
            sensitivity=2 * most,
            epsilon=exact_epsilon(self.epsilon),
        )

    def _messages(self, nodes: NodeSet) -> Messages:
        """What every node says: its vector, or 1 or -1 in a column."""
        if self.values is not None:
            return self.values.on(nodes)
        node_hash, n = hash_nodes(nodes, self._width, self.hash_key), len(nodes)
        return Messages(np.arange(n + 1), node_hash.bucket, node_hash.sign.astype(np.int64))

    def shared(self, graph: Graph) -> Statistics:
        """The sums of all nodes, in whole units."""
        everybody = np.ones(graph.n_nodes, dtype=np.bool_)
        sums = neighbour_sums(graph, *self._messages(graph.nodes), self._width, everybody)
        yield Statistic(sums.reshape(1, -1), self.noise(graph.n_nodes))

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> Rows:
        """The released sums as rows."""
        return noised[0].values.reshape(len(nodes), self.dimension) * self.unit

    def estimate(self, noised: tuple[Noised, ...], shared: Rows, views: LocalViews) -> Rows:
        """The rows of these nodes."""
        rows: Rows = shared[views.sources]
        return rows

    def published(self, shared: Rows, nodes: NodeSet, metadata: Metadata) -> Release:
        """The rows of all nodes, with the names of the columns."""
        names = () if self.values is None else self.values.names
        if self.directed:
            names = tuple(f"{way} {name}" for way in ("followed:", "followers:") for name in names)
        return Release(
            values=shared,
            sources=tuple(nodes),
            columns=NodeSet.of(names) if names else NodeSet.range(self.dimension),
            output=self.output,
            **metadata._asdict(),
        )

    def hard_pairs(self) -> Iterator[Pair]:
        """Two nodes get joined, the ones with the longest vectors."""
        if self.values is None:
            before = single_pair(at_source=True).graph
            if self.directed:
                before = Graph.from_edges([], [], before.nodes, directed=True)
        else:
            longest = np.argsort(-self.values.lengths, kind="stable")[:2]
            if len(longest) < 2:
                return
            two = NodeSet.of(self.values.nodes.take(longest))
            before = Graph.from_edges([], [], two, directed=self.directed)
        yield Pair(graph=before, neighbour=before.with_edge_flipped(0, 1), source=0)

    @classmethod
    def tight_case(cls) -> tuple[Self, Pair]:
        """At any epsilon."""
        mechanism = cls(epsilon=1.0, dimension=2)
        return mechanism, next(mechanism.hard_pairs())
