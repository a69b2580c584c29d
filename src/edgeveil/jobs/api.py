"""The functions that make or price a release: the only way into the engine.

Python users, the command line, the scikit-learn estimator and the service call these functions
and nothing below them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Unpack

from edgeveil._internal.paper_names import with_paper_names
from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.advice import recommended
from edgeveil.jobs.job import ReleasePrice, prepare, release, release_to
from edgeveil.jobs.naming import SAY_EPSILON, make_by_name
from edgeveil.jobs.request import Options, graph_of
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.base import Mechanism, check_mechanism, check_model
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.own_list import OwnListEmbedding
from edgeveil.results.release import Release

__all__ = [
    "ReleasePrice",
    "embed",
    "known_to",
    "mechanism_for_lists",
    "mechanism_for_scores",
    "prepare",
    "price",
    "rank",
    "release",
    "release_to",
]


def mechanism_for_scores(
    graph: Graph,
    mechanism: Mechanism | str | None,
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
) -> Mechanism:
    """The given mechanism of rankings (or its name), or the recommended one for this graph."""
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(SAY_EPSILON)
        return recommended(epsilon=epsilon, model=model or "joint", n_nodes=graph.n_nodes)
    if isinstance(mechanism, str):
        mechanism = make_by_name(mechanism, epsilon=epsilon, model=model)
    if check_mechanism(mechanism).output != "scores":
        raise ParameterError(f"{mechanism.name} gives {mechanism.output}, which have no ranking")
    refuse_two_values(mechanism, epsilon=epsilon, model=model)
    return mechanism


def mechanism_for_lists(
    graph: Graph,
    mechanism: Mechanism | str | None,
    epsilon: float | None,
    *,
    knows_followers: bool,
) -> Mechanism:
    """The given mechanism of suggestions (or its name), or `Suggest` for this graph."""
    if isinstance(mechanism, str):
        directed, knows = graph.directed or None, knows_followers or None
        mechanism = make_by_name(
            mechanism, epsilon=epsilon, directed=directed, knows_followers=knows
        )
        knows_followers = False  # it is in the mechanism
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(SAY_EPSILON)
        return Suggest(epsilon=epsilon, directed=graph.directed, knows_followers=knows_followers)
    if check_mechanism(mechanism).output != "suggestions":
        raise ParameterError(f"{mechanism.name} gives {mechanism.output}, not lists")
    if knows_followers:
        raise ParameterError("knows_followers is for the default mechanism; give it to yours")
    refuse_two_values(mechanism, epsilon=epsilon)
    return mechanism


@with_paper_names
def rank(
    graph: Graph,
    source: NodeId,
    epsilon: float | None = None,
    *,
    model: Literal["joint", "public"] | None = None,
    mechanism: Mechanism | str | None = None,
    leave_out_source: bool = False,
    leave_out_neighbours: bool = False,
    without: Iterable[NodeId] = (),
    candidates: Iterable[NodeId] | None = None,
    **options: Unpack[Options],
) -> Release:
    """Rank all nodes for one source, privately; ``.top(k)`` gives the first k.

    Leaving nodes out is post-processing: it changes what ``.top`` and ``.ranking`` show, but not
    the scores, the price, or what a ledger stores.

    Parameters
    ----------
    graph : Graph
        The private graph.
    source : id
        The node to rank for.
    epsilon : float
        Privacy loss of the ranking; not needed if `mechanism` is given.
    model : {"joint", "public"}
        Who may see the ranking: only the member at the source (joint, the default), or anyone.
    mechanism : Mechanism or str, optional
        Use this instead of `edgeveil.recommended`. It has its own epsilon and model; if you give
        them here as well, they must be the same. By its name ("two-hop" or "TwoHop") it gets
        `epsilon` and `model` from here.
    leave_out_source : bool
        Do not show the source in its own ranking.
    leave_out_neighbours : bool
        Do not show the source's neighbours. Joint model only: leaving them out reveals them, and
        only the member knows them already.
    without : iterable of ids
        Further nodes to leave out. Like `candidates`, it must not depend on edges of others.
    candidates : iterable of ids, optional
        Show only these nodes.

    Other Parameters
    ----------------
    ledger, label, purpose, operator, noise : optional
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If `leave_out_neighbours` is set in the public model; nothing was charged or drawn.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> rank(graph, 7, epsilon=1.0).top(1)[0][0]
    7
    >>> new = rank(graph, 7, epsilon=1.0, leave_out_source=True, leave_out_neighbours=True)
    >>> 7 in [node for node, score in new.top(50)]
    False
    """
    graph = graph_of(graph)
    chosen = mechanism_for_scores(graph, mechanism, epsilon, model)
    # Look up all ids before the charge: an unknown id must not charge anybody.
    left_out = [
        *without,
        *known_to(graph, chosen, source, itself=leave_out_source, neighbours=leave_out_neighbours),
    ]
    graph.nodes.indices(left_out)
    if candidates is not None:
        candidates = list(candidates)
        graph.nodes.indices(candidates)
    scores = release(graph, chosen, [source], **options)
    if candidates is None and not left_out:
        return scores
    return scores.showing(without=left_out, candidates=candidates)


def check_left_out(model: str | None, *, neighbours: bool) -> None:
    """Refuse (ParameterError) to show a source's neighbours by leaving them out."""
    if neighbours and model == "public":
        raise ParameterError(
            "leaving out the source's neighbours would show them to anyone: it needs model='joint'"
        )


