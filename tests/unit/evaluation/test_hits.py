"""Hits by degree group, and scores without privacy."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.evaluation import hits as measured
from edgeveil.evaluation.hits import HiddenEdges, hide_edges
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet


@pytest.fixture(scope="module")
def split():
    return hide_edges(social_network(1500, average_degree=20, communities=5, seed=6).graph)


def small_split():
    nodes = NodeSet.range(6)
    left = Graph.from_edges([0, 0, 1, 2, 1], [1, 2, 3, 3, 4], nodes)
    return HiddenEdges(left, Graph.from_edges([0, 0], [3, 5], nodes))


def test_hits_are_the_found_of_those_that_fit_on_the_list():
    def best_three(member):
        return np.array([9.0, 9, 9, 3, 2, 1])  # oneself and friends do not matter

    hits = measured.hits(small_split(), [0], best_three, k=1)
    assert hits.tolist() == [1.0]
    assert measured.hits(small_split(), [0], best_three, k=2).mean() == 0.5
    assert measured.hits(small_split(), [0], lambda s: np.zeros(6), k=1).mean() == pytest.approx(
        2 / 3
    )


def test_a_member_without_hidden_friends_is_refused():
    with pytest.raises(ParameterError, match="hidden friend"):
        measured.hits(small_split(), [1], measured.popularity(small_split().left))


def test_scores_without_privacy_are_those_of_their_formulae():
    graph = small_split().left
    assert measured.popularity(graph)(0).tolist() == [2, 3, 2, 2, 1, 0]
    assert measured.common_neighbours(graph)(0)[3:].tolist() == [2, 1, 0]
    np.testing.assert_allclose(
        measured.resource_allocation(graph)(0)[3:], [1 / 3 + 1 / 2, 1 / 3, 0]
    )
    assert measured.pagerank(graph)(0)[3] > measured.pagerank(graph)(0)[4]


def test_members_are_drawn_by_degree_and_have_hidden_friends(split):
    groups = measured.members_by_degree(split, per_group=40, seed=3)
    degrees = split.left.degrees + split.hidden.degrees
    for (low, high), members in groups.items():
        assert len(members) == len(set(members.tolist())) == 40
        assert ((degrees[members] >= low) & (degrees[members] < high)).all()
        assert (split.hidden.degrees[members] > 0).all()


def test_group_members_do_not_depend_on_other_groups(split):
    every = measured.members_by_degree(split, groups=measured.ALL_GROUPS, per_group=20)
    for group, members in measured.members_by_degree(split, per_group=20).items():
        np.testing.assert_array_equal(members, every[group])
    degrees = split.left.degrees + split.hidden.degrees
    assert (degrees[every[0, 5]] < 5).all()
    assert len(every[0, None]) == 20
    assert (degrees[every[200, None]] >= 200).all()


def test_sizes_count_all_members_without_empty_groups():
    """A group is left out if no member of it has hidden friends."""
    graph = social_network(1500, average_degree=20, communities=5, seed=6).graph
    results = measured.measure_suggestions(
        "g", graph, [], groups=[*measured.ALL_GROUPS, (3000, None)], per_group=5
    )
    sizes = {r.scope: r.mean for r in results if r.metric == measured.SIZE}
    assert sizes["all members"] == 1500
    assert sizes["20-50 friends"] == ((graph.degrees >= 20) & (graph.degrees < 50)).sum()
    groups = ["5-20 friends", "20-50 friends", "50-200 friends", "all members"]
    assert list(dict.fromkeys(r.scope for r in results)) == list(sizes) == groups


def test_the_share_of_mostly_popular_lists_falls_with_epsilon():
    graph = social_network(1500, average_degree=20, communities=5, seed=6).graph
    results = measured.measure_suggestions(
        "g", graph, measured.default_mechanisms([0.1, 4.0]), groups=[(0, None)], per_group=40
    )
    low, high = (r.mean for r in results if r.metric == measured.POPULAR)
    assert 1 >= low > high >= 0
