"""A folder of a series that cannot be relied on stops a refresh before anybody is charged."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import edgeveil as ev
from edgeveil.errors import EdgeveilError, LedgerError, ParameterError
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.series.state import SeriesFolder

real_fcntl = pytest.importorskip("fcntl")

GRAPH = social_network(60, average_degree=8).graph


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)


def refreshed(ledger, folder, day):
    options = {"ledger": ledger, "epsilon": 1.0, "label": "friends", "folder": folder}
    return ev.refresh(GRAPH, date=f"2026-01-{day:02d}", **options)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_folder_that_is_open_to_others_is_refused(ledger, tmp_path):
    folder = tmp_path / "series"
    folder.mkdir()
    folder.chmod(0o755)  # it will hold the graph
    with pytest.raises(LedgerError, match="open to others"):
        refreshed(ledger, folder, 1)
    assert ledger.charges() == []
    folder.chmod(0o700)
    assert refreshed(ledger, folder, 1).n_lists == 60


DAMAGE = [
    *(b"", b"{", b"[]", b"null", b"3", b"\xff\xfe", b"[" * 100_000),
    *({"entry": 3}, {"entry": [0]}, {"entry": [0, "", 1]}, {"entry": [0, 5]}, {"entry": ["0", ""]}),
    *({"entry": [-1, ""]}, {"entry": None}, {"series": 7}, {"series": None}, {"token": 1}),
    *({"until": "1"}, {"until": 1.5}, {"until": -1}, {"until": None}, {"until": True}),
    *({"state": 3}, {"state": "../history"}, {"state": "state-a/b"}, {"state": "state-nowhere"}),
    *({"n_nodes": "60"}, {"n_nodes": -1}, {"n_nodes": 59}, {"n_nodes": 61}, {"n_nodes": 10**30}),
    *({"until": 10**30}, {"more": 1}, {"until": ...}, {"entry": ...}, {"state": ...}),
]


@pytest.fixture
def damaged(ledger, tmp_path):
    """A series, and a function that damages one of its files."""
    folder = tmp_path / "series"
    refreshed(ledger, folder, 1)

    def damage(file, change):
        whole = (folder / file).read_bytes()
        held = {**json.loads(whole), **(change if isinstance(change, dict) else {})}
        held = {name: value for name, value in held.items() if value is not ...}
        (folder / file).write_bytes(change if isinstance(change, bytes) else dumped(held))
        return whole

    return folder, damage


def dumped(held):
    return json.dumps(held).encode()


@pytest.mark.parametrize("file", ["series.json", "history/refreshed.json"])
def test_damaged_notes_are_refused_in_words(ledger, damaged, file):
    folder, damage = damaged
    before, tried = ledger.verify(), 0
    noted = {"series", "entry", "until"}
    for change in DAMAGE:
        if "history" in file and isinstance(change, dict) and not noted & change.keys():
            continue
        whole = damage(file, change)
        with pytest.raises(LedgerError, match=r"damaged|older copy") as refused:
            refreshed(ledger, folder, 2)
        assert str(folder) in str(refused.value)
        (folder / file).write_bytes(whole)
        tried += 1
    assert tried >= 20
    assert ledger.verify() == before
    assert refreshed(ledger, folder, 2).n_lists == 60


def test_note_of_another_version_is_refused(ledger, damaged):
    folder, damage = damaged
    damage("series.json", {"format": 99})
    with pytest.raises(LedgerError, match="another version"):
        refreshed(ledger, folder, 2)


def test_way_out_of_a_damaged_series_is_a_new_one(ledger, damaged):
    folder, damage = damaged
    damage("series.json", b"")
    with pytest.raises(LedgerError, match=f"renew.*charges all members again.*delete {folder}"):
        refreshed(ledger, folder, 2)
    ledger.advance("friends")
    shutil.rmtree(folder)
    assert refreshed(ledger, folder, 2).n_newcomers == 60
    assert ledger.account("7").charged == 2.0


def test_series_without_a_label_has_a_folder_of_its_own(ledger):
    for label in ("", "graph", "Graph "):
        ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label=label, date="2026-01-01")
    places = {place.name for place in Path(f"{ledger.location}.series").iterdir()}
    assert places == {"@graph", "graph"}
    assert ledger.account("7").charged == 2.0
    with pytest.raises(ParameterError, match="a label of letters"):
        ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label="@graph")


def windows_lock(handle, way, size):
    """As `msvcrt.locking` with LK_NBLCK."""
    assert (way, size) == (2, 1)
    real_fcntl.flock(handle, real_fcntl.LOCK_EX | real_fcntl.LOCK_NB)


@pytest.mark.parametrize("system", ["here", "windows"])
def test_two_refreshes_at_once_are_refused(ledger, tmp_path, monkeypatch, system):
    if system == "windows":
        monkeypatch.setitem(sys.modules, "fcntl", None)
        fake = SimpleNamespace(locking=windows_lock, LK_NBLCK=2)
        monkeypatch.setitem(sys.modules, "msvcrt", fake)
    folder = tmp_path / "series"
    taken = pytest.raises(EdgeveilError, match="another process is refreshing")
    with SeriesFolder(folder).writing(), taken:
        refreshed(ledger, folder, 1)
    assert refreshed(ledger, folder, 1).n_lists == 60


def test_follows_you_is_said_of_who_follows_today(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "directed", epsilon=4)

    def week(edges, day):
        graph = Graph.from_edges(*zip(*edges, strict=True), NodeSet.range(6), directed=True)
        options = {"epsilon": 1.0, "knows_followers": True, "most_loss": 1}
        done = ev.refresh(graph, ledger=ledger, date=f"2026-01-0{day}", **options)
        return {row.node for row in done.suggestions([0]).for_member(0) if row.why == "follows you"}

    both = [(0, 1), (1, 0), (2, 0), (3, 0), (4, 5)]
    assert week(both, 1) == {2, 3}
    assert week([edge for edge in both if edge != (3, 0)], 2) == {2}
    assert week([*both, (5, 0)], 3) == {2, 3, 5}
