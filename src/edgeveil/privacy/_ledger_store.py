"""Where a ledger is stored: a SQLite file or a PostgreSQL schema, behind the same few calls.

A store opens a connection for each transaction and closes it afterwards. So there is nothing
that a fork, a thread or a pickle could share by mistake.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from edgeveil.errors import LedgerError
from edgeveil.privacy import _ledger_sql as sql
from edgeveil.privacy._ledger_files import refuse_network_file_system, sync_folder

Row = tuple[Any, ...]
BUSY_SECONDS = 60


class Transaction:
    """Statements that take effect together at `commit`, durably, or not at all."""

    def __init__(self, connection: Any, mark: str) -> None:
        self._cursor = connection.cursor()
        self._mark = mark

    def run(self, statement: str, *parameters: object) -> list[Row]:
        """Run one statement and fetch all it returns."""
        # Without parameters, psycopg takes a '%' in a statement as it is.
        given = (parameters,) if parameters else ()
        self._cursor.execute(statement.replace("?", self._mark), *given)
        return [] if self._cursor.description is None else list(self._cursor.fetchall())

    def many(self, statement: str, rows: Iterable[Row]) -> None:
        """Run one statement for each row of parameters."""
        self._cursor.executemany(statement.replace("?", self._mark), rows)

    def commit(self) -> None:
        """Return only when everything is on disk."""
        self._cursor.execute("COMMIT")


class Store(Protocol):
    """What a ledger needs from its storage."""

    @property
    def shown(self) -> str:
        """The location for people: no password."""

    @property
    def kept(self) -> str:
        """The location for a pickle: no password."""

    @property
    def artifacts(self) -> Path | None:
        """Folder of the artifacts, if the location implies one."""

    def create(self, ledger: Row) -> None:
        """Make an empty ledger with this header; LedgerError if something is there."""

    def check(self, *, deep: bool = False) -> None:
        """Raise LedgerError unless a ledger of our schema version is there, undamaged if deep."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other."""

    def scrub(self) -> None:
        """Remove what an erased secret left behind, as far as the storage allows."""


def store_at(location: str | os.PathLike[str]) -> Store:
    """Choose the store by the location's form."""
    text = os.fspath(location)
    if re.match(r"postgres(ql)?://", text):
        return PostgresStore(text)
    return SqliteStore(Path(text))


class SqliteStore:
    """A ledger in a SQLite file, for one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.shown = self.kept = str(self.path)
        self.artifacts: Path | None = self.path.with_name(self.path.name + ".artifacts")
        refuse_network_file_system(self.path)

    def create(self, ledger: Row) -> None:
        """Build the file under another name, then link it: it appears complete or not at all."""
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with self._errors():
                self._fill(draft, ledger)
            os.link(draft, self.path)  # unlike a rename, this never replaces a file
            sync_folder(self.path.parent)
        except FileExistsError:
            raise LedgerError(
                f"{self.path} exists already; open it, or choose another name"
            ) from None
        except OSError as error:
            raise LedgerError(f"cannot create {self.path}: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)

    def _fill(self, draft: Path, ledger: Row) -> None:
        connection = self._connect(draft)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {sql.SCHEMA_VERSION}")
            transaction = Transaction(connection, "?")
            transaction.run("BEGIN IMMEDIATE")
            for statement in [*sql.statements(sql.TABLES), *sql.sqlite_triggers()]:
                transaction.run(statement)
            transaction.run(sql.ADD_LEDGER, *ledger)
            transaction.commit()
        finally:
            connection.close()

    def check(self, *, deep: bool = False) -> None:
        """Raise LedgerError unless a ledger of our schema version is there, undamaged if deep."""
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}; create one first")
        with self.transaction(write=False) as transaction:
            application = transaction.run("PRAGMA application_id")[0][0]
            version = transaction.run("PRAGMA user_version")[0][0]
            journal = transaction.run("PRAGMA journal_mode")[0][0]
            if application != sql.APPLICATION_ID:
                raise LedgerError(f"{self.path} is not an edgeveil ledger")
            refuse_other_version(version, self.shown)
            damage = transaction.run("PRAGMA integrity_check(1)")[0][0] if deep else "ok"
            if damage != "ok" or journal != "wal" or len(transaction.run(sql.GET_LEDGER)) != 1:
                raise LedgerError(f"the ledger {self.path} is damaged: SQLite's check fails")

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other."""
        with self._errors():
            connection = self._connect(self.path)
            try:
                transaction = Transaction(connection, "?")
                transaction.run("BEGIN IMMEDIATE" if write else "BEGIN")
                yield transaction
                transaction.commit()
            finally:
                connection.close()  # undoes what is not committed

    def scrub(self) -> None:
        """Empty the write-ahead log: it still holds the page with the secret."""
        with suppress(LedgerError), self._errors():
            connection = self._connect(self.path)
            try:
                connection.execute("PRAGMA busy_timeout = 1000")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def _connect(self, path: Path) -> sqlite3.Connection:
        # mode=rw: a file that has gone is an error, never an empty new ledger.
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,  # transactions are begun and committed by us alone
        )
        try:
            # A commit returns only when the log is on disk, even if the power fails.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache too
            connection.execute("PRAGMA secure_delete = ON")  # erased secrets become zeros
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -65536")  # KiB; for very many recipients
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise LedgerError(f"cannot use the ledger {self.path}: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise LedgerError(
                f"{self.path} is not an edgeveil ledger or is damaged: {error}"
            ) from error


