"""One secret never meets two graphs: noise depends on what it is added to."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import edgeveil
from edgeveil.errors import LedgerError
from edgeveil.jobs import keys
from edgeveil.jobs.keys import noise_for
from edgeveil.jobs.stored import read_shared
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.member_lists import Suggest, SuggestWindow
from edgeveil.mechanisms.run import make_rows, shared_numbers
from edgeveil.privacy.noise import calibrate
from edgeveil.privacy.statistic import Bits, Statistic, Tail
from edgeveil.series import WindowRule, copies, steps
from tests.unit.series.test_attacks import CHORDS, RING, Weeks, graph

SECRET = bytes(range(32))
PATIENT = WindowRule(first=50, patience=50)  # no window is due
BORN = replace(graph(RING), first_seen=np.ones(16, np.uint16))
WINDOW = SuggestWindow(epsilon=1.0, since=np.zeros(8, np.uint16), until=1)


def words(part="rows", mechanism=WINDOW, of=BORN, released="", secret=SECRET):
    noise = noise_for(secret, part, mechanism, of, released=released)
    return tuple(noise.words(4).tolist())


def test_the_same_data_has_the_same_noise():
    since = np.zeros(8, np.uint16)
    again = replace(BORN, first_seen=np.ones(16, np.uint16))
    assert words() == words(mechanism=replace(WINDOW, since=since), of=again)


def test_any_difference_has_other_noise(monkeypatch):
    later = np.ones(16, np.uint16)
    later[[0, 2]] = 2
    since = np.zeros(8, np.uint16)
    since[3] = 1
    streams = [
        words(),
        words(secret=bytes(32)),
        words("shared"),
        words(released="the degrees"),
        words(of=replace(BORN, first_seen=later)),
        words(of=replace(BORN, first_seen=None)),
        words(of=replace(BORN, directed=True)),
        words(of=replace(graph(RING + CHORDS), first_seen=np.ones(32, np.uint16))),
        words(of=replace(graph(RING, [*range(7), 8]), first_seen=np.ones(12, np.uint16))),
        words(mechanism=replace(WINDOW, until=2)),
        words(mechanism=replace(WINDOW, since=since)),
        words(mechanism=replace(WINDOW, epsilon=2.0)),
        words(mechanism=Suggest(epsilon=1.0)),
    ]
    monkeypatch.setattr(keys, "_our_code", lambda: "of another version")
    streams.append(words())
    assert len(set(streams)) == len(streams)


def test_other_shared_numbers_have_other_noise_under_one_key():
    noise = noise_for(SECRET, "shared", WINDOW, BORN)
    more = replace(graph(RING + CHORDS), first_seen=np.ones(32, np.uint16))
    first, same, other = (shared_numbers(WINDOW, g, noise)[0] for g in (BORN, BORN, more))
    assert (first.values == same.values).all()
    assert not np.isclose(other.values - first.values, 2.0).any()


def test_only_noise_for_uses_from_secret():
    folder = Path(edgeveil.__file__).parent
    places = {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*.py")
        if "NoiseSource.from_secret(" in file.read_text()
    }
    assert places == {"jobs/keys.py"}


def weight_in_a_helper_module(value=1.0):
    """What a mechanism from outside imports: no part of its code."""
    return value


class Weighted(Mechanism):
    """Weighted degrees for each member, as values, as a tail, or with noise for each row."""

    theorem = "an edge moves two degrees by one each"
    epsilon: float
    kind: str = "rows"

    def measure(self, graph, shared, views):
        m, n = len(views.sources), graph.n_nodes
        rows = np.tile(graph.degrees * weight_in_a_helper_module(), (m, 1))
        noise = calibrate(coordinates=n, sensitivity=2, epsilon=self.epsilon)
        if self.kind == "tail":
            places = np.tile(np.arange(n), m)
            yield Tail(places, rows.ravel(), np.arange(m + 1) * n, n, noise, -1e9, densely=True)
        elif self.kind == "bits":
            yield Bits(np.flatnonzero(rows[0] > 1), n, self.epsilon)
        else:
            yield Statistic(rows, (noise,) * m if self.kind == "of rows" else noise)

    def estimate(self, noised, shared, views):
        if self.kind == "bits":
            bits = np.isin(np.arange(len(views.nodes)), noised[0].values)
            return np.tile(bits.astype(float), (len(views.sources), 1))
        return noised[0].values.reshape(len(views.sources), -1)


def rows_from_outside(kind, sources, *, secret=SECRET):
    mechanism = Weighted(epsilon=1.0, kind=kind)
    noise = noise_for(secret, "rows", mechanism, BORN)
    return make_rows(mechanism, BORN, None, sources, noise)[0]


@pytest.mark.parametrize("kind", ["rows", "of rows", "tail"])
def test_rows_of_a_changed_helper_do_not_share_noise(kind, monkeypatch):
    before = rows_from_outside(kind, [3, 5])
    monkeypatch.setattr(weight_in_a_helper_module, "__defaults__", (11.0,))
    after = rows_from_outside(kind, [3, 5])
    assert not np.isclose(after - before, 10 * BORN.degrees).any()


def test_bits_of_a_changed_helper_do_not_share_noise(monkeypatch):
    secrets = [bytes([i]) * 32 for i in range(8)]
    before = [rows_from_outside("bits", [3], secret=secret) for secret in secrets]
    monkeypatch.setattr(weight_in_a_helper_module, "__defaults__", (0.0,))
    after = [rows_from_outside("bits", [3], secret=secret) for secret in secrets]
    flips = [(rows != (BORN.degrees > 1)) for rows in before], [rows != 0 for rows in after]
    assert not np.array_equal(*flips)


@pytest.mark.parametrize("kind", ["rows", "of rows", "tail", "bits"])
def test_rows_from_outside_are_the_same_in_any_grouping(kind):
    whole = rows_from_outside(kind, range(8))
    for some in ([2], [7, 0], [4, 4, 1]):
        np.testing.assert_array_equal(rows_from_outside(kind, some), whole[some])
    if kind != "bits":  # which are the same for all rows
        assert len(np.unique(whole[:, 0])) == 8


@pytest.fixture
def weeks(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Weeks(tmp_path)


def ledger_inside_first_refresh(weeks, monkeypatch):
    """Refresh once; gives a copy of the ledger from before the degrees were stored."""
    copied, original = weeks.folder / "copy", steps.stored_shared

    def watched(*given):
        weeks.ledger.backup(copied)
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(steps, "stored_shared", watched)
        weeks.refresh(RING, rule=PATIENT)
    return copied


def test_a_ledger_from_inside_the_first_refresh_is_refused(weeks, monkeypatch):
    copied = ledger_inside_first_refresh(weeks, monkeypatch)
    shutil.copy(copied, weeks.ledger.location)
    weeks.ledger = Ledger.open(weeks.ledger.location)
    with pytest.raises(LedgerError, match="restored from an older copy"):
        weeks.refresh(RING + CHORDS, rule=PATIENT)
    monkeypatch.setattr(copies, "_check_folder", lambda *_: None)  # a second check
    with pytest.raises(LedgerError, match="belong to its first snapshot"):
        weeks.refresh(RING + CHORDS, rule=PATIENT, date="2026-02-01")


def test_degrees_on_another_graph_do_not_differ_by_the_degrees(weeks, monkeypatch):
    """Without the refusal: what the difference showed is not in it any more."""
    copied = ledger_inside_first_refresh(weeks, monkeypatch)
    (file,) = (path for path in (weeks.folder / "ledger.artifacts").glob("*") if is_shared(path))
    before = read_shared(file)[0].values
    for path in (weeks.folder / "ledger.artifacts").glob("*"):
        path.unlink()
    shutil.copy(copied, weeks.ledger.location)
    weeks.ledger = Ledger.open(weeks.ledger.location)
    monkeypatch.setattr(copies, "_check_folder", lambda *_: None)
    monkeypatch.setattr(steps.Steps, "_check_degrees", lambda *_: None)
    weeks.refresh(RING + CHORDS, rule=PATIENT)
    assert not np.isclose(read_shared(file)[0].values - before, 2.0).any()


def is_shared(path):
    return path.is_file() and path.read_bytes()[:2] == b"PK"


def test_a_folder_that_is_copied_and_used_twice_is_refused(weeks):
    weeks.refresh(RING, rule=PATIENT)
    shutil.copytree(weeks.place, weeks.folder / "fork", symlinks=True)
    weeks.refresh(RING + CHORDS, rule=PATIENT, folder=weeks.folder / "fork")  # no window is due
    weeks.refresh(RING + CHORDS, again=True)  # windows (0, 2]
    with pytest.raises(LedgerError, match="do not hold the same windows"):
        weeks.refresh(RING + CHORDS, folder=weeks.folder / "fork")  # would be (0, 3]
    weeks.refresh(RING + CHORDS, date="2026-02-01")
