"""`refresh`, the weekly job: merge the snapshot, charge newcomers, draw due windows, return lists.

The steps, in an order that makes a crash at any point harmless:

    history.add           merge the snapshot, atomically
    history.reset_first_seen    if a series starts: edges that have ended lose their birth
    pending.json          record which snapshot is being worked on
    ledger.charge         charge newcomers for the series; record windows at price 0
    noise                 draw it from the batches' secrets; write the new state beside the old
    series.json           commit the new state
    ledger: stored        erase the secrets

Until the new state is committed, everything after the charge is repeated from the same secrets, so
a window has only one outcome. A window that is in the ledger is never drawn again with another
secret: its batch names the snapshot, and each member has one row in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil._internal.files import new_folder, sync_all
from edgeveil._internal.words import counted
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, Evidence
from edgeveil.graph.exclusions import Exclude, Exclusion, excluded_pairs, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.drawing import stored_shared
from edgeveil.jobs.keys import noise_for, parameters_of
from edgeveil.jobs.request import Progress, candidates_of, graph_of
from edgeveil.jobs.stored import read_shared
from edgeveil.jobs.tasks import Engine, Local, Part, Parts, RowBlock, Task
from edgeveil.ledger import Batch, Campaign, Ledger
from edgeveil.mechanisms.member_lists import Suggest, SuggestWindow
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.statistic import Noised, digest_of
from edgeveil.results.nouns import Nouns
from edgeveil.results.provenance import Provenance
from edgeveil.results.release_folder import ReleaseFolder, file_of
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.campaign import (
    guarantee_of_series,
    series_campaign,
    series_folder,
    series_to_refresh,
)
from edgeveil.series.copies import check_copies, check_folder, note_work, token_of
from edgeveil.series.evidence import lists_from, merge_windows
from edgeveil.series.history import History, check_node_list
from edgeveil.series.loss import MOST_LOSS, check_loss
from edgeveil.series.rule import WindowRule
from edgeveil.series.state import SeriesFolder, SeriesManifest, Shard

_BATCH = 8192  # members that are charged together
_PART = 1024  # members that a worker takes at a time
_FILE = 8192  # lists in a file of a folder


def refresh(
    graph: Graph | str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str],
    epsilon: float,
    label: str = "",
    folder: str | os.PathLike[str] | None = None,
    date: str | None = None,
    rule: WindowRule | None = None,
    knows_followers: bool = False,
    nodes_from_edges: bool = False,
    candidates: Iterable[NodeId] | None = None,
    exclude: Exclude | None = None,
    most_loss: float = MOST_LOSS,
    engine: Engine | None = None,
    progress: Progress | None = None,
    purpose: str = "",
    operator: str = "",
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
    date : str, optional
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
    ledger = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    today = graph_of(graph)
    if today.nodes.kind == "str" and not today.nodes.arrays["text"].all():
        raise ParameterError("a member's name must be text without NUL characters")
    check_node_list(today, allowed=nodes_from_edges)
    mechanism = Suggest(epsilon=epsilon, directed=today.directed, knows_followers=knows_followers)
    among = None if candidates is None else list(candidates)
    pairs = None if exclude is None else read_exclusions(exclude)
    candidates_of(today.nodes, among, pairs)  # refused before anything is merged or charged
    place = SeriesFolder(series_folder(ledger, label, folder))
    with place.writing(), ledger.session():
        snapshot = ledger.snapshot(label)
        now = series_to_refresh(ledger, label, place.path, mechanism)
        history = _history(place.path / "history")
        job = _Refresh(
            place=place,
            history=history,
            ledger=ledger,
            mechanism=mechanism,
            label=label,
            snapshot=snapshot,
            rule=rule or WindowRule.for_epsilon(epsilon),
            engine=engine or Local(),
            progress=progress,
            note={"purpose": purpose, "operator": operator},
            candidates=among,
            exclude=pairs,
        )
        check_folder(ledger, place, history, label)
        check_node_list(history.graph, allowed=nodes_from_edges)
        check_loss(history, today, most_loss)
        pending, finished = place.pending(), None
        if pending is not None and now is not None:
            # First finish the interrupted refresh: the history has what it needs.
            finished = job.run(pending.until)
        number = history.add(today, date=date or _today(), again=True, nodes_from_edges=True)
        if finished is not None and finished.snapshot == number:
            return finished
        if now is None and number > 1:
            # Nobody was charged yet, so this may be done again, with a later graph as well.
            history.reset_first_seen()
        return job.run(number)


def _history(path: Path) -> History:
    return History.open(path) if (path / "history.json").exists() else History.create(path)


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


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
    _series: Series

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
        return self._series.suggestions(members, k)

    def write(
        self, folder: str | os.PathLike[str], k: int = 20, progress: Progress | None = None
    ) -> ReleaseFolder:
        """Write all lists to a new folder, 8,192 per file; they need not fit into memory."""
        return self._series.write(Path(folder), k, progress)

    def write_per_member(
        self, folder: str | os.PathLike[str], k: int = 20, progress: Progress | None = None
    ) -> None:
        """Write one .csv file per member (mode 0600), for that member only, to a new folder."""
        self._series.write_per_member(Path(folder), k, progress)


@dataclass(kw_only=True)
class _Refresh:
    """One run of `refresh`, with everything that it needs."""

    place: SeriesFolder
    history: History
    ledger: Ledger
    mechanism: Suggest
    label: str
    snapshot: int  # of the label in the ledger: a renewal meanwhile is noticed
    rule: WindowRule
    engine: Engine
    progress: Progress | None
    note: dict[str, str]
    candidates: list[NodeId] | None  # these two are for the lists of the result alone
    exclude: list[Exclusion] | None
    names: list[str] = field(init=False)  # of all nodes of the history, as of `run`
    first: str = field(init=False, default="")  # the token of the snapshot of `run`
    campaign: Campaign = field(init=False)  # of the series, as of `run`
    released: str = field(init=False)  # digest of the series' degrees

    def series_campaign(self) -> Campaign:
        """The series: each member is charged once, and all share the released degrees."""
        note = {name: words for name, words in self.note.items() if words}
        note["first"] = self.first  # in the entry of the degrees: the snapshot they belong to
        campaign = series_campaign(self.mechanism, self.history, self.label, note)
        return replace(campaign, snapshot=self.snapshot)

    def window_campaign(self, until: int) -> Campaign:
        """The windows that end at a snapshot, recorded at price 0."""
        series = self.campaign
        return replace(
            series,
            identity=json.dumps({"window": until, "of": series.identity}),
            guarantee=_no_more,
            note={**series.note, "of": self.ledger.campaign_key(series), "until": str(until)},
        )

    def return_campaign(self, until: int) -> Campaign:
        """The second charge of members who were forgotten and came back at this snapshot."""
        series = self.campaign
        return replace(
            series,
            identity=json.dumps({"returned": until, "of": series.identity}),
            note={**series.note, "returned": str(until)},
        )

    def run(self, number: int) -> Refreshed:
        """Refresh the series with a snapshot of the history."""
        self.names = [str(node) for node in self.history.nodes.ids.tolist()]
        self.first = token_of(self.history, number)
        self.campaign = self.series_campaign()
        key = self.ledger.campaign_key(self.campaign)
        about = check_copies(self.ledger, self.place, self.history, key, number)
        self._check_degrees(about, number)
        token = token_of(self.history, number)
        last = self.place.marks(len(self.names), about)[1]
        last[self.history.forgotten] = 0  # the forgotten have no name
        if about.until == number:  # it may have been interrupted after its state counted
            self._erase_drawn(number, last)
        self.place.begin(replace(about, until=number, token=token))
        note_work(self.ledger, self.history, key, number)
        newcomers, left_out = self._charge_newcomers(about, number)
        degrees = self.ledger.shared(self.campaign)
        if degrees is None:  # nobody was charged, so nothing is left to finish
            note_work(self.ledger, self.history, key, about.until)
            self.place.finish()
            raise BudgetError("no member's budget allows a series: nothing was charged")
        mechanism = SuggestWindow(
            epsilon=self.mechanism.epsilon,
            directed=self.mechanism.directed,
            knows_followers=self.mechanism.knows_followers,
            since=last,
            until=number,
        )
        # Drawn once for the series; nodes that joined later count with the lowest degree.
        degrees = stored_shared(mechanism, self.history.graph, degrees)
        shared = popularity(degrees, self.names)
        self.released = digest_of(_degrees_in(degrees))
        # An entry for every snapshot, so that the head does not tell whether there were windows
        _erase_secrets([self.ledger.begin(self.window_campaign(number))])
        state, windows = self._draw(about, newcomers, shared, mechanism)
        head = self.ledger.entry()
        assert head is not None  # something was charged, now or before
        done = SeriesManifest(
            series=about.series,
            until=number,
            token=token,
            entry=head,
            state=state.name,
            n_nodes=len(self.names),
        )
        self.place.commit(done)
        note_work(self.ledger, self.history, key, number)
        _erase_secrets(self.ledger.open_batches(self.window_campaign(number)))
        self.place.finish()
        series = Series(
            *(self.place, self.history, self.mechanism, shared),
            candidates_in(self.history, self.candidates, self.exclude),
        )
        return Refreshed(
            snapshot=number,
            n_lists=series.n_lists,
            n_newcomers=int(newcomers.sum()),
            n_windows=windows,
            n_left_out=left_out,
            price=self.mechanism.epsilon,
            least_left=self.ledger.account().left,
            _series=series,
        )

    def _check_degrees(self, about: SeriesManifest, number: int) -> None:
        """Refuse to draw the degrees a second time, or on another snapshot than their own."""
        degrees = self.ledger.shared(self.campaign)
        if degrees is None or degrees.stored:
            return
        note = self.ledger.note(degrees.key) or {}
        moved_on = number != len(self.history.snapshots)
        if about.until or moved_on or note.get("first") != token_of(self.history, number):
            raise LedgerError(
                f"the degrees of this series belong to its first snapshot, and {number} is not it "
                f"or was refreshed before: {self.ledger.location} was restored from an older copy, "
                "or the history went on before they were drawn. Restore the newer ledger with its "
                "artifacts, or start the series again (edgeveil ledger renew)"
            )

    def _erase_drawn(self, number: int, last: Any) -> None:
        """Erase the secrets of windows up to a snapshot that are in the state, or of the forgotten.

        Batches are drawn as a whole. One without a window in the state was recorded when the
        snapshot was refreshed once more, and is still to be drawn.
        """
        drawn = {name for name, end in zip(self.names, last, strict=True) if end == number}
        waiting = set(self.names) - drawn
        batches = self.ledger.open_batches(self.window_campaign(number))
        _erase_secrets(
            batch
            for batch in batches
            if not drawn.isdisjoint(batch.members) or waiting.isdisjoint(batch.members)
        )

    def _charge_newcomers(self, about: SeriesManifest, number: int) -> tuple[Any, int]:
        """Charge every present member who is not in the series yet, if its budget allows.

        A forgotten member who came back is a new node. Its windows count every edge once more, so
        it is charged once more.
        """
        new = np.zeros(len(self.names), dtype=np.bool_)
        paid, _ = self.place.marks(len(self.names), about)
        unpaid, present = np.flatnonzero(~paid).tolist(), self.history.present
        # Members charged before the state was written are in it, under this or another index.
        # Members charged since then were charged by this refresh, before it was interrupted.
        charges = self.ledger.rows_of(self.campaign, [self.names[i] for i in unpaid])
        charged = {i: charges.get(self.names[i], 0) for i in unpaid}
        begun = about.entry[0]
        first = [i for i in unpaid if charged[i] > begun or (present[i] and not charged[i])]
        back = [i for i in unpaid if present[i] and 0 < charged[i] <= begun]
        able = self._charge(self.campaign, first)
        able += self._charge(self.return_campaign(number), back)
        new[able] = True
        return new, len(first) + len(back) - len(able)

    def _charge(self, campaign: Campaign, wanted: list[int]) -> list[int]:
        """Charge those whose budget allows it; return all who were charged, now or before."""
        paid = []
        _erase_secrets(self.ledger.open_batches(campaign))  # no noise is drawn for a charge
        for some in _batches(wanted):
            found = self.ledger.newcomers(campaign, [self.names[i] for i in some])
            unable = set(found.unable)
            able = [i for i in some if self.names[i] not in unable]
            if able:
                self.ledger.charge(campaign, [self.names[i] for i in able])
            paid += able
        _erase_secrets(self.ledger.open_batches(campaign))
        return paid

    def _draw(
        self,
        about: SeriesManifest,
        newcomers: Any,
        shared: lists.Popularity,
        mechanism: SuggestWindow,
    ) -> tuple[Path, int]:
        """Draw the windows that are due, shard by shard, and write the new state."""
        n, state, opened, until = len(self.names), self.place.new_state(), 0, mechanism.until
        due = self.rule.due(self.history.graph, mechanism.since, until) & self.history.present
        # Windows recorded by an interrupted refresh are drawn, whoever is due now
        recorded = self.ledger.open_batches(self.window_campaign(until))
        begun = {name for batch in recorded for name in batch.members}
        due |= np.array([name in begun for name in self.names], dtype=np.bool_)
        task = Task(mechanism=mechanism, graph=self.history.graph, shared=shared)
        for known in self.place.shards(n, about):
            shard = known.without(self.history.forgotten)
            here = slice(shard.first, shard.first + len(shard.last))
            charged = shard.charged | newcomers[here]
            members = np.flatnonzero(charged) + shard.first
            members = members[mechanism.since[members] < until]  # never a second time
            made = self._windows(task, members, members[due[members]], until)
            opened += sum(len(part.sources) for part in made)
            _folded(shared, self.history.graph, mechanism, shard, charged, made, until).write(state)
            if self.progress:
                self.progress(min(here.stop, n), n)
        return state, opened

    def _windows(self, task: Task, members: Any, due: Any, until: int) -> list[RowBlock]:
        """Record and draw the windows of those members of a shard who are due."""
        drawn = set[int]()
        campaign, index = self.window_campaign(until), {self.names[i]: int(i) for i in members}

        def parts() -> Parts:
            for some in _batches(due.tolist()):
                for batch in self.ledger.charge(campaign, [self.names[i] for i in some]).batches:
                    if batch.number in drawn:
                        continue
                    if batch.stored:
                        raise LedgerError(
                            f"{self.place.path} was restored from an older copy: it lacks a "
                            f"window up to snapshot {until}. Restore the newer copy"
                        )
                    drawn.add(batch.number)
                    its = sorted(index[name] for name in batch.members if name in index)
                    noise = noise_for(
                        *(batch.secret, "rows", task.mechanism, task.graph),
                        released=self.released,
                    )
                    for at in range(0, len(its), _PART):
                        yield Part(batch.number, tuple(its[at : at + _PART])), noise.export_key()

        return [rows for _, rows in self.engine.run(task, parts())]


def _no_more(n_members: int) -> Guarantee:
    """The price of windows: 0, because the charge for the series covers them."""
    theorem = "docs/theory/series.md"
    return Guarantee(
        epsilon=0.0, model="joint", n_members=n_members, theorem=theorem, collusion="shared"
    )


def _erase_secrets(batches: Iterable[Batch]) -> None:
    """Mark batches stored: their rows are in the series' state, or nobody's any more."""

    def note(path: Path) -> None:
        path.write_text("in the state of the series\n")

    for batch in batches:
        batch.store(note)


def _batches(indices: list[int]) -> Iterator[list[int]]:
    """Split into groups that are charged together."""
    return (indices[first : first + _BATCH] for first in range(0, len(indices), _BATCH))


def _degrees_in(stored: Batch) -> Noised:
    """The released degrees of a series."""
    (numbers,) = read_shared(stored.artifact)
    return numbers


def popularity(stored: Batch, nodes: Sized) -> lists.Popularity:
    """The popularity of the nodes, from the released degrees of a series."""
    numbers = _degrees_in(stored)
    degrees = np.zeros(len(nodes))  # 0 for nodes that joined later
    degrees[: len(numbers.values[0])] = numbers.values[0]
    return lists.learn(degrees, numbers.scale)


def _folded(
    shared: lists.Popularity,
    graph: Graph,
    mechanism: Suggest,
    shard: Shard,
    charged: Any,
    made: list[RowBlock],
    until: int,
) -> Shard:
    """The state of a shard after its windows were drawn."""
    if not made:
        return replace(shard, charged=charged)
    members = np.concatenate([part.sources for part in made])
    drawn = Evidence.joined([part.rows for part in made if isinstance(part.rows, Evidence)])
    order = np.argsort(members)
    members, drawn = members[order], drawn.take(order)
    rows = members - shard.first
    evidence = merge_windows(mechanism, shared, graph, members, shard.evidence, rows, drawn)
    last, windows = shard.last.copy(), shard.windows.copy()
    last[rows] = until
    windows[rows] += 1
    return Shard(shard.first, charged, last, windows, evidence)


def candidates_in(
    history: History, candidates: Iterable[NodeId] | None, exclude: Exclude | None
) -> Candidates:
    """Who may be suggested of those who are members now; unknown ids have no effect."""
    nodes, among = history.nodes, np.flatnonzero(history.present)
    if candidates is not None:
        # Ids as in a graph of today, which may have had another kind when the history began.
        known = (nodes.find(nodes.named(str(v))) for v in candidates)
        among = np.intersect1d(among, [i for i in known if i is not None])
    pairs, _ = excluded_pairs(read_exclusions(exclude or ()), nodes)
    return Candidates(among.astype(np.int64), pairs)


class Series:
    """The lists of a series as of its last refresh, of these candidates."""

    def __init__(
        self,
        place: SeriesFolder,
        history: History,
        mechanism: Suggest,
        shared: lists.Popularity,
        among: Candidates,
    ) -> None:
        self._place, self._history, self._mechanism = place, history, mechanism
        self._shared, self._state, self._candidates = shared, place.about(), among

    @cached_property
    def _paid(self) -> Any:
        charged, _ = self._place.marks(len(self._history.nodes), self._state)
        return charged & self._history.present

    @property
    def n_lists(self) -> int:
        """Number of members with lists."""
        return int(self._paid.sum())

    def suggestions(self, members: Sequence[NodeId] | None = None, k: int = 20) -> Suggestions:
        """Lists of some members, or of everybody in the series."""
        nodes = self._history.nodes
        known = [v for v in (nodes.named(str(v)) for v in members or ()) if v in nodes]
        wanted = np.flatnonzero(self._paid) if members is None else nodes.indices(known)
        if len(known) < len(members or ()) or not self._paid[wanted].all():
            raise BudgetError(
                "one of these members is not in the series: the next refresh (edgeveil refresh) "
                "charges members who have joined since the last one, if their budget allows it"
            )
        parts = list(self._parts(wanted, k))
        if not parts:
            raise EdgeveilError("nobody is in the series yet")
        return parts[0] if len(parts) == 1 else Suggestions.joined(parts)

    def write(self, folder: Path, k: int, progress: Progress | None = None) -> ReleaseFolder:
        """Write all lists to a folder."""
        about = self._about(self.n_lists)
        files = (
            (number, "series", part.members, file_of(part))
            for number, part in enumerate(self.parts(k, progress))
        )
        return ReleaseFolder.write(folder, "suggestions", *about, files)

    def write_per_member(self, folder: Path, k: int, progress: Progress | None = None) -> None:
        """Write one file per member to a new folder, which appears only when it is complete."""
        if folder.exists():
            raise ParameterError(f"{folder} exists; nothing was written")
        with new_folder(folder) as unfinished:
            for part in self.parts(k, progress):
                part.write_member_tables(unfinished)
            sync_all(unfinished)

    def parts(self, k: int, progress: Progress | None = None) -> Iterator[Suggestions]:
        """Everybody's lists, some thousand at a time."""
        done, everybody = 0, np.flatnonzero(self._paid)
        if not len(everybody):
            raise EdgeveilError("nobody is in the series yet")
        for part in self._parts(everybody, k):
            yield part
            done += len(part.members)
            if progress:
                progress(done, len(everybody))

    def _parts(self, wanted: Any, k: int) -> Iterator[Suggestions]:
        if self._place.about() != self._state:
            raise LedgerError("the series was refreshed since: use the result of that refresh")
        graph, mechanism = self._history.graph, self._mechanism
        about = self._about(len(wanted))
        wanted, among = np.array(list(dict.fromkeys(wanted.tolist()))), self._candidates
        for shard in self._place.shards(len(self._history.nodes), self._state, of=wanted):
            inside = wanted[(wanted >= shard.first) & (wanted < shard.first + len(shard.last))]
            for first in range(0, len(inside), _FILE):
                some = inside[first : first + _FILE]
                rows = some - shard.first
                kept = shard.evidence.take(rows), shard.windows[rows]
                follow = self._history.followers  # today's: not of those who have stopped
                made = lists_from(
                    mechanism, self._shared, graph, some, *kept, k, among, followers=follow
                )
                friends = [len(self._history.friends(int(i))) for i in some]
                yield Suggestions(
                    members=tuple(self._history.nodes.take(some)),
                    nodes=self._history.nodes,
                    lists=made,
                    friends=np.array(friends, dtype=np.int64),
                    k=k,
                    guarantee=about[0],
                    provenance=about[1],
                )

    def _about(self, n_members: int) -> tuple[Guarantee, Provenance]:
        from importlib.metadata import version

        guarantee = guarantee_of_series(self._history, self._mechanism, max(n_members, 1))
        assert self._state is not None  # there was a refresh
        snapshot = self._history.snapshots[self._state.until - 1]
        return guarantee, Provenance(
            mechanism="series of lists",
            parameters={**parameters_of(self._mechanism), "snapshot": snapshot.number},
            version=version("edgeveil"),
            noise="secure",
            ledger=True,
            created=snapshot.date or "",
        )
