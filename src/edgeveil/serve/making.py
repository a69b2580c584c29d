"""Making lists for the service: charged and stored by the engine, one thread, many at a time.

Requests that wait for a first list are made together, so that many of them share one write to the
ledger. What was asked for by nobody yet is made ahead, if wanted, while nobody waits.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from edgeveil.errors import BudgetError, EdgeveilError, LedgerError
from edgeveil.ledger import Account, Ledger
from edgeveil.ledger.tables import UnusableError
from edgeveil.serve.lists import Lists, digest_of, render

if TYPE_CHECKING:
    from edgeveil.graph import Graph
    from edgeveil.nodes import NodeId
    from edgeveil.suggestions import Suggestions

# Lists of one batch. A request waits for one batch at most before its own is made.
_AT_ONCE, _AHEAD = 256, 2048
_LOOK_AGAIN = 1.0  # seconds between two looks at which snapshot is the current one
_log = logging.getLogger("edgeveil.serve")
_Answer = Future[bytes]


class UsedUp(Exception):  # noqa: N818  (an answer)
    """The member's budget does not pay for another list."""


class Unavailable(Exception):  # noqa: N818  (an answer)
    """The list cannot be made now; whether it was charged is in the ledger, and asking is free."""


class PriceChanged(EdgeveilError):  # noqa: N818  (an answer)
    """The price is another one than was shown."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What the service gives: all of it public."""

    epsilon: float
    places: int = 20
    label: str = ""
    knows_followers: bool = False
    ahead: bool = False  # lists of every snapshot are made at once, not when they are asked for


@dataclass(frozen=True, kw_only=True)
class Price:
    """What lists for everybody would be charged. For the curator only: `same_graph` is private."""

    snapshot: int  # the current one
    same_graph: bool  # whether the graph is the current snapshot's
    epsilon: float  # charged to each member,
    members: int  # of so many
    least_left: float  # lowest remaining budget of any member,
    lists_left: int  # and how many lists everybody can still get


@dataclass(frozen=True)
class Edition:
    """One snapshot's graph, and the lists that were made of it."""

    snapshot: int
    graph: Graph
    lists: Lists


