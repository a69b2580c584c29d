"""The page of the demo opens with what a private ranking is for."""

from __future__ import annotations

import pytest

from edgeveil.datasets import social_network
from edgeveil.report.showcase import ranking_examples


@pytest.fixture(scope="module")
def shown():
    graph = social_network(300, average_degree=30, seed=0).graph
    member, lonely = int(graph.degrees.argmax()), int(graph.degrees.argmin())
    examples, _ = ranking_examples("net", graph, [member, lonely], [1.0, 5.0])
    return graph, member, examples


def test_whom_a_member_does_not_know_comes_first(shown):
    graph, member, examples = shown
    friends = {int(v) for v in graph.neighbours(member)}
    assert len(friends) > 20, "otherwise there are strangers in every top 20"
    assert [e.dataset for e in examples] == ["net, friends left out"] * 6 + ["net, everybody"] * 6
    first = [e for e in examples if (e.dataset, e.source) == ("net, friends left out", member)]
    assert [e.epsilon for e in first] == [None, 1.0, 5.0]
    for example in first:
        assert len(example.rows) == 20
        assert not {row.node for row in example.rows} & {*friends, member}
        assert not any(row.is_neighbour for row in example.rows)


def test_the_truth_is_ranked_among_those_who_are_shown(shown):
    _, _, examples = shown
    for example in examples:
        assert (example.epsilon is None) == (not example.private)
        assert example.source not in {row.node for row in example.rows}
        if example.epsilon is None:
            assert [row.true_rank for row in example.rows] == list(range(1, 21))


def test_both_views_are_of_one_release(shown):
    graph, _, examples = shown
    lonely = int(graph.degrees.argmin())
    strangers, everybody = (
        {row.node: row.score for row in example.rows}
        for example in examples
        if (example.source, example.epsilon) == (lonely, 5.0)
    )
    both = strangers.keys() & everybody.keys()
    assert both
    assert all(strangers[node] == everybody[node] for node in both)
