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
from pathlib import Path
from typing import Any, Literal, Self

from edgeveil._files import move, sha256_of
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import book, chain
from edgeveil.ledger import tables as sql
from edgeveil.ledger.book import Account, Price
from edgeveil.ledger.chain import Header, SpendRow
from edgeveil.ledger.charge import MOST_NANO, NANO, Charge, check_text, to_nano
from edgeveil.ledger.postgres import PostgresStore
from edgeveil.ledger.sqlite import SqliteStore
from edgeveil.ledger.store import Store
from edgeveil.ledger.tables import Transaction
from edgeveil.notebook import html_pre

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
        self._seen: tuple[int, str] | None = None  # a spend that must stay, and its hash
        self._knows_artifacts = False
        with store.transaction(write=False) as transaction:
            self._header = self._read_header(transaction)
        if self._header.schema_version < sql.SCHEMA_VERSION:
            with store.transaction(write=True) as transaction:
                found = self._read_header(transaction)  # another process may have been faster
                if found.schema_version < sql.SCHEMA_VERSION:
                    chain.upgrade(transaction, found)
                self._header = self._read_header(transaction)

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
        names = sorted(map(str, ids))
        code = hmac.new(self._header.ledger_id.encode(), b"node set", "sha256")
        code.update(json.dumps(names).encode())
        return code.hexdigest()

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
            64 hex digits, from `key_of` on all that makes this release what it is: graph,
            query, mechanism and code, epsilon, and a nonce of the caller's. A key that was
            reserved before gives the same reservation again and is not charged again.
        charge : Charge
            The price.
        note : mapping of str to str, optional
            A few words for people.
        fingerprint : str
            The graph's fingerprint, for people; the caps do not depend on it.
        label : str
            The public name of the graph whose node set this is.
        node_set : str, optional
            `node_set_digest` of the graph's public node set. The first one that is given for a
            label is remembered, and another one refused: one person under two ids would have
            two budgets.
        new_node_set : bool
            The node set has changed, everybody who stayed kept their id, and this is the one to
            remember from now on.

        Raises
        ------
        BudgetError
            If a cap would be exceeded. Nothing is written.
        LedgerError
            If the key was used with another charge or fingerprint, the node set is another one,
            or the ledger cannot be used.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ParameterError("key must be a SHA-256 digest: 64 hex digits, small letters")
        words = _checked_note(note)
        check_text("fingerprint", fingerprint)
        check_text("label", label)
        self._folder()  # without a place for the artifact, do not spend
        with self._transaction(write=True) as transaction:
            if not self._knows_artifacts:  # once is enough: from now on, `_seen` tells
                self._refuse_unknown_artifacts(transaction)
            head = self._seen
            known = transaction.run(sql.SPEND_OF_KEY, key)
            if known:
                _refuse_another(SpendRow(*known[0]), charge, fingerprint)
            else:
                if node_set is not None:
                    added = book.check_node_set(
                        transaction, self._header, label, node_set, new=new_node_set
                    )
                    if added is not None:
                        transaction.run(sql.ADD_NODE_SET, *added)
                spend = book.add_spend(transaction, self._header, key, charge, words, fingerprint)
                head = spend.seq, spend.hash
            state = _state(transaction, key)
        self._knows_artifacts, self._seen = True, head  # it is committed
        return self._reservation(key, *state)

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
            known = transaction.run(sql.SPEND_OF_KEY, key)
            if known and fingerprint is not None:
                _refuse_another(SpendRow(*known[0]), charge, fingerprint)
            if not known and node_set is not None:
                book.check_node_set(transaction, self._header, label, node_set, new=new_node_set)
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
        folder = self._artifacts if artifacts else None
        # Before the ledger is read: what is written meanwhile has its spend already.
        there = files.keys_in(folder) if folder else set()
        with self._transaction(write=False) as transaction:
            found = chain.audit(transaction, self._header)
        if known_head is not None and known_head not in found.hashes:
            raise LedgerError(
                "the ledger does not contain the head you noted: records were removed or rewritten"
            )
        _refuse_unknown(there - found.keys)
        for release in found.releases:
            if folder is None:
                break
            path, what = folder / release.name, f"the artifact of release {release.seq}"
            chain.expect(path.is_file(), f"{what} is gone")
            chain.expect(sha256_of(path) == release.sha256, f"{what} changed")
        return found.hashes[-1]

    def backup(self, target: str | os.PathLike[str]) -> str:
        """Write a consistent copy to a new file, whoever uses the ledger meanwhile.

        The copy is checked. It is for the case that the ledger is lost: two that are both used
        are two budgets. See ``docs/ledger.md``.

        Returns
        -------
        str
            The head of the copy, to be noted for `verify`.
        """
        self._store.backup(Path(target))
        return Ledger.open(target).verify(artifacts=False)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Transaction]:
        with self._store.transaction(write=write) as transaction:
            if self._read_header(transaction) != self._header:
                raise LedgerError(f"{self.location} now holds another ledger than when opened")
            if self._seen and transaction.run(sql.HASH_AT, self._seen[0]) != [(self._seen[1],)]:
                raise LedgerError(
                    f"{self.location} lacks a spend that it held a moment ago: it was put back to "
                    "an older copy"
                )
            yield transaction

    def _read_header(self, transaction: Transaction) -> Header:
        rows = transaction.run(sql.GET_LEDGER)
        if len(rows) != 1:
            raise LedgerError(f"the ledger {self.location} is damaged: it has no header")
        header = Header(*rows[0])
        if not 1 <= header.schema_version <= sql.SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self.location} has schema version {header.schema_version}, this "
                f"edgeveil knows {sql.SCHEMA_VERSION}; use the edgeveil that made it"
            )
        return header

    def _refuse_unknown_artifacts(self, transaction: Transaction) -> None:
        there = files.keys_in(self._folder())
        _refuse_unknown(there - {key for (key,) in transaction.among(sql.KNOWN_KEYS, there)})

    def _folder(self) -> Path:
        if self._artifacts is None:
            raise LedgerError(
                "a ledger in PostgreSQL needs a folder for the released files: open it with "
                "artifacts=..."
            )
        return self._artifacts

    def _reservation(self, key: str, released: tuple[str, str] | None, secret: str) -> Reservation:
        if released is None:
            return Reservation(key, "reserved", bytes.fromhex(secret), None, self)
        artifact = self._folder() / released[0]
        if not artifact.is_file():
            raise LedgerError(
                f"key {key[:12]}... is released but {artifact} is gone; its noise cannot be "
                "drawn again, so fetch the file from a backup or from the machine that wrote it"
            )
        if sha256_of(artifact) != released[1]:
            raise LedgerError(f"{artifact} was changed since it was released")
        files.clear_drafts(artifact.parent, key)
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
            state = _state(transaction, key)
        return self._reservation(key, *state)

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
        return _reopen, (self.location, folder)


def _store_at(location: str | os.PathLike[str]) -> Store:
    """Choose the store by the location's form."""
    text = os.fspath(location)
    if re.match(r"postgres(ql)?://", text):
        return PostgresStore(text)
    return SqliteStore(Path(text))


def _state(transaction: Transaction, key: str) -> tuple[tuple[str, str] | None, str]:
    """Name and digest of the artifact, or the secret, of a key that has a spend."""
    released = transaction.run(sql.RELEASE_OF_KEY, key)
    stored = transaction.run(sql.SECRET_OF_KEY, key)
    if released:
        return (released[0][0], released[0][1]), ""
    chain.expect(bool(stored), f"the secret of key {key[:12]}... is missing")
    return None, stored[0][0]


def _refuse_unknown(keys: set[str]) -> None:
    if keys:
        raise LedgerError(
            f"the artifacts' folder holds {len(keys)} that this ledger knows nothing of, such as "
            f"{min(keys)[:12]}...: the ledger was put back to an older copy, so spends are "
            "missing, or the folder belongs to another ledger; see docs/ledger.md, Backup"
        )


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
