"""Which mechanism to take: a rule that sees epsilon, the model and n, never an edge."""

from __future__ import annotations

import math
from typing import Literal

from edgeveil import mechanisms
from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.mechanisms.base import Mechanism, check_model
from edgeveil.privacy.epsilon import check_epsilon

_FEW_FALSE_EDGES = 4.0
_ENOUGH_FOR_FLIPPING = 4.0  # epsilon; below, few false edges mean a tiny graph


def recommended(
    *,
    epsilon: float | None = None,
    model: Literal["joint", "public"] = "joint",
    gives: Literal["scores", "embeddings"] = "scores",
    n_nodes: int | None = None,
) -> Mechanism:
    """The mechanism that is best at this epsilon, by a rule that does not see the data.

    Joint model: two-hop (up to epsilon = 0.4 it equals the degree prior). Public model: the degree
    prior, the only other mechanism whose price does not grow with the number of rows. In both
    models edge flipping instead, if epsilon is at least 4 and flipping adds at most 4 false edges
    to a node, n / (1 + e^epsilon) <= 4: there it finds more of the nearest nodes on all generated
    networks that were tried, of 60 to 30,000 nodes with average degrees of 8 to 160. The
    `when_to_use` of a mechanism says why.

    Embeddings: in the joint model own-list-embedding, which costs nothing; a noisy second hop added
    at most a point of accuracy to it at epsilon <= 2 (docs/choosing.md). In the public model
    instant-embedding, **where the price of every row is epsilon**: it is for a few rows. For many,
    release ``EdgeFlipping(model="public")``, whose price is epsilon for all rows together, and hash
    the scores by `edgeveil.postprocess.embed`; that is useful under the rule above.

    Parameters
    ----------
    epsilon : float
        Privacy loss. Embeddings in the joint model need none.
    model : {"joint", "public"}
        Who sees a row: the member alone, or anyone.
    gives : {"scores", "embeddings"}
        What is wanted.
    n_nodes : int, optional
        Size of the public node set. Without it edge flipping is not considered.

    Examples
    --------
    >>> recommended(epsilon=1, n_nodes=10_000).name
    'two-hop'
    >>> recommended(epsilon=10, n_nodes=10_000).name
    'edge-flipping'
    >>> recommended(gives="embeddings").name
    'own-list-embedding'
    """
    check_model(model)
    one_of("gives", gives, "scores", "embeddings")
    if gives == "embeddings" and model == "joint":
        return mechanisms.OwnListEmbedding()
    if epsilon is None:
        raise ParameterError("epsilon is required (for example epsilon=1); smaller is more private")
    check_epsilon(epsilon)
    if gives == "embeddings":
        return mechanisms.DPInstantEmbedding(epsilon=epsilon, model="public")
    if n_nodes is not None and epsilon >= _ENOUGH_FOR_FLIPPING:
        false_edges = n_nodes / (1 + math.exp(min(epsilon, 700.0)))
        if false_edges <= _FEW_FALSE_EDGES:
            return mechanisms.EdgeFlipping(epsilon=epsilon, model=model)
    if model == "public":
        return mechanisms.DegreePrior(epsilon=epsilon, model=model)
    return mechanisms.TwoHop(epsilon=epsilon)
