"""Hits by degree group, scores without privacy, and the limit that no private list crosses."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.errors import ParameterError
from edgeveil.evaluation import hits as measured
from edgeveil.evaluation.hits import HiddenEdges, hide_edges
from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet
from tests.unit.estimate.suggestion_release import SimulatedRelease


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

    one = measured.hits(small_split(), [0], best_three, k=1)
    assert one.tolist() == [1.0]
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


# -- the limit ------------------------------------------------------------------------------


def test_the_limit_grows_by_e_to_the_epsilon_with_each_common_friend():
    bound = measured.limit_of(np.arange(20), 0.5, 10_000)
    assert bound[0] == pytest.approx(0.002)
    np.testing.assert_allclose(bound[1:12] / bound[:11], np.exp(0.5))
    assert bound.max() == 1
    assert measured.limit_of([10_000], 50.0, 100)[0] == 1


def test_the_limit_rises_with_epsilon_up_to_1(split):
    members = measured.members_by_degree(split, per_group=30)[20, 50]
    means = [measured.limit(split, members, e).mean() for e in (0.01, 0.5, 2.0, 50.0)]
    assert means == sorted(means)
    assert means[0] < 0.1
    assert 0.8 < means[-1] <= 1


def exchangeable(rng, strangers, friends, common):
    """A graph in which a random stranger has `common` friends of node 0; the others none."""
    lucky = rng.choice(strangers, 1, replace=False) + friends + 1
    known = rng.choice(friends, common, replace=False) + 1
    ends = np.concatenate([np.zeros(friends, dtype=int), np.repeat(lucky, common)])
    others = np.concatenate([np.arange(1, friends + 1), known])
    nodes = NodeSet.range(strangers + friends + 1)
    return HiddenEdges(Graph.from_edges(ends, others, nodes), Graph.from_edges([0], lucky, nodes))


@pytest.mark.parametrize(("epsilon", "common"), [(0.5, 6), (1.0, 4), (1.0, 8)])
def test_no_private_list_crosses_the_limit_where_strangers_are_alike(epsilon, common):
    rng = np.random.default_rng(1)
    found = {"suggestions": [], "noisy counts": []}
    bound = []
    for i in range(80):
        split = exchangeable(rng, 400, 12, common)
        ours = SimulatedRelease(split.left, epsilon, seed=i).score
        # one edge moves one stranger's count by 1
        noisy = measured.common_neighbours(split.left)(0) + rng.laplace(size=413) / epsilon
        found["suggestions"].append(measured.hits(split, [0], ours, k=5).mean())
        found["noisy counts"].append(measured.hits(split, [0], lambda s, x=noisy: x, k=5).mean())
        bound.append(measured.limit(split, [0], epsilon, k=5).mean())
    assert np.ptp(bound) == 0
    assert bound[0] == pytest.approx(min(1, np.exp(common * epsilon) * 5 / 400))
    for values in found.values():
        assert np.mean(values) <= bound[0] + 3 * np.std(values) / np.sqrt(len(values))
    if bound[0] < 1:
        # the line is near: a list without noise is above it, one with noise not far below
        assert np.mean(found["noisy counts"]) > 0.3 * bound[0]
