"""Reading of suggestions: kernels against plain numpy, order, reasons, places, and hits."""

from __future__ import annotations

import time

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.estimate import _friend_kernels as friends
from edgeveil.estimate import _law_kernels as laws
from edgeveil.estimate import suggestions
from edgeveil.evaluation.hits import hide_edges, hits, popularity
from tests.unit.estimate import plain_suggestions as plain
from tests.unit.estimate.suggestion_release import Columns, SimulatedRelease, list_of


@pytest.fixture(scope="module")
def network():
    return social_network(3000, average_degree=30, communities=8, seed=11).graph


@pytest.fixture(scope="module")
def release(network):
    return SimulatedRelease(network, 2.0)


# -- kernels against plain numpy ------------------------------------------------------------


def same_list(ours, theirs):
    """Equal but for roundings, which may swap equal scores, or the place of a whole node."""
    ours, theirs = (rows[~np.isnan(rows[:, 0])] for rows in (ours, theirs))
    np.testing.assert_allclose(ours[:, 1], theirs[:, 1], rtol=1e-6)
    # Who is on one list alone ties with the last place of the other.
    sure = ours[:, 1] > ours[:, 1].min(initial=np.inf) * (1 + 1e-6)
    ours, theirs = (rows[sure][np.argsort(rows[sure, 0])] for rows in (ours, theirs))
    np.testing.assert_array_equal(ours[:, [0, 5, 6]], theirs[:, [0, 5, 6]])
    np.testing.assert_allclose(ours[:, [1, 4]], theirs[:, [1, 4]], rtol=1e-6)
    np.testing.assert_allclose(ours[:, 2:4], theirs[:, 2:4], atol=1)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("n", [40, 3000])
def test_lists_are_those_of_plain_numpy(network, epsilon, n):
    graph = network if n == 3000 else social_network(n, average_degree=6, seed=1).graph
    release = SimulatedRelease(graph, epsilon, seed=7)
    rng = np.random.default_rng(1)
    weighted = 0
    for member in rng.choice(n, 15, replace=False):
        args, _ = release.draw(member)
        weighted += args[4].min(initial=1.0) < 1
        expected = plain.friend_weights(args[0], args[2], args[3], args[7])
        np.testing.assert_allclose(args[4], expected, rtol=1e-12)
        for k in (1, 20, 60):
            same_list(list_of(graph, *args, k=k), plain.read_row(*args).top(k))
    assert weighted or epsilon < 10 or n == 40


def test_lists_with_few_candidates_are_those_of_plain_numpy(release, network):
    allowed = np.zeros(3000, dtype=bool)
    allowed[::50] = True
    for member in range(40, 50):
        args, _ = release.draw(member)
        ours = list_of(network, *args, k=30, candidates=np.flatnonzero(allowed))
        same_list(ours, plain.read_row(*args).top(30, allowed))


def test_lists_of_members_who_know_their_followers_are_those_of_plain_numpy(release, network):
    rng = np.random.default_rng(3)
    for member in range(60, 75):
        args, _ = release.draw(member)
        followers = np.union1d(rng.choice(3000, 12, replace=False), args[2][::2])
        more = {"friend_rate": args[7], "followers": followers}
        reading = plain.read_row(*args, **more)
        same_list(list_of(network, *args, k=25, **more), reading.top(25))


def test_lists_of_random_values_are_those_of_plain_numpy(network):
    """Numbers that no graph gives: far out, negative, no friends, nobody above the threshold."""
    rng = np.random.default_rng(12)
    learnt = suggestions.learn(network.degrees + 20 * rng.laplace(size=3000), 20.0)
    for case in range(60):
        rate = rng.choice([0.05, 0.4, 0.9, 3.0])
        friends = np.sort(rng.choice(3000, rng.choice([0, 1, 3, 40, 600]), replace=False))
        friend_sums = rng.standard_cauchy(len(friends)) * rng.choice([0.1, 5, 200])
        weights = rng.random(len(friends)) ** rng.choice([0, 0.5, 4])
        limit = suggestions.threshold(3000, rate)
        nodes = np.setdiff1d(rng.choice(3000, rng.choice([0, 1, 50, 900])), [*friends, 17])
        sums = limit + rng.exponential(rng.choice([1, 30, 4000]), len(nodes))
        args = (learnt, 17, friends, friend_sums, weights, nodes, sums, rate)
        ours = list_of(network, *args, k=15)
        assert not np.isnan(ours).any(), case
        same_list(ours, plain.read_row(*args).top(15))


