"""A ledger that edgeveil 0.1 made is opened, completed and goes on.

``version-1.ledger.gz`` was written by that version: a released public spend of 0.5, an open joint
one of 1 for alice and bob, a released joint one of 1 for alice.
"""

import dataclasses
import gzip
import sqlite3
from pathlib import Path

import pytest

from edgeveil.errors import LedgerError

MADE = gzip.decompress(Path(__file__).with_name("version-1.ledger.gz").read_bytes())
HEAD = "4ce862fa26e8ed2fbfda768664ece69a8679cabec69e56b0449ba0e12bdc153d"


@pytest.fixture
def old_place(place, key_of):
    """The old ledger, at this place."""
    place.artifacts.mkdir()
    (place.artifacts / key_of("1")).write_text("one")
    (place.artifacts / key_of("3")).write_text("three")
    if place.is_sqlite:
        Path(place.location).write_bytes(MADE)
    else:
        _pour_into_postgres(place)
    return place


def _pour_into_postgres(place):
    """Make the schema as version 1 made it, with the rows of the file."""
    from edgeveil.ledger import tables

    file = dataclasses.replace(place, location=str(place.artifacts.parent / "old"))
    Path(file.location).write_bytes(MADE)
    names = ("ledger", "spends", "recipient_spends", "releases", "secrets")
    schema = place.location.partition("#")[2]
    create = [line for line in tables.TABLES_1.split(";") if line.strip()]
    guards = [line for name in names for line in tables.POSTGRES.guard(name)]
    fill = []
    for name in names:
        for row in file.raw(f"SELECT * FROM {name}"):
            values = ", ".join(repr(value) for value in row)
            fill.append(f"INSERT INTO {name} VALUES ({values})")
    place.raw(f"CREATE SCHEMA {schema}", *create, *tables.POSTGRES.before, *guards, *fill)


def test_its_spends_secrets_and_artifacts_are_kept(old_place, joint, public, key_of):
    ledger = old_place.open()
    assert ledger.verify(HEAD) == HEAD
    assert (ledger.epsilon, ledger.pooled_epsilon) == (4, 8)
    assert ledger.account("alice").spent == 2.5
    assert ledger.account("bob").left == 2.5
    assert ledger.reserve(key_of("3"), joint(1, "alice")).artifact.read_text() == "three"
    open_one = ledger.reserve(key_of("2"), joint(1, "alice", "bob"), fingerprint="f")
    assert [(open_one.secret.hex(),)] == old_place.raw("SELECT secret FROM secrets")
    open_one.release(lambda path: path.write_text("two"))
    ledger.reserve(key_of("4"), joint(1, "bob"), node_set=ledger.node_set_digest(["bob"]))
    ledger.reserve(key_of("5"), public(0.25))
    assert old_place.open().account("bob").spent == 2.75
    old_place.open().verify(HEAD)


def test_it_is_of_version_2_from_then_on_and_append_only(old_place):
    old_place.open()
    old_place.open()
    assert old_place.raw("SELECT schema_version FROM ledger") == [(2,)]
    if old_place.is_sqlite:
        assert old_place.raw("PRAGMA journal_mode") == [("delete",)]
        assert old_place.raw("PRAGMA user_version") == [(2,)]  # what version 0.1 looks at
    for table in ("ledger", "recipient_spends"):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {column(table)} = 'x'"):
            with pytest.raises(Exception, match=f"{table} is append-only"):
                old_place.raw(statement)


def column(table):
    return {"ledger": "created", "recipient_spends": "recipient"}[table]


def test_a_changed_total_is_not_sealed(old_place):
    old_place.drop_triggers("recipient_spends")
    old_place.raw("UPDATE recipient_spends SET total = 0 WHERE recipient = 'bob'")
    with pytest.raises(LedgerError, match="total does not fit"):
        old_place.open()
    assert old_place.raw("SELECT schema_version FROM ledger") == [(1,)]


def test_its_write_ahead_log_is_written_back(sqlite_place, public, key_of, tmp_path):
    path = Path(sqlite_place.location)
    path.write_bytes(MADE)
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
