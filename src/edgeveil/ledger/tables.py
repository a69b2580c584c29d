"""All SQL of the ledger, for SQLite and PostgreSQL, in one place.

The tables and the statements are the same text for both (placeholders are written ``?``); only
the triggers, which make the tables append-only, are written for each (`sqlite`, `postgres`).

- ``ledger``: one row, the caps.
- ``spends``: one row for each batch, chained by hashes, with running totals; before a campaign's
  first batch one that costs nothing, whose artifact is what all rows of the campaign share.
- ``recipient_spends``: who got a row by a spend and what it cost them, with the recipient's
  running total, sealed by a hash that ties it to its spend.
- ``releases``: one row for each spend whose artifact is written, chained by hashes.
- ``snapshots``: which snapshot of a label is the current one (no fingerprint yet), and which graph
  it turned out to be, chained by hashes.
- ``secrets``: the secret of each spend that is not released yet. The only rows that go away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from edgeveil.errors import LedgerError

SCHEMA_VERSION = 3
BUSY_SECONDS = 60  # how long to wait for a lock or a server


class Header(NamedTuple):
    """The one row of table ``ledger``."""

    schema_version: int
    ledger_id: str
    epsilon_nano: int
    pooled_nano: int | None
    created: str
    window: int | None = None


class SpendRow(NamedTuple):
    """A row of table ``spends``.

    A row of version 1 has no `greatest_total`, and one before version 3 nothing of what follows.
    `n_rows` are the rows of this batch, `campaign_rows` those of its campaign so far.
    """

    seq: int
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int
    pooled_nano: int
    charge: str
    note: str
    created: str
    public_total: int
    pooled_total: int
    greatest_total: int | None
    campaign: str | None
    label: str | None
    snapshot: int | None
    n_rows: int | None
    campaign_rows: int | None
    code: str | None
    hash: str = ""


class ReleaseRow(NamedTuple):
    """A row of table ``releases``."""

    seq: int
    key: str
    name: str
    sha256: str
    created: str
    hash: str = ""


class SnapshotRow(NamedTuple):
    """A row of table ``snapshots``: declared, and later, with a fingerprint, used."""

    seq: int
    label: str
    number: int
    fingerprint: str | None
    created: str
    hash: str = ""


# What each version changes in the one before: a new ledger is made by all of them, an old one is
# completed by the later ones.
TABLES_1 = """
CREATE TABLE ledger (
    schema_version BIGINT NOT NULL,
    ledger_id TEXT NOT NULL,
    epsilon_nano BIGINT NOT NULL,
    pooled_nano BIGINT,
    created TEXT NOT NULL
);
CREATE TABLE spends (
    seq BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    model TEXT NOT NULL CHECK (model IN ('joint', 'public')),
    epsilon_nano BIGINT NOT NULL CHECK (epsilon_nano >= 0),
    pooled_nano BIGINT NOT NULL CHECK (pooled_nano >= 0),
    charge TEXT NOT NULL,
    note TEXT NOT NULL,
    created TEXT NOT NULL,
    public_total BIGINT NOT NULL,
    pooled_total BIGINT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE recipient_spends (
    seq BIGINT NOT NULL REFERENCES spends (seq),
    recipient TEXT NOT NULL,
    nano BIGINT NOT NULL CHECK (nano >= 0),
    total BIGINT NOT NULL,
    PRIMARY KEY (seq, recipient)
);
CREATE INDEX recipient_spends_by_recipient ON recipient_spends (recipient, total);
CREATE INDEX recipient_spends_by_total ON recipient_spends (total);
CREATE TABLE releases (
    seq BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE REFERENCES spends (key),
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    created TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE secrets (
    key TEXT PRIMARY KEY REFERENCES spends (key),
    secret TEXT NOT NULL
)
"""
TABLES_2 = """
ALTER TABLE spends ADD COLUMN greatest_total BIGINT;
ALTER TABLE recipient_spends ADD COLUMN seal TEXT NOT NULL DEFAULT '';
DROP INDEX recipient_spends_by_recipient;
CREATE INDEX recipient_spends_by_recipient ON recipient_spends (recipient, seq);
CREATE TABLE node_sets (
    seq BIGINT PRIMARY KEY,
    label TEXT NOT NULL,
    digest TEXT NOT NULL,
    created TEXT NOT NULL,
    hash TEXT NOT NULL
)
"""

TABLES_3 = """
ALTER TABLE ledger ADD COLUMN window_size BIGINT;
ALTER TABLE spends ADD COLUMN campaign TEXT;
ALTER TABLE spends ADD COLUMN label TEXT;
ALTER TABLE spends ADD COLUMN snapshot BIGINT;
ALTER TABLE spends ADD COLUMN n_rows BIGINT;
ALTER TABLE spends ADD COLUMN campaign_rows BIGINT;
ALTER TABLE spends ADD COLUMN code TEXT;
CREATE INDEX spends_by_campaign ON spends (campaign, seq);
CREATE INDEX spends_by_snapshot ON spends (snapshot, seq);
DROP TABLE node_sets;
CREATE TABLE snapshots (
    seq BIGINT PRIMARY KEY,
    label TEXT NOT NULL,
    number BIGINT NOT NULL,
    fingerprint TEXT,
    created TEXT NOT NULL,
    hash TEXT NOT NULL
)
"""
TABLES = (TABLES_1, TABLES_2, TABLES_3)

# SQLite's INSERT OR REPLACE removes rows without firing DELETE triggers, so inserts are guarded
# too: a new row must continue the sequence and must not meet an old one.
_NEXT = "NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM {table})"
_SAME_KEY = "EXISTS (SELECT 1 FROM {table} WHERE key = NEW.key)"
NO_INSERT = {
    "ledger": "EXISTS (SELECT 1 FROM ledger)",
    "spends": f"{_NEXT} OR {_SAME_KEY}",
    "recipient_spends": """
        NEW.seq IS NOT (SELECT max(seq) FROM spends) OR EXISTS (
            SELECT 1 FROM recipient_spends WHERE seq = NEW.seq AND recipient = NEW.recipient)""",
    "releases": f"{_NEXT} OR {_SAME_KEY}",
    "snapshots": _NEXT,
    "secrets": _SAME_KEY,
}
UNRELEASED = "NOT EXISTS (SELECT 1 FROM releases WHERE key = OLD.key)"
STAYS = "a secret stays until its artifact is released"


class UnusableError(LedgerError):
    """The database cannot be used just now: locked, unreachable, or its disk is full."""


class Transaction:
    """Statements that take effect together at `commit`, durably, or not at all.

    Each has a connection of its own, so that no fork, thread or pickle shares one by mistake. What
    the two databases write differently is in their subclasses.
    """

    header: Header  # of the ledger, by the time that it was read
    mark: str  # the placeholder of a parameter
    before: tuple[str, ...]  # statements that `guard` rests on
    stamp: tuple[str, ...]  # statements that mark the database as one of ours

    def __init__(self, connection: Any) -> None:
        self._cursor = connection.cursor()

    def guard(self, table: str) -> list[str]:
        """Statements that make a table append-only."""
        raise NotImplementedError

    def unguard(self, table: str) -> list[str]:
        """Statements that allow changes within a transaction."""
        raise NotImplementedError

    def fill(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table: all its columns in order, or those named after it in brackets."""
        raise NotImplementedError

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement and fetch all it returns."""
        # Without parameters, psycopg takes a '%' in a statement as it is.
        given = (parameters,) if parameters else ()
        self._cursor.execute(statement.replace("?", self.mark), *given)
        return [] if self._cursor.description is None else list(self._cursor.fetchall())

    def among(self, statement: str, values: Iterable[Any], *more: Any) -> list[tuple[Any, ...]]:
        """Run a statement with `more`, then ``IN ({})`` of the values, some hundred at a time."""
        listed, rows = list(values), []
        for start in range(0, len(listed), 500):  # below every database's limit of parameters
            some = listed[start : start + 500]
            rows += self.run(statement.format(", ".join("?" * len(some))), *more, *some)
        return rows

    def many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run one statement for each row of parameters."""
        self._cursor.executemany(statement.replace("?", self.mark), rows)

    def commit(self) -> None:
        """Return only when everything is on disk."""
        self._cursor.execute("COMMIT")


def create(transaction: Transaction, header: tuple[Any, ...]) -> None:
    """Make the tables of a new ledger, append-only, and write its header."""
    guards = [line for table in NO_INSERT for line in transaction.guard(table)]
    for statement in [*_tables_after(0), *transaction.before, *guards, *transaction.stamp]:
        transaction.run(statement)
    transaction.fill("ledger", [(SCHEMA_VERSION, *header)])


@contextmanager
def completing(transaction: Transaction, version: int) -> Iterator[None]:
    """Make a ledger of an older version one of the current version.

    In the block the tables are complete, and seals (`SET_SEAL`) can be written.
    """
    changed = ("ledger", "recipient_spends")
    unguards = [line for table in changed for line in transaction.unguard(table)]
    for statement in [*unguards, *_tables_after(version)]:
        transaction.run(statement)
    yield
    transaction.run("UPDATE ledger SET schema_version = ?", SCHEMA_VERSION)
    guards = [line for table in (*changed, "snapshots") for line in transaction.guard(table)]
    for statement in [*guards, *transaction.stamp]:
        transaction.run(statement)


def _tables_after(version: int) -> list[str]:
    return [line for later in TABLES[version:] for line in later.split(";")]


GET_LEDGER = "SELECT * FROM ledger"  # in the order of `Header`; before version 3 one less

_SPEND = ", ".join(SpendRow._fields)
SPENDS = f"spends ({_SPEND})"  # for `Transaction.fill`
GET_SPENDS = f"SELECT {_SPEND} FROM spends ORDER BY seq"
SPENDS_AT = f"SELECT {_SPEND} FROM spends WHERE seq IN ({{}})"
LAST_SPENDS = f"SELECT {_SPEND} FROM spends ORDER BY seq DESC LIMIT 2"
SPEND_OF_KEY = f"SELECT {_SPEND} FROM spends WHERE key = ?"
ROWS_SO_FAR = "SELECT campaign_rows FROM spends WHERE campaign = ? ORDER BY seq DESC LIMIT 1"
OPEN_OF_CAMPAIGN = (
    "SELECT seq FROM spends JOIN secrets ON secrets.key = spends.key WHERE campaign = ?"
)
LAST_UP_TO_SNAPSHOT = "SELECT max(seq) FROM spends WHERE snapshot <= ?"
_SHOWN_SPEND = (
    "SELECT spends.seq, spends.created, spends.key, fingerprint, model, epsilon_nano, "
    "pooled_nano, note, releases.key IS NOT NULL, campaign, label, snapshot, n_rows, "
    "public_total + greatest_total FROM spends LEFT JOIN releases ON releases.key = spends.key "
)
SHOWN_SPENDS = f"{_SHOWN_SPEND} WHERE coalesce(n_rows, 1) > 0 ORDER BY spends.seq"
LATEST_SPENDS = f"{SHOWN_SPENDS} DESC LIMIT ?"
SPENDS_OF_RECIPIENT = (
    f"{_SHOWN_SPEND} WHERE spends.seq IN (SELECT seq FROM recipient_spends WHERE recipient = ?) "
    "ORDER BY spends.seq"
)
HEAD = "SELECT seq, hash FROM spends ORDER BY seq DESC LIMIT 1"
HASH_AT = "SELECT hash FROM spends WHERE seq = ?"
KNOWN_KEYS = "SELECT key FROM spends WHERE key IN ({})"

RECIPIENTS_OF = "SELECT recipient, nano, total, seal FROM recipient_spends WHERE seq = ?"
# Not a join: by recipient first, however many rows the campaign has.
ROWS_OF_CAMPAIGN = (
    "SELECT recipient, seq FROM recipient_spends AS entry "
    "WHERE ? = (SELECT campaign FROM spends WHERE spends.seq = entry.seq) AND recipient IN ({})"
)
ORPHAN_RECIPIENT_SPENDS = (
    "SELECT seq FROM recipient_spends WHERE seq NOT IN (SELECT seq FROM spends)"
)
SET_SEAL = "UPDATE recipient_spends SET seal = ? WHERE seq = ? AND recipient = ?"
GREATEST_TOTAL = "SELECT recipient, total FROM recipient_spends ORDER BY total DESC LIMIT 1"
# Totals only rise, so the largest of some entries is the latest of them.
TOTALS_SINCE = (
    "SELECT recipient, max(total) - coalesce(max(CASE WHEN seq <= ? THEN total END), 0) "
    "FROM recipient_spends GROUP BY recipient HAVING max(total) > 0"
)
# The latest entry by its place in the chain, not the largest total: that may have been changed.
LATEST_OF = (
    "SELECT entry.recipient, nano, total, seal, hash FROM recipient_spends AS entry "
    "JOIN (SELECT recipient, max(seq) AS seq FROM recipient_spends "
    "WHERE seq <= ? AND recipient IN ({}) GROUP BY recipient) AS latest "
    "ON entry.seq = latest.seq AND entry.recipient = latest.recipient "
    "JOIN spends ON spends.seq = entry.seq"
)

GET_RELEASES = "SELECT seq, key, name, sha256, created, hash FROM releases ORDER BY seq"
LAST_RELEASE = "SELECT seq, hash FROM releases ORDER BY seq DESC LIMIT 1"
RELEASE_OF_KEY = "SELECT name, sha256 FROM releases WHERE key = ?"

GET_SNAPSHOTS = "SELECT seq, label, number, fingerprint, created, hash FROM snapshots ORDER BY seq"

SECRET_OF_KEY = "SELECT secret FROM secrets WHERE key = ?"
KEYS_WITH_SECRET = "SELECT key FROM secrets"
ERASE_SECRET = "DELETE FROM secrets WHERE key = ?"
