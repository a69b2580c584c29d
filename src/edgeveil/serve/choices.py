"""What members have asked for: whom they are not interested in, and not to be suggested.

These are members' own words, not edges: hiding names by them is post-processing of lists, holds at
once, and costs nothing (docs/theory/series.md). One SQLite file, in which an answered request is
on disk. Instances that share the file follow one another.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.graph.exclusions import Exclusion
from edgeveil.graph.nodes import NodeSet
from edgeveil.serve.watched_files import check_own

MOST_DISMISSED = 10_000  # names for one member
_TABLES = """
CREATE TABLE IF NOT EXISTS dismissed (
    member TEXT NOT NULL, other TEXT NOT NULL, PRIMARY KEY (member, other)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unsuggested (member TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changed (member TEXT PRIMARY KEY, revision INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER);
INSERT OR IGNORE INTO revision VALUES (1, 0);
"""


class TooMany(EdgeveilError):  # noqa: N818  (an answer)
    """The member has dismissed as many names as fit."""


class Choices:
    """The choices of all members, in the file at `path` (mode 0600).

    Reading takes no lock: dictionaries and sets are changed by single operations.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise EdgeveilError(f"cannot open {path} for choices: {error.strerror}") from error
        check_own(path)
        self.revision = 0  # grows with every change
        self.changed = dict[str, int]()  # the revision of each member's last change for its list
        self._dismissed = dict[str, frozenset[str]]()
        self._unsuggested = set[str]()
        self._version = -1
        with self._using() as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA secure_delete = ON")
            database.executescript(_TABLES)
        self.follow()

    def hidden(self, member: str) -> tuple[Set[str], Set[str]]:
        """Whom the member's list must not name: who is not suggested, and whom it dismissed."""
        return self._unsuggested, self._dismissed.get(member, frozenset())

    def dismissed(self, member: str) -> list[str]:
        """Whom a member is not interested in, sorted."""
        return sorted(self._dismissed.get(member, ()))

    def is_suggested(self, member: str) -> bool:
        """Whether a member may be suggested to others."""
        return member not in self._unsuggested

    def all(self) -> tuple[list[Exclusion], frozenset[str]]:
        """Everybody's dismissals, and who must not be suggested."""
        with self._lock:
            pairs = [
                Exclusion(member, other, "one")
                for member, others in self._dismissed.items()
                for other in others
            ]
            return pairs, frozenset(self._unsuggested)

    # -- changes, which are on disk when a method returns ----------------------------------

    def dismiss(self, member: str, other: str) -> None:
        """Keep a name off a member's list; TooMany if the member has too many such names."""
        if len(self._dismissed.get(member, ())) >= MOST_DISMISSED:
            raise TooMany(f"you have dismissed {MOST_DISMISSED:,} people: undo some first")
        self._change("INSERT OR IGNORE INTO dismissed VALUES (?, ?)", member, other)

    def undo_dismiss(self, member: str, other: str) -> None:
        """Let a name be on a member's list again."""
        self._change("DELETE FROM dismissed WHERE member = ? AND other = ?", member, other)

    def suggest(self, member: str, wanted: bool) -> None:
        """Whether a member may be suggested to others."""
        if wanted:
            self._change("DELETE FROM unsuggested WHERE member = ?", member)
        else:
            self._change("INSERT OR IGNORE INTO unsuggested VALUES (?)", member)

    def forget(self, nodes: NodeSet) -> None:
        """Erase the choices of, and about, all who are not among the nodes."""
        with self._lock:
            names = {*self._dismissed, *self.changed, *self._unsuggested}
            names.update(*self._dismissed.values())
        gone = [(name,) for name in names if nodes.find(nodes.named(name)) is None]
        if not gone:
            return
        with self._using() as database:
            database.execute("BEGIN IMMEDIATE")
            for table, column in (
                ("dismissed", "member"),
                ("dismissed", "other"),
                ("unsuggested", "member"),
                ("changed", "member"),
            ):
                database.executemany(f"DELETE FROM {table} WHERE {column} = ?", gone)
            database.execute("COMMIT")
        self._load()

    def follow(self) -> None:
        """Take over what another instance has changed."""
        with self._using() as database:
            (version,) = database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._load()

    def _change(self, statement: str, *names: str) -> None:
        with self._using() as database:
            database.execute("BEGIN IMMEDIATE")
            if database.execute(statement, names).rowcount:
                database.execute("UPDATE revision SET number = number + 1")
                database.execute(
                    "INSERT OR REPLACE INTO changed SELECT ?, number FROM revision", names[:1]
                )
            database.execute("COMMIT")
            self._read_member(database, names[0])

    def _read_member(self, database: sqlite3.Connection, member: str) -> None:
        """Take over one member's choices. The caller holds the lock."""
        rows = database.execute("SELECT other FROM dismissed WHERE member = ?", (member,))
        self._dismissed[member] = frozenset(other for (other,) in rows)
        row = database.execute("SELECT 1 FROM unsuggested WHERE member = ?", (member,)).fetchone()
        (self._unsuggested.add if row else self._unsuggested.discard)(member)
        (revision,) = database.execute("SELECT number FROM revision").fetchone()
        self.changed[member] = self.revision = revision

    def _load(self) -> None:
        with self._using() as database:
            dismissed = dict[str, set[str]]()
            for member, other in database.execute("SELECT member, other FROM dismissed"):
                dismissed.setdefault(member, set()).add(other)
            self._dismissed = {member: frozenset(names) for member, names in dismissed.items()}
            rows = database.execute("SELECT member FROM unsuggested").fetchall()
            self._unsuggested = {member for (member,) in rows}
            self.changed = dict(database.execute("SELECT member, revision FROM changed").fetchall())
            (self.revision,) = database.execute("SELECT number FROM revision").fetchone()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The database, for one thread at a time; EdgeveilError if it cannot be used."""
        with self._lock:
            try:
                yield self._database()
            except sqlite3.DatabaseError as error:
                self._database().rollback()
                kind = EdgeveilError if isinstance(error, sqlite3.OperationalError) else InputError
                raise kind(f"the members' choices in {self._path}: {error}") from error

    def _database(self) -> sqlite3.Connection:
        """The one connection: `data_version` counts the changes of others."""
        if not hasattr(self, "_connection"):
            self._connection = sqlite3.connect(
                self._path, timeout=5, isolation_level=None, check_same_thread=False
            )
        return self._connection
