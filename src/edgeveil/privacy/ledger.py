"""Ledger: the privacy budget of one graph, on disk, charged before noise is drawn.

Order of a release: reserve (the spend is durable) -> compute -> write the artifact beside its
place, fsync, rename -> mark released. A crash on the way costs at most time: the same key gets
the same secret, hence the same noise, and is not charged again. There are no refunds.

Budget is counted in whole nano-epsilons; see ``docs/ledger.md``.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from edgeveil.errors import LedgerError, ParameterError
from edgeveil.notebook import html_pre
from edgeveil.privacy import _ledger_book as book
from edgeveil.privacy import _ledger_files as files
from edgeveil.privacy import _ledger_sql as sql
from edgeveil.privacy._ledger_book import Account, Price
from edgeveil.privacy._ledger_chain import Header, SpendRow, audit, read_header
from edgeveil.privacy._ledger_charge import (
    MOST_NANO,
    NANO,
    Charge,
    check_text,
    to_nano,
)
from edgeveil.privacy._ledger_store import Store, Transaction, store_at

__all__ = ["Account", "Charge", "Ledger", "Price", "Reservation", "Spend"]

SHOWN_RECIPIENTS = 20


@dataclass(frozen=True)
class Spend:
    """One line of the ledger, for people."""

    seq: int
    created: str
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int
    pooled_nano: int
    note: dict[str, str]
    released: bool


@dataclass(frozen=True)
class Reservation:
    """Budget that is spent for one release.

    Attributes
    ----------
    key : str
        The idempotency key.
    state : {"reserved", "released"}
        Whether the artifact is written.
    secret : bytes
        32 random bytes from which all noise of this release must be derived, and nothing else;
        the same for every retry. Empty once released.
    artifact : Path or None
        Where the artifact is, once released.
    """

    key: str
    state: Literal["reserved", "released"]
    secret: bytes = field(repr=False)
    artifact: Path | None
    _ledger: Ledger = field(repr=False, compare=False)

    def release(self, writer: Callable[[Path], None], *, suffix: str = "") -> Reservation:
        """Write the artifact, mark the key released and erase the secret.

        Parameters
        ----------
        writer : callable
            Writes the artifact to exactly the path it is given. It must write the same values
            whenever it is called for this reservation.
        suffix : str
            End of the file's name, such as ``".parquet"``.

        Returns
        -------
        Reservation
            The released one. If the key is released already, that release stays as it is.
        """
        if self.state == "released":
            return self
        if not re.fullmatch(r"(\.[A-Za-z0-9]{1,16}){0,3}", suffix):
            raise ParameterError(f"suffix must look like '.parquet', got {suffix!r}")
        return self._ledger._release(self.key, writer, suffix)


class Ledger:
    """The budget of one graph and of everything that becomes of it.

    The caps count over all fingerprints in the ledger: a graph that changed since yesterday still
    holds yesterday's edges. A copy of a Ledger is the same Ledger; a pickle holds the location
    only (without any password).

    Use `Ledger.create` or `Ledger.open`.
    """

    def __init__(self, store: Store, artifacts: str | os.PathLike[str] | None) -> None:
        store.check()
        self._store = store
        self._artifacts = Path(artifacts).resolve() if artifacts else store.artifacts
        with store.transaction(write=False) as transaction:
            self._header: Header = read_header(transaction)

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
            What any one recipient may learn in all: public releases and the recipient's own.
        pooled_epsilon : float, optional
            What all recipients together may learn, should they pool all they got.
        artifacts : path, optional
            Folder for the released files. Default for a file: ``<location>.artifacts``. For
            PostgreSQL it must be given before something can be reserved.
        """
        caps = [_checked_cap("epsilon", epsilon), None]
        if pooled_epsilon is not None:
            caps[1] = _checked_cap("pooled_epsilon", pooled_epsilon)
        store = store_at(location)
        store.create((sql.SCHEMA_VERSION, secrets.token_hex(16), *caps, book.now()))
        return cls(store, artifacts)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open an existing ledger; arguments as for `create`."""
        return cls(store_at(location), artifacts)

    @property
    def location(self) -> str:
        """Where the ledger is, without any password."""
        return self._store.shown

    @property
    def epsilon(self) -> float:
        """Cap on what any one recipient may learn."""
        return self._header.epsilon_nano / NANO

    @property
    def pooled_epsilon(self) -> float | None:
        """Cap on what all recipients together may learn, or None."""
        pooled = self._header.pooled_nano
        return None if pooled is None else pooled / NANO

    def key_of(self, question: str) -> str:
        """A key for `reserve` that tells nothing about the question without this ledger.

        The key names the artifact's file. A plain hash of the graph's fingerprint would let
        anyone who sees that name test a guess at the graph; this one is keyed by the ledger's
        own random, never printed id.
        """
        return hmac.digest(self._header.ledger_id.encode(), question.encode(), "sha256").hex()

    def reserve(
        self,
        key: str,
        charge: Charge,
        note: Mapping[str, str] | None = None,
        *,
        fingerprint: str = "",
    ) -> Reservation:
        """Spend budget for a release; on return the spend is on disk.

        Parameters
        ----------
        key : str
            64 hex digits, from `key_of` on all that makes this release what it is: graph,
            query, mechanism and code, epsilon, and a nonce of the caller's. A key that was
            reserved before gives the same reservation again and is not charged again.
        charge : Charge
            The price.
        note : mapping of str to str, optional
            A few words for people.
        fingerprint : str
            The graph's fingerprint, for people; the caps do not depend on it.

        Raises
        ------
        BudgetError
            If a cap would be exceeded. Nothing is written.
        LedgerError
            If the key was used with another charge or fingerprint, or the ledger cannot be used.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ParameterError("key must be a SHA-256 digest: 64 hex digits, small letters")
        words = _checked_note(note)
        check_text("fingerprint", fingerprint)
        self._folder()  # without a place for the artifact, do not spend
        with self._transaction(write=True) as transaction:
            known = transaction.run(sql.SPEND_OF_KEY, key)
            if known:
                _refuse_another(SpendRow(*known[0]), charge, fingerprint)
                return self._reservation(transaction, key)
            book.add_spend(transaction, self._header, key, charge, words, fingerprint)
            return self._reservation(transaction, key)  # the block commits before we return

    def account(self, recipient: str | None = None) -> Account:
        """What is spent and left, for one recipient or (None) for the one with the least left."""
        with self._transaction(write=False) as transaction:
            return book.account(transaction, self._header, recipient)

    def accounts(self) -> list[Account]:
        """The accounts of all who got a row, those with the least left first."""
        with self._transaction(write=False) as transaction:
            return book.accounts(transaction, self._header)

    def price(self, key: str, charge: Charge, fingerprint: str | None = None) -> Price:
        """What `reserve` would cost and what is left before it; nothing is spent.

        With a fingerprint, what `reserve` would refuse for its sake is refused here, too.
        """
        with self._transaction(write=False) as transaction:
            known = transaction.run(sql.SPEND_OF_KEY, key)
            if known and fingerprint is not None:
                _refuse_another(SpendRow(*known[0]), charge, fingerprint)
            return book.price(transaction, self._header, key, charge)

    def spends(self) -> list[Spend]:
        """List all spends, oldest first."""
        with self._transaction(write=False) as transaction:
            released = {row[1] for row in transaction.run(sql.GET_RELEASES)}
            rows = [SpendRow(*row) for row in transaction.run(sql.GET_SPENDS)]
        return [
            Spend(
                row.seq,
                row.created,
                row.key,
                row.fingerprint,
                row.model,
                row.epsilon_nano,
                row.pooled_nano,
                json.loads(row.note),
                row.key in released,
            )
            for row in rows
        ]

    def show(self) -> str:
        """Say in a few lines what is spent and left."""
        with self._transaction(write=False) as transaction:
            lines = book.show(transaction, self._header, SHOWN_RECIPIENTS)
        return "\n".join([f"ledger {self.location}", *lines])

    def verify(self, known_head: str | None = None, *, artifacts: bool = True) -> str:
        """Recompute the hash chain, all totals and the artifacts' digests.

        Parameters
        ----------
        known_head : str, optional
            A head noted earlier, somewhere else; it must still be part of the chain. Only this
            finds a ledger that was put back to an older copy or rewritten as a whole.
        artifacts : bool
            Also read the released files, if their folder is known.

        Returns
        -------
        str
            The head: the hash of the last spend.

        Raises
        ------
        LedgerError
            At the first thing that does not fit.
        """
        self._store.check(deep=True)
        with self._transaction(write=False) as transaction:
            return audit(transaction, known_head, self._artifacts if artifacts else None)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Transaction]:
        with self._store.transaction(write=write) as transaction:
            if read_header(transaction) != self._header:
                raise LedgerError(f"{self.location} now holds another ledger than when opened")
            yield transaction

    def _folder(self) -> Path:
        if self._artifacts is None:
            raise LedgerError(
                "a ledger in PostgreSQL needs a folder for the released files: open it with "
                "artifacts=..."
            )
        return self._artifacts

    def _reservation(self, transaction: Transaction, key: str) -> Reservation:
        """State of a key that has a spend."""
        released = transaction.run(sql.RELEASE_OF_KEY, key)
        if released:
            artifact = self._folder() / released[0][0]
            if not artifact.is_file():
                raise LedgerError(
                    f"key {key[:12]}... is released but {artifact} is gone; its noise cannot be "
                    "drawn again, so fetch the file from a backup or from the machine that wrote it"
                )
            if files.sha256_of(artifact) != released[0][1]:
                raise LedgerError(f"{artifact} was changed since it was released")
            files.clear_drafts(artifact.parent, key)
            return Reservation(key, "released", b"", artifact, self)
        stored = transaction.run(sql.SECRET_OF_KEY, key)
        if not stored:
            raise LedgerError(f"the ledger is damaged: the secret of key {key[:12]}... is missing")
        return Reservation(key, "reserved", bytes.fromhex(stored[0][0]), None, self)

    def _release(self, key: str, writer: Callable[[Path], None], suffix: str) -> Reservation:
        folder = self._folder()
        draft = files.write_draft(folder, key, suffix, writer)
        digest = files.sha256_of(draft) if draft else ""
        with self._transaction(write=True) as transaction:
            # Under the lock: of two processes with the same key, one renames and records.
            if not transaction.run(sql.RELEASE_OF_KEY, key):
                if draft is None:
                    raise LedgerError("the writer wrote no file at the path it was given")
                files.publish_draft(draft, folder / draft.name)
                book.add_release(transaction, self._header, key, draft.name, digest)
        self._store.scrub()
        with self._transaction(write=False) as transaction:
            return self._reservation(transaction, key)

    def __repr__(self) -> str:
        return f"Ledger({self.location!r}, epsilon={self.epsilon:g})"

    def _repr_html_(self) -> str:
        return html_pre(self.show())

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[str, str | None]]:
        folder = None if self._artifacts == self._store.artifacts else str(self._artifacts)
        return _reopen, (self._store.kept, folder)


