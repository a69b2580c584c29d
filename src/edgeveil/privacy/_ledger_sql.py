"""All SQL of the ledger, for SQLite and PostgreSQL, in one place.

The tables and the statements are the same text for both (placeholders are written ``?``); only
the triggers, which make the tables append-only, are written twice.

- ``ledger``: one row, the caps.
- ``spends``: one row for each reservation, chained by hashes, with running totals.
- ``recipient_spends``: what each spend costs each recipient, with the recipient's running total.
- ``releases``: one row for each spend whose artifact is written, chained by hashes.
- ``secrets``: the secret of each spend that is not released yet. The only rows that go away.
"""

from __future__ import annotations

SCHEMA_VERSION = 1
APPLICATION_ID = 0x45_64_4C_67  # "EdLg", in the header of a SQLite file

TABLES = """
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
);
"""

APPEND_ONLY = ("ledger", "spends", "recipient_spends", "releases")

# SQLite's INSERT OR REPLACE removes rows without firing DELETE triggers, so inserts are guarded
# too: a new row must continue the sequence and must not meet an old one.
SQLITE_INSERT_GUARDS = {
    "ledger": "EXISTS (SELECT 1 FROM ledger)",
    "spends": """
        NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM spends)
        OR EXISTS (SELECT 1 FROM spends WHERE key = NEW.key)""",
    "recipient_spends": """
        NEW.seq IS NOT (SELECT max(seq) FROM spends) OR EXISTS (
            SELECT 1 FROM recipient_spends WHERE seq = NEW.seq AND recipient = NEW.recipient)""",
    "releases": """
        NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM releases)
        OR EXISTS (SELECT 1 FROM releases WHERE key = NEW.key)""",
    "secrets": "EXISTS (SELECT 1 FROM secrets WHERE key = NEW.key)",
}


def sqlite_triggers() -> list[str]:
    """Statements that make SQLite abort every change but appending."""

    def abort(name: str, event: str, table: str, condition: str, why: str) -> str:
        when = f"WHEN {condition}" if condition else ""
        return (
            f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} {when} "
            f"BEGIN SELECT RAISE(ABORT, '{why}'); END"
        )

    statements = []
    for table, guard in SQLITE_INSERT_GUARDS.items():
        why = f"{table} is append-only"
        statements.append(abort("no_replace", "INSERT", table, guard, why))
        statements.append(abort("no_update", "UPDATE", table, "", why))
        if table in APPEND_ONLY:
            statements.append(abort("no_delete", "DELETE", table, "", why))
    unreleased = "NOT EXISTS (SELECT 1 FROM releases WHERE key = OLD.key)"
    why = "a secret stays until its artifact is released"
    return [*statements, abort("no_delete", "DELETE", "secrets", unreleased, why)]


def postgres_triggers() -> list[str]:
    """Statements that make PostgreSQL refuse every change but appending."""
    statements = [
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$
        """,
        """
        CREATE FUNCTION keep_until_released() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT 1 FROM releases WHERE key = OLD.key) THEN RETURN OLD; END IF;
            RAISE EXCEPTION 'a secret stays until its artifact is released';
        END $$
        """,
        "CREATE TRIGGER no_delete BEFORE DELETE ON secrets "
        "FOR EACH ROW EXECUTE FUNCTION keep_until_released()",
        "CREATE TRIGGER no_update BEFORE UPDATE ON secrets FOR EACH ROW EXECUTE FUNCTION refuse()",
        "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON secrets EXECUTE FUNCTION refuse()",
        "CREATE UNIQUE INDEX one_ledger ON ledger ((true))",
    ]
    for table in APPEND_ONLY:
        statements += [
            f"CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION refuse()",
            f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse()",
        ]
    return statements


def statements(script: str) -> list[str]:
    """Split a script without triggers into its statements."""
    return [part.strip() for part in script.split(";") if part.strip()]


ADD_LEDGER = "INSERT INTO ledger VALUES (?, ?, ?, ?, ?)"
GET_LEDGER = "SELECT schema_version, ledger_id, epsilon_nano, pooled_nano, created FROM ledger"

SPEND_COLUMNS = (
    "seq, key, fingerprint, model, epsilon_nano, pooled_nano, charge, note, created, "
    "public_total, pooled_total, hash"
)
ADD_SPEND = f"INSERT INTO spends ({SPEND_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
GET_SPENDS = f"SELECT {SPEND_COLUMNS} FROM spends ORDER BY seq"
LAST_SPEND = f"SELECT {SPEND_COLUMNS} FROM spends ORDER BY seq DESC LIMIT 1"
SPEND_OF_KEY = f"SELECT {SPEND_COLUMNS} FROM spends WHERE key = ?"

ADD_RECIPIENT_SPEND = "INSERT INTO recipient_spends VALUES (?, ?, ?, ?)"
GET_RECIPIENT_SPENDS = "SELECT recipient, nano, total FROM recipient_spends WHERE seq = ?"
ORPHAN_RECIPIENT_SPENDS = (
    "SELECT seq FROM recipient_spends WHERE seq NOT IN (SELECT seq FROM spends)"
)
# A recipient's running total never falls, so the largest is the latest.
GREATEST_TOTAL = "SELECT recipient, total FROM recipient_spends ORDER BY total DESC LIMIT 1"
ALL_TOTALS = "SELECT recipient, max(total) FROM recipient_spends GROUP BY recipient"


def totals_of(n: int) -> str:
    """Select the running totals of n recipients."""
    marks = ", ".join("?" * n)
    return (
        "SELECT recipient, max(total) FROM recipient_spends "
        f"WHERE recipient IN ({marks}) GROUP BY recipient"
    )


ADD_RELEASE = "INSERT INTO releases (seq, key, name, sha256, created, hash) VALUES (?,?,?,?,?,?)"
GET_RELEASES = "SELECT seq, key, name, sha256, created, hash FROM releases ORDER BY seq"
LAST_RELEASE = "SELECT seq, hash FROM releases ORDER BY seq DESC LIMIT 1"
RELEASE_OF_KEY = "SELECT name, sha256 FROM releases WHERE key = ?"

ADD_SECRET = "INSERT INTO secrets VALUES (?, ?)"
SECRET_OF_KEY = "SELECT secret FROM secrets WHERE key = ?"
KEYS_WITH_SECRET = "SELECT key FROM secrets"
ERASE_SECRET = "DELETE FROM secrets WHERE key = ?"
