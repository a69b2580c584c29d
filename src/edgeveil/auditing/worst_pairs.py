"""The pair of neighbouring graphs on which a mechanism has most to hide, as far as is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeveil.auditing.search import anneal
from edgeveil.errors import PromiseError
from edgeveil.mechanisms.base import HasHardPairs, Mechanism
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, single_pair, two_hubs
from edgeveil.mechanisms.run import exact_loss

__all__ = ["loss_on", "loss_share", "pairs_for", "worst_pair"]

# Below this share of the claim nothing is stored for these parameters: search.
_GOOD_ENOUGH = 0.6
_AS_GOOD = 0.99


def pairs_for(mechanism: Mechanism) -> Iterator[Pair]:
    """The pairs that the mechanism names, or else all shapes there are."""
    if isinstance(mechanism, HasHardPairs):
        yield from mechanism.hard_pairs()
        return
    model = mechanism.guarantee(1).model
    yield from capped_flow_pairs(model)
    yield single_pair(at_source=model == "public")
    yield two_hubs(1, 4)


def loss_on(mechanism: Mechanism, pair: Pair) -> float:
    """The exact loss of the noised numbers on a pair; 0 where the pair breaks a promise."""
    try:
        return exact_loss(mechanism, pair)
    except PromiseError:
        return 0.0


def loss_share(mechanism: Mechanism, pair: Pair) -> float:
    """Share of the claimed epsilon that is used on a pair; ``inf`` where none is claimed."""
    claimed, loss = mechanism.guarantee(1).epsilon, loss_on(mechanism, pair)
    if claimed == 0:
        return np.inf if loss else 0.0
    return loss / claimed


def worst_pair(mechanism: Mechanism, *, steps: int = 400) -> Pair:
    """The pair on which an audit of this mechanism has most to see.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism; what it noises is compared with what it claims.
    steps : int
        Length of the search that follows if no stored pair uses 60 % of the claim.
    """
    stored = list(pairs_for(mechanism))
    shares = [loss_share(mechanism, pair) for pair in stored]
    share = max(shares)
    # Of pairs that are as good the first: mechanisms name first what shows in their rows.
    pair = next(p for p, s in zip(stored, shares, strict=True) if not s < _AS_GOOD * share)
    if 0 < share < _GOOD_ENOUGH:
        pair, _ = anneal(
            lambda candidate: loss_share(mechanism, candidate),
            n=pair.graph.n_nodes,
            model=mechanism.guarantee(1).model,
            seed=0,
            steps=steps,
            start=pair,
        )
    return pair
