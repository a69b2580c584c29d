"""A window is drawn once, and charged, whatever crashes, is put back, leaves or returns."""

from __future__ import annotations

import copy
import os
import shutil
import sys
from collections import defaultdict
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from edgeveil.errors import BudgetError, LedgerError, ParameterError
from edgeveil.graph.graph import UNKNOWN, Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import Local, drawing
from edgeveil.ledger import Batch, Ledger
from edgeveil.mechanisms import run as runner
from edgeveil.privacy.statistic import Tail
from edgeveil.report.charges import charge_rows, charges_of
from edgeveil.series import WindowRule, joining, refresh, steps
from edgeveil.series.history import History
from edgeveil.series.state import Columns, SeriesFolder, Shard
from tests.unit.series.worker import stored

campaign = sys.modules["edgeveil.series.campaign"]

EAGER = WindowRule(first=1, patience=1, least=1, share=0.0, latest=1)  # a window every time
RING = [(i, (i + 1) % 8) for i in range(8)]
CHORDS = [(i, (i + 3) % 8) for i in range(8)]


def graph(edges, members=range(8)):
    """Members are named by letters."""
    members = list(members)
    at = {v: i for i, v in enumerate(members)}
    ends = [[at[e[k]] for e in edges if set(e) <= at.keys()] for k in (0, 1)]
    return Graph.from_edges(*ends, NodeSet.of(["abcdefghij"[v] for v in members]))


class Weeks:
    """A ledger, and a refresh for each week."""

    def __init__(self, folder, epsilon=4.0, **caps):
        self.folder, self.week = folder, 0
        self.ledger = Ledger.create(folder / "ledger", epsilon=epsilon, **caps)

    @property
    def place(self):
        return self.folder / "ledger.series" / "friends"

    @property
    def history(self):
        return History.open(self.place / "history")

    def refresh(self, edges, members=range(8), *, again=False, **settings):
        self.week += not again
        options = {"ledger": self.ledger, "epsilon": 1.0, "rule": EAGER, "label": "friends"}
        options |= {"date": f"2026-01-{self.week:02d}", "engine": Local(threads=1), "most_loss": 1}
        return refresh(graph(edges, members), **options | settings)

    def charged(self, member):
        return self.ledger.account(member).charged