class Making:
    """The lists of all members, made when first asked for, once `start` was called.

    `read` gives the graph as it is now; copies of lists are kept in `folder`, for nobody else.
    """

    def __init__(
        self, read: Callable[[], Graph], ledger: Ledger, offer: Offer, folder: Path
    ) -> None:
        self._read, self.ledger, self.offer, self._folder = read, ledger, offer, folder
        self._wake = threading.Condition()
        self._at_work = threading.Lock()  # held while lists are charged or the edition changes
        self._waiting: deque[tuple[NodeId, _Answer]] = deque()
        self._stopped = self._lost = False
        self._ahead = 0 if offer.ahead else None  # the first member who was not looked at
        self.trouble = ""
        self.edition = self._edition(ledger.snapshot(offer.label), read())
        self._earlier = self._kept_editions()
        self._thread = threading.Thread(target=self._work, name="lists", daemon=True)

    def start(self) -> None:
        """Begin to make lists. What that needs takes seconds to load: answer first, then call."""
        self._thread.start()

    def stop(self) -> None:
        """End after the batch that is being made."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        with self._at_work:  # not until the thread has ended: it may still be loading kernels
            pass

    @property
    def ahead_left(self) -> int:
        """Members who were not looked at yet, of those whose lists are to be made ahead."""
        at = self._ahead
        return 0 if at is None else self.edition.graph.n_nodes - at

    def earlier(self, member: NodeId) -> bytes | None:
        """The latest list of an earlier snapshot, for a member whose budget is used up."""
        for lists in reversed(self._earlier):
            at = None if lists.nodes is None else lists.nodes.find(member)
            found = None if at is None else lists.get(at)
            if found is not None:
                return found
        return None

    async def make(self, member: NodeId) -> bytes:
        """Charge, make and keep a list, with others that are waited for; or UsedUp, Unavailable."""
        answer = _Answer()
        with self._wake:
            self._waiting.append((member, answer))
            self._wake.notify()
        return await asyncio.wrap_future(answer)

    def price(self) -> Price:
        """What lists for all members of the current snapshot would be charged."""
        return self._price(self.edition.graph)

    def price_of_next(self) -> Price:
        """What lists for all members would be charged, of the graph as it is now."""
        return self._price(self._read())

    def _price(self, graph: Graph) -> Price:
        edition, least = self.edition, self.ledger.account()
        return Price(
            snapshot=edition.snapshot,
            same_graph=graph.fingerprint == edition.graph.fingerprint,
            epsilon=self.offer.epsilon,
            members=graph.n_nodes,
            least_left=least.left,
            lists_left=self._lists_left(least, graph.n_nodes),
        )

    def _lists_left(self, least: Account, members: int) -> int:
        """How many lists everybody can still get, by the cap for each and the pooled cap."""
        from edgeveil.mechanisms.suggest import Suggest

        guarantee = Suggest(epsilon=self.offer.epsilon).guarantee(members)
        lists = least.left / self.offer.epsilon, least.pooled_left / guarantee.pooled_epsilon
        return int(min(lists) + 1e-9)  # a cap of 2 pays for 4 lists of 0.5

    def make_ahead(self, shown: Price) -> None:
        """Make the lists of all members who have none, while nobody waits.

        PriceChanged unless the price is the one that was shown.
        """
        _check_price(shown, self.price())
        with self._wake:
            self._ahead = 0
            self._wake.notify()

    def advance(self, shown: Price) -> int:
        """Take the graph as it is now for a new snapshot, and give that one's number.

        PriceChanged unless the price is the one that was shown: so the same consent cannot be
        used twice.
        """
        graph = self._read()
        with self._at_work:  # or a list of the graph before would be the new snapshot's first
            _check_price(shown, self._price(graph))
            snapshot = self.ledger.advance(self.offer.label)
            self._take(snapshot, graph)
        return snapshot

    def _take(self, snapshot: int, graph: Graph) -> None:
        """Make a graph the current edition; whoever calls it is at work."""
        edition = self._edition(snapshot, graph)
        with self._wake:
            self._earlier.append(self.edition.lists)
            self.edition, self._ahead = edition, 0 if self.offer.ahead else None

    def _edition(self, snapshot: int, graph: Graph) -> Edition:
        """Open the lists of a snapshot; LedgerError if it is known to be another graph.

        Refused here, where no member sees it: later, only who has no list yet would.
        """
        self.ledger.check_snapshot(graph.fingerprint, self.offer.label)
        graph.nodes.find("" if graph.nodes.kind == "str" else 0)  # sorts ids, before anybody waits
        about = {
            "snapshot": snapshot,
            "epsilon": self.offer.epsilon,
            "knows_followers": self.offer.knows_followers,
            "series": self._series,
            "nodes": digest_of(graph.nodes),
        }
        name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
        path = self._folder / f"{snapshot:06d}-{name}.lists"
        lists = Lists.open(path, about, graph.nodes, self.offer.places)
        self._refuse_unknown(lists)
        return Edition(snapshot, graph, lists)

    def _refuse_unknown(self, lists: Lists) -> None:
        """Raise LedgerError for lists that the ledger has not charged."""
        bound = lists.entry
        if bound is not None and self.ledger.entry(bound[0]) != bound:
            raise LedgerError(
                f"{lists.path} holds lists that the ledger does not know: its entry {bound[0]} is "
                "missing or another one, so the ledger was put back to an older copy. Put the "
                "newest ledger and its artifacts back. If they are lost, members may have seen "
                "lists that this ledger has not charged: read Backup in docs/ledger.md, and move "
                f"the files *.lists out of {lists.path.parent} before you start again"
            )

    @cached_property
    def _series(self) -> str:
        """Stands for ledger and label."""
        return self.ledger.key_of(json.dumps(["lists", self.offer.label]))

    def _kept_editions(self) -> list[Lists]:
        """Lists of earlier snapshots, the oldest first."""
        found = [Lists.kept(path) for path in sorted(self._folder.glob("*.lists"))]
        kept = [one for one in found if one and one.about.get("series") == self._series]
        for lists in kept:  # also those of a snapshot that is still to come
            self._refuse_unknown(lists)
        return [one for one in kept if one.about["snapshot"] < self.edition.snapshot]

    def _work(self) -> None:
        with self._wake:  # loading slows answers down: those who have a list come first
            self._wake.wait_for(lambda: self._waiting or self._stopped, timeout=_LOOK_AGAIN)
        gc.disable()  # to look for garbage among all that is loaded stops every answer for 0.1 s
        try:
            _load_kernels()
        except Exception as error:  # noqa: BLE001  (the thread must go on)
            self._say(error)
        gc.freeze()  # nor is it to be looked through later
        gc.enable()
        pause = _LOOK_AGAIN
        while True:
            with self._wake:
                if not (self._waiting or self._ahead is not None or self._stopped):
                    self._wake.wait(pause)
            with self._at_work:
                if self._stopped:
                    return
                # Also where nobody asks: who has a list is shown the new snapshot's, too.
                ready = self._follow()
                self._make_some(ready)
            pause = _LOOK_AGAIN if ready else 10 * _LOOK_AGAIN

    def _follow(self) -> bool:
        """Take over a snapshot that another instance or a command has declared; False: cannot."""
        try:
            snapshot = self.ledger.snapshot(self.offer.label)
            if snapshot != self.edition.snapshot:
                self._take(snapshot, self._read())
        except Exception as error:  # noqa: BLE001  (the thread must go on)
            self._say(error)
            self._lost = True
            return False
        if self._lost:
            self._lost, self.trouble = False, ""
        return True

    def _make_some(self, ready: bool) -> None:
        """Make the lists that are waited for, or else some ahead, of the current snapshot."""
        edition, asked = self.edition, dict[int, list[_Answer]]()
        with self._wake:
            while self._waiting and len(asked) < _AT_ONCE:
                member, answer = self._waiting.popleft()
                at = edition.graph.nodes.find(member)
                if not answer.set_running_or_notify_cancel():  # whoever asked has gone
                    continue
                if at is None:
                    answer.set_exception(Unavailable())
                else:
                    asked.setdefault(at, []).append(answer)
        if not ready:
            _tell(asked, list(asked), Unavailable())
        elif asked:
            self._make(edition, list(asked), asked)
        elif (first := self._ahead) is not None:
            end = min(first + _AHEAD, edition.graph.n_nodes)
            missing = [i for i in range(first, end) if edition.lists.get(i) is None]
            if missing:
                self._make(edition, missing, {})
            self._ahead = end if end < edition.graph.n_nodes else None

    def _say(self, error: Exception) -> None:
        """Note what is wrong. The words may name a file or a key, never an edge or a member."""
        ours = isinstance(error, EdgeveilError | OSError)
        words = type(error).__name__ + (f": {error}" if ours else "")
        if words != self.trouble:  # a broken disk does not fill it with this
            _log.error("lists cannot be made: %s", words)
        self.trouble = words

    def _make(
        self, edition: Edition, indices: Sequence[int], asked: dict[int, list[_Answer]]
    ) -> None:
        """Make lists and answer who waits; half by half if somebody's list cannot be made."""
        try:
            found = self._lists_of(edition, indices)
        except Exception as error:  # noqa: BLE001  (the thread must go on)
            # Somebody's budget is used up, or a row of other code was never finished, or an
            # artifact is lost: that is no reason for others to go without.
            one_of_them = isinstance(error, BudgetError | LedgerError)
            if one_of_them and not isinstance(error, UnusableError) and len(indices) > 1:
                middle = len(indices) // 2
                self._make(edition, indices[:middle], asked)
                self._make(edition, indices[middle:], asked)
                return
            used_up = isinstance(error, BudgetError)
            if not used_up:
                self._say(error)
            _tell(asked, indices, UsedUp() if used_up else Unavailable())
            return
        for index, body in zip(indices, found, strict=True):
            for answer in asked.get(index, ()):
                answer.set_result(body)

    def _lists_of(self, edition: Edition, indices: Sequence[int]) -> list[bytes]:
        from edgeveil.engine.api import suggest  # kernels: not before the first list

        graph, offer = edition.graph, self.offer
        made: Suggestions = suggest(
            graph,
            graph.nodes.take(indices),
            epsilon=offer.epsilon,
            k=offer.places,
            knows_followers=offer.knows_followers,
            ledger=self.ledger,
            label=offer.label,
            snapshot=edition.snapshot,
            purpose="service",
        )
        lists, trouble = edition.lists, ""
        bodies = [lists.padded(body) for body in render(made, edition.snapshot)]
        try:
            lists.bind(self.ledger.entry())
            for index, body in zip(indices, bodies, strict=True):
                lists.put(index, body)
        except OSError as error:  # the lists are among the artifacts all the same
            trouble = f"copies of lists cannot be kept: {error.strerror}"
        self.trouble = trouble
        return bodies


def _check_price(shown: Price, now: Price) -> None:
    # What is left falls whenever somebody gets a list, which changes no price.
    same = replace(shown, least_left=now.least_left, lists_left=now.lists_left) == now
    if not same:
        raise PriceChanged("this is not the price now: ask for it again, and confirm it")


def _load_kernels() -> None:
    """Make a list of a tiny graph, so that no member waits for what is compiled once."""
    from edgeveil.datasets import social_network
    from edgeveil.engine.api import suggest

    suggest(social_network(150).graph, [0], epsilon=1.0)


def _tell(asked: dict[int, list[_Answer]], indices: Sequence[int], outcome: Exception) -> None:
    for index in indices:
        for answer in asked.get(index, ()):
            answer.set_exception(outcome)
