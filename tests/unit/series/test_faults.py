"""Crashes, races and full disks: real processes, real SIGKILL, both kinds of ledger."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from edgeveil.ledger import Ledger
from edgeveil.ledger.accounts import is_window
from tests.forks import REFRESHER
from tests.unit.series.worker import opened, stored, weekly


@pytest.fixture
def first(tmp_path):
    """A folder in which the first week was refreshed."""
    folder = tmp_path / "first"
    folder.mkdir()
    ledger = Ledger.create(folder / "ledger", epsilon=4, artifacts=folder / "artifacts")
    weekly(ledger, "2026-01-01", folder)
    return folder


def check(ledger: Ledger, folder: Path) -> None:
    """Everybody was charged once, and every window that was recorded is in the state, once."""
    assert {account.member: account.charged for account in ledger.accounts()} == dict.fromkeys(
        "abcdefgh", 1.0
    )
    assert all(charge.released for charge in ledger.charges()), "no secret is left"
    recorded = Counter()
    for member in "abcdefgh":
        windows = [window for window in ledger.charges(member) if is_window(window)]
        recorded[member] = len(windows)
        assert len({window.note["until"] for window in windows}) == len(windows)
    shard = stored(folder / "series")
    assert dict(zip("abcdefgh", shard.windows.tolist(), strict=True)) == dict(recorded)
    ledger.verify()


def test_killed_at_any_step_a_refresh_goes_on(first, tmp_path, forks, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a process crashes here, not the machine
    for step in count(1):
        folder = shutil.copytree(first, tmp_path / f"{step}")
        ended = forks.start(REFRESHER, folder, "kill", step).wait(60)
        assert ended in (0, -signal.SIGKILL)
        ledger = opened(folder)
        weekly(ledger, "2026-01-08" if step % 2 else "2026-01-15", folder)
        check(ledger, folder)
        assert not (folder / "series" / "pending.json").exists()
        assert len(list((folder / "series").glob("state-*"))) == 1, "nothing is left over"
        if ended == 0:
            break
        shutil.rmtree(folder)
    assert step > 60


def test_a_second_process_is_refused_and_nobody_charged_twice(first, forks):
    for date in ("2026-01-08", "2026-01-15"):
        both = [forks.start(REFRESHER, first, "race", date, stderr="stderr") for _ in range(2)]
        said = [process.communicate(60)[1] for process in both]
        ended = [process.returncode for process in both]
        assert 0 in ended
        for code, words in zip(ended, said, strict=True):
            assert code == 0 or "another process is refreshing" in words, words
    check(opened(first), first)


@pytest.mark.parametrize("size", [0, 100, 500, 1000, 2000, 4000, 20_000, 60_000])
def test_a_full_disk_is_said_and_the_next_refresh_goes_on(first, forks, size):
    process = forks.start(REFRESHER, first, "full", size, stderr="stderr")
    _, said = process.communicate(60)
    assert process.returncode in (0, 7), said
    if size < 20_000:
        assert process.returncode == 7
        assert "Traceback" not in said
    ledger = opened(first)
    weekly(ledger, "2026-01-08", first)
    check(ledger, first)


def test_a_ledger_in_postgres(tmp_path, postgres_server, forks):
    numbers = count()

    def start():
        number = next(numbers)
        folder = tmp_path / f"{number}"
        folder.mkdir()
        url = f"{postgres_server.url}#series{number}"
        ledger = Ledger.create(url, epsilon=4, artifacts=folder / "artifacts")
        weekly(ledger, "2026-01-01", folder)
        return folder, url

    folder, url = start()
    ledger = opened(folder, url)
    for date in ("2026-01-08", "2026-01-15"):
        weekly(ledger, date, folder)
    check(ledger, folder)
    for step in (5, 15, 25, 35, 45):
        folder, url = start()
        assert forks.start(REFRESHER, folder, "kill", step, url).wait(60) == -signal.SIGKILL
        ledger = opened(folder, url)
        weekly(ledger, "2026-01-15", folder)
        check(ledger, folder)
