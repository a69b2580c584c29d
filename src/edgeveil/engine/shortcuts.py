"""The two calls most people want: a private ranking, private embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from edgeveil.advice import recommended
from edgeveil.engine.making import Progress, release
from edgeveil.engine.tasks import Engine
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Release

__all__ = ["embed", "known_to", "rank"]


def rank(
    graph: Graph,
    source: NodeId,
    epsilon: float,
    *,
    model: Literal["joint", "public"] = "joint",
    mechanism: Mechanism | None = None,
    leave_out_source: bool = False,
    leave_out_neighbours: bool = False,
    without: Iterable[NodeId] = (),
    candidates: Iterable[NodeId] | None = None,
    ledger: Ledger | None = None,
    nonce: str = "",
    noise: NoiseSource | None = None,
) -> Release:
    """Rank all nodes for one source, privately; ``.top(k)`` gives the first k.

    Leaving nodes out changes what ``.top`` and ``.ranking`` choose from, afterwards: neither
    the scores nor the price nor what a ledger keeps.

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
    leave_out_source : bool
        Do not recommend the source to itself.
    leave_out_neighbours : bool
        Do not recommend those whom the source knows already. Joint model only: the owner of
        the source knows this list, nobody else may see it.
    without : iterable of ids
        Further nodes to leave out. Like `candidates` it must not depend on edges of others.
    candidates : iterable of ids, optional
        Only these nodes.
    ledger, nonce, noise
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If `leave_out_neighbours` is asked for in the public model; nothing was drawn.

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> rank(graph, 7, epsilon=1.0).top(1)[0][0]
    7
    >>> new = rank(graph, 7, epsilon=1.0, leave_out_source=True, leave_out_neighbours=True)
    >>> 7 in [node for node, score in new.top(50)]
    False
    """
    chosen = mechanism or recommended(epsilon=epsilon, model=model, n_nodes=graph.n_nodes)
    if chosen.columns != "nodes":
        raise ParameterError(f"{chosen.name} gives embeddings, which have no ranking")
    # All ids are looked up before anything is charged: an unknown node costs nothing.
    left_out = [
        *without,
        *known_to(graph, chosen, source, itself=leave_out_source, neighbours=leave_out_neighbours),
    ]
    graph.nodes.indices(left_out)
    if candidates is not None:
        candidates = list(candidates)
        graph.nodes.indices(candidates)
    made = release(graph, chosen, [source], ledger=ledger, nonce=nonce, noise=noise)
    if candidates is None and not left_out:
        return made
    return made.showing(without=left_out, candidates=candidates)


def known_to(
    graph: Graph, mechanism: Mechanism, source: NodeId, *, itself: bool, neighbours: bool
) -> list[NodeId]:
    """Whom a ranking for `source` need not show: the source, and those whom it knows already.

    Raises
    ------
    ParameterError
        If the neighbours are asked for and anyone may see what the mechanism gives.
    """
    if neighbours and mechanism.guarantee(1).model == "public":
        raise ParameterError(
            "leaving out the source's neighbours would show them to anyone: it needs model='joint'"
        )
    index = graph.nodes.index(source)
    known = graph.neighbours(index).tolist() if neighbours else []
    return graph.nodes.take([index] * itself + known)


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
    engine: Engine | None = None,
    progress: Progress | None = None,
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
    ledger, nonce, noise, engine, progress
        As for `edgeveil.release`.
    """
    chosen = mechanism
    if chosen is None:
        best = recommended(epsilon=epsilon, gives="embeddings")
        # Every mechanism is a dataclass, which its protocol cannot say.
        chosen = replace(best, dimension=dimension)  # type: ignore[type-var]
    wanted = graph.nodes if sources is None else sources
    return release(
        graph,
        chosen,
        wanted,
        ledger=ledger,
        nonce=nonce,
        noise=noise,
        engine=engine,
        progress=progress,
    )
