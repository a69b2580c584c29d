"""Which mechanism to take: a rule that sees epsilon, the model and n, never an edge."""

from __future__ import annotations

import math
from typing import Literal

from edgeveil.errors import ParameterError
from edgeveil.mechanisms import (
    DegreePrior,
    DPEmbeddingSparse,
    DPForwardCap,
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    DPSparsePPR,
    EdgeFlipping,
    GraphDiffusion,
    Mechanism,
    NonPrivate,
    OwnNeighbours,
    TwoHop,
    TwoHopEmbedding,
)
from edgeveil.mechanisms.protocol import check_model
from edgeveil.privacy.epsilon import check_epsilon

__all__ = ["recommended", "when_to_use"]

_FEW_FALSE_EDGES = 4.0
_ENOUGH_FOR_FLIPPING = 4.0  # epsilon; below, few false edges mean a tiny graph

_WHEN: dict[type[Mechanism], str] = {
    TwoHop: "the default for rankings in the joint model: from epsilon 0.4 on it measures the "
    "second hop, below it is the degree prior",
    DegreePrior: "many recipients who may collude, epsilon below 0.4, or the public model: one "
    "release for everybody",
    TwoHopEmbedding: "the default for embeddings in the joint model; up to epsilon 0.4 it is the "
    "own list alone, which costs nothing",
    DPPushFlowCap: "to compare with the paper, or where a bound on the L1 error is wanted",
    DPForwardCap: "as push-flow-cap, with nodes' own values uncut",
    DPPushFlow: "every possible graph is known to have a high minimum degree",
    DPSparsePPR: "a short list of large scores is all that is needed",
    DPInstantEmbedding: "to compare with the paper's embeddings, or a few public ones; n public "
    "ones cost n times epsilon: for many, hash the scores of edge-flipping",
    DPEmbeddingSparse: "to compare with the paper's sparse embeddings",
    EdgeFlipping: "the default for rankings where epsilon is large for the graph's size: it "
    "adds n / (1 + e^epsilon) false edges to a node, and beats the others where that is at most 4",
    GraphDiffusion: "to compare with noisy diffusion",
    OwnNeighbours: "no budget at all: the floor that everything else has to beat",
    NonPrivate: "the truth, for the curator only",
}


def recommended(
    *,
    epsilon: float,
    model: Literal["joint", "public"] = "joint",
    gives: Literal["scores", "embeddings"] = "scores",
    n_nodes: int | None = None,
) -> Mechanism:
    """The mechanism that is best at this epsilon, by a rule that does not see the data.

    Joint model: two-hop, whose split of the budget is the degree prior alone up to
    epsilon = 0.4. Public model: the degree prior, the only other one that keeps its price for
    any number of rows. In both, edge flipping if epsilon is at least 4 and flipping adds at
    most 4 false edges to a node, n / (1 + e^epsilon) <= 4: few beside the true ones, while
    two-hop gains little from a larger epsilon. On all generated networks that were tried, of
    60 to 30,000 nodes with average degrees of 8 to 160, edge flipping finds more of the
    nearest nodes from there on. `when_to_use` says why in words.

    Embeddings: two-hop-embedding, and instant-embedding in the public model, **where every row
    costs epsilon**: it is for a few rows. For many, release ``EdgeFlipping(model="public")`` and
    hash the scores by `edgeveil.postprocess.embed`: epsilon in all, useful under the rule above.

    Parameters
    ----------
    epsilon : float
        Privacy loss.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
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
    """
    check_epsilon(epsilon)
    check_model(model)
    if gives == "embeddings":
        if model == "public":
            return DPInstantEmbedding(epsilon=epsilon, model="public")
        return TwoHopEmbedding(epsilon=epsilon)
    if gives != "scores":
        raise ParameterError(f"gives must be 'scores' or 'embeddings', got {gives!r}")
    if n_nodes is not None and epsilon >= _ENOUGH_FOR_FLIPPING:
        false_edges = n_nodes / (1 + math.exp(min(epsilon, 700.0)))
        if false_edges <= _FEW_FALSE_EDGES:
            return EdgeFlipping(epsilon=epsilon, model=model)
    if model == "public":
        return DegreePrior(epsilon=epsilon, model=model)
    return TwoHop(epsilon=epsilon)


def when_to_use(mechanism: Mechanism | type[Mechanism]) -> str:
    """When a mechanism is the right one, in words."""
    kind = mechanism if isinstance(mechanism, type) else type(mechanism)
    return _WHEN[kind]
