"""`refresh`, the weekly job: merge the snapshot, charge newcomers, draw due windows, return lists.

`prepare_refresh` checks, and prices; `RefreshJob.run` takes these steps, in an order that makes a
crash at any point harmless:

    history.add                 merge the snapshot, atomically
    history.reset_first_seen    if a series starts: forget when edges that have ended were seen
    pending.json                record which snapshot is being worked on
    ledger.charge               charge newcomers for the series; record windows at price 0
    noise                       draw it from the batches' secrets; write the new state
    series.json                 commit the new state
    ledger: stored              erase the secrets

Until the new state is committed, everything after the charge is repeated from the same secrets, so
a window has only one outcome. A window that is in the ledger is never drawn again with another
secret: its batch names the snapshot, and each member has one row in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_share
from edgeveil._internal.words import counted
from edgeveil.errors import BudgetError, LedgerError, ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.exclusions import Exclude, Exclusion, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.drawing import draw_charged, stored_shared
from edgeveil.jobs.request import Progress, ReleaseRequest, candidates_of, graph_of, ledger_of
from edgeveil.jobs.tasks import Engine, Local, Task
from edgeveil.ledger import Batch, Campaign, Ledger
from edgeveil.ledger.generations import SERIES
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.privacy.statistic import digest_of
from edgeveil.results.nouns import Nouns
from edgeveil.results.release_folder import ReleaseFolder
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.campaign import (
    erase_secrets,
    names_of,
    no_charge,
    series_campaign,
    series_folder,
    series_to_refresh,
    windows_of,
)
from edgeveil.series.copies import check_copies, check_folder, note_work, token_of
from edgeveil.series.history import History, as_date, check_node_list
from edgeveil.series.joining import charge, joining
from edgeveil.series.lost_edges import MOST_LOSS, check_loss
from edgeveil.series.rule import WindowRule
from edgeveil.series.state import Columns, SeriesFolder, SeriesManifest
from edgeveil.series.stored_lists import (
    StoredLists,
    candidates_in,
    popularity,
    released_degrees,
)
from edgeveil.series.windows import Drawn, next_window, open_windows

Mask = npt.NDArray[np.bool_]


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
    today = graph_of(graph)
    settings: Any = {name: value for name, value in options.items() if value is not None}
    if "candidates" in settings:
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

    def changed(self, **changes: Any) -> RefreshJob:
        """The same refresh at the price that was looked up, with other engine or progress."""
        job = replace(self, **changes)
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
            history = current.history if current else _history(place.path / "history")
            check_folder(ledger, place, history, label)
            pending = None
            if current is not None:
                check_copies(ledger, place, history, current.manifest.series)
                pending = place.pending_of(current.manifest.series)
            check_node_list(history.graph, allowed=self.nodes_from_edges)
            check_loss(history, self.graph, self.most_loss)
            of_series, finished = (self, place, history, generation), None
            if pending is not None:
                # First finish the interrupted refresh: the history has what it needs.
                finished = _Refresh(*of_series, pending.until).run()
            date = self.date or datetime.now(UTC).date().isoformat()
            number = history.add(self.graph, date=date, again=True, nodes_from_edges=True)
            if finished is not None and finished.snapshot == number:
                return finished
            if current is None and number > 1:
                # Nobody was charged yet, so this may be done again, with a later graph as well.
                history.reset_first_seen()
            return _Refresh(*of_series, number).run()


def _history(path: Path) -> History:
    return History.open(path) if (path / "history.json").exists() else History.create(path)


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


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did, and the lists of everybody in the series.

    Attributes
    ----------
    snapshot : int
        The snapshot that the lists are up to date with.
    n_lists, n_newcomers, n_windows, n_left_out : int
        Members with lists; members charged now; windows opened now (this count depends on edges:
        for the curator only); and members whose budget does not allow a series.
    price : float
        What each newcomer was charged: epsilon.
    least_left : float
        Lowest remaining budget of any member.
    """

    snapshot: int
    n_lists: int
    n_newcomers: int
    n_windows: int
    n_left_out: int
    price: float
    least_left: float
    _lists: StoredLists

    @property
    def summary(self) -> str:
        """Three sentences for the curator's log: lists, charges and windows, remaining budget.

        For the curator only: the number of windows depends on how many friends members have.
        """
        return self.summary_in(None)

    def summary_in(self, words: Nouns | str | None) -> str:
        """The same three sentences with other nouns; see `Suggestions.in_words`."""
        nouns, left_out = Nouns.of(words), ""
        if self.n_left_out:
            left_out = f"; {nouns.counted_members(self.n_left_out, 'were')} left out, because "
            left_out += "their budget does not allow it"
        joined = "Nobody was charged"
        if self.n_newcomers:
            joined = f"{nouns.counted_members(self.n_newcomers)} joined the series now, charged "
            joined += f"{self.price:g} each for all their future lists"
        windows = counted(self.n_windows, "window", "were")
        have = nouns.counted_members(self.n_lists, "have")
        return (
            f"Snapshot {self.snapshot}: {have} lists{left_out}. "
            f"{joined}, and {windows} opened at no further charge (an exact count, for the curator "
            f"only). Lowest remaining budget: epsilon = {self.least_left:g}."
        )

    def suggestions(self, members: Sequence[NodeId] | None = None, k: int = 20) -> Suggestions:
        """Lists of some members, or of everybody in the series."""
        return self._lists.suggestions(members, k)

    def write(
        self,
        folder: str | os.PathLike[str],
        k: int = 20,
        progress: Progress | None = None,
        *,
        overwrite: bool = False,
    ) -> ReleaseFolder:
        """Write all lists to a folder, 8,192 per file; they need not fit into memory.

        `overwrite` replaces a release that is there, and nothing else.
        """
        return self._lists.write(Path(folder), k, progress, overwrite=overwrite)

    def write_per_member(
        self,
        folder: str | os.PathLike[str],
        k: int = 20,
        progress: Progress | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Write one .csv file per member (mode 0600), for that member only, to a new folder.

        `overwrite` replaces files of the same names in a folder that is there.
        """
        self._lists.write_per_member(Path(folder), k, progress, overwrite=overwrite)


@dataclass(frozen=True)
class _Refresh:
    """Bring a series up to one snapshot of its history."""

    job: RefreshJob
    place: SeriesFolder
    history: History
    generation: int  # of the label in the ledger: a renewal meanwhile is noticed
    number: int  # of the snapshot in the history

    @cached_property
    def names(self) -> list[str]:
        """The names of all nodes of the history in the ledger."""
        return names_of(self.history.nodes)

    @cached_property
    def series(self) -> Campaign:
        """The series: each member is charged once, and all share the released degrees."""
        note = {"purpose": self.job.purpose, "operator": self.job.operator}
        note = {name: words for name, words in note.items() if words}
        # In the entry of the degrees: the snapshot they belong to
        note["first"] = token_of(self.history, self.number)
        campaign = series_campaign(self.job.mechanism, self.history, self.job.label, note)
        return replace(campaign, generation=self.generation)

    @cached_property
    def key(self) -> str:
        """The key of the series in the ledger."""
        return self.job.ledger.campaign_key(self.series)

    @cached_property
    def windows(self) -> Campaign:
        """The windows that end at this snapshot, recorded at price 0."""
        return windows_of(self.series, self.key, self.number)

    @cached_property
    def manifest(self) -> SeriesManifest:
        """The state to go on from."""
        return self.place.manifest_of(self.key)

    @cached_property
    def state(self) -> Columns:
        """That state of all nodes; nothing about the windows of the forgotten."""
        columns = self.place.columns(len(self.names), self.manifest)
        columns.last[self.history.forgotten] = 0  # the forgotten have no name
        return columns

    def run(self) -> Refreshed:
        """Charge, draw, commit: the steps above."""
        job, ledger = self.job, self.job.ledger
        self._begin()
        newcomers, left_out = self._charge_newcomers()
        task, digest = self._task()
        state, opened = self._draw(newcomers, task, digest)
        self._commit(state)
        among = candidates_in(self.history, job.candidates, job.exclude)
        lists = StoredLists(self.place, self.history, job.mechanism, task.shared, among)
        return Refreshed(
            snapshot=self.number,
            n_lists=lists.n_lists,
            n_newcomers=int(newcomers.sum()),
            n_windows=opened,
            n_left_out=left_out,
            price=job.mechanism.epsilon,
            least_left=ledger.account().left,
            _lists=lists,
        )

    def _begin(self) -> None:
        """Record durably what is worked on."""
        self._check_degrees()
        if self.manifest.until == self.number:  # it may have been interrupted after the commit
            self._erase_drawn()
        self.place.begin(self._begun)
        note_work(self.job.ledger, self.history, self.key, self.number)

    @property
    def _begun(self) -> SeriesManifest:
        token = token_of(self.history, self.number)
        return replace(self.manifest, until=self.number, token=token)

    def _task(self) -> tuple[Task, str]:
        """What draws the windows, and the digest of the series' degrees, which it uses."""
        ledger, graph = self.job.ledger, self.history.graph
        degrees = ledger.shared(self.series)
        if degrees is None:  # nobody was charged, so nothing is left to finish
            note_work(ledger, self.history, self.key, self.manifest.until)
            self.place.finish()
            raise BudgetError("no member's budget allows a series: nothing was charged")
        window = next_window(self.job.mechanism, self.state.last, self.number)
        # Drawn once for the series; nodes that joined later count with the lowest degree.
        degrees = stored_shared(window, graph, degrees)
        # An entry for every snapshot, so that the head does not tell whether there were windows
        erase_secrets([ledger.begin(self.windows)])
        shared = popularity(degrees, self.names)
        digest = digest_of(released_degrees(degrees))
        return Task(mechanism=window, graph=graph, shared=shared), digest

    def _commit(self, state: Path) -> None:
        """Make the new state the series'; then the secrets of its windows go."""
        ledger, head = self.job.ledger, self.job.ledger.entry()
        assert head is not None  # something was charged, now or before
        self.place.commit(
            replace(self._begun, entry=head, state=state.name, n_nodes=len(self.names))
        )
        note_work(ledger, self.history, self.key, self.number)
        erase_secrets(ledger.open_batches(self.windows))
        self.place.finish()

    def _check_degrees(self) -> None:
        """Refuse to draw the degrees a second time, or on another snapshot than their own."""
        number, ledger = self.number, self.job.ledger
        degrees = ledger.shared(self.series)
        if degrees is None or degrees.stored:
            return
        note = ledger.note(degrees.key) or {}
        moved_on = number != len(self.history.snapshots)
        if self.manifest.until or moved_on or note.get("first") != token_of(self.history, number):
            raise LedgerError(
                f"the degrees of this series belong to its first snapshot, and {number} is not it "
                f"or was refreshed before: {ledger.location} was restored from an older copy, "
                "or the history went on before they were drawn. Restore the newer ledger with its "
                "artifacts, or start the series again (edgeveil ledger renew)"
            )

    def _erase_drawn(self) -> None:
        """Erase the secrets of windows that are in the state, or of the forgotten.

        Batches are drawn as a whole. One without a window in the state was recorded when the
        snapshot was refreshed once more, and is still to be drawn.
        """
        ends = zip(self.names, self.state.last, strict=True)
        drawn = {name for name, end in ends if end == self.number}
        waiting = set(self.names) - drawn
        batches = self.job.ledger.open_batches(self.windows)
        erase_secrets(
            batch
            for batch in batches
            if not drawn.isdisjoint(batch.members) or waiting.isdisjoint(batch.members)
        )

    def _charge_newcomers(self) -> tuple[Mask, int]:
        """Charge who joins, if the budget allows; a mark for each, and how many are left out."""
        ledger, names, present = self.job.ledger, self.names, self.history.present
        index_of = {names[i]: i for i in np.flatnonzero(~self.state.charged).tolist()}
        missing = {name: bool(present[i]) for name, i in index_of.items()}
        new, n_left_out = np.zeros(len(names), dtype=np.bool_), 0
        for campaign, members in joining(
            ledger, self.series, self.number, self.manifest.entry[0], missing
        ):
            paid = charge(ledger, campaign, members)
            new[[index_of[name] for name in paid]] = True
            n_left_out += len(members) - len(paid)
        return new, n_left_out

    def _draw(self, newcomers: Mask, task: Task, digest: str) -> tuple[Path, int]:
        """Draw the windows that are due, shard by shard, and write the new state."""
        job, history, until = self.job, self.history, self.number
        window: Any = task.mechanism
        n, state, opened = len(self.names), self.place.new_state(), 0
        rule = job.rule or WindowRule.for_epsilon(job.mechanism.epsilon)
        due = rule.due(history.graph, window.since, until) & history.present
        # Windows recorded by an interrupted refresh are drawn, whoever is due now
        recorded = job.ledger.open_batches(self.windows)
        begun = {name for batch in recorded for name in batch.members}
        due |= np.array([name in begun for name in self.names], dtype=np.bool_)
        for stored in self.place.shards(n, self.manifest):
            before = stored.without(history.forgotten)
            here = slice(before.first, before.first + len(before.last))
            before = replace(before, charged=before.charged | newcomers[here])
            after = open_windows(before, due, task, partial(self._drawn, digest))
            opened += int(np.count_nonzero(after.last != before.last))
            after.write(state)
            if job.progress:
                job.progress(min(here.stop, n), n)
        return state, opened

    def _drawn(self, digest: str, task: Task, members: npt.NDArray[np.int64]) -> Drawn:
        """Record and draw the windows of these members."""
        request = ReleaseRequest(
            graph=task.graph,
            mechanism=task.mechanism,
            indices=members,
            guarantee=no_charge(len(members)),
            ledger=self.job.ledger,
            engine=self.job.engine,
        )

        def refuse(_: Batch) -> None:
            raise LedgerError(
                f"{self.place.path} was restored from an older copy: it lacks a window up to "
                f"snapshot {self.number}. Restore the newer copy"
            )

        index = dict(zip(request.names, members.tolist(), strict=True))

        def indices_of(names: Iterable[str]) -> npt.NDArray[np.int64]:
            """Not of members who were forgotten since the batch was recorded."""
            return np.array(sorted(index[name] for name in names if name in index), dtype=np.int64)

        drawn = draw_charged(
            request, self.windows, lambda _: (task, digest), refuse, indices_of=indices_of
        )
        blocks = [rows.block for _, rows in drawn]
        return [(block.sources, block.rows) for block in blocks if isinstance(block.rows, Evidence)]