def test_the_tables_give_the_likelihood_of_a_sum_with_laplace_noise():
    rng = np.random.default_rng(0)
    points, width = plain.grid(80.0, 1.0)
    size, decays = len(points), np.empty(len(points))
    mass = rng.dirichlet(np.ones(size), 3).T * width[:, None]
    left, right = np.empty((2, size + 1, 3))
    laws.decays_of(0.7, decays)
    laws.laplace_tables(mass, size, 3, decays, left, right)
    for noisy in (-5.0, 0.0, 0.3, 7.0, 33.3, 79.9, 140.0):
        at = laws.place_of(noisy, 1.0, size)
        before, after = laws.beside(noisy, at, 1.0, 0.7, size)
        nearest = min(max(noisy, points[0]), points[-1])  # beyond the ends: a factor less
        expected = np.exp(-0.7 * np.abs(nearest - points)) @ mass
        np.testing.assert_allclose(left[at] * before + right[at] * after, expected, rtol=1e-12)


@pytest.mark.parametrize("unit", [0.02, 0.4, 1.0])
def test_the_grid_and_its_laws_are_those_of_plain_numpy(unit):
    for top in (0.0, 29.0, 31.0, 977.7):
        points, widths = plain.grid(top, unit)
        ours = np.empty(laws.size_of(top, unit))
        laws.widths_of(ours)
        np.testing.assert_allclose(ours, widths, rtol=1e-15)
        np.testing.assert_allclose(laws.STEPS[: len(ours)] * unit, points, rtol=1e-15)
        tails = np.empty((len(ours), 3))
        laws.exponentials(4.0, unit, widths, tails, 0)
        np.testing.assert_allclose(tails.T, plain.exponentials(points, widths, 4.0), rtol=1e-12)
    points, widths = plain.grid(300.0, 1.0)
    means = np.array([0.0, 0.4, 12.0, 49.0, 51.0, 90.0])
    out = np.empty((len(points), 6))
    laws.poissons(means.copy(), widths, out, np.empty(6), np.empty(6))
    np.testing.assert_allclose(out.T, plain.poissons(points, widths, means), rtol=1e-9, atol=1e-200)
    np.testing.assert_allclose(points @ out, means, rtol=0.01, atol=1e-6)


def test_the_share_of_two_laws_is_found():
    rng = np.random.default_rng(5)
    values = np.where(rng.random(4000) < 0.3, rng.normal(3, 1, 4000), rng.normal(0, 1, 4000))
    one, other = (np.exp(-((values - m) ** 2) / 2) for m in (3, 0))
    share = friends.fit_share(one / other, 0.5, 0.5, 200)
    assert share == pytest.approx(0.3, abs=0.03)
    assert share == pytest.approx(plain.fit_share(one, other, 0.5, 0.5, 200))
    assert friends.fit_share(one[:0], 0.5, 1.5, 20) == pytest.approx(0.25)


def test_what_stays_below_the_threshold_has_the_chance_of_the_laplace_law():
    below = plain.stays_below(4.0, np.array([0.0, 4.0, 9.0]), 0.5)
    np.testing.assert_allclose(below, [1 - 0.5 * np.exp(-2), 0.5, 0.5 * np.exp(-2.5)])


# -- the reading ----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 8.0])
def test_the_parts_of_the_budget_are_positive_and_add_up(epsilon):
    parts = suggestions.split(epsilon)
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(epsilon)


def test_weights_are_in_0_to_1_and_fall_only_where_sums_are_clear(release):
    some = np.argsort(-release.noisy)[:40]
    faint = release.weights(some, np.full(40, 1.0))
    clear = release.weights(some, np.full(40, 200.0))
    assert (faint == 1).all()
    assert clear.min() > 0
    assert clear.max() == 1
    assert (clear < 1).any()
    assert len(release.weights(some[:0], np.empty(0))) == 0


