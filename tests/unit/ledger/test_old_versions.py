"""Ledgers that edgeveil 0.1 and 0.2 made are opened, completed and go on.

``version-1.ledger.gz`` and ``version-2.ledger.gz`` were written by these versions: a released
public spend of 0.5, an open joint one of 1 for alice and bob, a released joint one of 1 for alice.
"""

import dataclasses
import gzip
import hashlib
import signal
import sqlite3
from pathlib import Path

import pytest

from edgeveil.errors import BudgetError, LedgerError

HEADS = {
    1: "4ce862fa26e8ed2fbfda768664ece69a8679cabec69e56b0449ba0e12bdc153d",
    2: "0e74864b86fd3a0c72748aec0c7ca6749638fdab1845cd3aa9aaaeae775e69ec",
}
MADE = {
    version: gzip.decompress(Path(__file__).with_name(f"version-{version}.ledger.gz").read_bytes())
    for version in HEADS
}
TABLES = ("ledger", "spends", "recipient_spends", "releases", "secrets")


def key_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(params=HEADS)
def version(request):
    return request.param


@pytest.fixture
def old_place(place, version):
    """The old ledger, at this place."""
    place.artifacts.mkdir()
    (place.artifacts / key_of("1")).write_text("one")
    (place.artifacts / key_of("3")).write_text("three")
    if place.is_sqlite:
        Path(place.location).write_bytes(MADE[version])
    else:
        _pour_into_postgres(place, version)
    return place


def _pour_into_postgres(place, version):
    """Make the schema as that version made it, with the rows of the file."""
    from edgeveil.ledger import tables
    from edgeveil.ledger.postgres import PostgresTransaction as Postgres

    file = dataclasses.replace(place, location=str(place.artifacts.parent / "old"))
    Path(file.location).write_bytes(MADE[version])
    names = TABLES if version == 1 else (*TABLES, "node_sets")
    schema = place.location.partition("#")[2]
    create = [line for old in tables.TABLES[:version] for line in old.split(";") if line.strip()]
    guards = [line for name in names for line in Postgres.guard(None, name)]
    fill = []
    for name in names:
        columns = [row[1] for row in file.raw(f"PRAGMA table_info({name})")]
        for row in file.raw(f"SELECT * FROM {name}"):
            values = ", ".join("NULL" if value is None else repr(value) for value in row)
            fill.append(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({values})")
    place.raw(f"CREATE SCHEMA {schema}", *create, *Postgres.before, *guards, *fill)


def test_what_was_spent_counts_on(old_place, version, joint, public, reserve):
    ledger = old_place.open()
    assert ledger.verify(HEADS[version]) == HEADS[version]
    assert (ledger.epsilon, ledger.pooled_epsilon, ledger.window) == (4, 8, None)
    assert ledger.account("alice").spent == 2.5
    assert ledger.account("bob").left == 2.5
    assert len(ledger.spends()) == 3
    with pytest.raises(BudgetError):
        reserve(ledger, "q", joint(2, "alice"))
    reserve(ledger, "q", joint(1, "bob"), label="friends").store(lambda p: p.write_text("four"))
    reserve(ledger, "p", public(0.25))
    assert old_place.open().account("bob").spent == 2.75
    assert ledger.advance("friends") == 2
    old_place.open().verify(HEADS[version])


def test_it_is_of_version_3_from_then_on_and_append_only(old_place):
    old_place.open()
    old_place.open()
    assert old_place.raw("SELECT schema_version FROM ledger") == [(3,)]
    if old_place.is_sqlite:
        assert old_place.raw("PRAGMA journal_mode") == [("delete",)]
        assert old_place.raw("PRAGMA user_version") == [(3,)]  # what older programs look at
    for table, column in (("ledger", "created"), ("recipient_spends", "recipient")):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = 'x'"):
            with pytest.raises(Exception, match=f"{table} is append-only"):
                old_place.raw(statement)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("recipient_spends", "UPDATE recipient_spends SET total = 0 WHERE recipient = 'bob'"),
        ("spends", "UPDATE spends SET epsilon_nano = 0 WHERE seq = 1"),
    ],
)
def test_what_fails_the_check_is_not_completed(old_place, version, table, change):
    old_place.drop_triggers(table)
    old_place.raw(change)
    with pytest.raises(LedgerError, match="fails its check"):
        old_place.open()
    assert old_place.raw("SELECT schema_version FROM ledger") == [(version,)]


# How many statements a migration runs is no secret, but not constant either.
@pytest.mark.parametrize("statement", [3, 9, 15, 24, 33, 10**6])
def test_killed_while_it_is_completed_it_is_the_old_one_or_the_new_one(
    old_place, version, statement
):
    process = old_place.start("migrate", str(statement))
    process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGKILL)
    found = old_place.raw("SELECT schema_version FROM ledger")
    assert found == [(version if process.returncode else 3,)]
    assert old_place.open().verify(HEADS[version]) == HEADS[version]


def test_its_write_ahead_log_is_written_back(sqlite_place, tmp_path):
    path = Path(sqlite_place.location)
    path.write_bytes(MADE[1])
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("CREATE TABLE extra (x)")
    writer.commit()
    (tmp_path / "new").mkdir()
    for name in (path.name, f"{path.name}-wal"):  # as after a crash: the log was not written back
        (tmp_path / "new" / name).write_bytes((tmp_path / name).read_bytes())
    writer.close()
    moved = dataclasses.replace(sqlite_place, location=str(tmp_path / "new" / path.name))
    moved.open()
    assert sorted(found.name for found in (tmp_path / "new").iterdir()) == [path.name]
    assert moved.raw("SELECT * FROM extra") == []
