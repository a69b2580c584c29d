"""A ledger that was restored from an older copy is noticed, and a good copy is easy to make."""

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from edgeveil.errors import LedgerError
from edgeveil.ledger import Ledger


@pytest.fixture
def release(reserve):
    def stored(ledger, question, asked):
        return reserve(ledger, question, asked).store(lambda path: path.write_text(question))

    return stored


@pytest.fixture
def restored(sqlite_place, public, release, tmp_path):
    """A place where an old copy lies again; a release was made after the copy."""
    ledger = sqlite_place.create(epsilon=4)
    release(ledger, "1", public(1))
    shutil.copy(sqlite_place.location, tmp_path / "old")
    release(ledger, "2", public(1))
    shutil.copy(tmp_path / "old", sqlite_place.location)
    return sqlite_place


def forgotten(place):
    """Artifacts that the ledger does not know."""
    charged = {key for (key,) in place.raw("SELECT key FROM charges")}
    return [path for path in place.artifacts.iterdir() if path.name not in charged]


def test_unknown_artifact_fails_verify_and_the_next_charge(restored, public, reserve):
    ledger = restored.open()
    assert ledger.account().charged == 1
    for attempt in (
        ledger.verify,
        lambda: reserve(ledger, "3", public(1)),
        lambda: reserve(ledger, "1", public(1)),
    ):
        with pytest.raises(LedgerError, match="restored from an older copy"):
            attempt()
    assert ledger.account().charged == 1
    assert len(forgotten(restored)) == 2, "the rows, and what they share"
    for path in forgotten(restored):
        path.unlink()
    reserve(ledger, "3", public(1))
    ledger.verify()


def test_a_draft_of_a_forgotten_charge_is_noticed_too(restored, public, reserve):
    shared, rows = forgotten(restored)
    shared.unlink()
    rows.rename(rows.with_name(f".{rows.name}"))
    with pytest.raises(LedgerError, match="restored from an older copy"):
        reserve(restored.open(), "3", public(1))


def test_what_is_not_named_like_an_artifact_may_lie_there(release, place, public, reserve):
    ledger = place.create(epsilon=4)
    place.artifacts.mkdir()
    (place.artifacts / "README.txt").write_text("ours")
    release(ledger, "1", public(1))
    ledger.verify()


def test_a_ledger_in_postgresql_misses_its_artifacts_too(release, postgres_place, public, reserve):
    release(postgres_place.create(epsilon=4), "1", public(1))
    (postgres_place.artifacts / f"{'0' * 64}.json").write_text("{}")
    for attempt in (
        postgres_place.open().verify,
        lambda: reserve(postgres_place.open(), "3", public(1)),
    ):
        with pytest.raises(LedgerError, match="knows nothing of"):
            attempt()


def test_open_ledger_restored_without_artifacts_is_noticed(sqlite_place, public, reserve, tmp_path):
    ledger = sqlite_place.create(epsilon=4)
    reserve(ledger, "1", public(1))
    shutil.copy(sqlite_place.location, tmp_path / "old")
    reserve(ledger, "2", public(1))
    shutil.copy(tmp_path / "old", sqlite_place.location)
    with pytest.raises(LedgerError, match="older copy"):
        reserve(ledger, "3", public(1))


def test_a_plain_copy_of_the_file_alone_has_every_charge(sqlite_place, public, reserve, tmp_path):
    ledger = sqlite_place.create(epsilon=4)
    reader = sqlite3.connect(sqlite_place.location)  # somebody has it open
    assert reader.execute("SELECT count(*) FROM charges").fetchall() == [(0,)]
    reserve(ledger, "1", public(1))
    shutil.copy(sqlite_place.location, tmp_path / "copy")
    reader.close()
    assert Ledger.open(tmp_path / "copy").account().charged == 1


def test_a_backup_is_whole_and_private_and_tells_its_head(
    release, sqlite_place, public, reserve, tmp_path
):
    ledger = sqlite_place.create(epsilon=4)
    release(ledger, "1", public(1))
    secret = reserve(ledger, "2", public(1)).secret
    head = ledger.backup(tmp_path / "backup")
    assert head == ledger.verify()
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600
    Path(sqlite_place.location).unlink()
    shutil.copy(tmp_path / "backup", sqlite_place.location)
    again = sqlite_place.open()
    assert again.verify(head) == head
    assert reserve(again, "2", public(1)).secret == secret


def test_a_backup_never_replaces_a_file(sqlite_place, tmp_path):
    ledger = sqlite_place.create(epsilon=4)
    (tmp_path / "backup").write_text("mine")
    with pytest.raises(LedgerError, match="exists already"):
        ledger.backup(tmp_path / "backup")
    assert (tmp_path / "backup").read_text() == "mine"


def test_a_backup_made_while_others_release_is_consistent(sqlite_place, tmp_path):
    sqlite_place.create(epsilon=1000)
    process = sqlite_place.start("stream", "busy")
    try:
        assert process.stdout.readline() == "ready\n"
        heads = [sqlite_place.open().backup(tmp_path / f"backup {i}") for i in range(4)]
    finally:
        process.kill()
        process.communicate()
    for head in heads:
        sqlite_place.open().verify(head)


def test_a_ledger_in_postgresql_says_how_it_is_backed_up(postgres_place, tmp_path):
    with pytest.raises(LedgerError, match="pg_dump"):
        postgres_place.create(epsilon=1).backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
