"""Crashes and races: real processes, real SIGKILL."""

import importlib.util
import json
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgeveil.errors import LedgerError

spec = importlib.util.spec_from_file_location("worker", Path(__file__).with_name("worker.py"))
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)


def killed(place, *arguments):
    process = place.start(*arguments)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", worker.POINTS)
def test_release_killed_at_any_point_is_resumed_once(place, point):
    """The retry has one charge, one noise and one artifact."""
    place.create(epsilon=0.01)  # exactly one row each fits
    killed(place, "release", "killed", point)

    charged = len(place.raw("SELECT key FROM charges"))
    assert charged == (0 if point == "before the charge commits" else 2)
    done = len(place.raw("SELECT key FROM releases"))
    names = list(worker.POINTS)
    shared_by, rows_by = names.index("after shared commits"), names.index("after store commits")
    place_in_time = shared_by if point == "writer half way" else names.index(point)
    assert done == (place_in_time >= shared_by) + (place_in_time >= rows_by)
    secrets = dict(place.raw("SELECT key, secret FROM secrets"))
    assert len(secrets) == charged - done

    ledger = place.open()
    (batch,) = ledger.charge(worker.campaign("killed"), ["alice"]).batches
    if batch.key in secrets:
        assert batch.secret.hex() == secrets[batch.key]
        visible = place.artifacts / batch.key
        if visible.exists():  # it was renamed but not recorded: the same values as the retry's
            assert visible.read_bytes() == worker.content_of(batch)
    if not charged:  # alice alone was charged just now
        worker.rows_of(ledger, "killed", ["bob"])
    rows = worker.rows_of(ledger, "killed", ["bob", "alice"])
    assert rows == worker.rows_of(place.open(), "killed", ["bob", "alice"])
    assert sum(charge.n_rows for charge in ledger.charges()) == 2
    assert len(list(place.artifacts.iterdir())) == (2 if charged else 3)
    assert place.raw("SELECT * FROM secrets") == []
    ledger.verify()


@pytest.mark.parametrize("point", worker.ONE_COMMIT)
def test_an_advance_killed_and_repeated_is_one_advance(place, point):
    ledger = place.create(epsilon=1)
    worker.rows_of(ledger, "lists", ["alice"])
    killed(place, "advance", point)
    place.open().verify()
    assert place.open().advance() == 2


def test_random_kills_leave_releases_charged_and_stored(place):
    place.create(epsilon=1000)
    moments = random.Random(7)
    for round_number in range(4):
        process = place.start("stream", f"round {round_number}")
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "0\n"
        with pytest.raises(Exception, match="timed out"):
            process.wait(timeout=moments.uniform(0.05, 0.4))
        process.kill()
        process.communicate()
        place.open().verify()  # among others: no release without charge, no artifact missing
    ledger = place.open()
    listed = ledger.charges()
    assert any(charge.released for charge in listed)
    for round_number in range(4):
        for number in range(sum(s.released for s in listed) + 4):
            question = f"round {round_number} {number}"
            asked = worker.campaign(question)
            if ledger.price(asked, ["alice"]).n_new:
                break
            worker.rows_of(ledger, question, ["alice", "bob"])
    assert all(charge.released for charge in ledger.charges())
    assert len(ledger.charges()) == len(listed)
    assert place.raw("SELECT * FROM secrets") == []
    ledger.verify()


def test_eight_processes_that_race_use_exactly_the_budget(place):
    ledger = place.create(epsilon=0.5)  # fifty times 0.01
    processes = [place.start("race", f"process {i}", "10") for i in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    # (not communicate with a timeout: it would miss what readline has buffered)
    finished = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    accepted = [int(printed) for printed in finished]
    assert sum(accepted) == 50
    assert ledger.account("alice").charged_nano == 10**9 // 2
    assert ledger.account().left == 0
    assert ledger.account().pooled_charged_nano == 50 * (2 + 2 * 8) * 10**6
    ledger.verify()


def test_eight_processes_release_overlapping_rows_once(place):
    ledger = place.create(epsilon=0.01)
    processes = [place.start("overlap", str(seed)) for seed in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    seen: dict[str, set[str]] = {}
    for process in processes:
        printed = process.communicate()[0]
        assert process.returncode == 0
        for name, value in json.loads(printed).items():
            seen.setdefault(name, set()).add(value)
    assert {len(values) for values in seen.values()} == {1}, "one value for each member"
    assert sum(charge.n_rows for charge in ledger.charges()) == len(seen)
    assert {account.charged for account in ledger.accounts()} == {0.01}
    assert ledger.account().pooled_charged == pytest.approx(0.002 + len(seen) * 0.008)
    assert worker.rows_of(ledger, "lists", sorted(seen)) == {n: v for n, (v,) in seen.items()}
    assert len(list(place.artifacts.iterdir())) == 1 + len(ledger.charges())
    ledger.verify()


FULL = """
import resource, sys, signal
sys.path.insert(0, sys.argv[3])
import worker
from edgeveil.ledger import Ledger
ledger = Ledger.open(sys.argv[1], artifacts=sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    worker.rows_of(ledger, "lists", [f"member {i}" for i in range(3000)])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_is_a_plain_error_and_costs_nothing_twice(sqlite_place, tmp_path):
    """No file may grow beyond a size: first the ledger's, then the artifact's."""
    ledger = sqlite_place.create(epsilon=0.01)
    size = Path(sqlite_place.location).stat().st_size
    folder = str(Path(__file__).parent)
    for room, charged in ((size + 4096, 0), (size + (800 << 10), 3000)):
        command = [sys.executable, "-c", FULL, sqlite_place.location, str(sqlite_place.artifacts)]
        done = subprocess.run(
            [*command, folder, str(room)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert "Error" in done.stdout, "it failed, in one line"
        sqlite_place.open().verify()
        assert sum(charge.n_rows for charge in ledger.charges()) == charged
    rows = worker.rows_of(ledger, "lists", [f"member {i}" for i in range(3000)])
    assert len(rows) == 3000
    assert len(ledger.charges()) == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    ledger.verify()


def test_a_ledger_put_back_between_two_batches_is_noticed(sqlite_place, tmp_path):
    ledger = sqlite_place.create(epsilon=1)
    worker.rows_of(ledger, "lists", ["alice"])
    before = Path(sqlite_place.location).read_bytes()
    worker.rows_of(ledger, "lists", ["bob"])
    Path(sqlite_place.location).write_bytes(before)
    for opened in (ledger, sqlite_place.open()):
        with pytest.raises(LedgerError, match="older copy"):
            worker.rows_of(opened, "lists", ["carol"])