class PostgresStore:
    """A ledger in a schema of a PostgreSQL database, for several machines.

    The URL is libpq's, with the schema's name as fragment: ``postgresql://host/db#friends``
    (default: ``edgeveil``), so that one database can hold the ledgers of several graphs.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise LedgerError(
                "a ledger in PostgreSQL needs psycopg: pip install edgeveil[postgres]"
            ) from None
        base, _, fragment = url.partition("#")
        self._schema = fragment or "edgeveil"
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,40}", self._schema):
            raise LedgerError(
                "the part of the PostgreSQL URL after '#' names the schema: small letters, "
                "digits and '_' only (a '#' inside a password is written %23)"
            )
        try:
            self._parameters: dict[str, Any] = dict(conninfo_to_dict(base))
        except psycopg.Error:  # its words may quote the URL, with the password
            raise LedgerError("the PostgreSQL URL of the ledger cannot be read") from None
        self._psycopg = psycopg
        self.shown = self.kept = _url(
            {k: v for k, v in self._parameters.items() if "password" not in k}, self._schema
        )
        self.artifacts: Path | None = None

    def create(self, ledger: Row) -> None:
        """Make the schema and its tables in one transaction."""
        with self.transaction(write=True) as transaction:
            self._refuse_forgetful_server(transaction)
            if transaction.run("SELECT to_regclass(?)", f"{self._schema}.ledger")[0][0]:
                raise LedgerError(
                    f"{self.shown} holds a ledger already; open it, or name another schema"
                )
            transaction.run(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            for statement in [*sql.statements(sql.TABLES), *sql.postgres_triggers()]:
                transaction.run(statement)
            transaction.run(sql.ADD_LEDGER, *ledger)

    def check(self, *, deep: bool = False) -> None:
        """Raise LedgerError unless a ledger of our schema version is there, undamaged if deep."""
        with self.transaction(write=False) as transaction:
            if not transaction.run("SELECT to_regclass(?)", f"{self._schema}.ledger")[0][0]:
                raise LedgerError(f"there is no ledger at {self.shown}; create one first")
            self._refuse_forgetful_server(transaction)
            rows = transaction.run(sql.GET_LEDGER)
            if len(rows) != 1:
                raise LedgerError(f"the ledger {self.shown} is damaged: it has no header")
            refuse_other_version(rows[0][0], self.shown)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other."""
        try:
            connection = self._psycopg.connect(
                **{"connect_timeout": BUSY_SECONDS} | self._parameters, autocommit=True
            )
            try:
                transaction = Transaction(connection, "%s")
                # Writers: each statement must see what was committed before the lock was got,
                # hence READ COMMITTED. Readers: one snapshot for the whole transaction.
                level = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
                transaction.run(f"BEGIN ISOLATION LEVEL {level}")
                transaction.run(f"SET LOCAL search_path TO {self._schema}")
                if write:
                    transaction.run(
                        "SELECT set_config('synchronous_commit', 'on', true) "
                        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
                    )
                    transaction.run(
                        "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))",
                        f"edgeveil ledger {self._schema}",
                    )
                yield transaction
                transaction.commit()
            finally:
                connection.close()  # undoes what is not committed
        except self._psycopg.Error as error:
            # Not chained: a traceback would print the driver's own words.
            raise LedgerError(f"cannot use the ledger {self.shown}: {self._words(error)}") from None

    def scrub(self) -> None:
        """Leave the rest to the server's own VACUUM."""

    def _refuse_forgetful_server(self, transaction: Transaction) -> None:
        if transaction.run("SHOW fsync")[0][0] != "on":
            raise LedgerError(
                f"the server of {self.shown} runs with fsync = off, so a spend could be "
                "forgotten; switch it on"
            )

    def _words(self, error: Exception) -> str:
        """First line of the driver's message, without any password."""
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        for name, value in self._parameters.items():
            if "password" in name and value:
                words = words.replace(str(value), "***")
        return words


def refuse_other_version(version: int, shown: str) -> None:
    """Raise LedgerError if the ledger's schema is not the one this edgeveil knows."""
    if version != sql.SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {shown} has schema version {version}, this edgeveil knows "
            f"{sql.SCHEMA_VERSION}; use the edgeveil that made it"
        )


def _url(parameters: dict[str, Any], schema: str) -> str:
    """Write connection parameters as a URL again."""
    rest = {name: str(value) for name, value in parameters.items()}
    user = quote(rest.pop("user", ""), safe="")
    base = f"{user}@" if user else ""
    if "," not in rest.get("host", ",") + rest.get("port", ""):
        base += quote(rest.pop("host"), safe="")
        base += f":{rest.pop('port')}" if "port" in rest else ""
    base += "/" + quote(rest.pop("dbname", ""), safe="")
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(rest.items()))
    return f"postgresql://{base}{'?' * bool(query)}{query}#{schema}"
