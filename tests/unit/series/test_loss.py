"""A refresh believes no graph that lost much; the same day is no obstacle to another graph."""

from __future__ import annotations

import pytest

from edgeveil.errors import LossError, ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import Local
from edgeveil.ledger import Ledger
from edgeveil.series import refresh
from edgeveil.series.history import History

RING = [(i, (i + 1) % 20) for i in range(20)]


def graph(edges, n=20):
    return Graph.from_edges([u for u, _ in edges], [v for _, v in edges], NodeSet.range(n))


@pytest.fixture
def week(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)

    def run(today, date, **settings):
        options = {"ledger": ledger, "epsilon": 1.0, "engine": Local(threads=1)}
        return refresh(today, label="friends", date=date, **options | settings)

    run.ledger = ledger
    run.history = lambda: History.open(tmp_path / "ledger.series" / "friends" / "history")
    return run


@pytest.mark.parametrize(
    ("today", "what"),
    [
        (graph([], 20), "fewer edges than"),
        (graph(RING[:17]), "fewer edges than"),
        (graph(RING[:17], 18), "fewer edges than"),
        (graph([*RING[:16], (0, 2), (0, 3), (0, 4)], 17), "fewer members than"),
        (graph([], 0), "fewer members and edges than"),
    ],
)
def test_refresh_that_lost_over_a_tenth_is_refused(week, today, what):
    week(graph(RING), "2026-11-02")
    before, charges = week.history().snapshots, week.ledger.charges()
    with pytest.raises(LossError, match=f"over 10% {what} snapshot 1.*--accept-loss"):
        week(today, "2026-11-09")
    assert (week.history().snapshots, week.ledger.charges()) == (before, charges)
    if today.n_nodes:
        assert week(today, "2026-11-09", most_loss=1).snapshot == 2


def test_same_graph_on_the_same_day_is_the_same_snapshot(week):
    assert week(graph(RING), "2026-11-02").snapshot == 1
    before, done = week.ledger.charges(), week(graph(RING), "2026-11-02")
    assert (done.snapshot, done.n_newcomers, done.n_windows) == (1, 0, 0)
    assert (len(week.history()), week.ledger.charges()) == (1, before)
    assert week(graph(RING), "2026-11-09").snapshot == 2, "a quiet week is a week"


def test_corrected_graph_on_the_same_day_is_a_new_snapshot(week):
    week(graph(RING[:18]), "2026-11-02")
    done = week(graph(RING), "2026-11-02")
    assert (done.snapshot, done.n_newcomers, len(week.history())) == (2, 0, 2)
    assert week.history().new_edges().tolist() == [18, 2]
    assert week(graph(RING), "2026-11-02").snapshot == 2
    with pytest.raises(ParameterError, match="give a later date"):
        week(graph(RING), "2026-11-01")


def test_refresh_that_lost_a_tenth_is_a_normal_week(week):
    week(graph(RING), "2026-11-02")
    assert week(graph(RING[:18]), "2026-11-09").snapshot == 2
    with pytest.raises(LossError, match="over 5% fewer edges"):
        week(graph(RING[:17]), "2026-11-16", most_loss=0.05)
    for wrong in (-0.1, 1.5, "all", True):
        with pytest.raises(ParameterError, match="most_loss must be from 0 to 1"):
            week(graph(RING), "2026-11-16", most_loss=wrong)
