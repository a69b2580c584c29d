"""TwoHopEmbedding: a recipient's own list and noisy second hop, hashed to unit length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.estimate.rows import hashed_closeness
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.hashing import check_dimension, check_hash_key, hash_nodes
from edgeveil.mechanisms.protocol import Columns, Rows
from edgeveil.mechanisms.released_degrees import (
    ReleasedDegrees,
    noisy_two_hop_rows,
    release_degrees,
    rows_together,
    shared_part,
    split_epsilon,
)
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource

__all__ = ["TwoHopEmbedding"]


@dataclass(frozen=True, kw_only=True)
class TwoHopEmbedding:
    """Embedding of the own list, with strangers that seem close, scaled to unit length.

    The same private release as two-hop (shared noisy degrees, then noisy two-hop sums), turned
    into weights and hashed; all of that is post-processing. Joint model only. Proof:
    docs/theory/two-hop.md. Cost per source: its two-hop neighbourhood and n draws.

    By default all of an epsilon up to 0.4 goes to the degrees. Then no second hop is measured, and
    this is the own list with equal weights, which anybody can embed without a budget.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one recipient, both parts together.
    dimension : int
        Length of an embedding.
    degree_epsilon : float, optional
        What of epsilon goes to the shared degrees; by default as for `TwoHop`.
    second_hop : float
        How much a stranger's closeness counts against a friend.
    restart : float
        Restart probability of the ordinary walk.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    """

    name: ClassVar[str] = "two-hop-embedding"
    columns: ClassVar[Columns] = "dimensions"

    epsilon: float
    dimension: int = 256
    degree_epsilon: float | None = None
    second_hop: float = 0.3
    restart: float = 0.15
    hash_key: str = "edgeveil"

    def __post_init__(self) -> None:
        split_epsilon(self.epsilon, self.degree_epsilon)
        check_dimension(self.dimension)
        check_restart(self.restart)
        check_hash_key(self.hash_key)
        weight = self.second_hop
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not number or not 0 <= weight < 1e6:
            raise ParameterError(f"second_hop must be a number >= 0, got {weight!r}")

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon to each recipient, of which the degrees' part is shared by all."""
        return Guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_sources=n_sources,
            theorem="docs/theory/two-hop.md",
            shared_epsilon=shared_part(self.epsilon, self.degree_epsilon),
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> ReleasedDegrees:
        """Release the degrees, once for all sources."""
        return release_degrees(graph, split_epsilon(self.epsilon, self.degree_epsilon)[0], noise)

    def rows(self, prepared: ReleasedDegrees, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Noisy second hop, weights, hash, unit length."""
        epsilon = split_epsilon(self.epsilon, self.degree_epsilon)[1]
        node_hash = hash_nodes(prepared.graph.nodes, self.dimension, self.hash_key)
        rows = np.empty((len(sources), self.dimension))
        together = rows_together(prepared.graph.n_nodes)
        for first in range(0, len(sources), together):
            some, out = sources[first : first + together], rows[first : first + together]
            scores = noisy_two_hop_rows(prepared, some, epsilon, self.restart, noise)
            own, known = prepared.own_lists(some), prepared.known
            bucket, sign = node_hash.bucket, node_hash.sign
            hashed_closeness(scores, own, known, self.restart, self.second_hop, bucket, sign, out)
            out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
        return rows
