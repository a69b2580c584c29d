"""rank(): whom it leaves out, and that leaving out is nothing but post-processing."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError, UnknownNodeError
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import rank, release
from edgeveil.jobs.ranking import known_to
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import DegreePrior, OwnListEmbedding, TwoHop
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.release import Release
from edgeveil.series.suggesting import suggest

GRAPH = social_network(120, average_degree=8).graph
SOURCE = 7
FRIENDS = set(GRAPH.neighbours(SOURCE).tolist())


def nodes(ranking, k=200):
    return {node for node, _ in ranking.top(k)}


def test_the_source_and_its_neighbours_can_be_left_out():
    seeded = {"noise": NoiseSource.insecure(1)}
    everybody = rank(GRAPH, SOURCE, 1.0, **seeded)
    assert everybody.shown is None
    assert nodes(everybody) == set(range(120))
    assert nodes(rank(GRAPH, SOURCE, 1.0, leave_out_source=True)) == set(range(120)) - {SOURCE}
    new = rank(GRAPH, SOURCE, 1.0, leave_out_source=True, leave_out_neighbours=True, **seeded)
    assert nodes(new) == set(range(120)) - {SOURCE} - FRIENDS
    assert [place.node for place in new.ranking(5)] == [node for node, _ in new.top(5)]
    # All scores are there all the same.
    np.testing.assert_array_equal(new.values, everybody.values)


def test_candidates_and_without_combine_and_top_narrows():
    ranking = rank(GRAPH, SOURCE, 1.0, candidates=iter([1, 2, 3, SOURCE]), without=iter([2]))
    assert nodes(ranking) == {1, 3, SOURCE}
    assert {n for n, _ in ranking.top(9, without=[1], candidates=[1, 2, 3])} == {3}


def test_the_masks_travel_with_the_release(tmp_path):
    ranking = rank(GRAPH, SOURCE, 1.0, candidates=[1, 2, 3])
    for suffix in (".parquet", ".json"):
        ranking.write(tmp_path / f"r{suffix}")
        read_back = Release.read(tmp_path / f"r{suffix}")
        np.testing.assert_array_equal(read_back.shown, ranking.shown)
        assert read_back.top(9) == ranking.only(SOURCE).top(9) == ranking.top(9)


def test_neighbours_are_not_left_out_in_public(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=10)
    for options in ({"model": "public"}, {"mechanism": DegreePrior(epsilon=1, model="public")}):
        with pytest.raises(ParameterError, match="needs model='joint'"):
            rank(GRAPH, SOURCE, 1.0, leave_out_neighbours=True, ledger=ledger, **options)
    assert ledger.charges() == []
    assert known_to(GRAPH, TwoHop(epsilon=1), SOURCE, itself=True, neighbours=True) == [
        SOURCE,
        *GRAPH.neighbours(SOURCE).tolist(),
    ]
    public = DegreePrior(epsilon=1, model="public")
    assert known_to(GRAPH, public, SOURCE, itself=True, neighbours=False) == [SOURCE]


@pytest.mark.parametrize("wrong", [{"candidates": [1, 999]}, {"without": ["x"]}])
def test_an_unknown_node_costs_nothing(wrong, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=10)
    with pytest.raises(UnknownNodeError, match="is not one of the 120 public nodes"):
        rank(GRAPH, SOURCE, 1.0, ledger=ledger, **wrong)
    with pytest.raises(ParameterError, match="have no ranking"):
        rank(GRAPH, SOURCE, mechanism=OwnListEmbedding(), ledger=ledger)
    assert ledger.charges() == []


def test_leaving_out_is_the_same_question_to_a_ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    plain = rank(GRAPH, SOURCE, 1.0, ledger=ledger)
    masked = rank(GRAPH, SOURCE, 1.0, ledger=ledger, leave_out_neighbours=True)
    again = release(GRAPH, TwoHop(epsilon=1.0), [SOURCE], ledger=ledger)
    assert len(ledger.charges()) == 1
    np.testing.assert_array_equal(plain.values, masked.values)
    np.testing.assert_array_equal(plain.values, again.values)
    assert (plain.shown, again.shown) == (None, None)
    assert FRIENDS.isdisjoint(nodes(masked))


def test_rank_has_uncertainty_except_for_edge_flipping(tmp_path):
    ranking = rank(GRAPH, SOURCE, 1.0, ledger=Ledger.create(tmp_path / "ledger", epsilon=9))
    assert ranking.uncertainty is not None
    assert ranking.uncertainty.shape == ranking.values.shape
    flipped = rank(GRAPH, SOURCE, 8.0)
    assert flipped.provenance.mechanism == "edge-flipping"
    assert flipped.uncertainty is None
    assert flipped.ranking(1)[0].first is None


@pytest.mark.parametrize("option", ["ledgr", "n_left_out"])  # the second is of the request
@pytest.mark.parametrize("call", [rank, suggest])
def test_option_that_does_not_exist_is_refused_by_its_name(call, option):
    with pytest.raises(TypeError, match=f"there is no option {option}"):
        call(GRAPH, SOURCE, epsilon=1.0, **{option: 3})


@pytest.mark.parametrize("one", [7, "7"])
@pytest.mark.parametrize(
    ("call", "option"), [(rank, "without"), (rank, "candidates"), (suggest, "candidates")]
)
def test_single_id_where_several_are_listed_is_refused(call, option, one):
    with pytest.raises(ParameterError, match=f"{option} must be a list of node ids, got {one!r}"):
        call(GRAPH, SOURCE, epsilon=1.0, **{option: one})


@pytest.mark.parametrize("option", [{"k": 3}, {"candidates": [1]}, {"exclude": [(1, 2)]}])
def test_option_of_lists_is_refused_for_a_mechanism_of_scores(option):
    with pytest.raises(ParameterError, match=f"{next(iter(option))} is for lists; two-hop makes"):
        release(GRAPH, TwoHop(epsilon=1.0), [SOURCE], **option)