@pytest.fixture
def weeks(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # processes crash here, not the machine
    return Weeks(tmp_path)


@pytest.fixture
def drawn(monkeypatch):
    """By member's index every row that was drawn: the sums before the noise, and what came out."""
    rows, original = defaultdict(list), runner.randomise

    def watched(statistic, noise, names=(0,)):
        asked = copy.deepcopy(statistic)
        given = original(statistic, noise, names)
        if isinstance(asked, Tail):
            for i, name in enumerate(names):
                its = slice(asked.starts[i], asked.starts[i + 1])
                sums = dict(zip(asked.positions[its].tolist(), asked.values[its], strict=True))
                seen = tuple(tuple(part.tolist()) for part in given.of(i))
                rows[int(name)].append((sums, seen))
        return given

    monkeypatch.setattr(runner, "randomise", watched)
    return rows


def check_drawn_once(drawn, history):
    """All that different noise was drawn for, added up: no path between others more than once."""
    friends = [set(history.graph.neighbours(v).tolist()) for v in range(len(history.nodes))]
    greatest = 0.0
    for member, rows in drawn.items():
        total = defaultdict(float)
        for sums, _ in {seen: (sums, seen) for sums, seen in rows}.values():
            for stranger, value in sums.items():
                total[stranger] += value
        for stranger, value in total.items():
            assert value <= len(friends[member] & friends[stranger])
            greatest += value
    return greatest


@contextmanager
def failing(monkeypatch, owner, name, nth, *, after):
    """Raise at the n-th call of a function, before or after its work; gives whether it did."""
    original, calls = getattr(owner, name), []

    def broken(*arguments, **options):
        calls.append(1)
        if len(calls) == nth and not after:
            raise KeyboardInterrupt
        result = original(*arguments, **options)
        if len(calls) == nth:
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        yield calls


STEPS = [
    *((History, "add", 1), (SeriesFolder, "begin", 1), (steps, "note_work", 1)),
    *((steps, "note_work", 2), (Ledger, "charge", 1), (Ledger, "charge", 2)),
    *((Batch, "store", 1), (Batch, "store", 2)),
    *((steps, "stored_shared", 1), (runner, "randomise", 1), (Shard, "write", 1)),
    *((SeriesFolder, "commit", 1), (SeriesFolder, "finish", 1)),
]


@pytest.mark.parametrize(
    ("after", "moved_on"), [(False, False), (True, True)], ids=["before", "after, a week later"]
)
@pytest.mark.parametrize(
    ("owner", "name", "nth"), STEPS, ids=[f"{name} {nth}" for _, name, nth in STEPS]
)
def test_a_refresh_that_crashes_anywhere_draws_each_window_once(
    weeks, drawn, monkeypatch, owner, name, nth, after, moved_on
):
    weeks.refresh(RING, range(7))
    with failing(monkeypatch, owner, name, nth, after=after) as calls:
        with pytest.raises(KeyboardInterrupt):
            weeks.refresh(RING + CHORDS)
        assert len(calls) == nth
    weeks.ledger = Ledger.open(weeks.ledger.location)
    weeks.refresh(RING + CHORDS, again=not moved_on)
    weeks.refresh(RING + CHORDS)
    assert check_drawn_once(drawn, weeks.history) > 8
    assert [weeks.charged(member) for member in "abcdefgh"] == [1.0] * 8
    assert not any(not charge.released and charge.n_rows for charge in weeks.ledger.charges())


def test_a_window_that_is_drawn_twice_would_be_noticed(weeks, drawn, monkeypatch):
    """A control of `check_drawn_once`: with no memory of where the last window ended."""
    monkeypatch.setattr(
        Shard, "read", classmethod(lambda cls, folder, first, size: Shard.empty(first, size))
    )
    monkeypatch.setattr(
        SeriesFolder, "columns", lambda self, n, _: Columns(*np.zeros((3, n), np.uint16))
    )
    copies = sys.modules["edgeveil.series.copies"]
    monkeypatch.setattr(copies, "_check_windows", lambda *_: None)  # it would refuse
    for _ in range(2):
        weeks.refresh(RING)
    with pytest.raises(AssertionError):
        check_drawn_once(drawn, weeks.history)


# --- Members who leave, return, and are forgotten ------------------------------------------------


def test_forgotten_returning_member_is_recounted_and_charged(weeks, drawn):
    weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    weeks.history.forget("a")
    result = weeks.refresh(RING)
    assert result.n_newcomers == 1
    for life in (0, 8):  # both lives ask about the same strangers, weighted by noised degrees
        sums, _ = drawn[life][0]
        assert set(sums) == {2, 6}
        assert all(0 < weight <= 1 for weight in sums.values())
    assert weeks.charged("a") == 2.0
    assert weeks.charged("b") == 1.0
    weeks.refresh(RING)
    assert weeks.charged("a") == 2.0


def all_asked(rows):
    """Everything that different noise was drawn for, added up by stranger."""
    total = defaultdict(float)
    for sums, _ in {seen: (sums, seen) for sums, seen in rows}.values():
        for stranger, value in sums.items():
            total[stranger] += value
    return total


def test_edges_of_forgotten_members_are_not_recounted(tmp_path, drawn, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    weeks = Weeks(tmp_path, epsilon=9.0)
    weeks.refresh(RING)
    for time in range(3):
        weeks.refresh(RING, [v for v in range(8) if v != 1])
        weeks.history.forget("b")
        weeks.refresh(RING)
        assert weeks.history.nodes.index("b") == 8 + time
    for member, via in ((0, 2), (2, 0)):  # a - b - c, and c - b - a
        assert 0 < all_asked(drawn[member])[via] <= 1
    for member in (3, 7):  # d - c - b, and h - a - b
        total = all_asked(drawn[member])
        assert 0 < total[1] <= 1
        assert not {8, 9, 10} & total.keys()
    assert {weeks.charged(member) for member in "acdefgh"} == {1.0}
    assert weeks.charged("b") == 4.0, "charged for all that it is asked about again"
    weeks.ledger.advance("friends")
    drawn.clear()
    weeks.refresh(RING)
    assert 0 < all_asked(drawn[0])[2] <= 1
    assert 0 < all_asked(drawn[3])[10] <= 1


def test_edge_between_two_returned_members_is_not_counted(weeks, drawn):
    weeks.refresh(RING)
    weeks.refresh(RING, range(2, 8))
    weeks.history.forget(["a", "b"])
    weeks.refresh(RING)
    a, b = weeks.history.nodes.indices(["a", "b"]).tolist()
    assert set(all_asked(drawn[a])) == {6}, "by h; c is known by b only, who has returned"
    assert set(all_asked(drawn[b])) == {3}


def test_returner_beyond_the_budget_is_left_out(tmp_path):
    weeks = Weeks(tmp_path, epsilon=1.5)
    weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    weeks.history.forget("a")
    result = weeks.refresh(RING)
    assert (result.n_lists, result.n_left_out) == (7, 1)
    with pytest.raises(BudgetError):
        result.suggestions(["a"])


def interrupt_return(weeks, monkeypatch):
    """Let a member join, leave, be forgotten, and return in a refresh that is interrupted."""
    weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    weeks.history.forget("a")
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)


def test_interrupted_refresh_charges_a_returner_once_more(weeks, monkeypatch):
    interrupt_return(weeks, monkeypatch)
    weeks.refresh(RING, again=True)
    assert weeks.charged("a") == 2.0


def test_member_who_left_returns_at_no_further_charge(weeks, drawn):
    weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    weeks.refresh(RING + CHORDS)
    assert weeks.charged("a") == 1.0
    check_drawn_once(drawn, weeks.history)


def test_newcomer_leaving_before_the_resume_is_charged_once(weeks, monkeypatch):
    weeks.refresh(RING, range(1, 8))
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    weeks.history.add(graph(RING, range(1, 8)), date="2026-02-01", again=True)
    result = weeks.refresh(RING, date="2026-02-02")
    assert weeks.charged("a") == 1.0
    assert result.n_lists == 8


def test_returner_leaving_before_the_resume_is_charged_once_more(weeks, monkeypatch):
    interrupt_return(weeks, monkeypatch)
    weeks.history.add(graph(RING, range(1, 8)), date="2026-02-01", again=True)
    weeks.refresh(RING, date="2026-02-02")
    assert weeks.charged("a") == 2.0


def test_interrupted_window_is_drawn_once_in_a_new_history(weeks, drawn, monkeypatch):
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)
    weeks.history.add(graph(RING + CHORDS, range(1, 8)), date="2026-01-02")  # a leaves
    drawn.clear()  # what was drawn so far was seen by nobody
    weeks.week = 2
    result = weeks.refresh(RING + CHORDS)
    assert result.n_lists == 8
    check_drawn_once(drawn, weeks.history)


