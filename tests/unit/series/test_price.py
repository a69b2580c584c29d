"""The price of a refresh is what running it charges, and a renewal between the two is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.series import prepare_refresh
from edgeveil.series.campaign import series_folder
from edgeveil.series.history import History

N = 12


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "friends.ledger", epsilon=2)


def graph(week: int, without: tuple[int, ...] = ()) -> ev.Graph:
    rng = np.random.default_rng(week)
    nodes = [node for node in range(N) if node not in without]
    pairs = np.sort(rng.choice(nodes, (20, 2)), axis=1)
    edges = sorted({(a, b) for a, b in pairs.tolist() if a != b})
    return ev.as_graph(edges, nodes=nodes)


def job(ledger: ev.Ledger, week: int, without: tuple[int, ...] = ()):
    return prepare_refresh(
        graph(week, without),
        ledger=ledger,
        epsilon=1.0,
        date=f"2026-01-{week:02d}",
        most_loss=1.0,
    )


def forget(ledger: ev.Ledger, *members: int) -> None:
    History.open(Path(series_folder(ledger, "")) / "history").forget(members)


def test_price_of_every_week_is_what_the_week_charges(ledger):
    charged = 0.0
    weeks = [(7, 8), (8,), (3, 4), (3, 4), (), (5,), ()]
    for week, without in enumerate(weeks, 1):
        refresh = job(ledger, week, without)
        price, done = refresh.price, refresh.run()
        assert (price.n_newcomers, price.n_left_out) == (done.n_newcomers, done.n_left_out)
        total = sum(account.charged for account in ledger.accounts())
        assert total == charged + price.n_newcomers
        charged = total
        if week in (3, 6):  # who is not there any more
            forget(ledger, *without)
    assert ledger.account("3").charged == 2  # forgotten once, and back
    assert ledger.account("6").charged == 1


def test_price_leaves_out_who_is_back_without_budget(ledger):
    job(ledger, 1).run()
    for week in (2, 4):
        job(ledger, week, (3,)).run()
        forget(ledger, 3)
        refresh = job(ledger, week + 1)
        expected = (1, 0) if week == 2 else (0, 1)
        assert (refresh.price.n_newcomers, refresh.price.n_left_out) == expected
        done = refresh.run()
        assert (done.n_newcomers, done.n_left_out) == expected


def test_renewal_after_the_price_refuses_the_run(ledger):
    job(ledger, 1).run()
    refresh = job(ledger, 2)
    assert refresh.price.n_newcomers == 0
    ledger.advance("")
    for priced in (refresh, refresh.with_progress(lambda *_: None)):
        with pytest.raises(LedgerError, match="renewed since"):
            priced.run()
    assert ledger.account("0").charged == 1
    assert len(History.open(Path(series_folder(ledger, "")) / "history").snapshots) == 1
    assert replace(refresh).run().n_newcomers == N  # priced anew, or never: as it is now


def test_price_of_an_interrupted_return_is_nothing(ledger, monkeypatch):
    job(ledger, 1).run()
    job(ledger, 2, (3,)).run()
    forget(ledger, 3)
    refresh = job(ledger, 3)
    monkeypatch.setattr("edgeveil.series.steps.open_windows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        refresh.run()
    monkeypatch.undo()
    assert ledger.account("3").charged == 2
    assert job(ledger, 3).price.n_newcomers == 0
    assert job(ledger, 3).run().n_lists == N
    assert ledger.account("3").charged == 2


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("option", "error", "words"),
    [
        ({"engine": 7}, ParameterError, "engine= takes an engine"),
        ({"progress": 7}, ParameterError, "progress= takes a function"),
        ({"candidates": "7"}, ParameterError, "candidates must be a list"),
        ({"engin": None}, TypeError, "no option engin; did you mean engine"),
    ],
)
def test_option_that_cannot_be_used_is_refused_when_prepared(ledger, option, error, words):
    with pytest.raises(error, match=words):
        prepare_refresh(graph(1), ledger=ledger, epsilon=1.0, **option)
