"""Histories: numbers that stay, dates, what is refused, who is forgotten."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import EdgeveilError, InputError, ParameterError, UnknownNodeError
from edgeveil.graph.graph import UNKNOWN, Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.saved import save_graph
from edgeveil.series import history_state as state
from edgeveil.series.history import History
from tests.unit.series.history_worker import FIRST, SECOND

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")


@pytest.fixture
def history(tmp_path: Path) -> History:
    built_history = History.create(tmp_path / "friends.history")
    built_history.add(FIRST, "2026-11-02")
    return built_history


def named(history: History, index: int) -> dict[str, int]:
    """Friends ever of a node, with the first_seen of the edges."""
    names = history.nodes.take(history.graph.neighbours(index))
    return dict(zip(names, history.first_seen(index).tolist(), strict=True))


def test_a_snapshot_changes_no_index_and_no_first_seen(history):
    assert history.add(SECOND, "2026-11-09") == len(history) == 2
    assert list(history.nodes) == ["ann", "bob", "cem", "dan", "eve"]
    assert named(history, history.nodes.index("cem")) == {"ann": 2, "bob": 1, "dan": 1, "eve": 2}
    assert history.nodes.take(history.friends(2)) == ["ann", "bob", "eve"]
    assert history.present.tolist() == [True, True, True, False, True]
    assert history.new_edges().tolist() == [3, 2]
    assert history.current_edges == 3
    assert not history.graph.read_report.nodes_from_edges
    assert ev.History is History


def test_an_edge_that_begins_again_keeps_its_first_seen(history):
    nothing = Graph.from_edges([], [], FIRST.nodes)
    history.add(nothing)
    assert history.current_edges == 0
    history.add(FIRST)
    assert set(history.graph.first_seen.tolist()) == {1}
    assert history.current.all()


def test_reset_first_seen_forgets_ended_edges(history):
    history.add(SECOND, "2026-11-09")
    other, before = History.open(history.path), history.identity
    history.reset_first_seen()
    assert len(history) == 2
    assert history.snapshots == other.snapshots
    assert history.identity != before == other.identity
    cem = {"ann": 2, "bob": 1, "dan": UNKNOWN, "eve": 2}
    assert named(history, history.nodes.index("cem")) == cem
    assert history.new_edges().tolist() == [1, 2]
    assert History.open(history.path, verify=True).graph == history.graph
    history.add(FIRST)
    assert named(history, history.nodes.index("cem")) == cem | {"dan": 3}, "it begins again"
    history.add(SECOND)
    history.add(FIRST)
    assert named(history, history.nodes.index("cem")) == cem | {"dan": 3}, "once"


def test_what_is_kept_of_a_snapshot_and_a_history(history):
    [snapshot] = history.snapshots
    assert (snapshot.number, snapshot.date, snapshot.n_nodes) == (1, "2026-11-02", 4)
    assert snapshot.nodes == FIRST.nodes.digest().hexdigest()
    other = History.create(history.path.with_name("other"))
    other.add(FIRST, "2026-11-02")
    assert other.identity != history.identity
    assert other.snapshots[0].token != snapshot.token
    kept = json.loads((history.path / "history.json").read_text())
    assert set(kept) == {
        *("format", "version", "identity", "state", "snapshots"),
        *("forgotten", "returned", "key", "marks"),
    }


def test_an_opened_history_stays_as_it_was_while_another_adds(history):
    other = History.open(history.path)
    other.add(SECOND)
    assert (len(history), len(history.nodes)) == (1, 4)
    assert history.graph.neighbours(0).tolist() == [1]
    third = Graph.from_edges([0], [2], FIRST.nodes)
    assert history.add(third) == 3, "it goes on from what is there"


def test_the_same_graph_counts_only_if_it_is_said_so(history):
    with pytest.raises(ParameterError, match=r"the same as snapshot 1: nothing was added.*--again"):
        history.add(FIRST)
    turned = Graph.from_edges([3, 2, 1], [2, 1, 0], NodeSet.of(["dan", "cem", "bob", "ann"]))
    renamed = Graph.from_edges([0, 1, 2], [1, 2, 3], turned.nodes)
    assert turned != FIRST
    with pytest.raises(ParameterError, match="the same"):
        history.add(renamed)
    assert len(History.open(history.path)) == 1
    assert history.add(FIRST, again=True) == 2
    with_eve = Graph.from_edges([0, 1, 2], [1, 2, 3], NodeSet.of([*FIRST.nodes, "eve"]))
    assert history.add(with_eve) == 3, "another node set is another snapshot"


def test_a_repeated_call_for_a_date_adds_nothing(history):
    assert history.add(FIRST, "2026-11-02") == 1
    assert history.add(FIRST, date(2026, 11, 2), again=True) == 1
    assert len(history) == 1
    with pytest.raises(ParameterError, match="snapshot 1 is of 2026-11-02: give a later date"):
        history.add(SECOND, "2026-11-01")
    with pytest.raises(ParameterError, match="must be like 2026-11-16, got 'Monday'"):
        history.add(SECOND, "Monday")
    assert len(History.open(history.path)) == 1
    history.add(SECOND, datetime(2026, 11, 2, 9, 30, tzinfo=UTC))
    assert history.snapshots[-1].date == "2026-11-02T09:30:00+00:00"
    history.add(FIRST)
    assert datetime.fromisoformat(history.snapshots[-1].date).tzinfo == UTC


def test_another_graph_on_the_same_day_is_a_new_snapshot(history):
    assert history.add(SECOND, "2026-11-02") == 2
    assert history.add(SECOND, "2026-11-02", again=True) == 2
    assert history.add(FIRST, "2026-11-02T10:00") == 3
    assert history.add(FIRST, "2026-11-02", again=True) == 3, "that day"
    assert history.add(FIRST, "2026-11-02T11:00", again=True) == 4, "another time"
    assert history.add(SECOND, "2026-11-02") == 5
    dates = ["", "", "T10:00:00+00:00", "T11:00:00+00:00", "T11:00:00+00:00"]
    assert [snapshot.date for snapshot in history.snapshots] == [
        f"2026-11-02{time}" for time in dates
    ]
    with pytest.raises(ParameterError, match="give a later date"):
        history.add(FIRST, "2026-11-02T10:30")
    today = datetime.now(UTC).date().isoformat()
    history.add(FIRST, today)
    history.add(SECOND, today)
    assert history.snapshots[-2].date == today
    assert datetime.fromisoformat(history.snapshots[-1].date).tzinfo == UTC, "with its time"


def test_directions_are_those_of_the_first_snapshot(tmp_path, history):
    arcs = Graph.from_edges([0, 1, 2], [1, 0, 1], FIRST.nodes, directed=True)
    with pytest.raises(InputError, match="without directions, the snapshot with directions"):
        history.add(arcs)
    follows = History.create(tmp_path / "follows")
    follows.add(arcs)
    follows.add(Graph.from_edges([1, 0], [2, 1], FIRST.nodes, directed=True))
    assert follows.directed
    assert named(follows, 1) == {"ann": 1, "cem": 2}
    assert follows.friends(1).tolist() == [2]
    assert follows.graph.followers(1).tolist() == [0, 2]
    assert follows.graph.in_degrees.tolist() == [1, 2, 1, 0]
    assert follows.new_edges().tolist() == [3, 1]


def test_ids_that_are_marks_are_refused(tmp_path, history):
    with pytest.raises(InputError, match=r"starts with the control character U\+001A"):
        history.add(Graph.from_edges([], [], NodeSet.of(["", "\x1aforgotten 0"])))
    numbers = History.create(tmp_path / "numbers")
    with pytest.raises(InputError, match="lowest 64-bit integers"):
        numbers.add(Graph.from_edges([], [], NodeSet.of([5, -(2**63)])))
    assert len(numbers) == 0


@pytest.mark.parametrize("ids", [NodeSet.range(3), NodeSet.of([9, 1, 70])])
def test_a_later_text_id_is_just_a_new_member(tmp_path, ids):
    history = History.create(tmp_path / "numbers")
    history.add(Graph.from_edges([0, 1], [1, 2], ids))
    first, second, third = ids.take([0, 1, 2])
    history.add(Graph.from_edges([0], [1], NodeSet.of([first, second])))
    history.forget(third)
    text = NodeSet.of(["guest-1", str(second), str(first)])
    assert history.add(Graph.from_edges([0, 1], [1, 2], text)) == 3
    assert history.nodes.take([0, 1, 3]) == [str(first), str(second), "guest-1"]
    assert named(history, 1) == {str(first): 1, "guest-1": 3}
    assert history.forgotten.tolist() == [2]
    assert history.nodes.find(str(third)) is None
    later = Graph.from_edges([0, 1], [1, 2], NodeSet.of([first, third, second]))
    history.add(later)  # integers again: the same members, and a new one
    assert history.nodes.indices([str(first), str(third), str(second)]).tolist() == [0, 4, 1]
    assert History.open(history.path, verify=True).graph == history.graph
    history.add(Graph.from_edges([], [], NodeSet.of([first])))
    history.forget(second)
    assert history.forgotten.tolist() == [1, 2]


def test_history_remembers_nodes_from_edges(history):
    from_edges = Graph.from_edges([0], [1], FIRST.nodes, nodes_from_edges=True)
    history.add(from_edges, nodes_from_edges=True)
    history.add(FIRST)
    assert history.graph.read_report.nodes_from_edges


def test_snapshots_beyond_the_most_are_refused(history, monkeypatch):
    monkeypatch.setattr("edgeveil.series.history.MOST_SNAPSHOTS", 1)
    for day in (None, "2026-11-02"):
        with pytest.raises(ParameterError, match="at most 1 snapshots"):
            history.add(SECOND, day)
    assert history.add(FIRST, "2026-11-02") == 1


# -- forgetting ---------------------------------------------------------------------------


def bytes_of(history: History) -> bytes:
    files = [file for file in sorted(history.path.rglob("*")) if file.is_file()]
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("directed", [False, True])
def test_forgotten_member_leaves_no_byte_and_no_edge(tmp_path, directed):
    names = ["ann", "bob", "cem", "dan-the-man"]
    everybody = Graph.from_edges([0, 1, 3, 3], [1, 2, 0, 2], NodeSet.of(names), directed=directed)
    history = History.create(tmp_path / "history")
    history.add(everybody)
    with pytest.raises(ParameterError, match="only members who have left can be forgotten"):
        history.forget("dan-the-man")
    rest = Graph.from_edges([0], [1], NodeSet.of(names[:3]), directed=directed)
    history.add(rest)
    before = history.graph
    assert b"dan-the-man" in bytes_of(history)
    history.forget("dan-the-man")
    assert b"dan-the-man" not in bytes_of(history)
    assert history.forgotten.tolist() == [3]
    assert len(history.graph.neighbours(3)) == 0
    assert 3 not in history.graph.indices
    assert history.graph.n_edges == before.n_edges - 2
    assert list(history.nodes)[:3] == names[:3]
    assert history.friends(0).tolist() == [1]
    assert History.open(history.path, verify=True).graph == history.graph
    history.add(everybody)
    assert history.nodes.index("dan-the-man") == 4, "who comes back is a new node"
    assert set(history.first_seen(4).tolist()) == {3}
    assert history.nodes.indices(list(everybody.nodes)).tolist() == [0, 1, 2, 4]
    assert history.forgotten.tolist() == [3]


def test_edges_to_a_returned_member_have_no_first_seen(tmp_path):
    history = History.create(tmp_path / "history")
    everybody = Graph.from_edges([0, 1, 2], [1, 2, 0], NodeSet.of(["ann", "bob", "cem"]))
    rest = Graph.from_edges([0], [1], NodeSet.of(["ann", "bob"]))
    for _ in range(2):
        history.add(everybody)
        history.add(rest)
        history.forget("cem")
    marks = json.loads((history.path / "history.json").read_text())["marks"]
    assert len(marks) == 1
    history.add(everybody)
    history.add(rest)
    history.add(everybody)
    assert named(history, 0) == {"bob": 1, "cem": UNKNOWN}
    assert named(history, history.nodes.index("cem")) == {"ann": 5, "bob": 5}
    assert history.new_edges().tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert History.open(history.path, verify=True).graph == history.graph
    history.reset_first_seen()
    assert named(history, 0) == {"bob": 1, "cem": 7}
    assert named(history, history.nodes.index("cem")) == {"ann": 5, "bob": 5}
    assert json.loads((history.path / "history.json").read_text())["marks"] == []
    history.add(rest)
    history.add(everybody)
    assert named(history, 0) == {"bob": 1, "cem": 7}, "like all others"


def test_forget_names_files_that_cannot_be_removed(history, monkeypatch):
    history.add(SECOND)
    monkeypatch.setattr(state, "remove_folder", lambda folder: None)
    with pytest.raises(EdgeveilError, match=r"old files cannot be removed: delete .*state-"):
        history.forget("dan")
    monkeypatch.undo()
    assert History.open(history.path).forgotten.tolist() == [3]
    assert b"dan" not in bytes_of(history)


def test_several_are_forgotten_at_once_or_none(history):
    history.add(Graph.from_edges([], [], NodeSet.of(["ann", "bob"])))
    with pytest.raises(ParameterError, match="only members who have left"):
        history.forget(["ann", "dan"])
    with pytest.raises(UnknownNodeError, match="'zoe' is not one of"):
        history.forget(["dan", "zoe"])
    assert history.forgotten.tolist() == []
    history.forget(["dan", "cem", "dan"])
    assert history.forgotten.tolist() == [2, 3]
    assert history.graph.n_edges == 1
    history.forget([])
    with pytest.raises(UnknownNodeError):
        history.forget("dan")


# -- the folder ---------------------------------------------------------------------------


@posix
def test_a_history_is_for_its_owner_only(history):
    history.add(SECOND)
    for place in [history.path, *history.path.rglob("*")]:
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600)
    history.path.chmod(0o750)
    with pytest.raises(InputError, match="belongs to you and only you can read"):
        History.open(history.path)


@posix
def test_a_link_and_a_folder_of_somebody_else_are_refused(history, monkeypatch):
    link = history.path.with_name("link")
    link.symlink_to(history.path)
    with pytest.raises(InputError, match="only you can read"):
        History.open(link)
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    with pytest.raises(InputError, match="only you can read"):
        History.open(history.path)


def test_a_place_that_is_taken_is_refused(tmp_path, history):
    for place in (history.path, tmp_path / "file", save_graph(FIRST, tmp_path / "graph")):
        if place.name == "file":
            place.write_text("mine")
        with pytest.raises(ParameterError, match="exists; nothing was written"):
            History.create(place)
    with pytest.raises(ParameterError, match="there is no folder"):
        History.create(tmp_path / "no" / "history")
    assert History.open(history.path).graph == history.graph


def test_what_is_no_history_is_one_sentence(tmp_path, history):
    with pytest.raises(InputError, match=r"there is no history .*edgeveil history create"):
        History.open(tmp_path / "nothing")
    note = history.path / "history.json"
    good = json.loads(note.read_text())
    for text in ("", "[]", "{}", "null", '{"format": "edgeveil graph", "version": 1}'):
        note.write_text(text)
        with pytest.raises(InputError, match=r"edgeveil did not write its history"):
            History.open(history.path)
    for changes in (
        *({"state": "../friends"}, {"state": "state-a/b"}, {"snapshots": 3}),
        *(
            {"forgotten": ["x"]},
            {"returned": [None]},
            {"marks": 3},
            {"snapshots": [good["snapshots"][0] | {"number": 2}]},
        ),
    ):
        note.write_text(json.dumps(good | changes))
        with pytest.raises(InputError, match=r"edgeveil did not write its history"):
            History.open(history.path)
    note.write_text(json.dumps(good | {"version": 3}))
    with pytest.raises(InputError, match="format version 3, this edgeveil reads 2: update"):
        History.open(history.path)
    note.write_text(json.dumps(good | {"version": 1}))
    with pytest.raises(InputError, match="format version 1, this edgeveil reads 2: make it again"):
        History.open(history.path)
    for name in ("forgotten", "returned"):
        note.write_text(json.dumps(good | {name: [4]}))
        with pytest.raises(InputError, match="damaged"):
            History.open(history.path)
    note.unlink()
    with pytest.raises(InputError, match=r"no readable history\.json"):
        History.open(history.path)


@pytest.mark.parametrize("name", ["indices", "first_seen", "current", "present", "text"])
def test_one_changed_byte_is_found_by_verify(history, name):
    [file] = history.path.glob(f"state-*/{name}.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=f"{name}.npy was changed"):
        History.open(history.path, verify=True)


@pytest.mark.parametrize("name", ["current", "present", "first_seen"])
@pytest.mark.parametrize(
    "array", [np.ones(2, np.bool_), np.ones(6, np.int64), np.array([None] * 6), None]
)
def test_arrays_that_do_not_fit_are_refused(history, name, array):
    [file] = history.path.glob(f"state-*/{name}.npy")
    file.unlink()
    if array is not None:
        np.save(file, array, allow_pickle=True)
    with pytest.raises(InputError, match="damaged"):
        History.open(history.path)


def test_first_seen_in_the_future_is_found_by_verify(history):
    history.add(SECOND)
    note = history.path / "history.json"
    good = json.loads(note.read_text())
    note.write_text(json.dumps(good | {"snapshots": good["snapshots"][:1]}))
    with pytest.raises(InputError, match="damaged"):
        History.open(history.path, verify=True)


def test_state_replaced_while_opening_is_read_again(history, monkeypatch):
    other, opened = History.open(history.path), state.open_graph

    def late(path, *, verify):
        monkeypatch.setattr(state, "open_graph", opened)
        other.add(SECOND)  # removes the state whose name was read
        return opened(path, verify=verify)

    monkeypatch.setattr(state, "open_graph", late)
    assert len(History.open(history.path)) == 2


def test_failed_add_leaves_the_history_unchanged(history, monkeypatch):
    before = history.graph.fingerprint
    for failing in ("write_note", "describe_folder", "save_array", "sync_folder"):
        with monkeypatch.context() as patch:
            for failure in (OSError(28, "No space left on device"), KeyboardInterrupt()):

                def fail(*_, _failure=failure, **__):
                    raise _failure

                patch.setattr(state, failing, fail)
                with pytest.raises((EdgeveilError, KeyboardInterrupt)):
                    history.add(SECOND)
        assert History.open(history.path, verify=True).graph.fingerprint == before
        left = {place.name for place in history.path.iterdir()}
        assert len(left) == 3, "history.json, lock and one state"
