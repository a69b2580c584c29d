"""`rank`: all nodes in the order of their private scores for one source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Unpack

from edgeveil._internal.paper_names import with_paper_names
from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.choice import mechanism_for_scores
from edgeveil.jobs.job import release
from edgeveil.jobs.request import Options, check_listed, graph_of
from edgeveil.mechanisms.base import Mechanism
from edgeveil.results.release import Release


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
    check_listed("without", without)
    left_out = list(without)
    graph.nodes.indices(left_out)
    if leave_out_source or leave_out_neighbours:
        left_out += known_to(
            graph, chosen, source, itself=leave_out_source, neighbours=leave_out_neighbours
        )
    if candidates is not None:
        check_listed("candidates", candidates)
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
