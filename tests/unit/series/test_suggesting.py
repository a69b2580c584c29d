"""`ev.suggest` under a label whose lists are a series."""

from __future__ import annotations

import pytest

import edgeveil as ev
from edgeveil.errors import BudgetError, LedgerError, ParameterError, UnknownNodeError
from edgeveil.graph.datasets import social_network
from edgeveil.series import state

GRAPH = social_network(120, average_degree=16).graph


@pytest.fixture
def ledger(tmp_path):
    made = ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)
    ev.refresh(GRAPH, ledger=made, epsilon=1.0, label="friends", date="2026-01-01")
    return made


def lists(ledger, members=None, epsilon=1.0, **options):
    return ev.suggest(GRAPH, members, epsilon, ledger=ledger, label="friends", **options)


def test_members_of_a_series_get_their_lists_from_it(ledger):
    made = lists(ledger, [7, 3], k=5)
    assert made.members == (7, 3)
    assert made.provenance.mechanism == "series of lists"
    assert [len(made.for_member(v)) for v in (7, 3)] == [5, 5]
    assert made.for_member(7) == lists(ledger.location, 7, k=5).for_member(7)
    assert len(lists(ledger).members) == 120
    assert {place.node for place in lists(ledger, 7, candidates=[1, 2]).for_member(7)} <= {1, 2}
    assert {one.charged for one in ledger.accounts()} == {1.0}


def test_the_guarantee_is_for_all_lists_together_and_files_keep_that(ledger, tmp_path):
    made = lists(ledger, 7, k=5)
    said = str(made.guarantee)
    assert "This covers all lists of the series together; since when" in said
    assert "less than epsilon = 2." in said
    assert "further releases outside of the series (they add up)" in said
    made.write(tmp_path / "list.json")
    assert ev.Suggestions.read(tmp_path / "list.json").guarantee == made.guarantee
    assert "series" not in str(ev.suggest(GRAPH, 7, 0.5, label="other").guarantee)


def test_other_labels_and_mechanisms_are_as_they_were(ledger):
    ev.suggest(GRAPH, 7, 0.5, ledger=ledger, label="other")
    assert ledger.account("7").charged == 1.5
    with pytest.raises(LedgerError, match="are a series"):
        lists(ledger, 7, None, mechanism=ev.mechanisms.Suggest(epsilon=0.5))
    with pytest.raises(ParameterError, match="a series with epsilon 1"):
        lists(ledger, 7, 0.5)
    larger = social_network(121, average_degree=16).graph
    with pytest.raises(BudgetError, match="is not in the series: the next refresh"):
        ev.suggest(larger, [7, 120], 1.0, ledger=ledger, label="friends")
    with pytest.raises(UnknownNodeError):
        lists(ledger, [7, 120])
    assert ledger.account("7").charged == 1.5


def test_a_renewed_series_has_no_lists_until_it_is_refreshed(ledger):
    ledger.advance("friends")
    ev.refresh(GRAPH, ledger=ledger, epsilon=2.0, label="friends", date="2026-01-02")
    assert lists(ledger, 7, 2.0).guarantee.epsilon == 2.0


def test_a_refresh_that_ends_while_lists_are_read_does_not_disturb(ledger, monkeypatch):
    read, calls = state.Shard.read, []

    def slow(folder, first, size):
        calls.append(1)
        if len(calls) == 1:
            ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label="friends", date="2026-01-02")
        return read(folder, first, size)

    monkeypatch.setattr(state.Shard, "read", slow)
    assert lists(ledger, 7).provenance.parameters["snapshot"] == 2


def test_a_folder_that_is_not_there_is_no_series_to_start(ledger, tmp_path):
    (tmp_path / "f.ledger.series").rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="does not hold the series of friends"):
        lists(ledger, 7)
    with pytest.raises(LedgerError, match="does not hold the series of friends"):
        ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label="friends")
    place = tmp_path / "elsewhere" / "friends"
    ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label="Friends", folder=place)
    assert ledger.account("7").charged == 1.0
