"""`embed`: vectors of members, each for its member, or of everybody, for anybody to see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Unpack

from edgeveil._internal.paper_names import with_paper_names
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.choice import mechanism_for_embeddings
from edgeveil.jobs.job import release
from edgeveil.jobs.request import Options, graph_of
from edgeveil.mechanisms.base import Mechanism
from edgeveil.results.release import Release


@with_paper_names
def embed(
    graph: Graph,
    sources: Iterable[NodeId] | None = None,
    *,
    epsilon: float | None = None,
    model: Literal["joint", "public"] | None = None,
    dimension: int | Literal["nodes"] | None = None,
    mechanism: Mechanism | str | None = None,
    **options: Unpack[Options],
) -> Release:
    """Embed members, each embedding for its member only (joint model), or for anybody (public).

    By default an embedding holds the member's own friend list and nothing else. The member knows
    that list already, so its price is epsilon = 0. To use more of the graph, name a `mechanism`
    that has a price; docs/embed.md says what that gains. In the public model embeddings cost
    epsilon for all of them together (`edgeveil.mechanisms.Aggregation`).

    Parameters
    ----------
    graph : Graph
        The private graph.
    sources : iterable of ids, optional
        The nodes to embed; all of them by default.
    epsilon : float, optional
        Privacy loss in the public model, or of a `mechanism`; the own list needs no budget.
    model : {"joint", "public"}, optional
        Who may see an embedding: only its member (the default), or anyone.
    dimension : int or "nodes", optional
        Length of an embedding, to which friends are hashed; the default is that of the mechanism
        (1,024 for the own list, 64 in the public model). ``"nodes"`` means no hash: one dimension
        per node, so nothing is lost, but a row has n values. Most of them are 0:
        `Release.to_scipy` returns a sparse matrix. For more rows than fit into memory, see
        `edgeveil.release_to`.
    mechanism : Mechanism or str, optional
        Use this instead of `edgeveil.mechanisms.OwnListEmbedding`. It has its own epsilon and
        dimension; if you give them here as well, they must be the same. By its name
        ("instant-embedding" or "DPInstantEmbedding") it gets them from here.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> vectors = embed(graph)
    >>> vectors.values.shape, vectors.guarantee.brief
    ((300, 1024), 'joint, epsilon = 0')
    >>> public = embed(graph, model="public", epsilon=1.0)
    >>> public.values.shape, public.guarantee.brief
    ((300, 64), 'public, epsilon = 1')
    """
    graph = graph_of(graph)
    chosen = mechanism_for_embeddings(graph, mechanism, epsilon, model, dimension)
    return release(graph, chosen, graph.nodes if sources is None else sources, **options)
