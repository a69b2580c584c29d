"""Makes lists for the service, in one thread: the engine charges and stores them in batches.

Members who wait for a list at the same time share one batch, and so one write to the ledger. Lists
that nobody has asked for can be made ahead, while nobody waits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import Account, Ledger
from edgeveil.ledger.schema import UnusableError
from edgeveil.serve.answers import Unavailable, UsedUp, check_price, words_of
from edgeveil.serve.list_files import ListStore, kept_lists, path_of, render

if TYPE_CHECKING:
    from edgeveil.graph.graph import Graph
    from edgeveil.graph.nodes import NodeId, NodeSet
    from edgeveil.mechanisms.suggest import Suggest
    from edgeveil.privacy.guarantee import Guarantee

# Lists in a batch. A member waits for at most one batch of others.
_BATCH, _BATCH_AHEAD = 256, 2048
_CHECK_EVERY = 1.0  # seconds between two checks for a new snapshot
_log = logging.getLogger("edgeveil.serve")
_Answer = Future[bytes]


@dataclass(frozen=True)
class Offer:
    """Which lists the service makes. All of it is public."""

    epsilon: float  # of one list
    k: int = 20
    label: str = ""
    knows_followers: bool = False
    ahead: bool = False  # make all lists of a snapshot at once, not when members first ask


@dataclass(frozen=True)
class Edition:
    """The graph of a snapshot, and the lists that were made from it."""

    snapshot: int
    graph: Graph
    lists: ListStore

    @property
    def nodes(self) -> NodeSet:
        """The members."""
        return self.graph.nodes

    def get(self, at: int) -> bytes | None:
        """The list of the member with this index; None if it has none."""
        return self.lists.get(at)


class Making:
    """Makes a member's list when it first asks, once `start` was called.

    `read` reads the graph as it is now; `folder` is for copies of lists.
    """

    everybody = False  # only members of the graph may ask

    def __init__(
        self, read: Callable[[], Graph], ledger: Ledger, offer: Offer, folder: Path
    ) -> None:
        self._read, self.ledger, self.offer, self._folder = read, ledger, offer, folder
        self._series = ledger.key_of(json.dumps(["lists", offer.label]))  # of ledger and label
        self._wake = threading.Condition()
        self._at_work = threading.Lock()  # held while lists are charged or the edition changes
        self._waiting: deque[tuple[NodeId, _Answer]] = deque()
        self._stopped = self._lost = False
        self._ahead = 0 if offer.ahead else None  # index of the next member to make a list for
        self.trouble = ""  # why lists cannot be made, for the curator
        # Before a file is opened for use: one with another k would be replaced.
        kept = kept_lists(folder, self._series, ledger)
        self.edition = self._edition(ledger.snapshot(offer.label), read())
        self._earlier = [one for one in kept if one.about["snapshot"] < self.edition.snapshot]
        self._thread = threading.Thread(target=self._work, name="lists", daemon=True)

    def start(self) -> None:
        """Begin to make lists. Loading the compiled code takes seconds: open the sockets first."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current batch."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        with self._at_work:  # not `join`: the thread may still be loading compiled code
            pass

    @property
    def mechanism(self) -> Suggest:
        """What makes the lists."""
        from edgeveil.mechanisms.suggest import Suggest

        return Suggest(
            epsilon=self.offer.epsilon,
            directed=self.edition.graph.directed,
            knows_followers=self.offer.knows_followers,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What one list protects."""
        from edgeveil.jobs.request import guarantee_for

        return guarantee_for(self.edition.graph, self.mechanism, 1)

    @property
    def ahead_left(self) -> int:
        """Number of members not checked for a list yet, if lists are made ahead."""
        at = self._ahead
        return 0 if at is None else self.edition.graph.n_nodes - at

    def earlier(self, member: NodeId) -> bytes | None:
        """The latest list of an earlier snapshot, for a member without budget."""
        for lists in reversed(self._earlier):
            at = None if lists.nodes is None else lists.nodes.find(member)
            found = None if at is None else lists.get(at)
            if found is not None:
                return found
        return None

    async def make(self, member: NodeId) -> bytes:
        """Charge, make and store a list in a batch with others; raises UsedUp or Unavailable."""
        answer = _Answer()
        with self._wake:
            self._waiting.append((member, answer))
            self._wake.notify()
        return await asyncio.wrap_future(answer)

    def price(self) -> dict[str, Any]:
        """The price of lists for all members of the current snapshot."""
        return self._price(self.edition.graph)

    def price_of_next(self) -> dict[str, Any]:
        """The price of lists for all members, from the graph as it is now."""
        return self._price(self._read())

    def _price(self, graph: Graph) -> dict[str, Any]:
        edition, least = self.edition, self.ledger.account()
        return {
            "snapshot": edition.snapshot,  # the current one
            # Whether the graph is still that one's: private, for the curator only.
            "same_graph": graph.fingerprint == edition.graph.fingerprint,
            "epsilon": self.offer.epsilon,  # charged to each member,
            "members": graph.n_nodes,  # of so many
            "least_left": least.left,  # lowest remaining budget of any member,
            "lists_left": self._lists_left(least, graph.n_nodes),  # which everybody can still get
        }

    def _lists_left(self, least: Account, members: int) -> int:
        """How many more lists both caps allow everybody: the cap for each, and for all together."""
        guarantee = self.mechanism.guarantee(members)
        lists = least.left / self.offer.epsilon, least.pooled_left / guarantee.pooled_epsilon
        return int(min(lists) + 1e-9)  # a cap of 2 pays for 4 lists of 0.5

    def make_ahead(self, shown: object) -> int:
        """Make the missing lists of all members while nobody waits; return `ahead_left`.

        PriceChanged unless the price is the one that was shown.
        """
        check_price(shown, self.price())
        with self._wake:
            self._ahead = 0
            self._wake.notify()
        return self.ahead_left

    def advance(self, shown: object) -> int:
        """Make the graph as it is now a new snapshot, and return its number.

        PriceChanged unless the price is the one that was shown, so that one confirmation cannot
        be used twice.
        """
        graph = self._read()
        with self._at_work:  # no list of the old graph may be charged to the new snapshot
            check_price(shown, self._price(graph))
            snapshot = self.ledger.advance(self.offer.label)
            self._take(snapshot, graph)
        return snapshot

    def _take(self, snapshot: int, graph: Graph) -> None:
        """Make a graph the current edition. The caller holds `_at_work`."""
        edition = self._edition(snapshot, graph)
        with self._wake:
            self._earlier.append(self.edition.lists)
            self.edition, self._ahead = edition, 0 if self.offer.ahead else None

    def _edition(self, snapshot: int, graph: Graph) -> Edition:
        """Open the lists of a snapshot; LedgerError if the snapshot has another graph.

        This error depends on edges, so members must not see it: it is raised here.
        """
        self.ledger.check_snapshot(graph.fingerprint, self.offer.label)
        # Builds the index of ids now, not at the first request.
        graph.nodes.find("" if graph.nodes.kind == "str" else 0)
        about = {
            "snapshot": snapshot,
            "epsilon": self.offer.epsilon,
            "knows_followers": self.offer.knows_followers,
            "series": self._series,
            "nodes": graph.nodes.digest(graph.nodes.kind.encode()).hexdigest(),
        }
        path = path_of(self._folder, about)
        lists = ListStore.open(path, about, graph.nodes, self.offer.k)
        lists.refuse_unknown(self.ledger)
        return Edition(snapshot, graph, lists)

    def _work(self) -> None:
        with self._wake:  # loading slows down answers: stored lists come first
            self._wake.wait_for(lambda: self._waiting or self._stopped, timeout=_CHECK_EVERY)
        gc.disable()  # a garbage collection while modules are loaded stops answers for 0.1 s
        try:
            _load_kernels()
        except Exception as error:  # noqa: BLE001  (the thread must go on)
            self._say(error)
        gc.freeze()  # exclude what was loaded from later collections
        gc.enable()
        pause = _CHECK_EVERY
        while True:
            with self._wake:
                if not (self._waiting or self._ahead is not None or self._stopped):
                    self._wake.wait(pause)
            with self._at_work:
                if self._stopped:
                    return
                # Also while nobody asks: members with a list must get that of a new snapshot.
                ready = self._follow()
                self._make_some(ready)
            pause = _CHECK_EVERY if ready else 10 * _CHECK_EVERY

    def _follow(self) -> bool:
        """Follow a snapshot that another instance or command has declared; False if that fails."""
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
        """Make the lists that members wait for, else some ahead, of the current snapshot."""
        edition, asked = self.edition, dict[int, list[_Answer]]()
        with self._wake:
            while self._waiting and len(asked) < _BATCH:
                member, answer = self._waiting.popleft()
                at = edition.graph.nodes.find(member)
                if not answer.set_running_or_notify_cancel():  # the client has disconnected
                    continue
                if at is None:
                    answer.set_exception(Unavailable())
                else:
                    asked.setdefault(at, []).append(answer)
        if not ready:
            _fail(asked, list(asked), Unavailable())
        elif asked:
            self._make(edition, list(asked), asked)
        elif (first := self._ahead) is not None:
            end = min(first + _BATCH_AHEAD, edition.graph.n_nodes)
            missing = [i for i in range(first, end) if edition.lists.get(i) is None]
            if missing:
                self._make(edition, missing, {})
            self._ahead = end if end < edition.graph.n_nodes else None

    def _say(self, error: Exception) -> None:
        """Report an error to the curator."""
        words = words_of(error)
        if words != self.trouble:  # log a lasting problem once
            _log.error("lists cannot be made: %s", words)
        self.trouble = words

    def _make(
        self, edition: Edition, indices: Sequence[int], asked: dict[int, list[_Answer]]
    ) -> None:
        """Make lists and answer members who wait; if a batch fails, try each half of it."""
        try:
            found = self._lists_of(edition, indices)
        except Exception as error:  # noqa: BLE001  (the thread must go on)
            # One member has no budget left, or its row was begun by other code, or an artifact is
            # lost: the others still get their lists.
            one_of_them = isinstance(error, BudgetError | LedgerError)
            if one_of_them and not isinstance(error, UnusableError) and len(indices) > 1:
                middle = len(indices) // 2
                self._make(edition, indices[:middle], asked)
                self._make(edition, indices[middle:], asked)
                return
            used_up = isinstance(error, BudgetError)
            if not used_up:
                self._say(error)
            _fail(asked, indices, UsedUp() if used_up else Unavailable())
            return
        for index, body in zip(indices, found, strict=True):
            for answer in asked.get(index, ()):
                answer.set_result(body)

    def _lists_of(self, edition: Edition, indices: Sequence[int]) -> list[bytes]:
        from edgeveil.jobs.job import release  # compiled code: not before the first list

        graph, offer = edition.graph, self.offer
        made = release(
            graph,
            self.mechanism,
            graph.nodes.take(indices),
            k=offer.k,
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
        except OSError as error:  # the artifacts hold the lists, too
            trouble = f"copies of lists cannot be stored: {error.strerror}"
        self.trouble = trouble
        return bodies


def _load_kernels() -> None:
    """Make a list for a tiny graph, so that no member waits for the compiler."""
    from edgeveil.graph.datasets import social_network
    from edgeveil.series.suggesting import suggest

    suggest(social_network(150).graph, [0], epsilon=1.0)


def _fail(asked: dict[int, list[_Answer]], indices: Sequence[int], outcome: Exception) -> None:
    for index in indices:
        for answer in asked.get(index, ()):
            answer.set_exception(outcome)
