"""The steps of a refresh: bring a series up to one snapshot of its history, once.

A member is charged once for the whole series. Its lists are made of *windows*: at some snapshots
(`WindowRule`) a window is drawn, which counts only paths that have come to be since the member's
last one (docs/theory/series.md). So no window may ever be drawn twice, or over another history.
That is what all of these are for:

    history/                  all edges so far, and the snapshot in which each was first seen
    history/refreshed.json    a note of what was worked on last, and the ledger's last entry then
    ledger                    who was charged; which windows were recorded, member by member; and
                              the secret that the noise of each batch comes from, until it is stored
    state-*/                  for every node: whether it was charged (its mark), when its last
                              window ended, how many it had, and the evidence that was released
    series.json               which of these states counts, the snapshot that it is up to date with,
                              and the ledger's last entry then
    pending.json              the snapshot that is worked on, from before the first charge until all
                              secrets are erased; it is there only if a refresh was interrupted

`RefreshJob.run` compares ledger, history and state, and merges the graph into the history (if a
series starts, edges that have ended then become former friends). The steps come next. Each is on
the disk before the one after it begins, 4 and 5 for 65,536 nodes at a time:

    1  pending.json, refreshed.json    the snapshot is being worked on
    2  ledger.charge                   newcomers, once for the series (`joining`)
    3  the degrees                     drawn and stored at the first snapshot of a series
    4  ledger.charge                   the windows that are due, recorded at price 0
    5  their noise, a new state-*      derived from the secrets; nobody has seen anything of it
    6  series.json                     the commit: from here on the windows count
    7  the secrets are erased          what was drawn cannot be drawn again
    8  pending.json is removed

After an interruption the next refresh finishes the snapshot of pending.json before it goes on to
its own. Before step 6 it repeats everything: who was charged stays charged, recorded windows are
drawn whoever is due now, and from the same secrets the noise is the same. After step 6 it finds
the windows in the state, and only erases their secrets. In the ledger a window is a row of its
snapshot and its member, so there is never a second secret for it.

If one part was put back from a backup, the others know more than it does: the ledger's entries and
windows, the tokens of snapshots, and refreshed.json are compared (`copies`), and the refresh is
refused before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.estimate.lists import Candidates, Evidence
from edgeveil.jobs.drawing import draw_charged, stored_shared
from edgeveil.jobs.request import Progress, ReleaseRequest
from edgeveil.jobs.tasks import Engine, Task
from edgeveil.ledger import Batch, Campaign, Ledger
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.privacy.statistic import digest_of
from edgeveil.series.campaign import Current, erase_secrets, names_of, no_charge, windows_of
from edgeveil.series.copies import note_work, token_of
from edgeveil.series.history import History
from edgeveil.series.joining import charge, joining
from edgeveil.series.refreshed import Refreshed
from edgeveil.series.rule import WindowRule
from edgeveil.series.state import Columns, SeriesFolder, SeriesManifest
from edgeveil.series.stored_lists import StoredLists, popularity, released_degrees
from edgeveil.series.windows import Drawn, next_window, open_windows

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps for one snapshot; the caller has locked the folder and checked all copies."""

    number: int  # of the snapshot
    history: History
    place: SeriesFolder
    ledger: Ledger
    series: Campaign  # what each member is charged for
    mechanism: Suggest
    rule: WindowRule
    candidates: Candidates  # of the lists in the result
    engine: Engine
    progress: Progress | None

    @cached_property
    def names(self) -> list[str]:
        """The names of all nodes of the history in the ledger."""
        return names_of(self.history.nodes)

    @cached_property
    def key(self) -> str:
        """The key of the series in the ledger."""
        return self.ledger.campaign_key(self.series)

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
        self._begin()
        newcomers, n_left_out = self._charge_newcomers()
        task, digest = self._task()
        state, n_windows = self._draw(newcomers, task, digest)
        manifest = self._commit(state)
        current = Current(self.place, self.history, self.mechanism, manifest)
        lists = StoredLists(current, task.shared, self.candidates)
        return Refreshed(
            snapshot=self.number,
            n_lists=lists.n_lists,
            n_newcomers=int(newcomers.sum()),
            n_windows=n_windows,
            n_left_out=n_left_out,
            price=self.mechanism.epsilon,
            least_left=self.ledger.account().left,
            _lists=lists,
        )

    def _begin(self) -> None:
        """Record durably what is worked on."""
        self._check_degrees()
        if self.manifest.until == self.number:  # it may have been interrupted after the commit
            self._erase_drawn()
        self.place.begin(self._begun)
        note_work(self.ledger, self.history, self.key, self.number)

    @property
    def _begun(self) -> SeriesManifest:
        token = token_of(self.history, self.number)
        return replace(self.manifest, until=self.number, token=token)

    def _check_degrees(self) -> None:
        """Refuse to draw the degrees a second time, or on another snapshot than their own."""
        number, ledger = self.number, self.ledger
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
        erase_secrets(
            batch
            for batch in self.ledger.open_batches(self.windows)
            if not drawn.isdisjoint(batch.members) or waiting.isdisjoint(batch.members)
        )

    def _charge_newcomers(self) -> tuple[Mask, int]:
        """Charge who joins, if the budget allows; a mark for each, and how many are left out."""
        names, present = self.names, self.history.present
        index_of = {names[i]: i for i in np.flatnonzero(~self.state.charged).tolist()}
        missing = {name: bool(present[i]) for name, i in index_of.items()}
        new, n_left_out = np.zeros(len(names), dtype=np.bool_), 0
        for campaign, members in joining(
            self.ledger, self.series, self.number, self.manifest.entry[0], missing
        ):
            paid = charge(self.ledger, campaign, members)
            new[[index_of[name] for name in paid]] = True
            n_left_out += len(members) - len(paid)
        return new, n_left_out

    def _task(self) -> tuple[Task, str]:
        """What draws the windows, and the digest of the series' degrees, which it uses."""
        shared = self.ledger.shared(self.series)
        if shared is None:  # nobody was charged, so nothing is left to finish
            note_work(self.ledger, self.history, self.key, self.manifest.until)
            self.place.finish()
            raise BudgetError(
                "no member's budget allows a series at epsilon = "
                f"{self.mechanism.epsilon:g}: nothing was charged"
            )
        window = next_window(self.mechanism, self.state.last, self.number)
        # Drawn once for the series; nodes that joined later count with the lowest degree.
        degrees = released_degrees(stored_shared(window, self.history.graph, shared))
        # An entry for every snapshot, so that the head does not tell whether there were windows
        erase_secrets([self.ledger.begin(self.windows)])
        fitted = popularity(degrees, len(self.names))
        return Task(mechanism=window, graph=self.history.graph, shared=fitted), digest_of(degrees)

    def _draw(self, newcomers: Mask, task: Task, digest: str) -> tuple[Path, int]:
        """Draw the windows that are due, shard by shard, and write the new state."""
        history, n, n_windows = self.history, len(self.names), 0
        due = self.rule.due(history.graph, self.state.last, self.number) & history.present
        # Windows recorded by an interrupted refresh are drawn, whoever is due now
        recorded = self.ledger.open_batches(self.windows)
        begun = {name for batch in recorded for name in batch.members}
        due |= np.array([name in begun for name in self.names], dtype=np.bool_)
        state = self.place.new_state()
        for stored in self.place.shards(n, self.manifest):
            before = stored.without(history.forgotten)
            here = slice(before.first, before.first + len(before.last))
            before = replace(before, charged=before.charged | newcomers[here])
            after = open_windows(before, due, task, partial(self._drawn, digest))
            n_windows += int(np.count_nonzero(after.last != before.last))
            after.write(state)
            if self.progress:
                self.progress(min(here.stop, n), n)
        return state, n_windows

    def _drawn(self, digest: str, task: Task, members: npt.NDArray[np.int64]) -> Drawn:
        """Record the windows of these members, and draw them."""
        request = ReleaseRequest(
            graph=task.graph,
            mechanism=task.mechanism,
            indices=members,
            guarantee=no_charge(len(members)),
            ledger=self.ledger,
            engine=self.engine,
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

    def _commit(self, state: Path) -> SeriesManifest:
        """Make the new state the series'; then the secrets of its windows go."""
        head = self.ledger.entry()
        assert head is not None  # something was charged, now or before
        manifest = replace(self._begun, entry=head, state=state.name, n_nodes=len(self.names))
        self.place.commit(manifest)
        note_work(self.ledger, self.history, self.key, self.number)
        erase_secrets(self.ledger.open_batches(self.windows))
        self.place.finish()
        return manifest
