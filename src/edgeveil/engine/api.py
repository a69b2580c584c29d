"""The calls that make a release or give its price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from edgeveil.advice import recommended
from edgeveil.engine.making import release, release_to
from edgeveil.engine.question import Options, ask, graph_of
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger, Price
from edgeveil.mechanisms.base import Mechanism, check_mechanism
from edgeveil.mechanisms.own_list import OwnListEmbedding
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.releases import Release

__all__ = [
    "ReleasePrice",
    "embed",
    "known_to",
    "mechanism_for_lists",
    "price",
    "rank",
    "release",
    "release_to",
]

_SAY_EPSILON = "epsilon is required (for example epsilon=1); smaller is more private"


def mechanism_for_lists(
    graph: Graph,
    mechanism: Mechanism | None,
    epsilon: float | None,
    *,
    knows_followers: bool,
) -> Mechanism:
    """The mechanism of suggestions that was named, or `Suggest` for this graph."""
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(_SAY_EPSILON)
        return Suggest(epsilon=epsilon, directed=graph.directed, knows_followers=knows_followers)
    if check_mechanism(mechanism).gives != "suggestions":
        raise ParameterError(f"{mechanism.name} gives {mechanism.gives}, no lists")
    if knows_followers:
        raise ParameterError("knows_followers is for the default mechanism; give it to yours")
    _refuse_two_values(mechanism, epsilon=epsilon)
    return mechanism


def rank(
    graph: Graph,
    source: NodeId,
    epsilon: float | None = None,
    *,
    model: Literal["joint", "public"] | None = None,
    mechanism: Mechanism | None = None,
    leave_out_source: bool = False,
    leave_out_neighbours: bool = False,
    without: Iterable[NodeId] = (),
    candidates: Iterable[NodeId] | None = None,
    **how: Unpack[Options],
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
        Privacy loss of the ranking; may be left out if the mechanism brings it.
    model : {"joint", "public"}
        Who may see it: the member alone whom the source stands for (the default), or anyone.
    mechanism : Mechanism, optional
        What to use instead of `edgeveil.recommended`. It brings its own epsilon and model; if
        they are given here as well they must be the same.
    leave_out_source : bool
        Do not recommend the source to itself.
    leave_out_neighbours : bool
        Do not recommend those whom the source knows already. Joint model only: the member
        knows this list, nobody else may see it.
    without : iterable of ids
        Further nodes to leave out. Like `candidates` it must not depend on edges of others.
    candidates : iterable of ids, optional
        Only these nodes.

    Other Parameters
    ----------------
    ledger, label, purpose, operator, noise : optional
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
    graph = graph_of(graph)
    chosen = _chosen(mechanism, epsilon, model, n_nodes=graph.n_nodes)
    if chosen.gives != "scores":
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
    made = release(graph, chosen, [source], **how)
    if candidates is None and not left_out:
        return made
    return made.showing(without=left_out, candidates=candidates)


def known_to(
    graph: Graph, mechanism: Mechanism, source: NodeId, *, itself: bool, neighbours: bool
) -> list[NodeId]:
    """Nodes to leave out of a ranking for `source`: itself, its neighbours, as wanted."""
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
    epsilon: float | None = None,
    dimension: int | Literal["nodes"] | None = None,
    mechanism: Mechanism | None = None,
    **how: Unpack[Options],
) -> Release:
    """Embed members, each for itself alone (joint model): by default its own list, at no price.

    A member knows its own list, so an embedding of that list costs no budget: epsilon is 0. For
    an embedding that uses a budget name a `mechanism`; docs/choosing.md says what it gains.

    Parameters
    ----------
    graph : Graph
        The private graph.
    sources : iterable of ids, optional
        Which nodes; all if left out.
    epsilon : float, optional
        Only together with a mechanism that has the same: the own list takes none.
    dimension : int or "nodes", optional
        Length of an embedding; by default the mechanism's own, 1,024. Friends are hashed to so
        many dimensions; ``"nodes"``: no hash, one dimension for each node, which loses nothing and
        takes room for n numbers a row. Most values are 0: `Release.to_scipy` gives a sparse
        matrix. For more rows than fit into memory, see `edgeveil.engine.release_to`.
    mechanism : Mechanism, optional
        What to use instead of `edgeveil.mechanisms.OwnListEmbedding`. It brings its own epsilon
        and dimension; if they are given here as well they must be the same.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> vectors = embed(graph)
    >>> vectors.values.shape, vectors.guarantee.brief
    ((300, 1024), 'joint, epsilon = 0')
    """
    graph = graph_of(graph)
    if mechanism is None:
        if epsilon is not None:
            raise ParameterError(
                "an embedding of a member's own list costs nothing: leave epsilon out, or name the "
                "mechanism that is to use it (mechanism=)"
            )
        mechanism = own_list(graph, dimension)
    elif check_mechanism(mechanism).gives != "embeddings":
        raise ParameterError(
            f"{mechanism.name} gives {mechanism.gives}; edgeveil.postprocess.embed makes "
            "embeddings of scores"
        )
    else:
        _refuse_two_values(mechanism, epsilon=epsilon, dimension=dimension)
    return release(graph, mechanism, graph.nodes if sources is None else sources, **how)


def own_list(graph: Graph, dimension: int | Literal["nodes"] | None) -> OwnListEmbedding:
    """The embedding of the own list with this dimension; "nodes" means without a hash."""
    if dimension is None:
        return OwnListEmbedding()
    if dimension == "nodes":
        return OwnListEmbedding.unhashed(graph.n_nodes)
    return OwnListEmbedding(dimension=dimension)


@dataclass(frozen=True, kw_only=True)
class ReleasePrice:
    """The price of a release.

    Attributes
    ----------
    guarantee : Guarantee
        What it would protect: epsilon for each member, and for all who combine their lists.
    in_ledger : Price or None
        What a ledger would charge, what it was charged before, what is left, and how many more
        like it that is.
    """

    guarantee: Guarantee
    in_ledger: Price | None


def price(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    label: str = "",
) -> ReleasePrice:
    """The price of a release. Nothing is charged or drawn.

    The price depends on the mechanism and the number of sources, both public, and on which rows
    were charged before, by the ledger. A promise about the graph is not checked.

    Parameters
    ----------
    graph, mechanism, sources, ledger, label
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> from edgeveil.mechanisms import DegreePrior
    >>> graph = social_network(300, average_degree=12).graph
    >>> price(graph, DegreePrior(epsilon=0.5), [7, 8]).guarantee.epsilon
    0.5
    """
    how: Options = {"ledger": ledger, "label": label}
    question = ask(graph, mechanism, sources, how, only_price=True)
    found = None if question.ledger is None else question.price()
    return ReleasePrice(guarantee=question.guarantee, in_ledger=found)


def _chosen(
    mechanism: Mechanism | None,
    epsilon: float | None,
    model: Literal["joint", "public"] | None,
    *,
    n_nodes: int,
) -> Mechanism:
    """The mechanism of scores that was named, or the recommended one."""
    if mechanism is None:
        if epsilon is None:
            raise ParameterError(_SAY_EPSILON)
        return recommended(epsilon=epsilon, model=model or "joint", n_nodes=n_nodes)
    check_mechanism(mechanism)
    _refuse_two_values(mechanism, epsilon=epsilon, model=model)
    return mechanism


def _refuse_two_values(mechanism: Mechanism, **given: Any) -> None:
    """Refuse a parameter that is given here and, with another value, by the mechanism."""
    for name, value in given.items():
        its = getattr(mechanism, name, mechanism.guarantee(1).model if name == "model" else None)
        if value is not None and its is None:
            raise ParameterError(f"{mechanism.name} has no {name}: leave it out")
        if value is not None and its != value:
            raise ParameterError(
                f"{name} is given twice: {value!r} here and {its!r} by {mechanism.name}; "
                "leave one of them out"
            )
