"""A ledger in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edgeveil._files import sync_folder
from edgeveil.errors import LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.places import refuse_unsafe_place
from edgeveil.ledger.tables import BUSY_SECONDS, Transaction, UnusableError


class SqliteStore:
    """A ledger in a SQLite file, for one machine.

    With a rollback journal, not a write-ahead log: what is committed is in the file itself, so
    no copy of it lacks the latest spends, and the lock that a writer holds is one on the file
    (its inode), not on a second file beside the name under which it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.shown = str(self.path)
        self.artifacts: Path | None = self.path.with_name(self.path.name + ".artifacts")

    def create(self, header: tuple[Any, ...]) -> None:
        """Make the file and fill it in one transaction."""
        with self._new_file(self.path), self.transaction(write=True) as transaction:
            sql.create(transaction, header)

    def check(self, *, deep: bool = False) -> None:
        """Raise LedgerError unless a ledger is there that can be relied on, undamaged if deep."""
        if not self.path.is_file():
            refuse_unsafe_place(self.path)
            raise LedgerError(f"there is no ledger at {self.path}; create one first")
        with self._connected(self.path) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != sql.APPLICATION_ID:
                raise LedgerError(f"{self.path} is not an edgeveil ledger")
            # Files of version 1 have a write-ahead log: it is written back and goes.
            journal = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            damage = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] if deep else "ok"
            if damage != "ok" or journal != "delete":
                raise LedgerError(f"the ledger {self.path} is damaged: SQLite's check fails")

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other."""
        with self._connected(self.path) as connection:  # closing undoes what is not committed
            transaction = Transaction(connection, sql.SQLITE)
            transaction.run("BEGIN IMMEDIATE" if write else "BEGIN")
            yield transaction
            transaction.commit()

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a new file, with SQLite's own means."""
        target = target.expanduser().resolve()
        with (
            self._new_file(target),
            self._connected(self.path) as source,
            self._connected(target) as copy,
        ):
            source.backup(copy)

    @contextmanager
    def _new_file(self, path: Path) -> Iterator[None]:
        """Make an empty file to be filled within the block; it goes if that fails."""
        refuse_unsafe_place(path)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists already; open it, or choose another name") from None
        except OSError as error:
            raise LedgerError(f"cannot create {path}: {error.strerror}") from error
        try:
            yield
            sync_folder(path.parent)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    @contextmanager
    def _connected(self, path: Path) -> Iterator[sqlite3.Connection]:
        refuse_unsafe_place(path)
        try:
            # mode=rw: a file that has gone is an error, never an empty new ledger.
            opened = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,  # transactions are begun and committed by us alone
            )
            with closing(opened) as connection:
                # A commit returns only when the file is on disk and the journal's name is gone
                # from it, even if the power fails.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache too
                connection.execute("PRAGMA secure_delete = ON")  # erased secrets become zeros
                connection.execute("PRAGMA temp_store = MEMORY")  # no page of ours in other files
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA cache_size = -65536")  # KiB; for very many recipients
                yield connection
        except sqlite3.OperationalError as error:
            raise UnusableError(f"cannot use the ledger {path}: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise LedgerError(f"{path} is not an edgeveil ledger or is damaged: {error}") from error
