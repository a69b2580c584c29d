"""The two calls most people want: a private ranking, private embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from edgeveil.advice import recommended
from edgeveil.engine.local import release
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.privacy.ledger import Ledger
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Release

__all__ = ["embed", "rank"]


def rank(
    graph: Graph,
    source: NodeId,
    epsilon: float,
    *,
    model: Literal["joint", "public"] = "joint",
    mechanism: Mechanism | None = None,
    ledger: Ledger | None = None,
    nonce: str = "",
    noise: NoiseSource | None = None,
) -> Release:
    """Rank all nodes for one source, privately; ``.top(k)`` gives the first k.

    Parameters
    ----------
    graph : Graph
        The private graph.
    source : id
        The node to rank for.
    epsilon : float
        Privacy loss of the ranking.
    model : {"joint", "public"}
        Who may see it: the source's owner alone, or anyone.
    mechanism : Mechanism, optional
        What to use instead of `edgeveil.recommended`; it brings its own epsilon.
    ledger, nonce, noise
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> ranking = rank(social_network(300, average_degree=12).graph, 7, epsilon=1.0)
    >>> ranking.top(1)[0][0]
    7
    """
    chosen = mechanism or recommended(epsilon=epsilon, model=model)
    return release(graph, chosen, [source], ledger=ledger, nonce=nonce, noise=noise)


def embed(
    graph: Graph,
    sources: Iterable[NodeId] | None = None,
    *,
    epsilon: float,
    dimension: int = 256,
    mechanism: Mechanism | None = None,
    ledger: Ledger | None = None,
    nonce: str = "",
    noise: NoiseSource | None = None,
) -> Release:
    """Embed nodes privately, each for its own owner (joint model).

    Parameters
    ----------
    graph : Graph
        The private graph.
    sources : iterable of ids, optional
        Which nodes; all if left out.
    epsilon : float
        Privacy loss of one embedding.
    dimension : int
        Length of an embedding.
    mechanism : Mechanism, optional
        What to use instead of `edgeveil.recommended`; it brings its own parameters.
    ledger, nonce, noise
        As for `edgeveil.release`.
    """
    chosen = mechanism
    if chosen is None:
        best = recommended(epsilon=epsilon, gives="embeddings")
        # Every mechanism is a dataclass, which its protocol cannot say.
        chosen = replace(best, dimension=dimension)  # type: ignore[type-var]
    wanted = graph.nodes if sources is None else sources
    return release(graph, chosen, wanted, ledger=ledger, nonce=nonce, noise=noise)
