"""Crashes, races and full disks: real processes, real SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
from itertools import count
from pathlib import Path

import pytest

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.series.history import History
from tests.forks import HISTORIAN
from tests.unit.series.history_worker import FIRST, SECOND


def files_of(path: Path) -> list[str]:
    return sorted(place.name.partition("-")[0] for place in path.iterdir())


def history_before(path: Path, action: str) -> History:
    history = History.create(path)
    history.add(FIRST, "2026-11-02")
    if action == "forget":
        history.add(SECOND, "2026-11-09")
    return history


@pytest.mark.parametrize("action", ["add", "forget"])
def test_history_killed_at_any_step_is_old_or_new(tmp_path, forks, action):
    old, new = history_before(tmp_path / "old", action), history_before(tmp_path / "new", action)
    new.add(SECOND, "2026-11-09") if action == "add" else new.forget("dan")
    seen = {old.graph.fingerprint: 0, new.graph.fingerprint: 0}
    for step in count(1):
        path = shutil.copytree(old.path, tmp_path / str(step))
        process = forks.start(HISTORIAN, path, action, step)
        if process.wait(60) == 0:
            break
        assert process.returncode == -signal.SIGKILL
        left = History.open(path, verify=True)
        seen[left.graph.fingerprint] += 1
        assert files_of(path) == ["history.json", "lock", "state"], "what was left is cleared away"
        if action == "add":  # the same call goes on, or finds that it was done
            assert left.add(SECOND, "2026-11-09") == 2
        elif left.forgotten.tolist() == []:
            left.forget("dan")
        assert History.open(path, verify=True).graph == new.graph
    assert min(seen.values()) > 3, "kills before and after the commit of the new state"
    assert step > 30


def test_history_creation_killed_at_any_step_can_be_repeated(tmp_path, forks):
    for step in count(1):
        path = tmp_path / str(step)
        process = forks.start(HISTORIAN, path, "create", step)
        if process.wait(60) == 0:
            break
        try:
            left = History.open(path)
        except InputError:
            left = History.create(path)
        assert left.add(FIRST) == 1
        assert files_of(path) == ["history.json", "lock", "state"]
    assert step > 10


def test_two_processes_do_not_write_at_once(tmp_path, forks):
    history = history_before(tmp_path / "history", "add")
    read, write = os.pipe()
    process = forks.start(HISTORIAN, history.path, "wait", stdin=read, stdout="stdout")
    os.close(read)
    assert process.stdout.readline() == "locked\n"
    with pytest.raises(EdgeveilError, match="another process is writing"):
        history.add(SECOND)
    with pytest.raises(EdgeveilError, match="another process is writing"):
        history.forget("dan")
    assert len(History.open(history.path)) == 1, "reading goes on"
    os.close(write)
    process.communicate(60)
    assert process.returncode == 0
    assert history.add(SECOND) == 2


@pytest.mark.parametrize("size", [0, 100, 129, 134, 140, 143, 147, 160, 300, 900])
def test_a_full_disk_changes_nothing(tmp_path, forks, size):
    history = history_before(tmp_path / "history", "add")
    process = forks.start(HISTORIAN, history.path, "full", size, stderr="stderr")
    _, said = process.communicate(60)
    assert process.returncode == 7, said
    assert "writing to the history" in said
    assert "the history is intact" in said
    left = History.open(history.path, verify=True)
    assert left.graph == history.graph
    assert files_of(history.path) == ["history.json", "lock", "state"]
    assert left.add(SECOND, "2026-11-09") == 2