def test_the_same_release_gives_the_same_list(release):
    one, two = (release.top(17, 20).rows for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_expected_sums_rise_with_the_noisy_sum(release):
    reading = release.reading(30)
    noisy = np.linspace(suggestions.threshold(3000, release.rate), 40, 200)
    mean = reading.means(reading.ranking, np.full(200, reading.cells[0]), noisy)
    assert (np.diff(mean) >= -1e-9).all()
    assert mean[-1] > mean[0] + 5


def test_the_list_is_the_top_of_the_row_without_the_member_and_its_friends(release, network):
    for member in (3, 500, 2999):
        row, top = release.score(member), release.top(member, 25)
        np.testing.assert_allclose(top.scores, np.sort(row)[::-1][:25])
        np.testing.assert_allclose(row[top.nodes], top.scores)
        assert not np.isin(top.nodes, np.append(network.neighbours(member), member)).any()
        assert len(set(top.nodes.tolist())) == 25


def test_only_candidates_are_suggested(release):
    candidates = np.arange(0, 3000, 7)
    top = release.top(8, 20, candidates=candidates)
    assert len(top.nodes) == 20
    assert np.isin(top.nodes, candidates).all()
    assert len(release.top(8, 20, candidates=candidates[:0]).nodes) == 0


def test_a_member_without_friends_gets_the_popular(release, network):
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    args = (release.popularity, 5, none, empty, empty, none, empty, release.rate)
    top = Columns(list_of(network, *args, k=10))
    order = release.popularity.order
    np.testing.assert_array_equal(top.nodes, order[order != 5][:10])
    assert top.mostly_popularity
    assert not top.shared.any()


def test_clear_sums_are_the_reason_and_noise_is_not(network):
    members = np.flatnonzero((network.degrees > 20) & (network.degrees < 50))[:30]
    clear = [SimulatedRelease(network, 6.0).top(s, 20) for s in members[:3]]
    release = SimulatedRelease(network, 0.15)
    faint = [release.top(s, 20).mostly_popularity for s in members]
    assert not any(top.mostly_popularity for top in clear)
    assert np.mean(faint) > 0.9


def test_estimated_common_friends_are_right_on_average(network):
    release = SimulatedRelease(network, 1.0)
    guessed, true = [], []
    for member in np.flatnonzero((network.degrees > 20) & (network.degrees < 80))[:80]:
        args, sums = release.draw(member)
        if (args[4] == 1).all():
            top = release.top(member, 20)
            guessed.extend(top.common[top.shared])
            true.extend(sums[top.nodes[top.shared]])
    assert len(true) > 300
    assert np.mean(guessed) == pytest.approx(np.mean(true), rel=0.15)


# -- what it is worth -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_places_left_open_hold_the_true_place_in_95_of_100_cases(network, epsilon):
    release = SimulatedRelease(network, epsilon, seed=4)
    rng = np.random.default_rng(9)
    held = []
    for member in rng.choice(np.flatnonzero(network.degrees >= 5), 60, replace=False):
        args, sums = release.draw(member)
        reading, top = plain.read_row(*args), release.top(member, 20)
        true = sums + reading.popular(reading.degrees)
        true[reading.own] = -np.inf
        own = true[top.nodes][:, None]
        first = 1 + (true > own + 1e-9).sum(axis=1)
        last = (true >= own - 1e-9).sum(axis=1)
        held.append((top.first <= last) & (first <= top.last))
        assert (top.first <= np.arange(1, 21)).all()
        assert (np.arange(1, 21) <= top.last).all()
    assert np.mean(held) >= 0.95


def test_places_are_sharp_where_there_is_little_noise(network):
    release = SimulatedRelease(network, 40.0)
    width = [(top := release.top(s, 10)).last - top.first for s in range(20, 30)]
    assert np.median(width) < 20


def test_lists_at_epsilon_1_find_many_times_what_popularity_finds(network):
    split = hide_edges(network, share=0.1, seed=1)
    fit = np.flatnonzero((split.left.degrees >= 20) & (split.hidden.degrees > 0))
    members = np.random.default_rng(2).choice(fit, 120, replace=False)
    ours = hits(split, members, SimulatedRelease(split.left, 1.0).score)
    popular = hits(split, members, popularity(split.left))
    assert ours.mean() > 0.15
    assert ours.mean() > 5 * popular.mean()


def test_a_member_takes_at_most_a_millisecond():
    graph = social_network(30_000, average_degree=15, communities=30, seed=2).graph
    release = SimulatedRelease(graph, 1.0)
    drawn = [release.draw(s)[0] for s in range(40)]
    list_of(graph, *drawn[0], k=20)  # compiles
    took = []
    for args in drawn:
        start = time.process_time()
        list_of(graph, *args, k=20)
        took.append(time.process_time() - start)
    assert np.median(took) < 0.001
