"""The ledger cannot be changed unnoticed, copied, damaged or overwritten."""

import copy
import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import Ledger, campaigns


@pytest.fixture
def filled(place, public, joint, reserve):
    """A ledger with a released charge, an open joint one and an open public one."""
    ledger = place.create(epsilon=4, pooled_epsilon=8)
    first = reserve(ledger, "1", public(0.5))
    first.store(lambda path: path.write_text("one"))
    reserve(ledger, "2", joint(1, "alice", "bob"), note={"for": "people"})
    reserve(ledger, "3", joint(1, "alice")).store(lambda path: path.write_text("three"))
    return ledger


def test_stored_release_leaves_its_secret_in_no_file(sqlite_place, public, reserve, tmp_path):
    ledger = sqlite_place.create(epsilon=4)
    # Somebody else has the ledger open, so that SQLite does not clear its log by itself.
    other = sqlite3.connect(sqlite_place.location)
    try:
        assert other.execute("SELECT count(*) FROM secrets").fetchone() == (0,)
        reservation = reserve(ledger, "1", public(1))
        needle = reservation.secret.hex().encode()

        def holders():
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            return [path for path in files if needle in path.read_bytes()]

        assert holders()
        reservation.store(lambda path: path.write_text("values"))
        assert holders() == []
    finally:
        other.close()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE charges SET epsilon_nano = 1 WHERE seq = 2", "charge 2 was changed"),
        ("UPDATE charges SET note = '{}' WHERE seq = 4", "charge 4 was changed"),
        ("UPDATE charges SET public_total = 0 WHERE seq = 6", "charge 6 was changed"),
        ("UPDATE charges SET model = 'public' WHERE seq = 4", "charge 4 was changed"),
        ("UPDATE charges SET campaign_rows = 9 WHERE seq = 6", "charge 6 was changed"),
        ("UPDATE charges SET created = 'x'", "charge 1 was changed"),
        ("UPDATE charge_members SET member = 'carol' WHERE member = 'bob'", "members do not fit"),
        ("DELETE FROM charge_members", "members do not fit"),
        ("DELETE FROM charge_members WHERE member = 'bob'", "members do not fit"),
        ("INSERT INTO charge_members VALUES (6, 'bob')", "members do not fit"),
        ("DELETE FROM releases", "open batches do not match"),
        ("DELETE FROM releases WHERE seq = 1", "release 1 is missing"),
        ("UPDATE releases SET created = '' WHERE seq = 1", "release 1 was changed"),
        ("DELETE FROM releases WHERE seq = 5", "open batches do not match"),
        ("UPDATE snapshots SET label = 'x'", "generation 1 was changed"),
        ("DELETE FROM snapshots", "a generation is missing"),
        ("DELETE FROM secrets", "open batches do not match"),
        ("DELETE FROM ledger", "it has no header"),
    ],
)
def test_verify_finds_what_was_changed_or_deleted(place, filled, change, found):
    filled.verify()
    place.raw(change)
    with pytest.raises(LedgerError, match=found):
        filled.verify()


@pytest.mark.parametrize("last", [1, 2, 5])
def test_verify_finds_a_charge_that_was_removed(sqlite_place, public, joint, reserve, last):
    """With all that belongs to it, and those before it; PostgreSQL's foreign keys refuse that."""
    ledger = sqlite_place.create(epsilon=4)
    for question, asked in (("1", public(0.5)), ("2", joint(1, "alice")), ("3", joint(1, "bob"))):
        reserve(ledger, question, asked)
    ledger.verify()
    sqlite_place.raw(
        f"DELETE FROM releases WHERE key IN (SELECT key FROM charges WHERE seq <= {last})",
        f"DELETE FROM secrets WHERE key IN (SELECT key FROM charges WHERE seq <= {last})",
        f"DELETE FROM charge_members WHERE seq <= {last}",
        f"DELETE FROM charges WHERE seq <= {last}",
    )
    with pytest.raises(LedgerError, match="charge 1 is missing"):
        ledger.verify(artifacts=False)