def test_the_memory_of_the_forgotten_is_erased(weeks):
    weeks.refresh(RING)
    weeks.refresh(RING, range(1, 8))
    held = stored(weeks.place)
    assert held.charged[0]
    weeks.history.forget("a")
    weeks.refresh(RING, range(1, 8))
    held = stored(weeks.place)
    assert not held.charged[0]
    assert (held.last[0], held.windows[0], held.evidence.starts[1]) == (0, 0, 0)
    assert held.charged[1:].all()
    assert (held.windows[1:] == 3).all()


def test_forgotten_member_of_an_open_batch_is_not_redrawn(weeks, drawn, monkeypatch):
    """Its secret may be there still, but one window of two histories would tell all."""
    weeks.refresh(RING)
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=True),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING + CHORDS)
    before = len(drawn[1])
    weeks.history.add(graph(RING, range(1, 8)), date="2026-01-03")
    weeks.history.forget("a")
    weeks.week = 3
    weeks.refresh(RING)
    outcomes = [seen for _, seen in drawn[1]]
    assert len(outcomes) == before + 1
    told = [seen for seen in outcomes if any(seen)]  # in 1 of 200 nothing reaches the threshold
    assert len(set(told)) == len(told)
    assert all(charge.released for charge in weeks.ledger.charges())


