"""The limit: against the best of all private lists, and against our own on generated networks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from edgeveil.evaluation import hits as measured
from edgeveil.evaluation.hits import HiddenEdges, hide_edges, limit_of
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet


def test_equal_prior_each_common_friend_gives_e_to_epsilon():
    bound = limit_of(np.arange(20), 0.5, ahead=0, level=10_000)
    assert bound[0] == pytest.approx(0.002)
    np.testing.assert_allclose(bound[1:12] / bound[:11], np.exp(0.5))
    assert bound.max() == 1
    assert limit_of([10_000], 50.0, ahead=0, level=100)[0] == 1


def test_limit_is_zero_behind_a_longer_list():
    assert limit_of(2, 1.0, ahead=[20 * np.exp(2) - 1.01, 20 * np.exp(2)], level=1).tolist() == [
        1,
        0,
    ]


def best_of_all_private_lists(prior, friends, epsilon, k):
    """The largest chance to list v, over every epsilon-private mechanism: a linear programme.

    Candidates and `friends` of s; v is joined to all of these, and is drawn from `prior`. A
    mechanism is a probability for each list on each graph with any edges between the two sides.
    """
    n, lists = len(prior), list(combinations(range(len(prior)), k))
    edges = [(v, u) for v in range(n) for u in range(friends)]
    graphs, size = 2 ** len(edges), len(lists)
    row = np.arange(graphs * size)
    apart = []
    for e in range(len(edges)):
        graph, y = np.divmod(row, size)
        other = (graph ^ (1 << e)) * size + y
        apart.append(
            sp.csr_array((np.ones(len(row)), (row, row)))
            - np.exp(epsilon) * sp.csr_array((np.ones(len(row)), (row, other)))
        )
    gain = np.zeros((graphs, size))
    for v, chance in enumerate(prior):
        graph = sum(1 << e for e, (w, _) in enumerate(edges) if w == v)
        gain[graph, [v in listed for listed in lists]] += chance
    solved = linprog(
        -gain.ravel(),
        A_ub=sp.vstack(apart),
        b_ub=np.zeros(len(edges) * len(row)),
        A_eq=sp.kron(sp.eye_array(graphs), np.ones((1, size))),
        b_eq=np.ones(graphs),
    )
    assert solved.status == 0
    return -solved.fun


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
@pytest.mark.parametrize(("n", "friends", "k"), [(3, 2, 1), (4, 1, 1), (5, 1, 2), (6, 1, 1)])
def test_best_private_list_is_just_below_the_limit(n, friends, k, epsilon):
    rng = np.random.default_rng(n * friends)
    for prior in (np.full(n, 1 / n), np.sort(rng.dirichlet(np.ones(n)))[::-1]):
        bound = float(prior @ limit_of(friends, epsilon, ahead=np.arange(n), level=1, k=k))
        best = best_of_all_private_lists(prior, friends, epsilon, k)
        assert best <= bound + 1e-9
        assert best > 0.7 * bound
        if np.ptp(prior) > 0.01 and bound < 1:  # popularity counts: the old line is too low
            assert bound > min(1, k * np.exp(friends * epsilon) / n)


@pytest.fixture(scope="module")
def split():
    return hide_edges(social_network(1500, average_degree=20, communities=5, seed=6).graph)


def test_the_limit_rises_with_epsilon_up_to_1(split):
    members = measured.members_by_degree(split, per_group=30)[20, 50]
    means = [measured.limit(split, members, e).mean() for e in (0.01, 0.5, 2.0, 50.0)]
    assert means == sorted(means)
    assert means[0] < 0.3
    assert 0.8 < means[-1] <= 1


def test_limit_ranks_strangers_without_friends_by_popularity():
    # 0 has friends 1 and 2. 3 shares both and has degree 1 without them; 5 to 8 share nobody, and
    # 5 has degree 3; 4 shares one.
    nodes = NodeSet.range(9)
    ends = [0, 0, 1, 2, 3, 1, 5, 5, 5]
    others = [1, 2, 3, 3, 6, 4, 6, 7, 8]
    hidden = HiddenEdges(
        Graph.from_edges(ends, others, nodes), Graph.from_edges([0, 0], [3, 7], nodes)
    )
    # Of 3's class, by degree: 5 (3), 6 (2), then 3, 7 and 8 (1 each).
    for epsilon in (0.1, 0.4, 0.6):
        three = np.clip((np.exp(2 * epsilon) - 2) / 3, 0, 1)
        assert measured.limit(hidden, [0], epsilon, k=1)[0] == pytest.approx(three)
        both = (np.clip((3 * np.exp(2 * epsilon) - 2) / 3, 0, 1) + 1 / 2) / 2  # 7: 1 of 7 and 8
        assert measured.limit(hidden, [0], epsilon, k=3)[0] == pytest.approx(both)


def drawn(rng, strangers, friends, common):
    """A graph in which one stranger, likelier a popular one, has `common` friends of node 0.

    The strangers' other edges go to nodes that are no candidates and have no other edges.
    """
    weights = 1 / np.arange(1, strangers + 1)
    lucky = rng.choice(strangers, p=weights / weights.sum()) + friends + 1
    shared_friends = rng.choice(friends, common, replace=False) + 1
    degrees = np.maximum(60 * weights, 1).astype(int)
    far = np.repeat(np.arange(strangers) + friends + 1, degrees)
    leaves = np.arange(len(far)) + strangers + friends + 1
    nodes = NodeSet.range(int(leaves[-1]) + 1)
    ends = np.concatenate([np.zeros(friends, dtype=int), np.full(common, lucky), far])
    others = np.concatenate([np.arange(1, friends + 1), shared_friends, leaves])
    return HiddenEdges(Graph.from_edges(ends, others, nodes), Graph.from_edges([0], [lucky], nodes))


@pytest.mark.parametrize(("epsilon", "common"), [(0.5, 4), (1.0, 3), (1.0, 6)])
def test_popularity_lists_stay_below_limit_above_old_one(epsilon, common):
    rng = np.random.default_rng(1)
    hits, bound, alike = [], [], []
    for _ in range(300):
        split = drawn(rng, 300, 12, common)
        n = split.left.n_nodes
        noisy = measured.common_neighbours(split.left)(0) + rng.laplace(size=n) / epsilon
        scores = np.log(split.left.degrees + 1.0) + epsilon * noisy  # degrees for nothing
        hits.append(measured.hits(split, [0], lambda s, x=scores: x, k=5)[0])
        bound.append(measured.limit(split, [0], epsilon, k=5)[0])
        alike.append(min(1, 5 * np.exp(common * epsilon) / (n - 13)))
    gap = np.array(bound) - hits
    assert gap.mean() > -3 * gap.std() / np.sqrt(len(gap))
    assert np.mean(hits) > 0.4 * np.mean(bound)
    if np.mean(alike) < 0.3:
        assert np.mean(hits) > np.mean(alike)  # what it was to bound


def test_our_lists_stay_below_the_limit_in_every_group():
    graph = social_network(1500, average_degree=20, communities=5, seed=6).graph
    lists = measured.default_mechanisms([0.25, 1.0, 4.0])
    groups = measured.ALL_GROUPS
    results = {
        (r.scope, r.epsilon, r.mechanism): r
        for r in measured.measure_suggestions("g", graph, lists, groups=groups, per_group=60)
        if r.metric == "hits@20"
    }
    ours = [key[:2] for key in results if key[2] == "suggest"]
    assert len(ours) >= 12
    for scope, epsilon in ours:
        hits, bound = (results[scope, epsilon, name] for name in ("suggest", "limit"))
        assert hits.mean - 0.75 * (hits.mean - hits.low) <= bound.mean
