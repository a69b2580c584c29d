"""Release -> Release. Nothing in here can reach the graph: that is the post-processing theorem."""

from __future__ import annotations

from edgeveil.errors import ParameterError
from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.graph.nodes import NodeSet
from edgeveil.results.release import Release


def embed(release: Release, *, dimension: int = 256, hash_key: str = "edgeveil") -> Release:
    """Embed every row of scores (algorithm 4); the guarantee stays what it was.

    Parameters
    ----------
    release : Release
        Scores, from any mechanism.
    dimension : int
        Length of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    """
    if release.output != "scores":
        raise ParameterError("this release holds embeddings already")
    node_hash = hash_nodes(release.columns, dimension, hash_key)
    return release.with_values(
        instant_embedding(release.values, node_hash),
        NodeSet.range(node_hash.dimension),
        "embeddings",
        f"instant-embedding(dimension={node_hash.dimension}, hash_key={hash_key!r})",
    )
