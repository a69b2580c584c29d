"""OwnListEmbedding: a member's own friend list as an embedding, at no price."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.estimate.hashing import hash_nodes, identity_hash
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import LocalViews, OwnListOnly, Rows
from edgeveil.privacy.statistic import Noised


class OwnListEmbedding(OwnListOnly):
    """A member's own friend list as a vector of unit length, with price 0.

    Each friend counts 1, with the sign and in the dimension that a public hash gives it. A row is
    a function of its member's own list, so it reveals nothing about other edges: epsilon is 0.
    Joint model only, because a row shows its member's edges. Proof: docs/theory/baselines.md.

    A wider hash needs no budget and loses less, because fewer friends share a dimension; without a
    hash nothing is lost (docs/embed.md has figures). `Release.to_scipy` returns the rows as a
    sparse matrix: a row has at most as many non-zero values as its member has friends.

    Parameters
    ----------
    dimension : int
        Length of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    hashed : bool
        False: no hash, and dimension i is node i; then `dimension` must be the number of nodes
        (see `unhashed`).
    """

    name = "own-list-embedding"
    output = "embeddings"
    when_to_use = (
        "the default for embeddings in the joint model: it costs nothing, and adding a noisy "
        "second hop improves it by at most one point"
    )
    theorem = "docs/theory/baselines.md"

    dimension: int = 1024
    hash_key: str = "edgeveil"
    hashed: bool = True

    @classmethod
    def unhashed(cls, n_nodes: int) -> OwnListEmbedding:
        """The own list without a hash, with one column for each of `n_nodes` nodes."""
        return cls(dimension=n_nodes, hashed=False)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Without a hash, refuse a dimension other than the number of nodes."""
        if not self.hashed and self.dimension != len(nodes):
            raise ParameterError(
                f"without a hash an embedding has a dimension for each of the {len(nodes):,} "
                f"nodes, not {self.dimension:,}"
            )

    def estimate(self, noised: tuple[Noised, ...], shared: Any, views: LocalViews) -> Rows:
        """Every friend with weight 1, scaled to unit length; zeros for a member without friends."""
        if self.hashed:
            node_hash = hash_nodes(views.nodes, self.dimension, self.hash_key)
        else:
            node_hash = identity_hash(views.nodes)
        rows = np.zeros((len(views.sources), self.dimension))
        for i, row in enumerate(rows):
            row += node_hash.add_up(views.of(i))
            row /= max(float(np.linalg.norm(row)), 1.0)  # at least 1, unless all friends cancel out
        return rows
