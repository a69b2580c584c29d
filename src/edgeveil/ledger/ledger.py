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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from edgeveil._files import move, sha256_of
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import book, chain
from edgeveil.ledger import tables as sql
from edgeveil.ledger.book import Account, Price, Spend
from edgeveil.ledger.charge import NANO, Charge, cap_nano, check_text, note_text
from edgeveil.ledger.postgres import PostgresStore
from edgeveil.ledger.sqlite import SqliteStore
from edgeveil.ledger.tables import Transaction
from edgeveil.notebook import html_pre

__all__ = ["Account", "Charge", "Ledger", "Price", "Reservation", "Spend"]

Store = SqliteStore | PostgresStore  # both have the same few methods


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
        self._seen: tuple[Any, ...] | None = None  # a spend that must stay, and its hash
        self._knows_artifacts = False
        with store.transaction(write=False) as transaction:
            self._header = chain.read_header(transaction)
        if self._header.schema_version < sql.SCHEMA_VERSION:
            with store.transaction(write=True) as transaction:
                chain.upgrade(transaction)
                self._header = chain.read_header(transaction)

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
        caps = [cap_nano("epsilon", epsilon), None]
        if pooled_epsilon is not None:
            caps[1] = cap_nano("pooled_epsilon", pooled_epsilon)
        store = _store_at(location)
        store.create((secrets.token_hex(16), *caps, book.now()))
        return cls(store, artifacts)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        artifacts: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Open an existing ledger; arguments as for `create`."""
        return cls(_store_at(location), artifacts)

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

    def node_set_digest(self, ids: Iterable[object]) -> str:
        """Stand for a public node set in `reserve`: the same for the same ids in any order.

        Keyed by the ledger's random id, as `key_of`. 1 and "1" are the same id: they name the
        same recipient.
        """
        return self.key_of("node set" + json.dumps(sorted(map(str, ids))))

    def reserve(
        self,
        key: str,
        charge: Charge,
        note: Mapping[str, str] | None = None,
        *,
        fingerprint: str = "",
        label: str = "",
        node_set: str | None = None,
        new_node_set: bool = False,
    ) -> Reservation:
        """Spend budget for a release; on return the spend is on disk.

        Parameters
        ----------
        key : str
            64 hex digits, from `key_of` on all that makes this release what it is. A key that
            was reserved before gives the same reservation again and is not charged again.
        charge : Charge
            The price.
        note : mapping of str to str, optional
            A few words for people.
        fingerprint : str
            The graph's fingerprint, for people; the caps do not depend on it.
        label : str
            The public name of the graph whose node set this is.
        node_set : str, optional
            `node_set_digest` of the graph's public node set. A label's first one is remembered
            and another one refused: one person under two ids would have two budgets.
        new_node_set : bool
            The node set has changed, everybody who stayed kept their id: remember it instead.

        Raises
        ------
        BudgetError
            If a cap would be exceeded. Nothing is written.
        LedgerError
            If key or label stand for something else already, or the ledger cannot be used.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ParameterError("key must be a SHA-256 digest: 64 hex digits, small letters")
        words = note_text(note)
        check_text("fingerprint", fingerprint)
        check_text("label", label)
        self._folder()  # without a place for the artifact, do not spend
        with self._transaction(write=True) as transaction:
            if not self._knows_artifacts:  # once is enough: later, `_seen` notices an older copy
                there = files.keys_in(self._artifacts)
                known = {row[0] for row in transaction.among(sql.KNOWN_KEYS, there)}
                files.refuse_unknown(there - known)
            head = self._seen
            if not book.is_known(transaction, key, charge, fingerprint):
                book.check_node_set(
                    transaction, self._header, label, node_set, new=new_node_set, write=True
                )
                spend = book.add_spend(transaction, self._header, key, charge, words, fingerprint)
                head = spend.seq, spend.hash
            state = book.state_of(transaction, key)
        self._knows_artifacts, self._seen = True, head  # the block has committed
        return self._reservation(key, state)

    def account(self, recipient: str | None = None) -> Account:
        """What is spent and left, for one recipient or (None) for the one with the least left."""
        with self._transaction(write=False) as transaction:
            return book.account(transaction, self._header, recipient)

    def accounts(self) -> list[Account]:
        """The accounts of all who got a row, those with the least left first."""
        with self._transaction(write=False) as transaction:
            return book.accounts(transaction, self._header)

    def price(
        self,
        key: str,
        charge: Charge,
        fingerprint: str | None = None,
        *,
        label: str = "",
        node_set: str | None = None,
        new_node_set: bool = False,
    ) -> Price:
        """What `reserve` would cost and what is left before it; nothing is spent.

        With a fingerprint or a node set, what `reserve` would refuse for its sake is refused
        here, too.
        """
        with self._transaction(write=False) as transaction:
            if not book.is_known(transaction, key, charge, fingerprint):
                book.check_node_set(transaction, self._header, label, node_set, new=new_node_set)
            return book.price(transaction, self._header, key, charge)

    def spends(self) -> list[Spend]:
        """List all spends, oldest first."""
        with self._transaction(write=False) as transaction:
            return book.spends(transaction)

    def show(self) -> str:
        """Say in a few lines what is spent and left."""
        with self._transaction(write=False) as transaction:
            lines = book.show(transaction, self._header)
        return "\n".join([f"ledger {self.location}", *lines])

    def verify(self, known_head: str | None = None, *, artifacts: bool = True) -> str:
        """Recompute the hash chain, all totals and the artifacts' digests.

        Parameters
        ----------
        known_head : str, optional
            A head noted earlier, somewhere else; it must still be part of the chain. Only this
            finds every ledger that was put back to an older copy or rewritten as a whole.
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
        folder = self._artifacts if artifacts else None
        # Before the ledger is read: what is written meanwhile has its spend already.
        there = files.keys_in(folder)
        with self._transaction(write=False) as transaction:
            found = chain.audit(transaction, self._header)
        if known_head is not None and known_head not in found.hashes:
            raise LedgerError(
                "the ledger does not contain the head you noted: records were removed or rewritten"
            )
        files.refuse_unknown(there - found.keys)
        for release in found.releases if folder else ():
            files.find(self._folder(), release.key, release.name, release.sha256)
        return found.hashes[-1]

    def backup(self, target: str | os.PathLike[str]) -> str:
        """Write a consistent copy to a new file; check it and give its head, to be noted.

        For the case that the ledger is lost: two that are both used are two budgets. See
        ``docs/ledger.md``.
        """
        self._store.backup(Path(target))
        return Ledger.open(target).verify(artifacts=False)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Transaction]:
        seen = self._seen  # before the transaction begins: another thread may add to it
        with self._store.transaction(write=write) as transaction:
            if chain.read_header(transaction) != self._header:
                raise LedgerError(f"{self.location} now holds another ledger than when opened")
            if seen and transaction.run(sql.HASH_AT, seen[0]) != [(seen[1],)]:
                raise LedgerError(
                    f"{self.location} lacks a spend that it held before: it was put back to an "
                    "older copy"
                )
            for head in transaction.run(sql.HEAD):
                self._seen = head
            yield transaction

    def _folder(self) -> Path:
        if self._artifacts is None:
            raise LedgerError("a ledger in PostgreSQL needs a folder: open it with artifacts=...")
        return self._artifacts

    def _reservation(self, key: str, state: book.KeyState) -> Reservation:
        released, secret = state
        if released is None:
            return Reservation(key, "reserved", secret, None, self)
        artifact = files.find(self._folder(), key, *released)
        files.clear_drafts(self._folder(), key)
        return Reservation(key, "released", b"", artifact, self)

    def _release(self, key: str, writer: Callable[[Path], None], suffix: str) -> Reservation:
        folder = self._folder()
        draft = files.write_draft(folder, key, suffix, writer)
        digest = sha256_of(draft) if draft else ""
        with self._transaction(write=True) as transaction:
            # Under the lock: of two processes with the same key, one renames and records.
            if not transaction.run(sql.RELEASE_OF_KEY, key):
                if draft is None:
                    raise LedgerError("the writer wrote no file at the path it was given")
                move(draft, folder / draft.name)
                book.add_release(transaction, self._header, key, draft.name, digest)
            state = book.state_of(transaction, key)
        return self._reservation(key, state)

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


def _store_at(location: str | os.PathLike[str]) -> Store:
    """Choose the store by the location's form."""
    text = os.fspath(location)
    is_url = re.match(r"postgres(ql)?://", text)
    return PostgresStore(text) if is_url else SqliteStore(Path(text))
