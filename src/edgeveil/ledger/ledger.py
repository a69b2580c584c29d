"""Ledger: the privacy budget of one graph, on disk, charged before noise is drawn.

Order of a release: charge a batch of rows, durably -> compute -> write the artifact to a draft,
fsync, rename -> record it and erase the batch's secret. After a crash in between, the next call
for one of the rows gets the same secret, hence the same noise, and nobody is charged again. There
are no refunds.

Budget is counted in whole nano-epsilons; see ``docs/over-time.md``.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from edgeveil._internal.checks import is_whole
from edgeveil._internal.notebook import html_pre
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph.nodes import NodeId
from edgeveil.ledger import accounts, chain, generations
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import schema as sql
from edgeveil.ledger.accounts import Account, Charge
from edgeveil.ledger.campaigns import (
    Batch,
    Campaign,
    Charged,
    CurrentCampaign,
    Newcomers,
    Price,
    Request,
)
from edgeveil.ledger.postgres import PostgresStore
from edgeveil.ledger.prices import NANO, cap_nano, check_text
from edgeveil.ledger.sqlite import SqliteStore
from edgeveil.ledger.transactions import Transaction

__all__ = ["Account", "Batch", "Campaign", "Charge", "Charged", "Ledger", "Price"]

Store = SqliteStore | PostgresStore  # both have the same methods


class Ledger:
    """The privacy budget of one graph over time.

    The ledger counts the generations of a label's graph: `advance` declares the next one, for a
    graph that has changed. The caps apply to all labels and generations together, because a graph
    that has changed since yesterday still holds most of yesterday's edges. A copy of a Ledger
    object is the same ledger; a pickle holds only the location, without any password.

    Use `Ledger.create` or `Ledger.open`, which check whether a ledger exists. ``Ledger(location)``
    checks only on the first call.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> None:
        self._store = _store_at(location)
        self._artifacts = Path(artifacts).resolve() if artifacts else self._store.artifacts
        self._expected_header: sql.Header | None = None  # what the first transaction read
        self._last_charge: tuple[Any, ...] | None = None  # number and hash, as last read
        self._artifacts_checked = False

    @classmethod
    def create(
        cls,
        location: str | os.PathLike[str],
        *,
        epsilon: float,
        pooled_epsilon: float | None = None,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Make a new ledger. Its caps can never be changed.

        Parameters
        ----------
        location : path or URL
            A file on a local disk, or ``postgresql://host/database#schema``.
        epsilon : float
            Cap for each member: the most that may be charged to it in total, for its own rows and
            for public releases.
        pooled_epsilon : float, optional
            Cap for all members together, if they combine their lists. No such cap by default.
        artifacts : path, optional
            Folder for the released files; ``<location>.artifacts`` by default. A ledger in
            PostgreSQL has no default, and cannot charge anything without this folder.
        """
        caps = [cap_nano("epsilon", epsilon), None]
        if pooled_epsilon is not None:
            caps[1] = cap_nano("pooled_epsilon", pooled_epsilon)
        _store_at(location).create((secrets.token_hex(16), *caps, chain.now()))
        return cls.open(location, artifacts=artifacts)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open an existing ledger; arguments as for `create`."""
        ledger = cls(location, artifacts=artifacts)
        with ledger._transaction():
            return ledger

    def session(self) -> AbstractContextManager[None]:
        """One connection for all that this thread does with the ledger within the block."""
        return self._store.session()

    @property
    def _header(self) -> sql.Header:
        if self._expected_header is None:
            with self._transaction() as transaction:
                return transaction.header
        return self._expected_header

    @property
    def location(self) -> str:
        """Where the ledger is, without any password."""
        return self._store.shown

    @property
    def epsilon(self) -> float:
        """Cap for each member."""
        return self._header.epsilon_nano / NANO

    @property
    def pooled_epsilon(self) -> float | None:
        """Cap for all members together, if they combine their lists; None if there is none."""
        pooled = self._header.pooled_nano
        return None if pooled is None else pooled / NANO

    def key_of(self, identity: str) -> str:
        """A key for an identity that reveals nothing about it without this ledger.

        A campaign's key is also the name of a file. With a plain hash, anyone who sees the name
        could test a guess of it; this hash is keyed by the ledger's random id, which is never
        printed.
        """
        return hmac.digest(self._header.ledger_id.encode(), identity.encode(), "sha256").hex()

    def generation(self, label: str = "") -> int:
        """Number of a label's current generation; 1 before its first release."""
        with self._transaction() as transaction:
            return generations.current_generation(transaction, label).number

    def fingerprint(self, label: str = "") -> str | None:
        """The fingerprint of a label's current generation; None before its first release."""
        with self._transaction() as transaction:
            return generations.current_generation(transaction, label).fingerprint

    def last_fingerprint(self, label: str = "") -> str | None:
        """The fingerprint that a label was last used with, in this generation or an earlier one."""
        with self._transaction() as transaction:
            return generations.last_fingerprint(transaction, label)

    def advance(
        self, label: str = "", *, check: Callable[[str | None], None] = lambda fingerprint: None
    ) -> int:
        """Declare the next generation of a label's graph, and return its number.

        In it everything is charged anew. The next release under the label fixes which graph that
        is; members may have joined or left, but **members who stayed must have kept their id**. If
        nothing was released in the current generation, no new one is declared. Advance by a public
        schedule: a new generation whenever the graph has changed would reveal that it has. `check`
        is called with the current generation's fingerprint (None before its first release) and may
        raise.
        """
        with self._transaction(write=True) as transaction:
            check(generations.current_generation(transaction, label).fingerprint)
            return generations.advance(transaction, label)

    def charge(self, campaign: Campaign, members: Iterable[str]) -> Charged:
        """Charge the rows that were not charged yet; on return the charge is on disk.

        One transaction looks up which rows were charged before, prices the others and writes
        their charge with a new secret. Returns the campaign's shared statistics and all batches
        that hold one of the rows. Those that are not stored the caller must compute and store,
        all of their rows.

        Raises
        ------
        BudgetError
            If a cap would be exceeded; nothing is written.
        LedgerError
            If the graph is not the current generation's, or other code began one of the batches.
        """
        names = _member_names(members)
        self.folder  # noqa: B018  (refuse before the charge if there is none)
        with self._transaction(write=True) as transaction:
            if not self._artifacts_checked:  # once; `_last_charge` detects an older copy later
                keys = files.keys_in(self._artifacts)
                charged_keys = {row[0] for row in transaction.among(sql.CHARGED_KEYS, keys)}
                files.refuse_uncharged(keys - charged_keys)
            request = Request(transaction, self, campaign, names, write=True)
            charged = request.charge()
        self._artifacts_checked = True  # the transaction is committed
        if request.new:
            self._last_charge = request.charges.count, request.charges.head
        return charged

    def begin(self, campaign: Campaign) -> Batch:
        """Add the first entry of a campaign, at price 0, unless it is there.

        Its secret is for the statistics that all rows share.
        """
        with self._transaction(write=True) as transaction:
            return Request(transaction, self, campaign, [], write=True).begin()

    def price(self, campaign: Campaign, members: Iterable[str]) -> Price:
        """The price of `charge`, and what is left before it; nothing is charged.

        Like `charge`, it refuses a graph that is not the current generation's.
        """
        names = _member_names(members)
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, names).price()

    def campaign_key(self, campaign: Campaign) -> str:
        """The key of a campaign in its label's current generation."""
        with self._transaction() as transaction:
            return CurrentCampaign(transaction, self, campaign).key

    def note(self, key: str) -> dict[str, str] | None:
        """The note of the charge (or campaign) with this key; None if the key is unknown."""
        with self._transaction() as transaction:
            notes = transaction.run(sql.NOTE_OF_KEY, key)
            return json.loads(notes[0][0]) if notes else None

    def shared(self, campaign: Campaign) -> Batch | None:
        """The statistics that a campaign shares; None before its first charge."""
        with self._transaction() as transaction:
            return CurrentCampaign(transaction, self, campaign).shared()

    def open_batches(self, campaign: Campaign) -> list[Batch]:
        """All batches of a campaign that are not stored yet, for any members."""
        with self._transaction() as transaction:
            return CurrentCampaign(transaction, self, campaign).open_batches()

    def rows_of(self, campaign: Campaign, members: Iterable[str]) -> dict[str, int]:
        """The members who have a row in a campaign, each with the number of its charge."""
        names = list(dict.fromkeys(members))
        with self._transaction() as transaction:
            charged = Request(transaction, self, campaign, names).charged
            return {name: charge.seq for name, charge in charged.items()}

    def rows_at(self, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
        """All rows of the charges with these numbers: the number and the member of each."""
        with self._transaction() as transaction:
            yield from transaction.among(sql.ROWS_AT, list(numbers))

    def newcomers(self, campaign: Campaign, members: Iterable[str]) -> Newcomers:
        """The members without a row in a campaign, split by whether the budget allows a row.

        They are counted as if charged together: if the cap for all members together does not
        allow all of them, it allows the first ones.
        """
        names = _member_names(members)
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, names).newcomers()

    def account(self, member: NodeId | None = None) -> Account:
        """What was charged and what is left for a member; None: for the one with the least left."""
        name = None if member is None else _member_name(member)
        with self._transaction() as transaction:
            return accounts.account(transaction, name)

    def accounts(self) -> list[Account]:
        """The accounts of all members who were charged for rows, lowest remaining budget first."""
        with self._transaction() as transaction:
            return accounts.accounts(transaction)

    def charges(self, member: NodeId | None = None, *, latest: int | None = None) -> list[Charge]:
        """List the charges, oldest first: all, the `latest` ones only, or those of one member.

        The charges of a member are those of its own rows and of all public releases.
        """
        name = None if member is None else _member_name(member)
        with self._transaction() as transaction:
            return accounts.list_charges(transaction, name, latest)

    def entry(self, number: int | None = None) -> tuple[int, str] | None:
        """Number and hash of an entry of the hash chain, by default the last; None if missing.

        Keep both to tell later whether the ledger was restored from an older copy.
        """
        with self._transaction() as transaction:
            if number is None:
                heads = transaction.run(sql.HEAD)
                return heads[0] if heads else None
            hashes = transaction.run(sql.HASH_AT, number)
            return (number, hashes[0][0]) if hashes else None

    def show(self) -> str:
        """What was charged and what is left, in a few lines of text."""
        with self._transaction() as transaction:
            lines = accounts.show(transaction)
        return "\n".join([f"ledger {self.location}", *lines])

    def verify(self, known_head: str | None = None, *, artifacts: bool = True) -> str:
        """Recompute the hash chain, all totals and (unless told not to) the artifacts' digests.

        Returns the head, which is the hash of the last charge; raises LedgerError at the first
        mismatch. A `known_head` that you noted earlier, somewhere else, must still be part of the
        chain: only this detects every ledger that was restored from an older copy or rewritten.
        """
        folder = self._artifacts if artifacts else None
        # List the artifacts before reading the ledger: those written meanwhile are charged already.
        keys = files.keys_in(folder)
        with self._transaction() as transaction:
            if isinstance(self._store, SqliteStore):
                self._store.check_pages(transaction)
            audit = chain.audit(transaction)
        if known_head is not None and known_head not in audit.hashes:
            raise LedgerError(
                "the ledger does not contain the head you noted: records were removed or rewritten"
            )
        files.refuse_uncharged(keys - audit.keys)
        for release in audit.releases if folder else ():
            files.find(self.folder, release.key, release.sha256)
        return audit.hashes[-1]

    def backup(self, target: str | os.PathLike[str]) -> str:
        """Write a consistent copy to a new file, check it, and return its head; note the head.

        Use the copy only if the ledger is lost: if both are used, the budget is used twice. See
        ``docs/over-time.md``.
        """
        self._store.backup(Path(target))
        return Ledger.open(target).verify(artifacts=False)

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[Transaction]:
        last = self._last_charge  # before the transaction begins: another thread may add to it
        with self._store.transaction(write=write) as transaction:
            transaction.header = chain.read_header(transaction)
            self._expected_header = self._expected_header or transaction.header
            if transaction.header != self._expected_header:
                raise LedgerError(f"{self.location} now holds another ledger than when opened")
            heads = transaction.run(sql.HEAD)
            if last and [last] != heads and transaction.run(sql.HASH_AT, last[0]) != [last[1:]]:
                raise LedgerError(
                    f"{self.location} lacks a charge that it held before: it was restored from an "
                    "older copy"
                )
            for head in heads:
                self._last_charge = head
            yield transaction

    @property
    def folder(self) -> Path:
        """Where the artifacts are."""
        if self._artifacts is None:
            raise LedgerError("a ledger in PostgreSQL needs a folder: open it with artifacts=...")
        return self._artifacts

    def __repr__(self) -> str:
        return f"Ledger({self.location!r}, epsilon={self.epsilon:g})"

    def _repr_html_(self) -> str:
        return html_pre(self.show())

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[str]]:
        folder = None if self._artifacts == self._store.artifacts else self._artifacts
        return partial(Ledger.open, artifacts=folder), (self.location,)


def _member_names(members: Iterable[str]) -> list[str]:
    """Each member once; ParameterError for text that a database cannot hold."""
    names = list(dict.fromkeys(map(_member_name, members)))
    if not names:
        raise ParameterError("name at least one member")
    return names


def _member_name(member: NodeId) -> str:
    """The name under which a member is charged: the id as text."""
    return check_text("a member's name", str(int(member)) if is_whole(member) else member)


def _store_at(location: str | os.PathLike[str]) -> Store:
    """Choose the store by the form of the location: a URL or a path."""
    text = os.fspath(location)
    is_url = re.match(r"postgres(ql)?://", text)
    return PostgresStore(text) if is_url else SqliteStore(Path(text))
