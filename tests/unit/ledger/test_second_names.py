"""One ledger file under two names is one budget."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgeveil.errors import LedgerError
from edgeveil.ledger import Ledger, sqlite
from edgeveil.ledger.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no hard links or mounts there")


@pytest.fixture
def other_name(sqlite_place, tmp_path):
    """A hard link to a ledger whose cap is 1, in another folder."""
    sqlite_place.create(epsilon=1)
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "budget.db"
    os.link(sqlite_place.location, path)
    return path


def test_a_ledger_with_a_hard_link_is_refused_under_both_names(sqlite_place, other_name):
    for name in (sqlite_place.location, other_name):
        with pytest.raises(LedgerError, match="second name"):
            Ledger.open(name)
    other_name.unlink()
    assert sqlite_place.open().epsilon == 1


def test_link_to_an_open_ledger_stops_the_next_charge(sqlite_place, tmp_path, public, reserve):
    ledger = sqlite_place.create(epsilon=1)
    reserve(ledger, "1", public(0.25))
    os.link(sqlite_place.location, tmp_path / "link")
    with pytest.raises(LedgerError, match="second name"):
        reserve(ledger, "2", public(0.25))
    (tmp_path / "link").unlink()
    assert ledger.account().charged == 0.25


def test_a_symbolic_link_is_the_same_name(sqlite_place, tmp_path, public, reserve):
    reserve(sqlite_place.create(epsilon=1), "1", public(1))
    (tmp_path / "link").symlink_to(sqlite_place.location)
    assert Ledger.open(tmp_path / "link").account().left == 0
    assert Ledger.open(tmp_path / "link").location == sqlite_place.location


def test_a_file_that_is_mounted_by_itself_is_refused(sqlite_place, tmp_path):
    sqlite_place.create(epsilon=1)
    mounted = tmp_path / "mounted"
    mounted.touch()
    command = ["mount", "--bind", sqlite_place.location, str(mounted)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("this user may not mount")
    try:
        assert os.path.samefile(sqlite_place.location, mounted)
        with pytest.raises(LedgerError, match="mounted as a single file"):
            Ledger.open(mounted)
        assert sqlite_place.open().epsilon == 1  # its own name is fine
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_mounted_folder_is_fine(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 254:1 / {tmp_path} rw - ext4 /dev/vda rw\n")
    monkeypatch.setattr("edgeveil.ledger.sqlite.MOUNTINFO", mounts)
    assert Ledger.create(tmp_path / "ledger", epsilon=1).epsilon == 1
    mounts.write_text(f"1 0 254:1 / {tmp_path}/ledger rw - ext4 /dev/vda rw\n")
    with pytest.raises(LedgerError, match="mounted as a single file"):
        Ledger.open(tmp_path / "ledger")


# The names are refused; should that ever fail, the lock on the file itself remains.


def test_a_writer_locks_the_file_whatever_name_it_goes_by(sqlite_place, other_name, monkeypatch):
    monkeypatch.setattr(sqlite, "refuse_unsafe_place", lambda path: None)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    store, linked = SqliteStore(Path(sqlite_place.location)), SqliteStore(other_name)
    locked = pytest.raises(LedgerError, match="locked")
    with store.transaction(write=True), locked, linked.transaction(write=True):
        pass
    with linked.transaction(write=True):
        pass


RACE = """
import sys
from edgeveil.ledger import sqlite
sqlite.refuse_unsafe_place = lambda path: None
sys.path.insert(0, sys.argv.pop(1))
import worker
worker.main()
"""


def test_two_processes_under_two_names_use_one_budget(sqlite_place, other_name):
    here = str(Path(__file__).parent)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, here, str(name), f"{name}.artifacts", "race", tag, "70"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, tag in ((sqlite_place.location, "a"), (other_name, "b"))
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    accepted = sum(int(process.communicate()[0]) for process in processes)
    other_name.unlink()
    ledger = sqlite_place.open()
    assert accepted == 100  # of a hundredth each; 140 were asked for
    assert ledger.account("alice").charged_nano == 10**9
    ledger.verify()


def test_folder_in_place_of_a_ledger_is_no_second_name(tmp_path):
    """Every folder has more names than one, such as its own dot."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger.open(tmp_path)
