"""A ledger in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edgeveil.errors import LedgerError
from edgeveil.ledger import transactions
from edgeveil.ledger.transactions import BUSY_SECONDS, Transaction, UnusableError


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
        self.shown = _url(
            {k: v for k, v in self._parameters.items() if "password" not in k}, self._schema
        )
        self._place = tuple(sorted(self._parameters.items()))  # of the server
        self.artifacts: Path | None = None

    def create(self, header: tuple[Any, ...]) -> None:
        """Make the schema and its tables in one transaction."""
        with self._begun(write=True) as transaction:
            if self._is_there(transaction):
                raise LedgerError(
                    f"{self.shown} holds a ledger already; open it, or name another schema"
                )
            transaction.run(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            transactions.create(transaction, header)

    def session(self) -> AbstractContextManager[None]:
        """One connection for all transactions of this thread within the block."""
        return transactions.session(self._place)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other.

        LedgerError unless a ledger is there.
        """
        with self._begun(write=write) as transaction:
            if not self._is_there(transaction):
                raise LedgerError(
                    f"there is no ledger at {self.shown}; edgeveil ledger create makes one"
                )
            yield transaction

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[Transaction]:
        try:
            with transactions.connection(self._place, self._connect, self._is_alive) as connection:
                transaction = Transaction(connection, mark="%s")
                # Writers: each statement must see what was committed before the lock was taken,
                # hence READ COMMITTED. Readers: one snapshot for the whole transaction.
                level = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
                transaction.run(f"BEGIN ISOLATION LEVEL {level}")
                transaction.run(f"SET LOCAL search_path TO {self._schema}")
                # All look-ups have an index. After thousands of new rows the planner's statistics
                # are out of date, and it might scan whole tables.
                transaction.run("SET LOCAL enable_seqscan TO off")
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
        except self._psycopg.Error as error:
            # Not chained: a traceback would print the driver's own words.
            words = self._words(error)
            raise UnusableError(f"cannot use the ledger {self.shown}: {words}") from None

    def _connect(self) -> Any:
        return self._psycopg.connect(
            **{"connect_timeout": BUSY_SECONDS} | self._parameters,
            autocommit=True,
            prepare_threshold=None,  # a prepared plan ignores the values and may be slow
        )

    def _is_alive(self, connection: Any) -> bool:
        """Whether the server, or something between, has not closed an idle connection."""
        try:
            connection.execute("SELECT 1")
        except self._psycopg.Error:
            return False
        return True

    def backup(self, target: Path) -> None:
        """Refused: the server has its own tools."""
        raise LedgerError(
            f"a ledger in PostgreSQL is backed up by the server's tools, such as pg_dump "
            f"--schema={self._schema}"
        )

    def _is_there(self, transaction: Transaction) -> bool:
        looked_up = "SELECT current_setting('fsync'), to_regclass(?)"
        [(fsync, table)] = transaction.run(looked_up, f"{self._schema}.ledger")
        if fsync != "on":
            raise LedgerError(
                f"the server of {self.shown} runs with fsync = off, so a charge could be "
                "forgotten; switch it on"
            )
        return table is not None

    def _words(self, error: Exception) -> str:
        """First line of the driver's message, without any password."""
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        for name, value in self._parameters.items():
            if "password" in name and value:
                words = words.replace(str(value), "***")
        return words


def _url(parameters: dict[str, Any], schema: str) -> str:
    """Connection parameters as a URL."""
    rest = {name: str(value) for name, value in parameters.items()}
    user = quote(rest.pop("user", ""), safe="")
    base = f"{user}@" if user else ""
    if "," not in rest.get("host", ",") + rest.get("port", ""):
        base += quote(rest.pop("host"), safe="")
        base += f":{rest.pop('port')}" if "port" in rest else ""
    base += "/" + quote(rest.pop("dbname", ""), safe="")
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in sorted(rest.items()))
    return f"postgresql://{base}{'?' * bool(query)}{query}#{schema}"
