"""Looking up a list of a series never charges, whatever state the series is in."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import edgeveil as ev
from edgeveil.errors import EdgeveilError, LedgerError
from edgeveil.graph.datasets import social_network
from edgeveil.series.history import History
from edgeveil.series.state import SeriesFolder

GRAPH = social_network(60, average_degree=8).graph
WEEK = {"epsilon": 1.0, "label": "friends"}


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)


def interrupted(monkeypatch, owner, name):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, stop)
    return pytest.raises(KeyboardInterrupt)


def refresh(ledger, day, **more):
    return ev.refresh(GRAPH, ledger=ledger, **WEEK | more, date=f"2026-01-0{day}")


def refreshed(ledger, monkeypatch):
    refresh(ledger, 1)


def renewed(ledger, monkeypatch):
    refresh(ledger, 1)
    ledger.advance("friends")


def renewed_and_cut_short(ledger, monkeypatch):
    renewed(ledger, monkeypatch)
    with monkeypatch.context() as patch, interrupted(patch, SeriesFolder, "begin"):
        refresh(ledger, 2)


def renewed_and_charged(ledger, monkeypatch):
    renewed(ledger, monkeypatch)
    with monkeypatch.context() as patch, interrupted(patch, SeriesFolder, "commit"):
        refresh(ledger, 2)


def cut_short_before_the_charge(ledger, monkeypatch):
    with monkeypatch.context() as patch, interrupted(patch, SeriesFolder, "begin"):
        refresh(ledger, 1)


def cut_short_after_the_charge(ledger, monkeypatch):
    with monkeypatch.context() as patch, interrupted(patch, SeriesFolder, "commit"):
        refresh(ledger, 1)


def without_its_folder(ledger, monkeypatch):
    refresh(ledger, 1)
    History.open(f"{ledger.location}.series/friends/history").reset_first_seen()


STATES = [
    refreshed, renewed, renewed_and_cut_short, renewed_and_charged,
    cut_short_before_the_charge, cut_short_after_the_charge, without_its_folder,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=[state.__name__ for state in STATES])
@pytest.mark.parametrize("mechanism", [None, ev.mechanisms.Suggest(epsilon=1.0)])
def test_look_up_in_any_state_charges_nobody(ledger, monkeypatch, state, mechanism):
    state(ledger, monkeypatch)
    before = ledger.verify()
    for members in (7, None):
        with nullcontext() if state == refreshed else pytest.raises(EdgeveilError):
            epsilon = None if mechanism else 1.0
            ev.suggest(GRAPH, members, epsilon, ledger=ledger, label="friends", mechanism=mechanism)
    assert ledger.verify() == before


@pytest.mark.parametrize("state", STATES[1:4], ids=[state.__name__ for state in STATES[1:4]])
def test_refresh_goes_on_after_a_look_up_and_a_renewal(ledger, monkeypatch, state):
    state(ledger, monkeypatch)
    with pytest.raises(LedgerError, match=r"edgeveil refresh|run the same command again"):
        ev.suggest(GRAPH, 7, 1.0, ledger=ledger, label="friends")
    with pytest.raises(LedgerError, match="are a series"):
        ev.rank(GRAPH, 7, 0.5, ledger=ledger, label="friends")
    assert refresh(ledger, 2).n_lists == 60
    assert ledger.account("7").charged == 2.0
    assert len(ev.suggest(GRAPH, 7, 1.0, ledger=ledger, label="friends").for_member(7)) == 20


def test_another_label_has_lists_made_one_by_one(ledger, monkeypatch):
    cut_short_before_the_charge(ledger, monkeypatch)
    assert len(ev.suggest(GRAPH, 7, 0.5, ledger=ledger, label="others").for_member(7)) == 20