@pytest.mark.parametrize(
    "change",
    [
        "public_total = 0, pooled_total = 0",
        "public_total = 0 WHERE seq = 6",
        "greatest_total = 0",
        "greatest_total = 0 WHERE seq = 6",
        "epsilon_nano = 0",
    ],
)
def test_a_changed_total_is_noticed_by_the_next_charge(
    place, filled, public, joint, reserve, change
):
    place.raw(f"UPDATE charges SET {change}")
    for asked in (joint(1, "alice"), public(0.5), joint(1, "carol")):
        with pytest.raises(LedgerError, match="fails its check"):
            reserve(place.open(), "9", asked)
    assert place.raw("SELECT count(*) FROM charges") == [(6,)]


@pytest.mark.parametrize(
    "change", ["epsilon_nano = 0 WHERE seq = 4", "model = 'public' WHERE seq = 4"]
)
def test_changed_charge_stops_charges_of_its_members(place, filled, joint, reserve, change):
    place.raw(f"UPDATE charges SET {change}")
    for member in ("alice", "bob"):
        with pytest.raises(LedgerError, match="charge 4 was changed"):
            reserve(place.open(), "9", joint(1, member))
        with pytest.raises(LedgerError, match="charge 4 was changed"):
            place.open().account(member)
    reserve(place.open(), "9", joint(1, "carol"))  # whom it does not concern


def test_accounts_that_do_not_fit_the_chain_are_not_shown(place, filled):
    place.raw("DELETE FROM charge_members WHERE member = 'alice'")
    for shown in (filled.accounts, filled.show):
        with pytest.raises(LedgerError, match="total does not fit"):
            shown()


def test_a_changed_cap_is_noticed_at_once_and_by_verify(place, filled, public, reserve):
    place.raw("UPDATE ledger SET epsilon_nano = 99000000000")
    with pytest.raises(LedgerError, match="another ledger"):
        reserve(filled, "9", public(50))
    with pytest.raises(LedgerError, match="charge 1 was changed"):
        place.open().verify()


def test_verify_finds_a_cap_that_was_exceeded(place, joint, reserve, monkeypatch):
    ledger = place.create(epsilon=2)
    price = campaigns.Request.price
    monkeypatch.setattr(campaigns.Request, "price", lambda self: replace(price(self), refusal=""))
    reserve(ledger, "1", joint(1.5, "bob"))
    ledger.verify()
    reserve(ledger, "2", joint(1, "bob"))
    with pytest.raises(LedgerError, match="more is charged than the cap allows"):
        ledger.verify()


def test_verify_finds_a_changed_artifact(place, filled, reserve):
    (place.artifacts / filled.charges()[0].key).write_text("two")
    with pytest.raises(LedgerError, match="was changed since it was released"):
        filled.verify()


def test_a_noted_head_finds_a_ledger_put_back_to_an_older_copy(
    sqlite_place, public, charge, tmp_path
):
    ledger = sqlite_place.create(epsilon=4)
    charge(ledger, "1", public(1))
    earlier = ledger.verify()
    shutil.copy(sqlite_place.location, tmp_path / "old")
    charge(ledger, "2", public(1))
    later = ledger.verify(earlier)
    shutil.copy(tmp_path / "old", sqlite_place.location)
    assert sqlite_place.open().verify() == earlier
    with pytest.raises(LedgerError, match="removed or rewritten"):
        sqlite_place.open().verify(later)


def test_a_copy_is_the_same_ledger_and_a_pickle_reopens_it(place, public, reserve):
    ledger = place.create(epsilon=1)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"parameter": ledger})["parameter"] is ledger
    other = pickle.loads(pickle.dumps(ledger))
    assert other.location == ledger.location
    reserve(other, "1", public(1)).store(lambda path: path.write_text("x"))
    with pytest.raises(BudgetError):
        reserve(ledger, "2", public(1))
    assert reserve(ledger, "1", public(1)).artifact.parent == place.artifacts