def test_second_refresh_with_another_rule_is_resumed(weeks, drawn, monkeypatch):
    weeks.refresh(RING, rule=WindowRule(first=5, patience=50))
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING, again=True)
    assert weeks.refresh(RING, again=True).n_windows == 8
    assert check_drawn_once(drawn, weeks.history) > 8
    assert all(charge.released for charge in weeks.ledger.charges())


@pytest.mark.parametrize("renewed", [False, True])
def test_a_text_id_in_the_second_week_is_just_a_newcomer(weeks, drawn, renewed):
    def week(*more, edges=RING, members=range(8)):
        nodes = NodeSet.of([*members]) if not more else NodeSet.of([*map(str, members), *more])
        weeks.week += 1
        return refresh(
            Graph.from_edges([u for u, _ in edges], [v for _, v in edges], nodes),
            ledger=weeks.ledger, epsilon=1.0, label="friends", rule=EAGER,
            engine=Local(threads=1), date=f"2026-01-{weeks.week:02d}", most_loss=1,
        )  # fmt: skip

    week()
    if renewed:
        weeks.ledger.advance("friends")
    result = week("guest-1", edges=RING + CHORDS)
    assert (result.n_lists, result.n_newcomers) == (9, 9 if renewed else 1)
    assert weeks.charged("guest-1") == 1.0
    assert {weeks.charged(str(v)) for v in range(8)} == {2.0 if renewed else 1.0}
    suggestions = result.suggestions([3, "4", "guest-1"], k=3)
    assert suggestions.members == ("3", "4", "guest-1")
    assert week(edges=RING).n_newcomers == 0  # the guest has left
    if not renewed:
        check_drawn_once(drawn, weeks.history)


# --- What others may see of a ledger -------------------------------------------------------------


