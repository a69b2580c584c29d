"""`ev.suggest` under a label whose lists are a series."""

from __future__ import annotations

import csv

import pytest

import edgeveil as ev
from edgeveil.errors import BudgetError, LedgerError, ParameterError, UnknownNodeError
from edgeveil.graph.datasets import social_network
from edgeveil.series import state

GRAPH = social_network(120, average_degree=16).graph


@pytest.fixture
def ledger(tmp_path):
    new_ledger = ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)
    ev.refresh(GRAPH, ledger=new_ledger, epsilon=1.0, label="friends", date="2026-01-01")
    return new_ledger


def lists(ledger, members=None, epsilon=1.0, **options):
    return ev.suggest(GRAPH, members, epsilon, ledger=ledger, label="friends", **options)


def test_members_of_a_series_get_their_lists_from_it(ledger):
    suggestions = lists(ledger, [7, 3], k=5)
    assert suggestions.members == (7, 3)
    assert suggestions.provenance.mechanism == "series of lists"
    assert [len(suggestions.for_member(v)) for v in (7, 3)] == [5, 5]
    assert suggestions.for_member(7) == lists(ledger.location, 7, k=5).for_member(7)
    assert len(lists(ledger).members) == 120
    assert {place.node for place in lists(ledger, 7, candidates=[1, 2]).for_member(7)} <= {1, 2}
    assert {account.charged for account in ledger.accounts()} == {1.0}


def test_series_guarantee_covers_all_lists_also_in_files(ledger, tmp_path):
    suggestions = lists(ledger, 7, k=5)
    said = str(suggestions.guarantee)
    assert "This covers all lists of the series together; since when" in said
    assert "less than epsilon = 2." in said
    assert "further releases outside of the series (they add up)" in said
    suggestions.write(tmp_path / "list.json")
    assert ev.Suggestions.read(tmp_path / "list.json").guarantee == suggestions.guarantee
    assert "series" not in str(ev.suggest(GRAPH, 7, 0.5, label="other").guarantee)


def test_mechanism_equal_to_the_series_gets_its_lists(ledger):
    same = ev.mechanisms.Suggest(epsilon=1.0)
    suggestions = lists(ledger, 7, None, mechanism=same)
    assert suggestions.for_member(7) == lists(ledger, 7).for_member(7)
    assert ledger.account("7").charged == 1.0


def test_other_labels_and_parameters_are_as_they_were(ledger):
    ev.suggest(GRAPH, 7, 0.5, ledger=ledger, label="other")
    assert ledger.account("7").charged == 1.5
    for given in ({"epsilon": 0.5}, {"mechanism": ev.mechanisms.Suggest(epsilon=0.5)}):
        with pytest.raises(ParameterError, match="a series with epsilon 1"):
            lists(ledger, 7, **{"epsilon": None, **given})
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


def test_refresh_ending_while_lists_are_read_gives_new_lists(ledger, monkeypatch):
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


def names(suggestions, member):
    return [row.node for row in suggestions.for_member(member)]


def test_excluded_names_leave_stored_lists_and_others_fill_them(ledger):
    before = names(lists(ledger, 7, k=20), 7)
    head = ledger.entry()
    first, second, third = before[:3]
    exclude = [(7, first), (second, 7), (third, 7, "one")]
    suggestions = lists(ledger, [7, first, second, third], k=18, exclude=exclude)
    assert not {first, second} & set(names(suggestions, 7))
    assert len(names(suggestions, 7)) == 18
    for other in (first, second, third):
        assert 7 not in names(suggestions, other)
    assert ledger.entry() == head
    assert names(lists(ledger, 7, k=20), 7) == before


def test_refresh_filters_apply_to_its_result_alone(ledger, tmp_path):
    """Candidates and excluded pairs."""
    before = names(lists(ledger, 7), 7)
    (tmp_path / "blocks.csv").write_text(f"7,{before[0]}\n")
    options = {"ledger": ledger, "epsilon": 1.0, "label": "friends", "date": "2026-01-08"}
    allowed = [node for node in range(120) if node != before[1]]
    done = ev.refresh(GRAPH, **options, candidates=allowed, exclude=tmp_path / "blocks.csv")
    shown = done.suggestions()
    assert not {before[0], before[1]} & set(names(shown, 7))
    assert all(before[1] not in names(shown, member) for member in range(120))
    written = done.write(tmp_path / "lists").read()
    assert all(before[1] not in names(written, member) for member in range(120))
    done.write_per_member(tmp_path / "members")
    with (tmp_path / "members" / "7.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert str(before[0]) not in {row["node"] for row in rows}
    assert names(lists(ledger, 7), 7) == before


@pytest.mark.parametrize("wrong", [{"candidates": [999]}, {"exclude": [(1,)]}, {"candidates": []}])
def test_refresh_refuses_wrong_candidates_before_it_merges(tmp_path, wrong):
    ledger = ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)
    with pytest.raises((ParameterError, UnknownNodeError)):
        ev.refresh(GRAPH, ledger=ledger, epsilon=1.0, label="friends", **wrong)
    assert ledger.entry() is None
    assert not list((tmp_path / "f.ledger.series" / "friends").glob("history*"))


def test_excluded_names_leave_lists_without_a_series(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "f.ledger", epsilon=1)
    options = {"ledger": ledger, "label": "once", "k": 10}
    before = names(ev.suggest(GRAPH, 7, 1.0, **options), 7)
    suggestions = ev.suggest(GRAPH, 7, 1.0, **options, exclude=[(7, before[0])])
    assert before[0] not in names(suggestions, 7)
    assert len(names(suggestions, 7)) == 10
    # Who is hidden from whom cannot be guessed from what is written beside the list.
    other = ev.Ledger.create(tmp_path / "g.ledger", epsilon=1)
    again = ev.suggest(GRAPH, 7, 1.0, **options | {"ledger": other}, exclude=[(7, before[0])])
    assert suggestions.provenance.lists["exclude"] != again.provenance.lists["exclude"]
    uncounted = ev.suggest(GRAPH, 7, 1.0, exclude=[(7, before[0])])
    assert uncounted.provenance.lists["exclude"] == "some"


def test_iterators_of_pairs_and_candidates_are_not_used_up(tmp_path):
    """The series of the label is asked first; then the release has to see them as well."""
    graph = ev.datasets.social_network(40, average_degree=8).graph
    ledger = ev.Ledger.create(tmp_path / "friends.ledger", epsilon=2)
    pairs = [(0, other) for other in range(1, 30)]
    lists = ev.suggest(
        graph, [0], 1.0, ledger=ledger, exclude=iter(pairs), candidates=iter(range(40))
    )
    assert {row["node"] for row in lists.table().to_dicts()}.isdisjoint(range(1, 30))


def test_options_of_a_series_are_checked(ledger):
    """Lists of a series draw nothing, but what cannot be meant is an error as elsewhere."""
    for options, message in (
        ({"noise": ev.NoiseSource.insecure(1)}, "keeps its own noise"),
        ({"generation": 9}, "another generation"),
        ({"k": -3}, "k must be"),
    ):
        with pytest.raises((ParameterError, LedgerError), match=message):
            ev.suggest(GRAPH, 7, 1.0, ledger=ledger, label="friends", **options)
