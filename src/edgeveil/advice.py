"""Which mechanism to take: a rule that sees epsilon and the model, never the data."""

from __future__ import annotations

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

_WHEN: dict[type[Mechanism], str] = {
    TwoHop: "the default for rankings in the joint model: from epsilon 0.4 on it measures the "
    "second hop, below it is the degree prior",
    DegreePrior: "many recipients who may collude, epsilon below 0.4, or the public model: one "
    "release for everybody",
    TwoHopEmbedding: "the default for embeddings in the joint model",
    DPPushFlowCap: "to compare with the paper, or where a bound on the L1 error is wanted",
    DPForwardCap: "as push-flow-cap, with nodes' own values uncut",
    DPPushFlow: "every possible graph is known to have a high minimum degree",
    DPSparsePPR: "a short list of large scores is all that is needed",
    DPInstantEmbedding: "to compare with the paper's embeddings",
    DPEmbeddingSparse: "to compare with the paper's sparse embeddings",
    EdgeFlipping: "small graphs or large epsilon, where any algorithm may run on the result",
    GraphDiffusion: "to compare with noisy diffusion",
    OwnNeighbours: "no budget at all: the floor that everything else has to beat",
    NonPrivate: "the truth, for the curator only",
}


def recommended(
    *,
    epsilon: float,
    model: Literal["joint", "public"] = "joint",
    gives: Literal["scores", "embeddings"] = "scores",
) -> Mechanism:
    """The mechanism that is best at this epsilon, by a rule that does not see the data.

    Joint model: two-hop, whose split of the budget is the degree prior alone up to
    epsilon = 0.4. Public model: the degree prior, the only one that keeps its price for any
    number of rows. `when_to_use` says why in words.

    Parameters
    ----------
    epsilon : float
        Privacy loss.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    gives : {"scores", "embeddings"}
        What is wanted.

    Examples
    --------
    >>> recommended(epsilon=1).name
    'two-hop'
    """
    check_epsilon(epsilon)
    check_model(model)
    if gives == "embeddings":
        if model == "public":
            return DPInstantEmbedding(epsilon=epsilon, model="public")
        return TwoHopEmbedding(epsilon=epsilon)
    if gives != "scores":
        raise ParameterError(f"gives must be 'scores' or 'embeddings', got {gives!r}")
    return (
        TwoHop(epsilon=epsilon) if model == "joint" else DegreePrior(epsilon=epsilon, model=model)
    )


def when_to_use(mechanism: Mechanism | type[Mechanism]) -> str:
    """When a mechanism is the right one, in words."""
    kind = mechanism if isinstance(mechanism, type) else type(mechanism)
    return _WHEN[kind]