def test_reports_do_not_tell_how_many_windows_there_were(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    shown, windows = [], []
    for name, edges in (("ring", RING), ("one more", [*RING, (0, 2)])):
        (tmp_path / name).mkdir()
        weeks = Weeks(tmp_path / name)
        monkeypatch.setattr(joining, "_BATCH", 1)
        monkeypatch.setattr(drawing, "_BATCH_ROWS", 1)
        rule = WindowRule(first=3, patience=50)
        windows.append(sum(weeks.refresh(edges, rule=rule).n_windows for _ in range(2)))
        weeks.refresh(edges, range(9), rule=rule)
        charges = weeks.ledger.charges()
        rows = [(row[0], *row[2:]) for row in charge_rows(charges)]
        steps = [level for _, level in charges_of(weeks.ledger).steps]
        shown.append((rows, steps, charges_of(weeks.ledger, "j").steps == []))
        assert [row[0] for row in rows] == [1, 2]
    assert windows == [0, 2]
    assert shown[0] == shown[1]


def test_every_snapshot_has_an_entry_also_without_windows(weeks):
    patient, heads = WindowRule(first=50, patience=50), []
    for _ in range(3):
        assert weeks.refresh(RING, rule=patient).n_windows == 0
        heads.append(weeks.ledger.verify())
        weeks.refresh(RING, again=True, rule=patient)
        assert weeks.ledger.verify() == heads[-1], "the same snapshot"
    assert len(set(heads)) == 3


def test_artifacts_hold_no_ids(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    names = [f"somebody-{v}" for v in range(8)]
    named = Graph.from_edges(*zip(*RING, strict=True), NodeSet.of(names))
    refresh(named, ledger=ledger, epsilon=1.0, rule=EAGER)
    files = [path for path in (tmp_path / "ledger.artifacts").rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not any(b"somebody" in path.read_bytes() for path in files)


# --- A new version of the code -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [(SeriesFolder, "commit", True), (joining, "erase_secrets", False)],
    ids=["after the commit", "before a charge is erased"],
)
def test_a_crash_after_all_noise_goes_on_with_other_code(
    weeks, drawn, monkeypatch, owner, name, after
):
    weeks.refresh(RING, range(7))
    with (
        failing(monkeypatch, owner, name, 1 if after else 2, after=after),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING + CHORDS)
    monkeypatch.setattr(campaign, "code_of", lambda mechanism: "a later version")
    for _ in range(2):
        assert weeks.refresh(RING + CHORDS, again=True).n_lists == 8
    weeks.refresh(RING + CHORDS)
    assert check_drawn_once(drawn, weeks.history) > 8
    assert [weeks.charged(member) for member in "abcdefgh"] == [1.0] * 8
    assert all(charge.released for charge in weeks.ledger.charges())


def test_windows_begun_by_other_code_are_refused(weeks, drawn, monkeypatch):
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)
    with monkeypatch.context() as patch:
        patch.setattr(campaign, "code_of", lambda mechanism: "a later version")
        before = weeks.ledger.verify()
        with pytest.raises(LedgerError, match=r"without a charge, install that version"):
            weeks.refresh(RING, again=True)
        assert weeks.ledger.verify() == before
    assert weeks.refresh(RING, again=True).n_lists == 8
    monkeypatch.setattr(campaign, "code_of", lambda mechanism: "a later version")
    weeks.refresh(RING)
    assert check_drawn_once(drawn, weeks.history) > 8
    assert [weeks.charged(member) for member in "abcdefgh"] == [1.0] * 8


# --- Put back to an older copy ------------------------------------------------------------------


def put_back(source, target):
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def test_missing_or_truncated_state_file_is_refused(weeks):
    weeks.refresh(RING)
    (file,) = weeks.place.glob("state-*/*.npz")
    whole = file.read_bytes()
    file.unlink()
    with pytest.raises(LedgerError, match="missing or damaged"):
        weeks.refresh(RING)
    Shard.empty(0, 7).write(file.parent)
    with pytest.raises(LedgerError, match="missing or damaged"):
        weeks.refresh(RING, again=True)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError, match="missing or damaged"):
        weeks.refresh(RING, again=True)
    file.write_bytes(whole)
    weeks.refresh(RING, again=True)


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize(
    "what",
    [
        ("ledger", "ledger.artifacts"),
        ("state",),
        ("history",),
        ("state", "history"),
        ("ledger", "ledger.artifacts", "state"),
        ("ledger", "ledger.artifacts", "history"),
    ],
    ids=" and ".join,
)
def test_an_older_copy_of_anything_is_noticed(weeks, tmp_path, what, renewed):
    weeks.refresh(RING)
    copied = tmp_path / "copy"
    copied.mkdir()
    for name in ("ledger", "ledger.artifacts", "ledger.series"):
        path = tmp_path / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, copied / name)
    weeks.refresh(RING + CHORDS)
    if renewed:
        weeks.ledger.advance("friends")
        weeks.refresh(RING + CHORDS)
    for name in {"ledger", "ledger.artifacts"} & set(what):
        put_back(copied / name, tmp_path / name)
    old = copied / "ledger.series" / "friends"
    if "history" in what:
        put_back(old / "history", weeks.place / "history")
    if "state" in what:
        for path in weeks.place.glob("s*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in old.glob("s*"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, weeks.place / path.name)
    weeks.ledger, before = Ledger.open(tmp_path / "ledger"), len(weeks.history)
    with pytest.raises(LedgerError):
        weeks.refresh(RING + CHORDS)
    assert len(weeks.history) == before, "and nothing was merged"


def test_older_history_during_an_open_refresh_is_refused(weeks, monkeypatch):
    weeks.refresh(RING)
    shutil.copytree(weeks.place / "history", weeks.folder / "copy")
    weeks.refresh(RING)
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING + CHORDS)
    put_back(weeks.folder / "copy", weeks.place / "history")
    with pytest.raises(LedgerError, match="older copy"):
        weeks.refresh(RING + CHORDS)


