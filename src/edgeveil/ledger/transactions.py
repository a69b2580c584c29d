"""Transactions, and the connections of threads: what both databases have in common.

Opening a connection takes longer than most transactions, so a thread may keep one open for a
session. A kept connection is lent to one transaction at a time and, after an error, closed, which
undoes what was not committed. A process that was forked meanwhile opens its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql

BUSY_SECONDS = 60  # how long to wait for a lock or a server


class UnusableError(LedgerError):
    """The database cannot be used at present: locked, unreachable, or its disk is full."""


class Transaction:
    """Statements that take effect together at `commit`, durably, or not at all.

    Each has a connection of its own, so that no fork, thread or pickle shares one by mistake. The
    two databases differ in how a parameter is marked, and in how a transaction begins.
    """

    header: sql.Header  # of the ledger; set by `Ledger`, which reads it first

    def __init__(self, connection: Any, mark: str) -> None:
        self._cursor = connection.cursor()
        self._mark = mark

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement and fetch all it returns."""
        self._cursor.execute(statement.replace("?", self._mark), parameters)
        return [] if self._cursor.description is None else list(self._cursor.fetchall())

    def among(self, statement: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Run a statement with ``IN ({})`` of the values, some hundred at a time."""
        for group in _in_groups(values):
            yield from self.run(statement.format(", ".join("?" * len(group))), *group)

    def insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, with all its columns in order."""
        for group in _in_groups(rows):
            row = f"({', '.join('?' * len(group[0]))})"
            values = ", ".join([row] * len(group))
            self.run(f"INSERT INTO {table} VALUES {values}", *chain.from_iterable(group))

    def commit(self) -> None:
        """Return only when everything is on disk."""
        self._cursor.execute("COMMIT")


def _in_groups(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Few enough for every database's limit of parameters (SQLite once had 999)."""
    rest = iter(items)
    while group := list(islice(rest, 400)):
        yield group


def create(transaction: Transaction, header: tuple[Any, ...]) -> None:
    """Make the tables of a new ledger and write its header."""
    for statement in sql.TABLES.split(";"):
        transaction.run(statement)
    transaction.insert("ledger", [(sql.FORMAT, *header)])


class _Sessions(threading.local):
    """The sessions of a thread: each place with its idle connection, None if there is none."""

    def __init__(self) -> None:
        self.idle: dict[Hashable, Any] = {}


_sessions = _Sessions()


@contextmanager
def session(place: Hashable) -> Iterator[None]:
    """Keep one connection to `place` within the block, for transactions of this thread."""
    key = (os.getpid(), place)
    if key in _sessions.idle:
        yield
        return
    _sessions.idle[key] = None
    try:
        yield
    finally:
        idle = _sessions.idle.pop(key)
        if idle is not None:
            idle.close()


@contextmanager
def connection(
    place: Hashable,
    connect: Callable[[], Any],
    is_alive: Callable[[Any], bool] = lambda connection: True,
) -> Iterator[Any]:
    """The session's connection, if it is still alive, or one for this block alone."""
    key = (os.getpid(), place)
    opened = _sessions.idle.get(key)
    if opened is None or not is_alive(opened):
        opened = connect()
    if key in _sessions.idle:
        _sessions.idle[key] = None  # lent
    try:
        yield opened
    except BaseException:
        opened.close()
        raise
    if key in _sessions.idle and _sessions.idle[key] is None:
        _sessions.idle[key] = opened
    else:
        opened.close()