FORK = """
import os, sys
from edgeveil.ledger import Campaign, Ledger
from edgeveil.privacy.guarantee import Guarantee
ledger = Ledger.open(sys.argv[1], artifacts=sys.argv[2])
claim = Guarantee(epsilon=1e-9, model="public", theorem="test")
def use(name):
    ledger.charge(Campaign(identity=name, guarantee=lambda n: claim), ["row"])
use("before")
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        for i in range(5):
            use(f"{child} {i}")
        os._exit(0)
    children.append(pid)
for i in range(5):
    use(f"parent {i}")
assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_an_open_ledger_can_be_used_on_both_sides_of_a_fork(place):
    ledger = place.create(epsilon=1)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, place.location, str(place.artifacts)],
        check=True,
        timeout=60,
    )
    assert ledger.account().charged_nano == 21
    ledger.verify()


def test_threads_share_a_ledger(place, public, reserve):
    ledger = place.create(epsilon=1)

    def use(number):
        try:
            reserve(ledger, str(number), public(0.125))
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(use, range(20))) == 8
    ledger.verify()


def test_create_does_not_touch_what_is_there(place, filled):
    with pytest.raises(LedgerError, match="already"):
        place.create(epsilon=100)
    assert place.open().epsilon == 4
    assert len(place.open().charges()) == 3


def test_opening_what_is_not_there_creates_nothing(place, tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        place.open()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [1, 3, 5])
def test_a_ledger_of_another_format_is_refused_in_one_sentence(place, filled, version):
    place.raw(f"UPDATE ledger SET format = {version}")
    before = place.raw("SELECT * FROM charges")
    for opened in (place.open, filled.account):
        with pytest.raises(LedgerError) as error:
            opened()
        assert str(error.value) == (
            f"the ledger has format {version}, and this version of edgeveil reads format 4 only; "
            "use the version that made it"
        )
    assert place.raw("SELECT * FROM charges") == before


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_foreign_or_damaged_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not an edgeveil ledger"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, epsilon=1)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_another_programs_sqlite_file_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE ledger (x)")
    connection.close()
    with pytest.raises(LedgerError, match="not an edgeveil ledger"):
        Ledger.open(tmp_path / "other.db")


def test_verify_finds_damaged_pages(sqlite_place, public, reserve):
    ledger = sqlite_place.create(epsilon=400)
    for i in range(20):
        reserve(ledger, str(i), public(1))
    with open(sqlite_place.location, "r+b") as handle:
        handle.seek(0, os.SEEK_END)
        handle.seek(handle.tell() // 2)
        handle.write(b"\xa5" * 4096)
    with pytest.raises(LedgerError):
        ledger.verify()


def test_create_in_a_missing_folder_is_one_sentence(tmp_path):
    with pytest.raises(LedgerError, match=r"cannot create .*: No such file or directory"):
        Ledger.create(tmp_path / "nowhere" / "ledger", epsilon=1)


@pytest.mark.skipif(os.name == "nt", reason="no such file modes there")
def test_only_the_owner_can_read_the_file_and_the_artifacts(sqlite_place, public, reserve):
    old = os.umask(0)
    try:
        ledger = sqlite_place.create(epsilon=1)
        released = reserve(ledger, "1", public(1)).store(lambda p: p.write_text("x"))
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(sqlite_place.location).st_mode) == 0o600
    assert stat.S_IMODE(sqlite_place.artifacts.stat().st_mode) == 0o700
    assert stat.S_IMODE(released.artifact.stat().st_mode) == 0o600


def test_every_commit_waits_for_the_disk(sqlite_place):
    sqlite_place.create(epsilon=1)
    store = sqlite_place.open()._store
    with store.transaction(write=True) as transaction:
        assert transaction.run("PRAGMA synchronous") == [(3,)]  # EXTRA
        assert transaction.run("PRAGMA journal_mode") == [("delete",)]
        assert transaction.run("PRAGMA secure_delete") == [(1,)]
