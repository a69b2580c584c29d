"""`refresh`, the weekly job: check it, price it, merge today's graph, and take the steps.

What is kept between two weeks, and what happens after an interruption: see `edgeveil.series.steps`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np

from edgeveil._internal.checks import check_share
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph.exclusions import Exclude, Exclusion, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.request import (
    Progress,
    candidates_of,
    check_engine,
    check_listed,
    graph_of,
    ledger_of,
    refuse_unknown,
)
from edgeveil.jobs.tasks import Engine, Local
from edgeveil.ledger import Campaign, Ledger
from edgeveil.ledger.generations import SERIES
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.series.campaign import names_of, series_campaign, series_folder, series_to_refresh
from edgeveil.series.copies import check_copies, token_of
from edgeveil.series.history import History, as_date, check_node_list
from edgeveil.series.joining import joining
from edgeveil.series.lost_edges import MOST_LOSS, check_loss
from edgeveil.series.refreshed import Refreshed
from edgeveil.series.rule import WindowRule
from edgeveil.series.state import SeriesFolder
from edgeveil.series.steps import Steps
from edgeveil.series.stored_lists import candidates_in


class RefreshOptions(TypedDict, total=False):
    """Options of a refresh; see `refresh`."""

    label: str
    folder: str | os.PathLike[str] | None
    date: str | date | None
    rule: WindowRule | None
    nodes_from_edges: bool
    candidates: Iterable[NodeId] | None
    exclude: Exclude | None
    most_loss: float
    engine: Engine | None
    progress: Progress | None
    purpose: str
    operator: str


def refresh(
    graph: Graph | str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str],
    epsilon: float,
    knows_followers: bool = False,
    **options: Unpack[RefreshOptions],
) -> Refreshed:
    """Update a series of lists to today's graph; a member is charged once, when it joins.

    The charge is epsilon for all lists of the series together, because each edge between others
    counts in at most one of a member's windows (docs/theory/series.md). Call it once for every
    snapshot, for example every week; if a call is interrupted, repeat it.

    Parameters
    ----------
    graph : Graph, or whatever `edgeveil.suggest` takes
        Today's graph, on today's members.
    ledger : Ledger or path
        The budget to charge.
    epsilon : float
        Privacy loss of the whole series to one member.
    label : str
        The public name of the graph.
    folder : path, optional
        Where to keep history and state; by default beside the ledger's file.
    date : str, date or datetime, optional
        Date of the snapshot; today by default. The same graph on the same day is the same
        snapshot, another graph a new one. Refresh by the calendar: that there are two snapshots of
        one day shows members that the graph had changed.
    rule : WindowRule, optional
        When a member's next window opens; public.
    knows_followers : bool
        Directed graphs: as for `edgeveil.suggest`.
    nodes_from_edges : bool
        Accept a graph that was read without a node list. Its members are those with an edge, so
        the start of somebody's first edge and the end of the last one show exactly in the lists of
        others: the guarantee then says that who appears at all, and when, is public. Needed again
        for every later refresh of the same history.
    candidates, exclude : optional
        Who may be suggested, and whom not to whom, on the lists of the result; as for
        `edgeveil.suggest`. What is drawn and stored does not depend on them.
    most_loss : float
        The share of members or edges of the last snapshot that today's graph may lack, public. A
        file cut short is a normal week otherwise; 1 accepts any graph.
    engine, progress, purpose, operator
        As for `edgeveil.suggest`.

    Raises
    ------
    ParameterError
        If the graph was read without a node list, or the series has other parameters.
    LossError
        If today's graph lacks more than `most_loss`; nothing was merged or charged. This depends
        on the edges: for the curator only.
    LedgerError
        If ledger, history and state do not match: one of them was restored from an older copy.
    """
    job = prepare_refresh(
        graph, ledger=ledger, epsilon=epsilon, knows_followers=knows_followers, **options
    )
    return job.run()


def prepare_refresh(
    graph: Graph | str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str],
    epsilon: float,
    knows_followers: bool = False,
    **options: Unpack[RefreshOptions],
) -> RefreshJob:
    """Check a refresh; nothing is merged, charged or drawn. Parameters as for `refresh`."""
    refuse_unknown(options, RefreshOptions.__optional_keys__)
    today = graph_of(graph)
    settings: Any = {name: value for name, value in options.items() if value is not None}
    if "candidates" in settings:
        check_listed("candidates", settings["candidates"])
        settings["candidates"] = list(settings["candidates"])
    if "exclude" in settings:
        settings["exclude"] = read_exclusions(settings["exclude"])
    return RefreshJob(
        graph=today,
        ledger=ledger_of(ledger),
        mechanism=Suggest(
            epsilon=epsilon, directed=today.directed, knows_followers=knows_followers
        ),
        **settings,
    )


@dataclass(frozen=True, kw_only=True)
class RefreshJob:
    """A refresh that was checked: see its price, then run it."""

    graph: Graph  # today's
    ledger: Ledger
    mechanism: Suggest
    # as in `RefreshOptions`
    label: str = ""
    folder: str | os.PathLike[str] | None = None
    date: str | date | None = None  # of the day on which it runs
    rule: WindowRule | None = None
    nodes_from_edges: bool = False
    candidates: list[NodeId] | None = None
    exclude: list[Exclusion] | None = None
    most_loss: float = MOST_LOSS
    engine: Engine = field(default_factory=Local)
    progress: Progress | None = None
    purpose: str = ""
    operator: str = ""

    def __post_init__(self) -> None:
        nodes = self.graph.nodes
        if nodes.kind == "str" and not nodes.arrays["text"].all():
            raise ParameterError("a member's name must be text without NUL characters")
        check_node_list(self.graph, allowed=self.nodes_from_edges)
        candidates_of(nodes, self.candidates, self.exclude)
        check_share("most_loss", self.most_loss)
        check_engine(self.engine, self.progress)
        series_folder(self.ledger, self.label, self.folder)  # refuses a label that cannot be one
        if self.date is not None:
            as_date(self.date)

    @cached_property
    def price(self) -> RefreshPrice:
        """The price, from public numbers only: of the graph, only the ids are read."""
        with self.ledger.session():
            # First, so that a renewal meanwhile is noticed
            generation = self.ledger.generation(self.label)
            newcomers, n_left_out = 0, 0
            for campaign, members in self._joining():
                if members:
                    split = self.ledger.newcomers(campaign, members)
                    newcomers += len(split.able)
                    n_left_out += len(split.unable)
            return RefreshPrice(
                n_members=self.graph.n_nodes,
                n_newcomers=newcomers,
                n_left_out=n_left_out,
                epsilon=self.mechanism.epsilon,
                least_left=self.ledger.account().left,
                generation=generation,
            )

    def _joining(self) -> list[tuple[Campaign, list[str]]]:
        """Whom a refresh with these members would charge."""
        ledger, missing = self.ledger, dict.fromkeys(names_of(self.graph.nodes), True)
        current = series_to_refresh(ledger, self.label, self.folder, self.mechanism)
        if current is None:
            series = Campaign(
                identity="a new series",
                guarantee=self.mechanism.guarantee,
                label=self.label,
                fingerprint=SERIES,
            )
            return joining(ledger, series, 1, 0, missing)
        place, history, _, manifest = current
        series = series_campaign(self.mechanism, history, self.label, {})
        charged = place.columns(len(history.nodes), manifest).charged
        for node in history.nodes.take(np.flatnonzero(charged)):
            missing.pop(str(node), None)
        pending = place.pending_of(manifest.series)
        number = pending.until if pending else len(history) + 1
        return joining(ledger, series, number, manifest.entry[0], missing)

    def with_progress(self, progress: Progress) -> RefreshJob:
        """The same refresh, at the price that was looked up, which tells what is done."""
        job = replace(self, progress=progress)
        vars(job)["price"] = self.price  # frozen: a cached property is kept there
        return job

    def run(self) -> Refreshed:
        """Merge the graph, charge newcomers, draw what is due; exceptions as for `refresh`."""
        ledger, label = self.ledger, self.label
        place = SeriesFolder(series_folder(ledger, label, self.folder))
        with place.writing(), ledger.session():
            generation = ledger.generation(label)
            if "price" in vars(self) and generation != self.price.generation:
                raise LedgerError(
                    f"the series of {label or 'this graph'} was renewed since this refresh was "
                    "priced: nothing was merged or charged; look at the price again"
                )
            current = series_to_refresh(ledger, label, place.path, self.mechanism)
            history = current.history if current else place.history()
            history = history or History.create(place.path / "history")
            series = current.manifest.series if current else None
            check_copies(ledger, place, history, label, series)
            check_node_list(history.graph, allowed=self.nodes_from_edges)
            check_loss(history, self.graph, self.most_loss)
            finished, pending = None, place.pending_of(series) if series else None
            if pending is not None:
                # First finish the interrupted refresh: the history has what it needs.
                finished = self._steps(place, history, generation, pending.until).run()
            date = self.date or datetime.now(UTC).date().isoformat()
            number = history.add(self.graph, date=date, again=True, nodes_from_edges=True)
            if finished is not None and finished.snapshot == number:
                return finished
            if current is None and number > 1:
                # Edges that have ended are former friends of the new series. Nobody was charged
                # yet, so this may be done again, with a later graph as well.
                history.reset_first_seen()
            return self._steps(place, history, generation, number).run()

    def _steps(self, place: SeriesFolder, history: History, generation: int, number: int) -> Steps:
        """The steps that bring the series up to a snapshot of its history."""
        note = {"purpose": self.purpose, "operator": self.operator}
        note = {name: words for name, words in note.items() if words}
        # In the entry of the degrees: the snapshot they belong to
        note["first"] = token_of(history, number)
        series = series_campaign(self.mechanism, history, self.label, note)
        return Steps(
            number=number,
            history=history,
            place=place,
            ledger=self.ledger,
            series=replace(series, generation=generation),  # a renewal meanwhile is refused
            mechanism=self.mechanism,
            rule=self.rule or WindowRule.for_epsilon(self.mechanism.epsilon),
            candidates=candidates_in(history, self.candidates, self.exclude),
            engine=self.engine,
            progress=self.progress,
        )


@dataclass(frozen=True)
class RefreshPrice:
    """The price of a refresh.

    Attributes
    ----------
    n_members : int
        Members in today's graph.
    n_newcomers : int
        Members who would be charged now, for all their future lists; also those who were forgotten
        and are back.
    n_left_out : int
        Members whose budget does not allow the charge.
    epsilon : float
        Price for each newcomer.
    least_left : float
        Lowest remaining budget of any member, before the charge.
    generation : int
        Of the label in the ledger. After a renewal, a job that was priced before it is refused.
    """

    n_members: int
    n_newcomers: int
    n_left_out: int
    epsilon: float
    least_left: float
    generation: int
