"""TwoHopEmbedding: a recipient's own list and noisy second hop, hashed to unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeveil._check import is_number
from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.rows import closeness
from edgeveil.flow.walk import check_restart
from edgeveil.hashing import check_dimension, check_hash_key, hash_nodes
from edgeveil.mechanisms.base import Gives, OwnLists, Rows
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs
from edgeveil.mechanisms.released_degrees import TwoHopRelease, split_epsilon
from edgeveil.privacy.statistic import Noised

__all__ = ["TwoHopEmbedding"]


@dataclass(frozen=True, kw_only=True)
class TwoHopEmbedding(TwoHopRelease):
    """Embedding of the own list, with strangers that seem close, scaled to unit length.

    The same private release as two-hop (shared noisy degrees, then noisy two-hop sums), turned
    into weights and hashed; all of that is post-processing. Joint model only. Proof:
    docs/theory/two-hop.md. Cost per source: its two-hop neighbourhood and n draws.

    One's own list needs no budget, and a short hash of it is what loses most: with 256 dimensions
    a classifier on BlogCatalog has a Micro-F1 of 29 %, with 4,096 one of 36 %. A row has at most
    five times as many values other than 0 as its node has friends: `Release.to_scipy` is small.

    By default all of an epsilon up to 0.4 goes to the degrees. Then no second hop is measured, and
    this is the own list with equal weights, which anybody can embed without a budget.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one recipient, both parts together.
    dimension : int
        Length of an embedding. With as many as there are nodes, or more, hardly any two friends
        share one.
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
    gives: ClassVar[Gives] = "embeddings"
    when_to_use: ClassVar[str] = (
        "the default for embeddings in the joint model; up to epsilon 0.4 it is the own list "
        "alone, which costs nothing"
    )

    epsilon: float
    dimension: int = 4096
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
        if not is_number(weight) or not 0 <= weight < 1e6:
            raise ParameterError(f"second_hop must be a number >= 0, got {weight!r}")

    def estimate(self, noised: tuple[Noised, ...], shared: DegreeEstimates, own: OwnLists) -> Rows:
        """Rows as of two-hop, then weights, hash, unit length."""
        rows = super().estimate(noised, shared, own)
        places = hash_nodes(own.nodes, self.dimension, self.hash_key)
        out = np.empty((len(rows), self.dimension))
        for i, (row, source) in enumerate(zip(rows, own.sources, strict=True)):
            friends, degrees = own.of(i), shared.degrees_seen_by(own.of(i))
            nodes, weights = closeness(row, source, friends, degrees, self.restart, self.second_hop)
            signed = weights * places.sign[nodes]
            out[i] = np.bincount(places.bucket[nodes], signed, minlength=self.dimension)
        out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
        return out

    @classmethod
    def hardest(cls) -> tuple[TwoHopEmbedding, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0, dimension=16), two_hubs(1, 4)
