"""Any part put back to an older copy, taken at any step: noticed, or nothing is drawn twice.

Two weeks are lived, and at every step of both refreshes the parts are copied. Then one part, or
two, are put back, and the next refresh has the same graph or a later one.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import sqlite3
from collections import Counter, defaultdict
from itertools import product
from types import SimpleNamespace

import pytest

from edgeveil.errors import LedgerError
from edgeveil.ledger import Batch, Ledger
from edgeveil.mechanisms import run as runner
from edgeveil.privacy.statistic import Tail
from edgeveil.series import copies, steps
from edgeveil.series.history import History
from edgeveil.series.state import SeriesFolder, Shard
from tests.unit.series.test_attacks import CHORDS, RING, Weeks, check_drawn_once, graph

LATER = [*RING, *CHORDS, (0, 2)]
EVER = SimpleNamespace(graph=graph(LATER), nodes=range(8))  # all edges that are ever there
STEPS = [
    *((History, "add"), (SeriesFolder, "begin"), (steps, "note_work"), (Ledger, "charge")),
    *((Ledger, "begin"), (Batch, "store"), (Shard, "write"), (SeriesFolder, "commit")),
    (SeriesFolder, "finish"),
]
PARTS = {
    "ledger": lambda path: path.name == "ledger",
    "artifacts": lambda path: path.parts[0] == "ledger.artifacts",
    "history": lambda path: "history" in path.parts,
    "state": lambda path: path.parts[0] == "ledger.series" and "history" not in path.parts,
}
PUT_BACK = [
    *(("ledger",), ("artifacts",), ("history",), ("state",), ("history", "state")),
    *(("ledger", "artifacts", "state"), ("ledger", "artifacts", "history")),
]


def files_of(folder):
    """All files by their path in the folder; the ledger as its own backup has it."""
    contents = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and path.name not in ("lock", "ledger-wal", "ledger-shm"):
            contents[name] = path.read_bytes()
    with sqlite3.connect(folder / "ledger") as ledger, sqlite3.connect(":memory:") as copied:
        ledger.backup(copied)
        contents[next(name for name in contents if name.name == "ledger")] = copied.serialize()
    return contents


def put_back(folder, now, older, parts):
    """Write the files of `now`, but those of some parts as they were in `older`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    chosen = [PARTS[part] for part in parts]
    for name, content in now.items():
        if not any(is_part(name) for is_part in chosen):
            write(folder / name, content)
    for name, content in older.items():
        if any(is_part(name) for is_part in chosen):
            write(folder / name, content)


def write(path, content):
    for folder in reversed(path.parents):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


@pytest.fixture
def noised(monkeypatch):
    """What noise was drawn for: rows by member, as `drawn` of the attacks, and the degrees."""
    rows, degrees, original = defaultdict(list), set(), runner.randomise

    def watched(statistic, noise, names=(0,)):
        asked = copy.deepcopy(statistic)
        given = original(statistic, noise, names)
        if not isinstance(asked, Tail):
            degrees.add(tuple(given.values[0].tolist()))
            return given
        for i, name in enumerate(names):
            its = slice(asked.starts[i], asked.starts[i + 1])
            sums = dict(zip(asked.positions[its].tolist(), asked.values[its], strict=True))
            rows[int(name)].append((sums, tuple(tuple(part.tolist()) for part in given.of(i))))
        return given

    monkeypatch.setattr(runner, "randomise", watched)
    return rows, degrees


def copying(function, folder, copies):
    """The function, and a copy of the files after each call."""

    def watched(*given, **more):
        result = function(*given, **more)
        copies.append(files_of(folder))
        return result

    return watched


def lived(folder, monkeypatch):
    """Two weeks, and copies of all files at every step at which some part changed."""
    copies, weeks = [], Weeks(folder)
    with monkeypatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, copying(getattr(owner, name), folder, copies))
        weeks.refresh(RING, range(7))
        weeks.refresh(RING + CHORDS)
    return copies


def restore_all(tmp_path, monkeypatch, noised, parts):
    """Put the parts back to every copy and go on; gives how often it was refused, and went on."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    rows, degrees = noised
    (tmp_path / "life").mkdir()
    copies = lived(tmp_path / "life", monkeypatch)
    now, before = copies[-1], copy.deepcopy(rows)
    wanted = {  # each content of the parts once
        tuple((str(n), files[n]) for n in sorted(files) if any(PARTS[p](n) for p in parts)): at
        for at, files in enumerate(copies)
    }
    ended, words = Counter(), set()
    for at, later in product(sorted(wanted.values()), (False, True)):
        folder = tmp_path / "restored"
        put_back(folder, now, copies[at], parts)
        weeks = object.__new__(Weeks)
        weeks.folder, weeks.week = folder, 2 + later
        rows.clear()
        rows.update(copy.deepcopy(before))
        try:
            weeks.ledger = Ledger.open(folder / "ledger")
            for edges in (RING + CHORDS, LATER):
                weeks.refresh(edges, again=True)
                weeks.week += 1
        except LedgerError as error:
            words.add(str(error))
            ended["refused"] += 1
        else:
            assert {weeks.charged(member) for member in "abcdefgh"} == {1.0}
            ended["went on"] += 1
        check_drawn_once(rows, EVER)
        assert len(degrees) == 1
    assert all(re.search("restored|is gone", said) for said in words)
    return ended


@pytest.mark.parametrize("parts", PUT_BACK, ids=" and ".join)
def test_older_copy_from_any_step_is_refused_or_harmless(tmp_path, monkeypatch, noised, parts):
    ended = restore_all(tmp_path, monkeypatch, noised, parts)
    assert ended["refused"] >= 4
    assert ended["went on"] >= 2, "at least with the last copy"


def test_control_unnoticed_older_copy_draws_again(tmp_path, monkeypatch, noised):
    """A control: without the check of the ledger's entry."""
    monkeypatch.setattr(copies, "_check_folder", lambda *_: None)
    with pytest.raises(AssertionError, match=r"float64.* <= "):
        restore_all(tmp_path, monkeypatch, noised, ("ledger", "artifacts", "state"))