def test_pending_put_back_alone_is_refused(weeks, monkeypatch):
    weeks.refresh(RING)
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)
    pending = weeks.place / "pending.json"
    older = pending.read_bytes()
    for _ in range(2):
        weeks.refresh(RING + CHORDS)
    assert not pending.exists()
    pending.write_bytes(older)
    with pytest.raises(LedgerError, match=r"friends was restored from an older copy"):
        weeks.refresh(RING)
    pending.unlink()
    weeks.refresh(RING)


def test_another_ledger_does_not_go_on_with_a_series(weeks, tmp_path):
    weeks.refresh(RING)
    other = Ledger.create(tmp_path / "other", epsilon=4)
    with pytest.raises(LedgerError, match="another ledger"):
        weeks.refresh(RING, ledger=other, folder=weeks.place)


def test_another_epsilon_is_another_series_and_needs_a_renewal(weeks, drawn):
    weeks.refresh(RING)
    seen = len(drawn[0])
    with pytest.raises(ParameterError, match=r"begun with epsilon = 1, and 2 is given.*renew"):
        weeks.refresh(RING, epsilon=2.0, again=True)
    assert (weeks.charged("a"), len(drawn[0])) == (1.0, seen)
    weeks.ledger.advance("friends")
    weeks.refresh(RING, epsilon=2.0, again=True)
    assert weeks.charged("a") == 3.0
    with pytest.raises(ParameterError, match="renew"):
        weeks.refresh(RING, again=True)
    weeks.ledger.advance("friends")
    weeks.refresh(RING, again=True)
    assert weeks.charged("a") == 4.0


@pytest.mark.parametrize("after", [False, True])
def test_a_renewed_series_that_is_interrupted_goes_on(weeks, drawn, monkeypatch, after):
    weeks.refresh(RING)
    weeks.ledger.advance("friends")
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=after),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING, epsilon=2.0, again=True)
    with pytest.raises(ParameterError, match="begun with epsilon = 2, and 1 is given"):
        weeks.refresh(RING, again=True)
    weeks.refresh(RING, epsilon=2.0, again=True)
    assert weeks.charged("a") == 3.0
    # One outcome of each series; both may be that nothing reached the threshold (1 in 200 each).
    assert len(drawn[0]) == (2 if after else 3)
    assert len({seen for _, seen in drawn[0]}) <= 2


def test_renewal_abandons_an_interrupted_refresh(weeks, monkeypatch):
    weeks.refresh(RING)
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING + CHORDS)
    weeks.ledger.advance("friends")
    assert weeks.refresh(RING, epsilon=2.0).n_newcomers == 8
    assert weeks.charged("a") == 3.0


# --- Who gets what ------------------------------------------------------------------------------


def test_pooled_cap_limits_the_number_of_lists(tmp_path):
    weeks = Weeks(tmp_path, pooled_epsilon=3.0)  # 0.03 once, and 0.97 for each
    result = weeks.refresh(RING)
    assert (result.n_lists, result.n_left_out) == (3, 5)
    result = weeks.refresh(RING)
    assert (result.n_lists, result.n_left_out) == (3, 5)


def test_list_before_the_first_window_is_popular_names(weeks, drawn):
    result = weeks.refresh(RING, rule=WindowRule(first=5, patience=50))
    assert not drawn
    suggestions = result.suggestions(k=3)
    assert not (suggestions.lists.chance < 1).any()
    assert (suggestions.lists.common == 0).all()


def test_uncharged_member_gets_no_list(tmp_path):
    weeks = Weeks(tmp_path, epsilon=1.0)
    weeks.refresh(RING, range(7))
    weeks.ledger.advance("friends")
    result = weeks.refresh(RING, epsilon=0.5)  # a second series is too much for a to g
    assert (result.n_lists, result.n_left_out) == (1, 7)
    assert list(result.suggestions().members) == ["h"]
    with pytest.raises(BudgetError):
        result.suggestions(["h", "a"])


