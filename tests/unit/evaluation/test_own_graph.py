"""ev.evaluate: the curator's table of what private results are worth."""

from __future__ import annotations

import sys

import pytest

from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.graph.datasets import social_network
from edgeveil.mechanisms import DegreePrior, NonPrivate, OwnListEmbedding, Suggest, TwoHop

GRAPH = social_network(400, average_degree=16).graph
SMALL = {"sources": 4, "k": 20, "min_degree": 16, "protocol": "rankings"}


@pytest.fixture(scope="module")
def table():
    return evaluate(GRAPH, [0.5, 5], **SMALL)


def test_rankings_compare_ours_the_paper_and_baselines(table):
    rows = {(row[0], row[1]): row[2:] for row in table.rows()}
    assert rows["non-private", None] == (1.0, 1.0, 1.0, 1.0)
    for name in ("two-hop", "degree-prior", "push-flow-cap (paper)"):
        assert {loss for label, loss in rows if label == name} == {0.5, 5}
    assert ("edge-flipping", 5.0) in rows
    assert rows["two-hop", 5.0][0] > rows["random", None][0]
    assert rows["random", None][0] < 0.3


def test_printed_table_says_curator_only(table):
    for text in (str(table), repr(table), table._repr_html_()):
        assert "FOR THE CURATOR ONLY, NOT PRIVATE" in text
        assert "push-flow-cap (paper)" in text
    assert "#b00020" in table._repr_html_()
    assert table.to_pandas().attrs["edgeveil"]["statement"].startswith("FOR THE CURATOR")


def test_the_table_has_every_number_with_its_interval(table):
    frame = table.to_polars()
    assert frame.columns == [
        *("mechanism", "epsilon", "metric", "scope"),
        *("mean", "low", "high", "n_sources", "repeats"),
    ]
    assert set(frame["metric"]) == {"recall@20", "ndcg@20"}
    assert (frame["low"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["high"]).all()
    assert table.to_pandas().shape == frame.shape
    shown = {row[:2]: row[2] for row in table.rows()}
    chosen = frame.filter(metric="recall@20", scope="all", mechanism="two-hop", epsilon=5.0)
    assert chosen["mean"].item() == shown["two-hop", 5.0]


def test_evaluate_is_repeatable_and_takes_one_epsilon(table):
    again = evaluate(GRAPH, 5, **SMALL)
    assert [r for r in again.rows() if r[1] == 5] == [r for r in table.rows() if r[1] == 5]


def test_own_mechanisms_even_of_one_name():
    capped = [TwoHop(epsilon=1), TwoHop(epsilon=1, restart=0.5), DegreePrior(epsilon=2)]
    names = [row[0] for row in evaluate(GRAPH, mechanisms=capped, **SMALL).rows()]
    assert names[3:] == [repr(capped[0]), repr(capped[1]), "degree-prior"]
    rows = evaluate(GRAPH, mechanisms=capped, **SMALL).rows()
    assert rows[3][2:] != rows[4][2:]


def test_metric_without_a_truth_is_a_dash():
    row = evaluate(
        GRAPH, mechanisms=[], sources=2, k=399, min_degree=16, protocol="rankings"
    ).rows()[0]
    assert row[0] == "non-private"
    assert row[3] is None  # fewer non-neighbours than k
    assert "-" in str(
        evaluate(GRAPH, mechanisms=[], sources=2, k=399, min_degree=16, protocol="rankings")
    )


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"k": 400}, "k must be less than the number of nodes, 400"),
        ({"k": 0}, "k must be an integer >= 1"),
        ({"sources": 0}, "sources must be an integer >= 1"),
        ({"min_degree": 10**6}, "lower min_degree"),
        ({"epsilons": [-1]}, "epsilon must be a positive number"),
        ({"epsilons": 1.0, "mechanisms": [NonPrivate()]}, "give epsilons or mechanisms"),
        ({"mechanisms": [OwnListEmbedding()]}, "gives no scores"),
    ],
)
def test_wrong_arguments_are_named(wrong, expected):
    with pytest.raises(ParameterError, match=expected):
        evaluate(GRAPH, **{**SMALL, **wrong})


# --- Suggestions, the main job -------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists():
    return evaluate(social_network(1500, average_degree=24).graph, [0.25, 4.0], sources=40)


def test_evaluate_compares_lists_with_baselines_and_limit(lists):
    rows = {row[:2]: row[4:7] for row in lists.rows() if row[2] == "hits@20"}
    assert [name for name, loss in rows if loss is None] == [
        *("popularity", "common neighbours", "resource allocation", "pagerank")
    ]
    for loss in (0.25, 4.0):
        assert {("suggest", loss), ("limit", loss)} <= set(rows)
    # With more budget more is found, up to what scores without privacy find.
    for at, few, many in zip(range(3), rows["suggest", 0.25], rows["suggest", 4.0], strict=False):
        assert many > 2 * rows["popularity", None][at]
        assert many > few
        assert many <= rows["resource allocation", None][at] + 0.15
    assert "FOR THE CURATOR ONLY, NOT PRIVATE" in str(lists)


def test_groups_have_sizes_and_mostly_popular_shares(lists):
    groups = ["under 5", "5-20", "20-50", "50-200", "all members"]  # nobody has 200
    assert lists.columns == ["mechanism", "epsilon", "measure", *groups]
    first = lists.rows()[0]
    assert first[:3] == ("graph", None, "members")
    assert sum(first[3:7]) == first[7] == 1500
    assert all(isinstance(size, int) for size in first[3:])
    popular = {row[1]: row[3:] for row in lists.rows() if row[2] == "mostly popular"}
    assert set(popular) == {0.25, 4.0}
    assert popular[4.0][-1] < popular[0.25][-1] <= 1
    assert {row[2] for row in lists.rows() if row[0] == "suggest"} == {
        *("hits@20", "mostly popular", "most suggested")
    }


def test_what_mechanisms_give_decides_what_is_measured():
    assert (
        evaluate(GRAPH, mechanisms=[TwoHop(epsilon=1)], sources=2, k=10, min_degree=9)
        .columns[2]
        .startswith("recall")
    )
    with pytest.raises(ParameterError, match="two-hop gives no lists"):
        evaluate(GRAPH, mechanisms=[Suggest(epsilon=1), TwoHop(epsilon=1)], protocol="suggestions")


def test_figure_1_of_any_graph_in_one_line(table, tmp_path):
    figure = table.plot(tmp_path / "figure.svg")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["recall@20, all", "ndcg@20, all", "recall@20, non-neighbours"]
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert list(lines["two-hop"].get_xdata()) == [0.5, 5]
    means = {r.epsilon: r.mean for r in table.results if r.mechanism == "two-hop"}
    shown = {(r[0], r[1]): r[2] for r in table.rows()}
    assert lines["two-hop"].get_ydata()[1] == shown["two-hop", 5.0]
    assert set(means) == {0.5, 5}
    assert set(lines["random"].get_ydata()) == {shown["random", None]}
    assert set(lines) == {row[0] for row in table.rows()}
    assert "not private" in figure.get_suptitle()
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")


def test_the_figure_of_lists_has_a_panel_for_every_degree_group():
    figure = evaluate(GRAPH, [0.5, 2.0], sources=5, k=10).plot()
    assert [axes.get_title() for axes in figure.axes] == [
        "hits@10, under 5 friends",
        "hits@10, 5-20 friends",
        "hits@10, 20-50 friends",
        "hits@10, all members",
    ]


def test_without_matplotlib_the_figure_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(EdgeveilError, match=r"pip install 'edgeveil\[plot\]'"):
        table.plot()
