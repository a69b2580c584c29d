"""The lists of a series for the service: copies from the last refresh, and a refresh on request.

Nothing is charged, drawn or computed when a member asks. A thread checks every second whether any
process has refreshed the series, and copies everybody's lists to slots of one size; when the copy
is complete, it replaces the lists before.

    <state>/000007-*.lists      the lists of snapshot 7; bound to the ledger when it is complete

Copies of earlier snapshots, and those with the names of the forgotten, are removed. Whom members
and the curator hide is left out of every answer at once; a member's slot is made again from the
stored evidence where that is not enough.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import EdgeveilError, LedgerError
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.ledger import Ledger
from edgeveil.ledger.transactions import UnusableError
from edgeveil.results.nouns import FRIENDS, Nouns
from edgeveil.series.campaign import Current, current_series, guarantee_of_series, series_folder
from edgeveil.series.copies import check_copies
from edgeveil.serve.answers import check_price, error_text
from edgeveil.serve.choices import Choices
from edgeveil.serve.list_files import RESERVE, ListStore, kept_lists, path_of, render, shown
from edgeveil.serve.rules import Rules

if TYPE_CHECKING:
    from edgeveil.estimate.lists import Candidates
    from edgeveil.graph.graph import Graph
    from edgeveil.results.suggestions import Suggestions
    from edgeveil.series import RefreshJob
    from edgeveil.series.history import History

_CHECK_EVERY = 1.0  # seconds between two checks of the series
_CHECK_EVERY_AFTER_ERROR = 5.0  # checking all charges may take long
_WATCHED = ("series.json", "pending.json", "history/history.json", "history/refreshed.json")
CHOICES = "choices.db"  # in the state folder
_log = logging.getLogger("edgeveil.serve")
_Files = list[tuple[int, int, int] | None]


@dataclass(frozen=True)
class PublishedLists:
    """The lists of a snapshot, by the index of their member in the history."""

    snapshot: int
    history: str  # identity of the history that the indices belong to
    nodes: NodeSet
    present: npt.NDArray[np.bool_]  # whether each node is a member now
    lists: ListStore

    def get(self, at: int) -> bytes | None:
        """The slot of the member with this index; None if it has no list."""
        return (
            self.lists.get(at) if at < self.lists.header["members"] and self.present[at] else None
        )


@dataclass(frozen=True)
class Refreshing:
    """Progress of a refresh by the curator; `words` may hold exact counts of windows."""

    running: bool = False
    done: int = 0  # members done
    members: int = 0  # all members
    words: str = ""  # how it ended


class SeriesLists:
    """Serves the lists of the series that a label has.

    `read` reads the graph as it is now; `copies` is the folder for copies of lists; `folder` is
    that of the series, if it is not beside the ledger; `words` are those of `Suggestions.in_words`.
    `choices` are the members', `rules` the curator's: whom not to suggest.

    Raises
    ------
    LedgerError
        If the label has no series, or if ledger, history and state do not match.
    """

    def __init__(
        self,
        read: Callable[[], Graph],
        ledger: Ledger,
        label: str,
        k: int,
        copies: Path,
        folder: Path | None = None,
        words: str | None = None,
        *,
        choices: Choices | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.nouns = Nouns.of(words)
        self.choices, self.rules = choices or Choices(copies / CHOICES), rules or Rules()
        self._stale = set[NodeId]()  # members whose slots are to be made again
        self._read, self.ledger, self.label, self.k = read, ledger, label, k
        self._copies, self._folder = copies, series_folder(ledger, label, folder)
        self._series = ledger.key_of(json.dumps(["series", label]))
        self._seen: tuple[tuple[_Files, str | None], object] | None = None  # at the last look,
        self._now: Current | None = None  # and the series of that time
        self._stopped, self._wake = threading.Event(), threading.Event()
        self._one_at_a_time = threading.Lock()
        self.refreshing = Refreshing()
        self.left = 0  # lists that are still to be copied
        self.last_error = ""  # why lists cannot be shown, for the curator
        self.published: PublishedLists | None = None  # None: none can be shown now
        kept_lists(copies, self._series, ledger)
        now = self._checked()
        if now is None or not now.manifest.state:
            raise LedgerError(
                f"the series of {label or 'this graph'} has no lists yet: edgeveil refresh makes "
                "them, and then the service can start"
            )
        self._describe(now)
        self._take_copies(now)
        self._thread = threading.Thread(target=self._work, name="series", daemon=True)

    def start(self) -> None:
        """Begin to copy lists, and to look for new ones."""
        self._thread.start()

    def catch_up(self) -> None:
        """Copy lists that are not copied yet, before `start`."""
        self._follow()

    def stop(self) -> None:
        """Stop. The next run repeats what was not finished."""
        self._stopped.set()
        self._wake.set()

    # -- following the series -------------------------------------------------------------

    def _work(self) -> None:
        while not self._stopped.is_set():
            pause = _CHECK_EVERY
            try:
                self.rules.follow()
                self._follow()  # first: what goes wrong with choices must not keep old lists
                self.choices.follow()
                self._renew_slots()
                self.last_error = self.rules.last_error
            except Exception as error:  # noqa: BLE001  (the thread must go on)
                pause = _CHECK_EVERY_AFTER_ERROR
                words = error_text(error)
                if words != self.last_error:  # log a lasting problem once
                    _log.error("lists cannot be shown or renewed: %s", words)
                self.last_error = words
            self._wake.wait(pause)
            self._wake.clear()

    def _follow(self) -> None:
        """Follow what was refreshed or forgotten since the last check."""
        try:
            entry = self.ledger.entry(), self.rules.digest
            seen = (self._files(), self.ledger.fingerprint(self.label)), entry
            if seen == self._seen:
                return
            # Opened anew only if its files are others: the ledger grows while others are charged.
            same = self._now if self._seen is not None and self._seen[0] == seen[0] else None
            now = self._now = self._checked(same)
            # Renewed, and not refreshed since: the lists of the old series stay until then.
            ready = now is None or not now.manifest.state or self._take_copies(now)
        except EdgeveilError as error:
            if not isinstance(error, UnusableError):  # the ledger may not know what would be shown
                self.published, self._seen = None, None
            raise
        if ready or (now is not None and self._copy(now, seen[0][0])):
            self._seen = seen
        else:  # changed while it was copied
            self._wake.set()

    def _files(self) -> _Files:
        """What changes whenever one of the watched files is replaced."""
        files = _Files()
        for name in _WATCHED:
            try:
                status = (self._folder / name).stat()
                files.append((status.st_mtime_ns, status.st_ino, status.st_size))
            except FileNotFoundError:
                files.append(None)
        return files

    def _checked(self, now: Current | None = None) -> Current | None:
        """The current series (`now`, if unchanged); LedgerError if it does not match the ledger."""
        while True:
            files = self._files()
            try:
                now = now or current_series(self.ledger, self.label, self._folder)
                if now is not None:
                    check_copies(
                        self.ledger, now.place, now.history, self.label, now.manifest.series
                    )
                return now
            except EdgeveilError:
                if self._files() == files:
                    raise
                now = None  # replaced while it was read: look again

    def _describe(self, now: Current) -> None:
        self.mechanism = now.mechanism
        self.guarantee = guarantee_of_series(now.history, now.mechanism, 1)
        # Said when the series was begun, and in its guarantee since
        self._nodes_from_edges = now.history.graph.read_report.nodes_from_edges

    def _header(self, now: Current) -> dict[str, Any]:
        """What the copies of a state depend on."""
        gone = now.history.forgotten.tobytes()
        return {
            "series": self._series,
            "snapshot": now.manifest.until,
            "state": now.manifest.state,
            "length": self.k,
            **({} if self.nouns == FRIENDS else {"words": list(vars(self.nouns).values())}),
            "forgotten": hashlib.sha256(gone).hexdigest(),
            "rules": self.rules.digest,
        }

    def _take_copies(self, now: Current) -> bool:
        """Serve the copies of this state if they are complete, and return whether they are.

        If not, members who have left or were forgotten lose their lists now all the same.
        """
        history, published = now.history, self.published
        history.nodes.find("" if history.nodes.kind == "str" else 0)  # builds the index of ids
        kept = ListStore.open_earlier(path_of(self._copies, self._header(now)))
        if kept is None or kept.entry is None:
            if published is not None and published.history == history.identity:
                self.published = replace(published, nodes=history.nodes, present=history.present)
            return False
        kept.refuse_unknown(self.ledger)
        self.choices.forget(history.nodes)
        self._describe(now)
        self.published = PublishedLists(
            now.manifest.until, history.identity, history.nodes, history.present, kept
        )
        for other in kept_lists(self._copies, self._series, self.ledger):
            if other.path != kept.path:
                other.remove()
        return True

    def _copy(self, now: Current, files: _Files) -> bool:
        """Copy everybody's lists; False if the files of the series changed meanwhile."""
        from edgeveil.series.stored_lists import open_series  # compiled code

        history, header = now.history, self._header(now)
        lists = ListStore.open(path_of(self._copies, header), header, history.nodes, self.k)
        revision, among = self._among(history)
        series = open_series(now, self.ledger, self.label, among)
        try:
            self.left = series.n_lists
            for part in series.parts(self.k + RESERVE):
                suggestions = part.in_words(self.nouns)
                _put(lists, suggestions, render(suggestions, now.manifest.until, revision))
                self.left -= len(part.members)
                if self._stopped.is_set() or self._files() != files:
                    return False
        except LedgerError:  # the state was replaced by the next one
            if self._files() == files:
                raise
            return False
        lists.flush()
        lists.bind(now.manifest.entry)  # from here on they are complete
        return self._take_copies(now)

    # -- what members and the curator hide --------------------------------------------------

    def _hides(self, member: str) -> Callable[[str], bool] | None:
        """What tells whom the member's list must not name; None if nobody is hidden from it."""
        among = self.rules.candidates
        hidden = [
            names for names in (*self.choices.hidden(member), self.rules.hidden(member)) if names
        ]
        if among is not None:
            return lambda other: other not in among or any(other in names for names in hidden)
        if not hidden:
            return None
        return lambda other: any(other in names for names in hidden)

    def answer(self, lists: ListStore, member: NodeId, slot: bytes) -> bytes:
        """A member's list without hidden names, padded.

        The slot is made again soon if the member has changed its mind since, or if too few names
        are left of it.
        """
        name, choices = str(member), self.choices
        answer = shown(slot, self.k, self._hides(name), self.nouns)
        asked = answer.revision < choices.changed.get(name, 0)
        if asked or (answer.names < self.k and answer.revision < choices.revision):
            self.make_again(member)
        return lists.answer(answer.body)

    def make_again(self, member: NodeId) -> None:
        """Make a member's slot again of the stored evidence, soon."""
        self._stale.add(member)
        self._wake.set()

    def _among(self, history: History) -> tuple[int, Candidates]:
        """Who may be suggested, and to whom not, and the revision of the choices in it."""
        from edgeveil.series.stored_lists import candidates_in  # compiled code

        revision = self.choices.revision  # before they are read: they may be newer
        pairs, unsuggested = self.choices.all()
        among = candidates_in(history, self.rules.candidates, [*self.rules.pairs, *pairs])
        hidden = (history.nodes.find(history.nodes.named(name)) for name in unsuggested)
        assert among.nodes is not None
        left = np.setdiff1d(among.nodes, [at for at in hidden if at is not None])
        return revision, replace(among, nodes=left.astype(np.int64))

    def _renew_slots(self) -> None:
        """Make the slots of some members again, of the stored evidence."""
        from edgeveil.series.stored_lists import open_series  # compiled code

        published, now = self.published, self._now
        if not self._stale or published is None or now is None:
            return
        members = [self._stale.pop() for _ in range(len(self._stale))]
        places = {member: published.nodes.find(member) for member in members}
        there = [member for member, at in places.items() if at is not None and published.get(at)]
        same = (
            now.history.identity == published.history and now.manifest.until == published.snapshot
        )
        if not there or not same:  # another state: to be copied as a whole
            return
        revision, among = self._among(now.history)
        try:
            series = open_series(now, self.ledger, self.label, among)
            suggestions = series.suggestions(there, self.k + RESERVE).in_words(self.nouns)
        except LedgerError:  # the state was replaced by the next one, which is copied as a whole
            if self._seen is not None and self._files() == self._seen[0][0]:
                raise
            return
        _put(published.lists, suggestions, render(suggestions, published.snapshot, revision))

    # -- a refresh, by the curator --------------------------------------------------------

    def price(self) -> dict[str, Any]:
        """The price of a refresh with the graph as it is now."""
        return self._price_of(self._job())

    def _job(self) -> RefreshJob:
        """A refresh with the graph as it is now, checked."""
        from edgeveil.series import prepare_refresh

        return prepare_refresh(
            self._read(),
            ledger=self.ledger,
            epsilon=self.mechanism.epsilon,
            knows_followers=self.mechanism.knows_followers,
            label=self.label,
            folder=self._folder,
            nodes_from_edges=self._nodes_from_edges,
            purpose="service",
        )

    def _price_of(self, job: RefreshJob) -> dict[str, Any]:
        snapshot = self.published.snapshot if self.published else None
        return {"snapshot": snapshot, **asdict(job.price)}

    def refresh(self, shown: object) -> Refreshing:
        """Refresh the series with the graph as it is now, in the background.

        PriceChanged unless the price is the one that was shown.
        """
        if not self._one_at_a_time.acquire(blocking=False):
            raise EdgeveilError("a refresh is running already")
        try:
            job = self._job()
            check_price(shown, self._price_of(job))
            self.refreshing = begun = Refreshing(running=True, members=job.graph.n_nodes)
            threading.Thread(target=self._run, args=[job], name="refresh", daemon=True).start()
        except BaseException:
            self._one_at_a_time.release()
            raise
        return begun

    def _run(self, job: RefreshJob) -> None:
        def progress(done: int, members: int) -> None:
            self.refreshing = Refreshing(running=True, done=done, members=members)

        words = "Not finished."
        try:
            words = job.with_progress(progress).run().summary_in(self.nouns)
        except Exception as error:  # noqa: BLE001  (the curator is told)
            words = f"Not finished: {error_text(error)}"
            _log.error("a refresh failed: %s", error_text(error))
        finally:
            self.refreshing = Refreshing(words=words)
            self._one_at_a_time.release()
            self._wake.set()


def _put(lists: ListStore, suggestions: Suggestions, slots: list[bytes]) -> None:
    """Put slots where their members have their places: the index in the history."""
    indices = suggestions.nodes.indices(suggestions.members).tolist()
    for index, slot in zip(indices, slots, strict=True):
        lists.put(index, slot)