def test_evidence_is_the_members_own_whatever_the_order_of_parts(tmp_path, monkeypatch):
    """Parts come back in any order; what a member sees is what was drawn for it."""
    monkeypatch.setattr(drawing, "_PART_LISTS", 2)
    seen, original = {}, runner.randomise

    def watched(statistic, noise, names=(0,)):
        given = original(statistic, noise, names)
        if isinstance(statistic, Tail):
            for i, name in enumerate(names):
                seen[int(name)] = dict(zip(*(part.tolist() for part in given.of(i)), strict=True))
        return given

    class Backwards:
        def run(self, task, parts):
            yield from reversed(list(Local(threads=1).run(task, parts)))

    monkeypatch.setattr(runner, "randomise", watched)
    weeks = Weeks(tmp_path)
    weeks.refresh(RING, engine=Backwards())
    evidence = stored(weeks.place).evidence
    friends = [{(v - 1) % 8, (v + 1) % 8, v} for v in range(8)]
    for member in range(8):
        row = slice(*evidence.starts[member : member + 2])
        nodes = evidence.nodes[row].tolist()
        assert set(nodes) == seen[member].keys() - friends[member]
        wanted = [seen[member][node] for node in nodes]
        assert evidence.sums[row] == pytest.approx(np.array(wanted), rel=2e-3)  # half precision


# --- A renewal begins with the friendships of the day -------------------------------------------


def test_renewal_does_not_count_ended_friendships(weeks, drawn):
    weeks.refresh(RING + CHORDS)
    weeks.refresh(RING)
    assert set(drawn[0][0][0]) == {2, 4, 6}
    weeks.ledger.advance("friends")
    result = weeks.refresh(RING)
    assert set(drawn[0][-1][0]) == {2, 6}
    listed = {row.node for row in result.suggestions(["a"], k=8).for_member("a")}
    assert listed == {"c", "e", "g"}, "former friends are not suggested"
    assert weeks.charged("a") == 2.0
    weeks.refresh([*RING, (0, 3)])  # begins again, and is counted once in the new series
    assert set(drawn[0][-1][0]) == {2, 4}
    weeks.refresh(RING)
    weeks.refresh([*RING, (0, 3)])
    assert not drawn[0][-1][0]


