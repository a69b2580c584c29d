"""ev.evaluate: the curator's table of how well private rankings do."""

from __future__ import annotations

import pytest

from edgeveil.datasets import social_network
from edgeveil.errors import ParameterError
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.mechanisms import DegreePrior, NonPrivate, TwoHop, TwoHopEmbedding

GRAPH = social_network(400, average_degree=16).graph
SMALL = {"sources": 4, "k": 20, "min_degree": 16}


@pytest.fixture(scope="module")
def found():
    return evaluate(GRAPH, [0.5, 5], **SMALL)


def test_ours_the_papers_and_the_floors_are_compared(found):
    rows = {(row[0], row[1]): row[2:] for row in found.rows()}
    assert rows["non-private", None] == (1.0, 1.0, 1.0, 1.0)
    for name in ("two-hop", "degree-prior", "push-flow-cap (paper)"):
        assert {loss for label, loss in rows if label == name} == {0.5, 5}
    assert ("edge-flipping", 5.0) in rows
    assert rows["two-hop", 5.0][0] > rows["random", None][0]
    assert rows["random", None][0] < 0.3


def test_what_is_printed_says_that_it_is_the_curators(found):
    for text in (str(found), repr(found), found._repr_html_()):
        assert "FOR THE CURATOR, NOT PRIVATE" in text
        assert "push-flow-cap (paper)" in text
    assert "#b00020" in found._repr_html_()
    assert found.to_pandas().attrs["edgeveil"]["statement"].startswith("FOR THE CURATOR")


def test_the_table_has_every_number_with_its_interval(found):
    frame = found.to_polars()
    assert frame.columns == [
        *("mechanism", "epsilon", "metric", "scope"),
        *("mean", "low", "high", "n_sources", "repeats"),
    ]
    assert set(frame["metric"]) == {"recall@20", "ndcg@20"}
    assert (frame["low"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["high"]).all()
    assert found.to_pandas().shape == frame.shape
    shown = {row[:2]: row[2] for row in found.rows()}
    chosen = frame.filter(metric="recall@20", scope="all", mechanism="two-hop", epsilon=5.0)
    assert chosen["mean"].item() == shown["two-hop", 5.0]


def test_it_can_be_repeated_and_one_number_will_do(found):
    again = evaluate(GRAPH, 5, **SMALL)
    assert [r for r in again.rows() if r[1] == 5] == [r for r in found.rows() if r[1] == 5]


def test_own_mechanisms_even_of_one_name():
    capped = [TwoHop(epsilon=1), TwoHop(epsilon=1, restart=0.5), DegreePrior(epsilon=2)]
    names = [row[0] for row in evaluate(GRAPH, mechanisms=capped, **SMALL).rows()]
    assert names[3:] == [repr(capped[0]), repr(capped[1]), "degree-prior"]
    rows = evaluate(GRAPH, mechanisms=capped, **SMALL).rows()
    assert rows[3][2:] != rows[4][2:]


def test_where_any_order_is_right_there_is_no_number():
    row = evaluate(GRAPH, mechanisms=[], sources=2, k=399, min_degree=16).rows()[0]
    assert row[0] == "non-private"
    assert row[3] is None  # fewer non-neighbours than k
    assert "-" in str(evaluate(GRAPH, mechanisms=[], sources=2, k=399, min_degree=16))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"k": 400}, "k must be less than the number of nodes, 400"),
        ({"k": 0}, "k must be a whole number from 1 on"),
        ({"sources": 0}, "sources must be a whole number from 1 on"),
        ({"min_degree": 10**6}, "lower min_degree"),
        ({"epsilons": [-1]}, "epsilon must be a positive number"),
        ({"epsilons": 1.0, "mechanisms": [NonPrivate()]}, "give epsilons or mechanisms"),
        ({"mechanisms": [TwoHopEmbedding(epsilon=1)]}, "gives scores has a ranking"),
    ],
)
def test_wrong_arguments_are_named(wrong, expected):
    with pytest.raises(ParameterError, match=expected):
        evaluate(GRAPH, **{**SMALL, **wrong})


def test_scores_are_not_measured_as_lists():
    with pytest.raises(ParameterError, match="two-hop gives scores, no lists"):
        evaluate(GRAPH, mechanisms=[TwoHop(epsilon=1)], protocol="suggestions", sources=4, k=20)
