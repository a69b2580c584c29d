"""`suggest`: the lists of a label's series, if it has one; otherwise lists from the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

import numpy as np

from edgeveil.errors import LedgerError
from edgeveil.graph.exclusions import Exclude, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.choice import mechanism_for_lists
from edgeveil.jobs.job import ReleaseJob, prepare
from edgeveil.jobs.request import Options, check_listed, check_options, graph_of
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.campaign import had_series
from edgeveil.series.stored_lists import read_series_lists


def suggest(
    graph: Graph,
    members: NodeId | Iterable[NodeId] | None = None,
    epsilon: float | None = None,
    *,
    k: int | None = None,
    candidates: Iterable[NodeId] | None = None,
    exclude: Exclude | None = None,
    knows_followers: bool = False,
    mechanism: Mechanism | str | None = None,
    **options: Unpack[Options],
) -> Suggestions:
    """Suggest to each member people it may know and is not linked to yet, privately.

    Show each list only to the member it was made for (joint model). Its privacy loss is at most
    epsilon for every edge that does not touch the member. In a directed graph a list suggests whom
    to follow, and every edge that does not start at the member is protected.

    If the label has a series in the ledger (`edgeveil.refresh`), the lists are those of its last
    refresh, and nobody is charged. If there is no list yet, for example after a renewal, that is
    an error.

    Parameters
    ----------
    graph : Graph
        The private graph; directed if it was read with ``directed="keep"``.
    members : id or iterable of ids, optional
        The members to make lists for; everybody by default.
    epsilon : float
        Privacy loss of one list; not needed if `mechanism` is given.
    k : int, optional
        Length of a list; 20 by default. With a ledger, another k charges nothing.
    candidates : iterable of ids, optional
        Suggest only these nodes. They must not depend on edges. With a ledger, other candidates
        charge nothing.
    exclude : iterable of pairs, or path, optional
        Pairs (member, other) who are not suggested to one another; (member, other, "one") keeps
        only the other off the member's list. Or a file of them (``member,other,direction``). They
        must not depend on edges of others. Applied whenever lists are made, also of what is
        stored, and charges nothing. Pairs with an id that no node has are without effect.
    knows_followers : bool
        Directed graphs: assume that every member knows who follows it. Edges to a member are then
        not protected from it, and its followers may rank higher.
    mechanism : Mechanism or str, optional
        Use this instead of `edgeveil.mechanisms.Suggest`; it has its own parameters. By its name
        it gets `epsilon` from here.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> lists = suggest(graph, [7, 8], epsilon=1.0, k=5)
    >>> len(lists.for_member(7)), lists.table().columns[:3]
    (5, ['member', 'rank', 'node'])
    """
    graph = graph_of(graph)
    chosen = mechanism_for_lists(graph, mechanism, epsilon, knows_followers=knows_followers)
    if members is not None:
        single = isinstance(members, str | int | np.integer)
        members = [members] if single else list(members)  # type: ignore[list-item, arg-type]
        graph.nodes.indices(members)
    lists = prepare_lists(
        graph, chosen, members, k=k, candidates=candidates, exclude=exclude, **options
    )
    suggestions = lists.run() if isinstance(lists, ReleaseJob) else lists
    assert isinstance(suggestions, Suggestions)  # of what the mechanism gives
    return suggestions


def prepare_lists(
    graph: Graph,
    mechanism: Mechanism,
    members: Iterable[NodeId] | None = None,
    *,
    k: int | None = None,
    candidates: Iterable[NodeId] | None = None,
    exclude: Exclude | None = None,
    **options: Unpack[Options],
) -> ReleaseJob | Suggestions:
    """The lists of the label's series, if it has one; otherwise a release of lists, to be run.

    Nothing is charged or drawn. Parameters are those of `suggest`.
    """
    given = check_options(options)
    ledger, label = given.get("ledger"), given.get("label", "")
    # Each is used twice: an iterator would be empty the second time
    listed = None if members is None else list(members)
    if candidates is not None:
        check_listed("candidates", candidates)
        candidates = list(candidates)
    exclude = None if exclude is None else read_exclusions(exclude)
    if ledger is not None and isinstance(mechanism, Suggest):
        from_series = read_series_lists(
            ledger, label, mechanism, listed, k=k, candidates=candidates, exclude=exclude
        )
        if from_series is not None:
            if given.get("generation") not in (None, ledger.generation(label)):
                raise LedgerError(f"the series of {label or 'this graph'} is of another generation")
            return from_series
    elif ledger is not None and had_series(ledger, label):
        raise LedgerError(
            f"the lists of {label or 'this graph'} are a series: another mechanism needs another "
            "label"
        )
    return prepare(
        graph,
        mechanism,
        graph.nodes if listed is None else listed,
        k=k,
        candidates=candidates,
        exclude=exclude,
        **given,
    )
