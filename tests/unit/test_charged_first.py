"""Every way to a release: what is drawn for a member is charged to it before, on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import edgeveil as ev
from edgeveil.errors import BudgetError
from edgeveil.jobs import drawing, tasks
from edgeveil.mechanisms import DPInstantEmbedding, TwoHop
from edgeveil.series import joining

GRAPH = ev.datasets.social_network(24, average_degree=6).graph
NEXT = ev.datasets.social_network(24, average_degree=8, seed=1).graph
LABELS = {node: node % 2 for node in range(16)}


def estimator(name: str) -> Any:
    pytest.importorskip("sklearn")
    return getattr(ev, name)


PATHS: dict[str, Callable[[Any, Path], object]] = {
    "rank": lambda ledger, _: ev.rank(GRAPH, 3, 1.0, ledger=ledger),
    "suggest": lambda ledger, _: ev.suggest(GRAPH, range(5), 1.0, ledger=ledger),
    "embed": lambda ledger, _: ev.embed(
        GRAPH, range(5), mechanism=DPInstantEmbedding(epsilon=1.0, dimension=4), ledger=ledger
    ),
    "embed, public": lambda ledger, _: ev.embed(GRAPH, model="public", epsilon=1.0, ledger=ledger),
    "classify": lambda ledger, _: ev.classify(GRAPH, LABELS, epsilon=1.0, ledger=ledger),
    "aggregate": lambda ledger, _: ev.aggregate(GRAPH, {1: 1.0}, epsilon=1.0, ledger=ledger),
    "release": lambda ledger, _: ev.release(GRAPH, TwoHop(epsilon=1.0), range(7), ledger=ledger),
    "release_to": lambda ledger, place: ev.release_to(
        place / "out", GRAPH, TwoHop(epsilon=1.0), range(7), ledger=ledger
    ),
    "PrivateEmbedding": lambda ledger, _: estimator("PrivateEmbedding")(
        model="public", epsilon=1.0, ledger=ledger
    ).fit(GRAPH),
    "PrivateNodeClassifier": lambda ledger, _: estimator("PrivateNodeClassifier")(
        epsilon=1.0, ledger=ledger
    ).fit(GRAPH, LABELS),
    "refresh": lambda ledger, _: [
        ev.refresh(graph, ledger=ledger, epsilon=1.0, date=date, most_loss=1)
        for graph, date in ((GRAPH, "2026-01-05"), (NEXT, "2026-02-02"))
    ],
}


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """The ledger's file is read by itself at each draw; gives what was drawn."""
    path, drawn = tmp_path / "test.ledger", list[tuple[str, int]]()

    def on_disk(statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return [value for (value,) in connection.execute(statement, values)]

    def shared(mechanism, graph, noise, **options):
        drawn.append(("shared", 1))
        prices = on_disk("SELECT epsilon_nano FROM charges WHERE n_rows > 0")
        assert 10**9 in prices, "shared statistics were drawn before the charge"
        return numbers(mechanism, graph, noise, **options)

    def rows(mechanism, graph, common, sources, noise, **options):
        names = [str(node) for node in graph.nodes.take(sources)]
        drawn.append(("rows", len(names)))
        of_member = (
            "SELECT epsilon_nano FROM charges JOIN charge_members USING (seq) "
            "JOIN secrets USING (key) WHERE member = ?"
        )
        for name in names:
            assert on_disk(of_member, name), f"row {name} was drawn before its charge"
            ever = "SELECT sum(epsilon_nano) FROM charges JOIN charge_members USING (seq)"
            who = " WHERE member = ? OR model = 'public'"
            assert on_disk(ever + who, name)[0] >= 10**9, f"nothing was charged for row {name}"
        return make_rows(mechanism, graph, common, sources, noise, **options)

    numbers, make_rows = drawing.shared_numbers, tasks.make_rows
    monkeypatch.setattr(drawing, "shared_numbers", shared)
    monkeypatch.setattr(tasks, "make_rows", rows)
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 2)  # several charges in a call
    monkeypatch.setattr(joining, "_BATCH", 5)
    return ev.Ledger.create(path, epsilon=1), drawn, on_disk


@pytest.mark.parametrize("way", PATHS)
def test_row_is_charged_on_disk_before_it_is_drawn(way, watched, tmp_path):
    ledger, drawn, on_disk = watched
    PATHS[way](ledger, tmp_path)
    assert on_disk("SELECT count(*) FROM secrets") == [0], "a draw could be repeated"
    assert sum(count for kind, count in drawn if kind == "rows") >= 1
    assert ledger.account().left == 0
    with pytest.raises(BudgetError):
        ev.rank(GRAPH, 3, 0.5, ledger=ledger, label="another")
