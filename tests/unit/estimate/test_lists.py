"""Lists from released numbers against the same, one member and one stranger at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, Evidence, Reason
from edgeveil.estimate.rows import LocalViews
from edgeveil.graph.nodes import NodeSet


def released(seed: int, n: int, m: int, *, followers: bool = False):
    """Random released numbers of m members: degrees, own lists, and noisy sums."""
    rng = np.random.default_rng(seed)
    popularity = lists.fit_popularity(rng.integers(1, 200, n) + rng.laplace(size=n) * 40, 40.0)
    sources = rng.choice(n, m, replace=False)
    friends = [
        np.sort(rng.choice(np.delete(np.arange(n), s), rng.integers(0, n // 3), False))
        for s in sources
    ]
    starts = np.cumsum([0, *map(len, friends)])
    follow = tuple(np.sort(rng.choice(n, rng.integers(0, 6), False)) for _ in sources)
    views = LocalViews(
        sources, np.concatenate(friends), starts, NodeSet.range(n), follow if followers else ()
    )
    tail = [np.sort(rng.choice(n, rng.integers(0, n // 2), False)) for _ in sources]
    sums = [rng.gamma(1.0, 6.0, len(t)) for t in tail]
    return (
        popularity,
        views,
        (np.cumsum([0, *map(len, tail)]), np.concatenate(tail), np.concatenate(sums)),
    )


def oracle(popularity, views, i, tail, rate, k, among=None):
    """The list of member i, stranger by stranger: node, score."""
    n, friends = len(popularity.log_degrees), views.of(i).tolist()
    weights = [
        min(1.0, 3 * popularity.floor / math.exp(popularity.log_degrees[u])) for u in friends
    ]
    r = max(0.0, rate - 1 / (1 + 0.3 * sum(weights)))
    starts, nodes, sums = tail
    z = dict(
        zip(nodes[starts[i] : starts[i + 1]].tolist(), sums[starts[i] : starts[i + 1]], strict=True)
    )
    scored = []
    for v in range(n):
        if v == views.sources[i] or v in friends or (among is not None and v not in among):
            continue
        evidence = r * z[v] if v in z else 0.0
        scored.append(
            (
                popularity.log_degrees[v]
                + math.log1p(min(1.0, lists.CIRCLE / n) * math.exp(evidence)),
                v,
            )
        )
    return sorted(scored, reverse=True)[:k]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(12, 90), st.integers(1, 8), st.integers(1, 30), st.booleans()
)
def test_lists_are_those_of_the_formula(seed, n, m, k, some):
    popularity, views, tail = released(seed, n, min(m, n))
    among = np.arange(0, n, 2) if some else None
    evidence = lists.make_evidence(popularity, views, tail, 0.7)
    suggestions = lists.make_lists(
        popularity, views, evidence, 0.7, k, None if among is None else Candidates(among)
    )
    for i in range(len(views.sources)):
        here = slice(suggestions.starts[i], suggestions.starts[i + 1])
        expected = oracle(
            popularity, views, i, tail, 0.7, k, None if among is None else set(among.tolist())
        )
        np.testing.assert_allclose(
            suggestions.scores[here], [score for score, _ in expected], rtol=1e-5
        )
        assert len(set(suggestions.nodes[here].tolist())) == len(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_a_list_does_not_depend_on_the_members_beside_it(seed, m, followers):
    popularity, views, tail = released(seed, 60, m, followers=followers)
    whole = lists.make_lists(
        popularity, views, lists.make_evidence(popularity, views, tail, 1.0), 1.0, 15
    )
    for i in range(m):
        alone = LocalViews(
            views.sources[i : i + 1],
            views.of(i),
            np.array([0, len(views.of(i))]),
            views.nodes,
            views.followers[i : i + 1],
        )
        starts = tail[0][i : i + 2]
        its = (starts - starts[0], *(column[starts[0] : starts[1]] for column in tail[1:]))
        suggestions = lists.make_lists(
            popularity, alone, lists.make_evidence(popularity, alone, its, 1.0), 1.0, 15
        )
        for mine, theirs in zip(suggestions[1:], whole[1:], strict=True):
            np.testing.assert_array_equal(mine, theirs[whole.starts[i] : whole.starts[i + 1]])


def test_gather_stores_at_most_the_public_number_the_best():
    n = 2000
    popularity = lists.fit_popularity(np.full(n, 50.0), 1.0)
    views = LocalViews(np.array([0]), np.arange(1, 40), np.array([0, 39]), NodeSet.range(n))
    nodes = np.arange(n)
    sums = np.random.default_rng(0).permutation(n).astype(float)
    evidence = lists.make_evidence(popularity, views, (np.array([0, n]), nodes, sums), 1.0)
    assert len(evidence.nodes) == lists.STORED
    strangers = np.sort(sums[40:])[::-1]
    kept = np.sort(evidence.sums)[::-1]
    np.testing.assert_array_equal(kept, strangers[: lists.STORED].astype(np.float32))


def test_a_friend_made_since_then_leaves_the_list():
    popularity, views, tail = released(4, 40, 3)
    evidence = lists.make_evidence(popularity, views, tail, 1.0)
    first = lists.make_lists(popularity, views, evidence, 1.0, 10).nodes[0]
    more = np.sort(np.append(views.of(0), first))
    later = views._replace(
        lists=np.concatenate([more, views.lists[views.starts[1] :]]),
        starts=views.starts + np.array([0, 1, 1, 1]),
    )
    suggestions = lists.make_lists(popularity, later, evidence, 1.0, 10)
    assert first not in suggestions.nodes[: suggestions.starts[1]]


def test_followers_are_scored_by_the_likelihood_ratio():
    n = 500
    popularity = lists.fit_popularity(np.full(n, 30.0), 1.0)
    friends = np.arange(1, 21)
    followers = (np.concatenate([np.arange(1, 11), [400, 401]]),)
    views = LocalViews(np.array([0]), friends, np.array([0, 20]), NodeSet.range(n), followers)
    nothing = Evidence(np.array([0, 0]), np.empty(0, np.int32), np.empty(0, np.float32), np.ones(1))
    suggestions = lists.make_lists(popularity, views, nothing, 1.0, 5)
    assert suggestions.nodes[:2].tolist() == [400, 401]
    assert suggestions.reasons.tolist() == [Reason.FOLLOWS_YOU] * 2 + [Reason.POPULAR] * 3
    ratio = (10.5 / 21) / (12.5 / 501)
    assert suggestions.scores[0] - suggestions.scores[2] == pytest.approx(math.log(ratio))


def test_threshold_is_reached_by_the_expected_number():
    n, rate, rng = 200_000, 0.8, np.random.default_rng(1)
    reached = [
        np.count_nonzero(rng.laplace(size=n) / rate >= lists.threshold(n, rate)) for _ in range(20)
    ]
    assert np.mean(reached) == pytest.approx(lists._NOISE_NAMES, rel=0.1)
    assert lists.threshold(10, rate) == 0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 1.0, 8.0])
def test_the_budget_is_split_without_rest(epsilon):
    degrees, sums = lists.split_epsilon(epsilon)
    assert degrees + sums == pytest.approx(epsilon)
    assert 0.03 * epsilon * (1 - 1e-12) <= degrees <= 0.2 * epsilon


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(1, 8), st.integers(1, 20))
def test_lists_with_excluded_pairs_are_filled_up(seed, n, m, k):
    popularity, views, tail = released(seed, n, min(m, n))
    evidence = lists.make_evidence(popularity, views, tail, 0.7)
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, (3 * n, 2))
    suggestions = lists.make_lists(popularity, views, evidence, 0.7, k, Candidates(None, pairs))
    whole = lists.make_lists(popularity, views, evidence, 0.7, n)
    hidden = {(member, other) for member, other in pairs.tolist()}
    for i, member in enumerate(views.sources.tolist()):
        here, there = (slice(*part.starts[i : i + 2]) for part in (suggestions, whole))
        assert not any((member, node) in hidden for node in suggestions.nodes[here].tolist())
        left = [j for j in range(there.start, there.stop) if (member, whole.nodes[j]) not in hidden]
        # Scores, not names: which of several equally popular names is listed depends on k.
        assert suggestions.scores[here].tolist() == whole.scores[left[:k]].tolist()
