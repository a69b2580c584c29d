"""Ledger: the privacy budget of one graph, on disk, charged before noise is drawn.

Order of a release: charge a batch of rows, durably -> compute -> write the artifact to a draft,
fsync, rename -> record it and erase the batch's secret. After a crash in between, the next call
for one of the rows gets the same secret, hence the same noise, and nobody is charged again. There
are no refunds.

Budget is counted in whole nano-epsilons; see ``docs/ledger.md``.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from edgeveil._files import move
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.ledger import accounts, chain, snapshots
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import tables as sql
from edgeveil.ledger.accounts import Account, Charge
from edgeveil.ledger.campaigns import (
    Batch,
    Campaign,
    Charged,
    Newcomers,
    Price,
    Request,
    add_release,
)
from edgeveil.ledger.postgres import PostgresStore
from edgeveil.ledger.prices import NANO, cap_nano, check_text, note_text
from edgeveil.ledger.sqlite import SqliteStore
from edgeveil.ledger.tables import Transaction
from edgeveil.notebook import html_pre

__all__ = ["Account", "Batch", "Campaign", "Charge", "Charged", "Ledger", "Price"]

Store = SqliteStore | PostgresStore  # both have the same few methods


class Ledger:
    """The budget of one graph and of everything that becomes of it.

    The caps count over all fingerprints in the ledger: a graph that changed since yesterday still
    holds yesterday's edges. A copy of a Ledger is the same Ledger; a pickle holds the location
    only (without any password).

    Use `Ledger.create` or `Ledger.open`: they look whether a ledger is there. ``Ledger(location)``
    leaves that to the first call.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> None:
        self._store = _store_at(location)
        self._artifacts = Path(artifacts).resolve() if artifacts else self._store.artifacts
        self._known: sql.Header | None = None  # by the first transaction
        self._seen: tuple[Any, ...] | None = None  # number and hash of the last charge seen
        self._knows_artifacts = False

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
            What any one member may learn in all, from public releases and its own rows.
        pooled_epsilon : float, optional
            What all members together may learn, should they pool all they got.
        artifacts : path, optional
            Folder for the released files. Default for a file: ``<location>.artifacts``. For
            PostgreSQL it must be given before something can be charged.
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

    @property
    def _header(self) -> sql.Header:
        if self._known is None:
            with self._transaction() as transaction:
                return transaction.header
        return self._known

    @property
    def location(self) -> str:
        """Where the ledger is, without any password."""
        return self._store.shown

    @property
    def epsilon(self) -> float:
        """Cap on what any one member may learn."""
        return self._header.epsilon_nano / NANO

    @property
    def pooled_epsilon(self) -> float | None:
        """Cap on what all members together may learn, or None."""
        pooled = self._header.pooled_nano
        return None if pooled is None else pooled / NANO

    def key_of(self, question: str) -> str:
        """A key that tells nothing about the question without this ledger.

        A campaign's key names a file. A plain hash would let anyone who sees that name test a
        guess at what is in it; this one is keyed by the ledger's own random, never printed id.
        """
        return hmac.digest(self._header.ledger_id.encode(), question.encode(), "sha256").hex()

    def snapshot(self, label: str = "") -> int:
        """Number of a label's current snapshot; 1 before its first release."""
        with self._transaction() as transaction:
            current = snapshots.current_snapshot(transaction, label)
            return current.number if current else 1

    def fingerprint(self, label: str = "") -> str | None:
        """Which graph a label's current snapshot is; None before its first release."""
        with self._transaction() as transaction:
            current = snapshots.current_snapshot(transaction, label)
            return current.fingerprint if current else None

    def advance(
        self, label: str = "", *, check: Callable[[str | None], None] = lambda fingerprint: None
    ) -> int:
        """Declare a new snapshot of a label's graph; gives its number.

        The next release under the label fixes which graph that is; members may have joined or
        left, and **whoever stayed must have kept their id**. A snapshot that nothing was
        released from stays the next one. Advance by a public schedule: a new snapshot just when
        the graph has changed tells that it has. `check` is called with the current snapshot's
        fingerprint (None before its first release) and may raise.
        """
        with self._transaction(write=True) as transaction:
            current = snapshots.current_snapshot(transaction, label)
            check(current.fingerprint if current else None)
            return snapshots.advance(transaction, label)

    def check_snapshot(self, fingerprint: str, label: str = "") -> int:
        """Number of a label's current snapshot; LedgerError if that is known to be another graph.

        The refusal depends on the graph: it is for the curator only.
        """
        with self._transaction() as transaction:
            found = snapshots.snapshot_for(transaction, label, fingerprint)
            return found.number

    def charge(self, campaign: Campaign, members: Iterable[str]) -> Charged:
        """Charge the rows that were not charged yet; on return the charge is on disk.

        One transaction looks up which rows were charged before, prices the others and writes
        their charge with a new secret. Returns the campaign's shared statistics and all batches
        that hold one of the rows: stored ones, the new one, and open ones, which the caller must
        finish as a whole.

        Raises
        ------
        BudgetError
            If a cap would be exceeded; nothing is written.
        LedgerError
            If the graph is not the current snapshot's, or other code began one of the batches.
        """
        names = _checked(campaign, members)
        self.folder  # noqa: B018  (refuse before the charge if there is none)
        with self._transaction(write=True) as transaction:
            if not self._knows_artifacts:  # once is enough: later, `_seen` notices an older copy
                there = files.keys_in(self._artifacts)
                known = {row[0] for row in transaction.among(sql.KNOWN_KEYS, there)}
                files.refuse_unknown(there - known)
            request = Request(transaction, self, campaign, names, write=True)
            charged = request.charge()
            head = (request.charges.count, request.charges.head) if request.new else self._seen
        self._knows_artifacts, self._seen = True, head  # the block has committed
        return charged

    def price(self, campaign: Campaign, members: Iterable[str]) -> Price:
        """The price of `charge` and what is left before it; nothing is charged.

        A graph that is not the current snapshot's is refused as by `charge`.
        """
        names = _checked(campaign, members)
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, names).price()

    def campaign_key(self, campaign: Campaign) -> str:
        """The key of a campaign on its label's current snapshot."""
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, []).key

    def note(self, key: str) -> dict[str, str] | None:
        """The note of the charge with this key, of a campaign for instance; None if unknown."""
        with self._transaction() as transaction:
            found = transaction.run(sql.NOTE_OF_KEY, key)
            return json.loads(found[0][0]) if found else None

    def shared(self, campaign: Campaign) -> Batch | None:
        """The statistics that a campaign shares; None before its first charge."""
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, []).shared()

    def rows_of(self, campaign: Campaign, members: Iterable[str]) -> dict[str, int]:
        """Who of the members has a row in a campaign, and the number of the charge that has it."""
        names = list(dict.fromkeys(members))
        with self._transaction() as transaction:
            charged = Request(transaction, self, campaign, names).charged
            return {name: charge.seq for name, charge in charged.items()}

    def newcomers(self, campaign: Campaign, members: Iterable[str]) -> Newcomers:
        """Those of the members who have no row in a campaign, by what their budgets allow.

        If they were charged together, that is: of the cap on what all may pool, the first ones get
        what is left.
        """
        names = _checked(campaign, members)
        with self._transaction() as transaction:
            return Request(transaction, self, campaign, names).newcomers()

    def account(self, member: str | None = None) -> Account:
        """What was charged and is left, for one member or (None) the one with the least left."""
        with self._transaction() as transaction:
            return accounts.account(transaction, member)

    def accounts(self) -> list[Account]:
        """The accounts of all members who were charged for rows, the least left first."""
        with self._transaction() as transaction:
            return accounts.accounts(transaction)

    def charges(self, member: str | None = None, *, latest: int | None = None) -> list[Charge]:
        """List all charges, so many of the latest, or those that count for a member, oldest first.

        For a member these are the charges of its own rows and of all public releases.
        """
        with self._transaction() as transaction:
            return accounts.list_charges(transaction, member, latest)

    def entry(self, number: int | None = None) -> tuple[int, str] | None:
        """Number and hash of an entry of the chain, by default the last one; None if it lacks it.

        Whoever keeps both can tell later whether the ledger was restored from an older copy.
        """
        with self._transaction() as transaction:
            last = transaction.run(sql.HEAD)
            if number is None:
                return last[0] if last else None
            found = transaction.run(sql.HASH_AT, number)
            return (number, found[0][0]) if found else None

    def show(self) -> str:
        """Say in a few lines what was charged and what is left."""
        with self._transaction() as transaction:
            lines = accounts.show(transaction)
        return "\n".join([f"ledger {self.location}", *lines])

    def verify(self, known_head: str | None = None, *, artifacts: bool = True) -> str:
        """Recompute the hash chain, all totals and (unless told not to) the artifacts' digests.

        Gives the head, the hash of the last charge; LedgerError at the first thing that does not
        fit. A `known_head` that was noted earlier, somewhere else, must still be part of the
        chain: only this finds every ledger that was restored from an older copy or rewritten.
        """
        folder = self._artifacts if artifacts else None
        # Before the ledger is read: what is written meanwhile was charged already.
        there = files.keys_in(folder)
        with self._transaction() as transaction:
            if isinstance(self._store, SqliteStore):
                self._store.check_pages(transaction)
            found = chain.audit(transaction)
        if known_head is not None and known_head not in found.hashes:
            raise LedgerError(
                "the ledger does not contain the head you noted: records were removed or rewritten"
            )
        files.refuse_unknown(there - found.keys)
        for release in found.releases if folder else ():
            files.find(self.folder, release.key, release.sha256)
        return found.hashes[-1]

    def backup(self, target: str | os.PathLike[str]) -> str:
        """Write a consistent copy to a new file; check it and give its head, to be noted.

        For the case that the ledger is lost: two that are both used are two budgets. See
        ``docs/ledger.md``.
        """
        self._store.backup(Path(target))
        return Ledger.open(target).verify(artifacts=False)

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[Transaction]:
        seen = self._seen  # before the transaction begins: another thread may add to it
        with self._store.transaction(write=write) as transaction:
            transaction.header = chain.read_header(transaction)
            self._known = self._known or transaction.header
            if transaction.header != self._known:
                raise LedgerError(f"{self.location} now holds another ledger than when opened")
            if seen and transaction.run(sql.HASH_AT, seen[0]) != [(seen[1],)]:
                raise LedgerError(
                    f"{self.location} lacks a charge that it held before: it was restored from an "
                    "older copy"
                )
            for head in transaction.run(sql.HEAD):
                self._seen = head
            yield transaction

    @property
    def folder(self) -> Path:
        """Where the artifacts are."""
        if self._artifacts is None:
            raise LedgerError("a ledger in PostgreSQL needs a folder: open it with artifacts=...")
        return self._artifacts

    def _store_batch(self, batch: Batch, writer: Callable[[Path], None]) -> Batch:
        folder, key = self.folder, batch.key
        written = files.write_draft(folder, key, writer)
        with self._transaction(write=True) as transaction:
            # Under the lock: of two processes with the same batch, one renames and records.
            stored = transaction.run(sql.DIGEST_OF_KEY, key)
            if stored:
                digest = stored[0][0]
            elif written is None:
                raise LedgerError("the writer wrote no file at the path it was given")
            else:
                draft, digest = written
                move(draft, folder / key)
                add_release(transaction, key, digest)
        files.clear_drafts(folder, key)
        return replace(batch, secret=b"", members=(), digest=digest)

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


def _checked(campaign: Campaign, members: Iterable[str]) -> list[str]:
    """Each member once; ParameterError for what a database cannot hold."""
    check_text("fingerprint", campaign.fingerprint)
    check_text("label", campaign.label)
    note_text(campaign.note)
    names = list(dict.fromkeys(members))
    if not names:
        raise ParameterError("name at least one member")
    for name in names:
        check_text("a member's name", name)
    return names


def _store_at(location: str | os.PathLike[str]) -> Store:
    """Choose the store by the location's form."""
    text = os.fspath(location)
    is_url = re.match(r"postgres(ql)?://", text)
    return PostgresStore(text) if is_url else SqliteStore(Path(text))
