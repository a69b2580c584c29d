"""The page of the demo opens with what a private ranking is for."""

from __future__ import annotations

import pytest

from edgeveil.datasets import social_network
from edgeveil.engine import rank, release
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms import DPInstantEmbedding, TwoHop
from edgeveil.nodes import NodeSet
from edgeveil.report import page_from_releases
from edgeveil.report.rankings import ranking_examples


@pytest.fixture(scope="module")
def shown():
    graph = social_network(300, average_degree=30, seed=0).graph
    member, lonely = int(graph.degrees.argmax()), int(graph.degrees.argmin())
    releases = [rank(graph, v, epsilon) for v in (member, lonely) for epsilon in (1.0, 5.0)]
    examples, _ = ranking_examples(releases, graph, "net")
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


def test_a_page_takes_releases_of_several_sources_and_names():
    graph = social_network(60, average_degree=10, seed=1).graph
    u, v = graph.adjacency().nonzero()
    named = Graph.from_edges(u, v, NodeSet.of_strings(f"member {i}" for i in range(60)))
    made = release(named, TwoHop(epsilon=1), ["member 3", "member 8"])
    page = page_from_releases([made], named, title="t")
    assert [e.source for e in page.rankings[:4]] == ["member 3"] * 2 + ["member 8"] * 2
    friends = set(named.nodes.take(named.neighbours(3)))
    assert {row.node for row in page.rankings[4].rows if row.is_neighbour} <= friends
    assert page.rankings[5].rows[0].score == made.top(1, "member 3", without=["member 3"])[0][1]
    assert [(g.mechanism, g.text) for g in page.guarantees] == [("two-hop", str(made.guarantee))]
    with pytest.raises(ParameterError, match="scores"):
        page_from_releases([release(graph, DPInstantEmbedding(epsilon=1), [0])], graph, title="t")
