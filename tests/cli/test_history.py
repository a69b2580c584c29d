"""``edgeveil history`` as a curator uses it."""

from __future__ import annotations

import json

import pytest

import edgeveil as ev


@pytest.fixture
def weeks(folder):
    (folder / "members.txt").write_text("ann\nbob\ncem\ndan\n")
    (folder / "one.csv").write_text("ann,bob\nbob,cem\ncem,dan\n")
    (folder / "fewer.txt").write_text("ann\nbob\ncem\neve\n")
    (folder / "two.csv").write_text("ann,bob\nann,eve\n")
    return folder


def test_history_commands_add_and_show_two_weeks(weeks, run):
    done = run("history create f.history")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no snapshot yet; add one with edgeveil history add f.history GRAPH" in done.stderr
    done = run("history add f.history one.csv --nodes members.txt --date 2026-11-02")
    assert (done.returncode, done.stdout) == (0, "1\n")
    said = "f.history: snapshot 1, 4 members; 3 new edges, 3 now, 3 ever (exact counts, for the"
    assert said in done.stderr
    done = run("history add f.history two.csv --nodes fewer.txt --date 2026-11-09")
    assert done.stdout == "2\n"
    assert "snapshot 2, 4 members; 1 new edge, 2 now, 4 ever" in done.stderr
    opened = ev.History.open("f.history", verify=True)
    assert list(opened.nodes) == ["ann", "bob", "cem", "dan", "eve"]


def test_adding_the_same_graph_twice_needs_again(weeks, run):
    run("history create f.history")
    add = "history add f.history one.csv --nodes members.txt"
    run(f"{add} --date 2026-11-02")
    done = run(f"{add} --date 2026-11-02")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "snapshot 1 is this graph, of this date: nothing was added" in done.stderr
    done = run(add)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the same as snapshot 1: nothing was added" in done.stderr
    assert "--again" in done.stderr
    assert run(f"{add} --again").stdout == "2\n"


def test_show_tells_edges_only_if_asked_to_and_says_for_whom(weeks, run):
    run("history create f.history")
    run("history add f.history one.csv --nodes members.txt --date 2026-11-02")
    done = run("history show f.history")
    assert "2026-11-02" in done.stdout
    assert "edge" not in done.stdout + done.stderr
    assert "4 members in all" in done.stderr
    rows = json.loads(run("history show f.history --format json").stdout)
    assert rows["rows"] == [{"snapshot": 1, "date": "2026-11-02", "members": 4}]
    assert "warning" not in rows
    done = run("history show f.history --counts")
    assert "FOR THE CURATOR ONLY, NOT PRIVATE" in done.stdout
    assert "new edges" in done.stdout
    counts = json.loads(run("history show f.history --counts --format json").stdout)
    assert counts["rows"][0]["new_edges"] == 3
    assert "NOT PRIVATE" in counts["warning"]


def test_a_member_is_forgotten(weeks, run):
    run("history create f.history")
    run("history add f.history one.csv --nodes members.txt")
    done = run("history forget f.history dan")
    assert done.returncode == 2
    assert "only members who have left can be forgotten" in done.stderr
    run("history add f.history two.csv --nodes fewer.txt")
    done = run("history forget f.history dan")
    assert (done.returncode, done.stderr) == (
        0,
        "f.history: 1 member forgotten; their edges are erased\n",
    )
    assert run("history forget f.history dan").returncode == 2
    assert "5 members in all, 1 of them forgotten" in run("history show f.history").stderr
    assert run("history forget f.history").returncode == 2


def test_integers_are_forgotten_by_what_is_typed(weeks, run):
    (weeks / "n.csv").write_text("5,7\n7,9\n")
    (weeks / "m.csv").write_text("5,7\n")
    run("history create n.history")
    run("history add n.history n.csv --nodes-from-edges")
    run("history add n.history m.csv --nodes-from-edges")
    assert run("history forget n.history 9").returncode == 0
    assert ev.History.open("n.history").graph.n_edges == 1


def test_a_list_with_times(weeks, run):
    (weeks / "t.csv").write_text("a,b,since\nann,bob,2026-01-05\nbob,cem,2026-02-11\n")
    done = run("history create f.history t.csv --time since --periods monthly")
    assert done.returncode == 0, done.stderr
    assert "snapshot 2, 3 members; 1 new edge, 2 now, 2 ever" in done.stderr
    done = run("history create g.history t.csv --time 2 --header --periods 2026-01-31,2026-02-28")
    assert done.returncode == 0, done.stderr
    assert ev.History.open("g.history").new_edges().tolist() == [1, 1, 0]
    assert run("history create h.history t.csv --time since --periods 7").returncode == 0
    assert len(ev.History.open("h.history")) == 7
    follows = "history create i.history t.csv --time since --directed keep"
    assert run(follows).returncode == 0
    assert ev.History.open("i.history").directed
    (weeks / "j.history").mkdir(mode=0o700)  # left by a creation that was interrupted
    assert run("history create j.history t.csv --time since").returncode == 0
    for wrong in (
        "history create j.history t.csv --time since",
        "history create k.history t.csv",
        "history create k.history --time since",
        "history create k.history t.csv --time since --periods soon",
        "history add f.history t.csv --directed sideways",
    ):
        assert run(wrong).returncode == 2, wrong
    assert run("history show nowhere").returncode == 4


def test_evaluate_over_time_takes_a_history_not_a_graph(folder, run):
    """The result is marked as not private, for the curator only."""
    edges = [(a, b, (a * b) % 4) for a in range(60) for b in range(a) if (a ^ b) % 6 < 3]
    rows = "".join(f"{a},{b},{week}\n" for a, b, week in edges)
    (folder / "friends.csv").write_text(f"a,b,since\n{rows}")
    run("history create f.history friends.csv --time since --periods 4")
    done = run("evaluate --over-time f.history --epsilon 1 --sources 5 -k 5 --format json")
    printed = json.loads(done.stdout)
    assert list(printed["rows"][0]) == [
        "friends",
        "mechanism",
        "epsilon",
        *map("at {}".format, range(1, 5)),
    ]
    assert printed["says"] == "NOT PRIVATE: for the curator only"
    assert "do not publish them" in done.stderr
    for wrong in ("evaluate", "evaluate friends.csv --over-time f.history"):
        done = run(wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert "give a graph, or a history with --over-time" in done.stderr
