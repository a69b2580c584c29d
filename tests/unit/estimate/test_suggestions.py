"""Reading of suggestions: kernels against plain numpy, order, reasons, places, and hits."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from edgeveil.datasets import social_network
from edgeveil.estimate import _suggestion_kernels as kernels
from edgeveil.estimate import suggestions
from edgeveil.estimate._sum_laws import Law, grid, poissons, stays_below
from edgeveil.evaluation.hits import hide_edges, hits, popularity
from tests.unit.estimate.suggestion_release import SimulatedRelease


@pytest.fixture(scope="module")
def network():
    return social_network(3000, average_degree=30, communities=8, seed=11).graph


@pytest.fixture(scope="module")
def release(network):
    return SimulatedRelease(network, 2.0)


def law():
    rng = np.random.default_rng(0)
    points, width = grid(80.0, 1.0)
    return Law.of(points, rng.dirichlet(np.ones(len(points)), 4) * width, 0.7)


# -- kernels --------------------------------------------------------------------------------


def test_the_tables_give_the_likelihood_of_a_sum_with_laplace_noise():
    of = law()
    noisy = np.array([-5.0, 0.0, 0.3, 7.0, 33.3, 79.9, 140.0])
    rows = np.arange(7) % 4
    plain = (of.mass[rows] * np.exp(-0.7 * np.abs(noisy[:, None] - of.points))).sum(axis=1)
    np.testing.assert_allclose(of.likelihood(rows, noisy), plain, rtol=1e-12)


def test_mean_counts_are_those_of_the_formula():
    degrees, friends, weights = np.array([1.0, 9.0]), np.array([4.0, 50.0]), np.array([1.0, 0.3])
    out = np.empty((5, 2))
    kernels.mean_counts(degrees, friends, weights, 300.0, out)
    for t, row in zip((0.25, 0.5, 1, 2, 4), out, strict=True):
        plain = [(weights * (1 - np.exp(-t * friends * d / 300))).sum() for d in degrees]
        np.testing.assert_allclose(row, plain, rtol=1e-12)


def plain_fit(seen, cells, unseen, below, growth, shares, plain, most, pseudo, rounds):
    def mixed(shares):
        tail = np.outer(growth, shares[plain:])
        tail *= np.minimum(1, most / tail.sum(axis=1))[:, None]
        return np.hstack([np.outer(1 - tail.sum(axis=1), shares[:plain]), tail])

    for _ in range(rounds):
        mix = mixed(shares)
        of_seen = mix[cells] * seen
        of_rest = mix * unseen
        counts = (of_seen / of_seen.sum(axis=1, keepdims=True)).sum(axis=0)
        counts += (below[:, None] * of_rest / of_rest.sum(axis=1, keepdims=True)).sum(axis=0)
        counts[:plain] += 1
        counts[plain:] += pseudo
        exposure = (below * growth).sum() + growth[cells].sum() + 1
        shares = np.append(counts[:plain] / counts[:plain].sum(), counts[plain:] / exposure)
    return mixed(shares)


def test_the_mixture_is_fitted_as_in_plain_numpy():
    rng = np.random.default_rng(3)
    seen, unseen = rng.random((40, 5)), rng.random((6, 5))
    cells, below = rng.integers(0, 6, 40), rng.integers(0, 200, 6).astype(float)
    growth = rng.uniform(0.5, 2, 6)
    start = np.array([0.5, 0.5, 0.01, 0.01, 0.01])
    mix = np.empty((6, 5))
    args = (seen, cells, unseen, below, growth)
    kernels.fit_mixture(*args, start.copy(), 2, 0.5, 0.7, 4, mix)
    np.testing.assert_allclose(mix, plain_fit(*args, start, 2, 0.5, 0.7, 4), rtol=1e-9)
    np.testing.assert_allclose(mix.sum(axis=1), 1)


def test_the_number_of_nodes_ahead_is_the_sum_of_posterior_chances():
    of = law()
    sums, cells = np.array([3.2, 17.0, 60.5]), np.array([0, 1, 3])
    offsets, limits = np.array([0.0, 1.5, 0.2]), np.array([-2.0, 0.0, 4.0, 16.9, 59.0, 500.0])
    mean, variance = np.zeros((2, 6))
    whole = of.likelihood(cells, sums)
    at = np.searchsorted(of.points, sums, side="right")
    kernels.count_above(
        limits, sums, cells, offsets, whole, at, of.points, 0.7, of.left, of.right, mean, variance
    )
    posterior = of.mass[cells] * np.exp(-0.7 * np.abs(sums[:, None] - of.points))
    posterior /= posterior.sum(axis=1, keepdims=True)
    above = of.points[:, None] + offsets[:, None, None] > limits  # (nodes, points, limits)
    chance = np.einsum("ix,ixq->iq", posterior, above)
    np.testing.assert_allclose(mean, chance.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(variance, (chance * (1 - chance)).sum(axis=0), atol=1e-12)


def test_the_share_of_two_laws_is_found():
    rng = np.random.default_rng(5)
    values = np.where(rng.random(4000) < 0.3, rng.normal(3, 1, 4000), rng.normal(0, 1, 4000))
    one, other = (np.exp(-((values - m) ** 2) / 2) for m in (3, 0))
    assert kernels.fit_share(one, other, 0.5, 0.5, 200) == pytest.approx(0.3, abs=0.03)
    assert kernels.fit_share(one[:0], other[:0], 0.5, 1.5, 20) == pytest.approx(0.25)


def test_laws_on_the_grid_have_the_means_and_tails_that_they_claim():
    points, width = grid(300.0, 1.0)
    mass = poissons(points, width, np.array([0.0, 0.4, 12.0, 90.0]))
    np.testing.assert_allclose(mass.sum(axis=1), 1)
    np.testing.assert_allclose(mass @ points, [0, 0.4, 12, 90], rtol=0.01, atol=1e-6)
    below = stays_below(4.0, np.array([0.0, 4.0, 9.0]), 0.5)
    np.testing.assert_allclose(below, [1 - 0.5 * np.exp(-2), 0.5, 0.5 * np.exp(-2.5)])


# -- the reading ----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 8.0])
def test_the_parts_of_the_budget_are_positive_and_add_up(epsilon):
    parts = suggestions.split(epsilon)
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(epsilon)


def test_weights_are_in_0_to_1_and_fall_only_where_sums_are_clear(release):
    friends = np.argsort(-release.noisy)[:40]
    faint = suggestions.friend_weights(release.popularity, friends, np.full(40, 1.0), 0.5)
    clear = suggestions.friend_weights(release.popularity, friends, np.full(40, 200.0), 0.5)
    assert (faint == 1).all()
    assert clear.min() > 0
    assert clear.max() == 1
    assert (clear < 1).any()
    assert len(suggestions.friend_weights(release.popularity, friends[:0], np.empty(0), 1)) == 0


def test_the_same_release_gives_the_same_list(release):
    one, two = (release.reading(17).top(20) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_expected_sums_rise_with_the_noisy_sum(release):
    args, _ = release.draw(30)
    reading = suggestions.read_row(*args)
    # the same reading of other sums of one node: the law stays
    noisy = np.linspace(suggestions.threshold(3000, release.rate), 40, 200)
    asked = replace(reading, nodes=np.full(200, reading.nodes[0]), sums=noisy)
    mean = asked._ranked
    assert (np.diff(mean) >= -1e-9).all()
    assert mean[-1] > mean[0] + 5


def test_the_list_is_the_top_of_the_row_without_the_member_and_its_friends(release, network):
    for member in (3, 500, 2999):
        reading = release.reading(member)
        row, top = reading.row(), reading.top(25)
        np.testing.assert_allclose(top.scores, np.sort(row)[::-1][:25])
        np.testing.assert_allclose(row[top.nodes], top.scores)
        assert not np.isin(top.nodes, np.append(network.neighbours(member), member)).any()
        assert len(set(top.nodes.tolist())) == 25


def test_only_allowed_nodes_are_suggested(release):
    allowed = np.zeros(3000, dtype=bool)
    allowed[::7] = True
    top = release.reading(8).top(20, allowed)
    assert len(top.nodes) == 20
    assert allowed[top.nodes].all()
    allowed[:] = False
    assert len(release.reading(8).top(20, allowed).nodes) == 0


def test_a_member_without_friends_gets_the_popular(release):
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    reading = suggestions.read_row(
        release.popularity, 5, none, empty, empty, none, empty, release.rate
    )
    order = release.popularity.order
    top = reading.top(10)
    np.testing.assert_array_equal(top.nodes, order[order != 5][:10])
    assert top.mostly_popularity
    assert not top.shared.any()


def test_clear_sums_are_the_reason_and_noise_is_not(network):
    members = np.flatnonzero((network.degrees > 20) & (network.degrees < 50))[:30]
    clear = [SimulatedRelease(network, 6.0).reading(s).top(20) for s in members[:3]]
    release = SimulatedRelease(network, 0.15)
    faint = [release.reading(s).top(20).mostly_popularity for s in members]
    assert not any(top.mostly_popularity for top in clear)
    assert np.mean(faint) > 0.9


def test_estimated_common_friends_are_right_on_average(network):
    release = SimulatedRelease(network, 1.0)
    guessed, true = [], []
    for member in np.flatnonzero((network.degrees > 20) & (network.degrees < 80))[:80]:
        args, sums = release.draw(member)
        if (args[4] == 1).all():
            top = suggestions.read_row(*args).top(20)
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
        reading = suggestions.read_row(*args)
        top = reading.top(20)
        true = sums + reading._popular(release.popularity.estimates.degrees)
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
    width = [(top := release.reading(s).top(10)).last - top.first for s in range(20, 30)]
    assert np.median(width) < 20


def test_lists_at_epsilon_1_find_many_times_what_popularity_finds(network):
    split = hide_edges(network, share=0.1, seed=1)
    fit = np.flatnonzero((split.left.degrees >= 20) & (split.hidden.degrees > 0))
    members = np.random.default_rng(2).choice(fit, 120, replace=False)
    ours = hits(split, members, SimulatedRelease(split.left, 1.0).score)
    popular = hits(split, members, popularity(split.left))
    assert ours.mean > 0.15
    assert ours.mean > 5 * popular.mean


def test_a_member_takes_at_most_five_milliseconds():
    graph = social_network(30_000, average_degree=15, communities=30, seed=2).graph
    release = SimulatedRelease(graph, 1.0)
    drawn = [release.draw(s)[0] for s in range(40)]
    suggestions.read_row(*drawn[0]).top(20)  # compiles
    took = []
    for args in drawn:
        start = time.process_time()
        suggestions.read_row(*args).top(20)
        took.append(time.process_time() - start)
    assert np.median(took) < 0.005
