"""`suggest`: the lists of a label's series, if it has one; otherwise lists from the graph."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from edgeveil._internal.checks import check_int
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.estimate.lists import Candidates
from edgeveil.graph.exclusions import Exclude, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.api import mechanism_for_lists
from edgeveil.jobs.job import ReleaseJob, prepare
from edgeveil.jobs.request import Options, graph_of
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.campaign import Current, current_series, had_series, series_campaign
from edgeveil.series.refresh import Series, candidates_in, popularity

_TRIES = 3  # a refresh that ends meanwhile replaces the files that this reads


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
    made = prepare_lists(
        graph, chosen, members, k=k, candidates=candidates, exclude=exclude, **options
    ).run()
    assert isinstance(made, Suggestions)  # of what the mechanism gives
    return made


@dataclass(frozen=True)
class SeriesJob:
    """Lists of a series: members were charged when they joined, and nobody is charged now.

    Attributes
    ----------
    lists : Suggestions
        What `run` gives.
    """

    lists: Suggestions

    def run(self) -> Suggestions:
        """The lists."""
        return self.lists


def prepare_lists(
    graph: Graph,
    mechanism: Mechanism,
    members: Iterable[NodeId] | None = None,
    *,
    k: int | None = None,
    candidates: Iterable[NodeId] | None = None,
    exclude: Exclude | None = None,
    **options: Unpack[Options],
) -> ReleaseJob | SeriesJob:
    """Prepare lists of the label's series, if it has one, and otherwise a release.

    Nothing is charged or drawn. Parameters are those of `suggest`.
    """
    ledger, label = options.get("ledger"), options.get("label", "")
    asked = None if members is None else list(members)
    if ledger is not None and isinstance(mechanism, Suggest):
        found = read_series_lists(
            ledger, label, mechanism, asked, k=k, candidates=candidates, exclude=exclude
        )
        if found is not None:
            return SeriesJob(found)
    elif ledger is not None and had_series(_opened(ledger), label):
        raise LedgerError(
            f"the lists of {label or 'this graph'} are a series: another mechanism needs another "
            "label"
        )
    return prepare(
        graph,
        mechanism,
        graph.nodes if asked is None else asked,
        k=k,
        candidates=candidates,
        exclude=exclude,
        **options,
    )


def read_series_lists(
    ledger: Ledger | str | os.PathLike[str],
    label: str,
    asked: Suggest,
    members: list[NodeId] | None = None,
    *,
    k: int | None = None,
    candidates: Iterable[NodeId] | None = None,
    exclude: Exclude | None = None,
) -> Suggestions | None:
    """The lists of a label's series, as of its last refresh; None if it has no series.

    Raises
    ------
    ParameterError
        If the parameters differ from those of the series.
    BudgetError
        If one of the members is not in the series.
    LedgerError
        If the series has no list yet.
    """
    ledger = _opened(ledger)
    length = 20 if k is None else k
    check_int("k", length, 1, 10_000)
    among = None if candidates is None else list(candidates)
    pairs = None if exclude is None else read_exclusions(exclude)
    for left in reversed(range(_TRIES)):
        now = current_series(ledger, label)
        if now is None:
            if had_series(ledger, label):
                raise LedgerError(
                    f"the series of {label or 'this graph'} has no list yet: it was begun or "
                    "renewed, and not refreshed since. Run edgeveil refresh; nobody was charged"
                )
            return None
        if now.mechanism != asked:
            raise ParameterError(
                f"the lists of {label or 'this graph'} are a series with epsilon "
                f"{now.mechanism.epsilon:g}: use the same parameters, or another label, where "
                "lists are charged separately"
            )
        nodes = now.history.nodes
        nodes.indices([nodes.named(str(v)) for v in among or ()])  # refuses unknown ids
        try:
            wanted = candidates_in(now.history, among, pairs)
            return open_series(now, ledger, label, wanted).suggestions(members, length)
        except LedgerError:
            if not left or now.place.about() == now.about:
                raise
    raise AssertionError  # the last try returns or raises


def _opened(ledger: Ledger | str | os.PathLike[str]) -> Ledger:
    return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)


def open_series(
    now: Current,
    ledger: Ledger,
    label: str,
    among: Candidates | None = None,
) -> Series:
    """The lists of a series as of its last refresh, of these candidates."""
    shared = ledger.shared(series_campaign(now.mechanism, now.history, label, {}))
    if not now.about.state or shared is None or not shared.stored:
        raise LedgerError(
            f"the first refresh of {now.place.path} was interrupted: run the same command again"
        )
    degrees = popularity(shared, now.history.nodes)
    if among is None:
        among = candidates_in(now.history, None, None)
    return Series(now.place, now.history, now.mechanism, degrees, among)