RENEWAL = [*STEPS, (History, "reset_first_seen", 1)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("again", [True, False], ids=["same graph", "later graph"])
@pytest.mark.parametrize(
    ("owner", "name", "nth"), RENEWAL, ids=[f"{name} {nth}" for _, name, nth in RENEWAL]
)
def test_renewal_crashing_anywhere_counts_each_edge_once(
    weeks, drawn, monkeypatch, owner, name, nth, again, after
):
    weeks.refresh(RING + CHORDS)
    weeks.ledger.advance("friends")
    drawn.clear()
    with failing(monkeypatch, owner, name, nth, after=after) as calls:
        with pytest.raises(KeyboardInterrupt):
            weeks.refresh([*RING, (0, 2)])
        assert len(calls) == nth
    weeks.ledger = Ledger.open(weeks.ledger.location)
    weeks.refresh([*RING, (0, 2)] if again else [*RING, (1, 3)], again=again)
    weeks.refresh([*RING, (0, 2), (1, 3)])
    history = weeks.history
    asked_about = {(u, v) for u in range(8) for v in history.graph.neighbours(u).tolist()}
    assert asked_about >= {(0, 3), (3, 0)}, "the chords are there,"
    first_seen = dict(zip(history.graph.neighbours(0).tolist(), history.first_seen(0), strict=True))
    assert first_seen[3] == UNKNOWN, "but were not asked about"
    assert not {4} & {stranger for sums, _ in drawn[0] for stranger in sums}
    assert check_drawn_once(drawn, history) > 8
    assert [weeks.charged(member) for member in "abcdefgh"] == [2.0] * 8


def test_reset_history_is_refused_by_the_old_series(weeks):
    """A control: first_seen that are reset in the middle of a series would be asked about again."""
    weeks.refresh(RING + CHORDS)
    weeks.refresh(RING)
    weeks.history.reset_first_seen()
    with pytest.raises(LedgerError, match="does not hold the series"):
        weeks.refresh(RING + CHORDS)
    weeks.ledger.advance("friends")
    weeks.refresh(RING + CHORDS)
    assert weeks.charged("a") == 2.0


@pytest.mark.parametrize("renewed", [False, True])
def test_the_history_from_before_a_renewal_is_noticed_after_it(weeks, renewed):
    weeks.refresh(RING + CHORDS)
    weeks.refresh(RING)
    shutil.copytree(weeks.place / "history", weeks.folder / "copy")
    weeks.ledger.advance("friends")
    weeks.refresh(RING, again=True)  # of the same date: no snapshot is added
    if renewed:
        put_back(weeks.folder / "copy", weeks.place / "history")
    with pytest.raises(LedgerError, match="does not hold") if renewed else nullcontext():
        weeks.refresh(RING + CHORDS)


def test_another_ledger_or_label_leaves_a_series_as_it_is(weeks, tmp_path):
    weeks.refresh(RING + CHORDS)
    weeks.refresh(RING)
    before = weeks.history
    other = Ledger.create(tmp_path / "other", epsilon=4)
    for ledger, label in ((other, "friends"), (weeks.ledger, "others")):
        with pytest.raises((LedgerError, ParameterError), match="another"):
            weeks.refresh(RING, ledger=ledger, label=label, folder=weeks.place)
        assert (weeks.history.identity, len(weeks.history)) == (before.identity, len(before))
    weeks.refresh(RING)
    assert weeks.charged("a") == 1.0


def test_a_renewal_during_a_refresh_is_noticed(weeks, drawn, monkeypatch):
    weeks.refresh(RING + CHORDS)
    add = History.add

    def slow(*words, **more):
        number = add(*words, **more)
        weeks.ledger.advance("friends")
        return number

    with monkeypatch.context() as patch:
        patch.setattr(History, "add", slow)
        with pytest.raises(LedgerError, match="is the current one"):
            weeks.refresh(RING)
    weeks.refresh(RING)
    assert set(drawn[0][-1][0]) == {2, 6}
    assert weeks.charged("a") == 2.0


@pytest.mark.parametrize("after", [False, True])
def test_open_batch_of_forgotten_members_loses_its_secret(weeks, monkeypatch, after):
    monkeypatch.setattr(joining, "_BATCH", 1)
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 1)
    weeks.refresh(RING)
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=after),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING + CHORDS)
    weeks.history.add(graph(RING, range(1, 8)), date="2026-01-03")
    weeks.history.forget("a")
    weeks.week = 3
    weeks.refresh(RING, range(1, 8))
    assert all(charge.released for charge in weeks.ledger.charges())


def test_recorded_windows_are_drawn_under_another_rule(weeks, drawn, monkeypatch):
    with (
        failing(monkeypatch, SeriesFolder, "commit", 1, after=False),
        pytest.raises(KeyboardInterrupt),
    ):
        weeks.refresh(RING)
    weeks.refresh(RING, again=True, rule=WindowRule(first=5, patience=50))
    assert all(charge.released for charge in weeks.ledger.charges())
    weeks.refresh(RING, again=True)
    check_drawn_once(drawn, weeks.history)


def test_unsuitable_refresh_is_refused_before_it_begins(weeks):
    with pytest.raises(ParameterError, match="NUL"):
        refresh(
            Graph.from_edges([0], [1], NodeSet.of(["a", "b\0"])), ledger=weeks.ledger, epsilon=1
        )
    with pytest.raises(BudgetError, match="no member's budget allows a series at epsilon = "):
        weeks.refresh([], [])
    assert weeks.refresh(RING).n_lists == 8


def test_a_result_does_not_give_the_lists_of_a_later_refresh(weeks):
    old = weeks.refresh(RING)
    new = weeks.refresh(RING, range(9))
    with pytest.raises(LedgerError, match="refreshed since"):
        old.suggestions()
    assert len(new.suggestions().members) == 9