def _refuse_another(spend: SpendRow, charge: Charge, fingerprint: str) -> None:
    """Refuse a known key with another graph or price."""
    if spend.fingerprint != fingerprint:
        raise LedgerError(
            "this was asked before, of another state of the graph; to ask again, give a nonce, "
            "and choose nonces by a public schedule such as the date: a new answer just when the "
            "graph has changed tells that it has"
        )
    if spend.charge != charge.digest:
        raise LedgerError(
            f"key {spend.key[:12]}... was reserved before with another charge; "
            "a key stands for one release"
        )


def _reopen(location: str, artifacts: str | None) -> Ledger:
    return Ledger.open(location, artifacts=artifacts)


def _checked_cap(name: str, epsilon: float) -> int:
    if not 0 < epsilon <= MOST_NANO // NANO:
        raise ParameterError(f"{name} must be a positive number up to 9e9, got {epsilon}")
    return to_nano(epsilon)


def _checked_note(note: Mapping[str, str] | None) -> str:
    words = dict(note or {})
    if not all(isinstance(part, str) for pair in words.items() for part in pair):
        raise ParameterError("note must map text to text")
    text = json.dumps(words, sort_keys=True)
    if len(text) > 10_000:
        raise ParameterError(f"note must be small (10 000 characters), got {len(text)}")
    return text