def known_to(
    graph: Graph, mechanism: Mechanism, source: NodeId, *, itself: bool, neighbours: bool
) -> list[NodeId]:
    """The nodes to leave out of a ranking for `source`: itself, its neighbours, or both."""
    check_left_out(mechanism.guarantee(1).model, neighbours=neighbours)
    index = graph.nodes.index(source)
    friends = graph.neighbours(index).tolist() if neighbours else []
    return graph.nodes.take([index] * itself + friends)


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
    if isinstance(mechanism, str):
        mechanism = make_by_name(mechanism, epsilon=epsilon, model=model, dimension=dimension)
        mechanism = for_graph(mechanism, graph)
    if mechanism is None:
        mechanism = for_graph(default_embedding(epsilon, model, dimension), graph)
    elif check_mechanism(mechanism).output != "embeddings":
        raise ParameterError(
            f"{mechanism.name} gives {mechanism.output}; embed() of a release of scores makes "
            "embeddings of them"
        )
    else:
        refuse_two_values(mechanism, epsilon=epsilon, model=model, dimension=dimension)
    return release(graph, mechanism, graph.nodes if sources is None else sources, **options)


def default_embedding(
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
    dimension: int | Literal["nodes"] | None,
) -> Mechanism:
    """The recommended mechanism of embeddings; `for_graph` completes it."""
    check_model(model or "joint")
    if dimension == "nodes" and model == "public":
        raise ParameterError('dimension="nodes" is for the own list, the default mechanism')
    if epsilon is not None and model in (None, "joint"):
        raise ParameterError(
            "an embedding of a member's own list costs nothing: leave epsilon out, or name the "
            "mechanism to charge it for"
        )
    if dimension == "nodes":
        return OwnListEmbedding(hashed=False)
    best = recommended(epsilon=epsilon, model=model or "joint", output="embeddings")
    return best if dimension is None else replace(best, dimension=dimension)


def for_graph(mechanism: Mechanism, graph: Graph) -> Mechanism:
    """A mechanism chosen by name or by default, with what it needs to know of the graph.

    That is public: whether the graph is directed, and the number of nodes.
    """
    if isinstance(mechanism, OwnListEmbedding) and not mechanism.hashed:
        return replace(mechanism, dimension=graph.n_nodes)
    if graph.directed and hasattr(mechanism, "directed"):
        return replace(mechanism, directed=True)
    return mechanism


def price(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None = None,
    *,
    ledger: Ledger | None = None,
    label: str = "",
) -> ReleasePrice:
    """The price of a release. Nothing is charged or drawn.

    The price depends on the mechanism and on the number of sources, both public. With a ledger,
    rows that were charged before are not charged again. A promise that the guarantee rests on is
    not checked here: `edgeveil.release` does that.

    Parameters
    ----------
    graph, mechanism, ledger, label
        As for `edgeveil.release`.
    sources : iterable of ids, optional
        As for `edgeveil.release`; by default everybody.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> from edgeveil.mechanisms import DegreePrior
    >>> graph = social_network(300, average_degree=12).graph
    >>> price(graph, DegreePrior(epsilon=0.5), [7, 8]).guarantee.epsilon
    0.5
    """
    return prepare(graph, mechanism, sources, ledger=ledger, label=label).price


def refuse_two_values(mechanism: Mechanism, **given: Any) -> None:
    """Refuse a parameter whose value here differs from the mechanism's own."""
    for name, value in given.items():
        own = getattr(mechanism, name, mechanism.guarantee(1).model if name == "model" else None)
        if value is not None and own is None:
            raise ParameterError(f"{mechanism.name} has no {name}: leave it out")
        if value is not None and own != value:
            raise ParameterError(
                f"{name} is given twice: {value!r} here and {own!r} by {mechanism.name}; "
                "leave one of them out"
            )
