"""The estimator of classes: roles, messages, and what it makes of sums."""

from __future__ import annotations

import numpy as np

from edgeveil.estimate import classification as cl


def _rounds(graph_sums, labels, roles, log_prior, noise):  # type: ignore[no-untyped-def]
    rounds = cl.message_rounds(labels, roles, log_prior, noise)
    messages = next(rounds)
    while True:
        try:
            messages = rounds.send(graph_sums(messages))
        except StopIteration as end:
            return end.value


def _planted(n: int, classes: int, seed: int):  # type: ignore[no-untyped-def]
    """Classes, and an adjacency matrix in which friends are mostly of one class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    chance = np.where(y[:, None] == y[None, :], 0.12, 0.01)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return y, (upper | upper.T).astype(float), rng


def _sums(adjacency, classes, roles, rng, scale):  # type: ignore[no-untyped-def]
    def hear(messages):  # type: ignore[no-untyped-def]
        said = np.zeros((len(adjacency), classes))
        speakers = np.repeat(np.arange(len(adjacency)), np.diff(messages.starts))
        np.add.at(said, (speakers, messages.columns), messages.units)
        heard = (adjacency @ said)[roles.listens]
        return heard + rng.laplace(0, scale, heard.shape) if scale else heard

    return hear


def test_roles_many_labels_are_stratified_and_apart() -> None:
    y = np.repeat([0, 1, -1], [4000, 80, 1000])
    labels = cl.Labels.single(y)
    roles = cl.choose_roles(labels, seed=5)
    assert not (roles.trains & roles.validates).any()
    assert roles.validates.sum() == 408
    assert abs(roles.trains.sum() - 1224) <= 1
    assert abs(int(roles.trains[y == 1].sum()) - 24) <= 2
    assert roles.listens[y == -1].all()
    assert (roles.listens == (roles.trains | roles.validates | (y == -1))).all()


def test_roles_few_labels_have_no_validation_sample() -> None:
    roles = cl.choose_roles(cl.Labels.single(np.repeat([0, 1, -1], [50, 50, 400])))
    assert not roles.validates.any()
    assert roles.trains.sum() == 100


def test_first_words_validation_sample_never_names_its_label() -> None:
    labels = cl.Labels.single([0, 1, 0, -1])
    roles = cl.Roles(*(np.array(m, dtype=bool) for m in ([0, 0, 1, 1], [0] * 4, [0, 0, 1, 0])))
    messages = cl.first_messages(labels, roles, np.log(np.full((4, 2), 0.5)))
    assert messages.speaks.tolist() == [True, True, False, False]
    assert messages.units.tolist() == [2, 2]


def test_first_words_class_shares_alone_make_nobody_sure() -> None:
    labels = cl.Labels.single(np.repeat([0, 1, -1], [98, 2, 50]))
    roles = cl.choose_roles(labels)
    alone = cl.first_messages(labels, roles, cl.frequencies(labels, 150))
    assert not alone.speaks[100:].any()
    frequencies = cl.frequencies(labels, 150).copy()
    frequencies[100] = np.log([0.4, 0.6])  # far from its share of 2 %
    assert cl.first_messages(labels, roles, frequencies).speaks[100:].sum() == 1


def test_several_labels_share_the_loudness() -> None:
    starts = np.array([0, 2, 5, 5])
    labels = cl.Labels(starts, np.array([0, 1, 0, 1, 2]), 3)
    roles = cl.Roles(*(np.array(m, dtype=bool) for m in ([1, 0, 1], [1, 0, 0], [0, 0, 0])))
    messages = cl.first_messages(labels, roles, np.log(np.full((3, 3), 1 / 3)))
    assert cl.denominator(labels) == 12
    assert messages.units.tolist() == [3, 3, 4, 4, 4]


def test_converse_alike_friends_beat_the_prior() -> None:
    y, adjacency, rng = _planted(900, 3, 7)
    shown = np.where(rng.random(900) < 0.5, y, -1)
    labels = cl.Labels.single(shown, 3)
    roles = cl.choose_roles(labels)
    prior = cl.frequencies(labels, 900)
    outcome = _rounds(_sums(adjacency, 3, roles, rng, 2.0), labels, roles, prior, 1.0)
    hidden = shown < 0
    assert outcome.weights is not None
    assert (outcome.log_probabilities.argmax(axis=1) == y)[hidden].mean() > 0.9


def test_converse_shuffled_graph_falls_back_to_the_prior() -> None:
    y, adjacency, rng = _planted(2000, 3, 8)
    features = np.eye(3)[np.where(rng.random(2000) < 0.7, y, rng.integers(3, size=2000))]
    shown = np.where(rng.random(2000) < 0.6, y, -1)
    labels = cl.Labels.single(shown, 3)
    roles = cl.choose_roles(labels)
    assert roles.validates.any()
    prior = cl.from_features(features, labels.without(roles.validates))
    order = rng.permutation(2000)
    mixed = adjacency[np.ix_(order, order)]
    outcome = _rounds(_sums(mixed, 3, roles, rng, 2.0), labels, roles, prior, 1.0)
    hidden = shown < 0
    alone = (prior.argmax(axis=1) == y)[hidden].mean()
    assert (outcome.log_probabilities.argmax(axis=1) == y)[hidden].mean() > alone - 0.02


def test_logistic_regression_gradient_is_zero_at_the_fit() -> None:
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(200, 3)), np.eye(2)[rng.integers(2, size=200)]
    weights, bias = cl.logistic_regression(X, Y, 2.0)
    odds = np.exp(X @ weights + bias)
    error = odds / odds.sum(axis=1, keepdims=True) - Y
    assert np.abs(X.T @ error + 2.0 * weights).max() < 0.05


def test_fit_weights_who_hears_little_learns_from_shares() -> None:
    rng = np.random.default_rng(6)
    y, friends = rng.integers(2, size=400), np.where(np.arange(400) % 2, 4, 1000)
    S = friends[:, None] * np.where(np.eye(2)[y] > 0, 0.75, 0.25)  # hubs set the scale
    prior = np.log(np.full((400, 2), 0.5))
    scales = np.array([np.sqrt((S * S).mean())])
    weights = cl.fit_weights(prior, [S], np.eye(2)[y], 10.0, 0.1, scales, np.outer(scales, [1, 1]))
    logs = weights.log_probabilities(prior, [S])[np.arange(400), y]
    assert np.exp(logs[friends == 4]).mean() > 0.8


def test_converse_more_listeners_than_a_part_changes_nothing(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    y, adjacency, _ = _planted(300, 2, 9)
    labels = cl.Labels.single(np.where(np.arange(300) % 2, y, -1), 2)
    roles, prior = cl.choose_roles(labels), cl.frequencies(labels, 300)

    def probabilities():  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(0)
        return _rounds(_sums(adjacency, 2, roles, rng, 2.0), labels, roles, prior, 1.0)

    whole = probabilities().log_probabilities
    monkeypatch.setattr(cl, "_PART", 7)
    np.testing.assert_allclose(probabilities().log_probabilities, whole, rtol=1e-9)


def test_converse_a_rare_class_is_heard() -> None:
    rng = np.random.default_rng(11)
    y = (np.arange(2000) % 50 == 0).astype(np.int64)
    flagged = np.flatnonzero(y)
    adjacency = np.triu(rng.random((2000, 2000)) < 0.02, 1)
    adjacency[np.ix_(flagged, flagged)] |= np.triu(rng.random((40, 40)) < 0.3, 1)
    adjacency = (adjacency | adjacency.T).astype(float)
    labels = cl.Labels.single(np.where(rng.random(2000) < 0.6, y, -1), 2)
    roles = cl.choose_roles(labels)
    prior = cl.frequencies(labels, 2000)
    outcome = _rounds(_sums(adjacency, 2, roles, rng, 0.0), labels, roles, prior, 0.01)
    odds = outcome.log_probabilities[:, 1] - outcome.log_probabilities[:, 0]
    hidden = np.flatnonzero(labels.counts == 0)
    first = hidden[np.argsort(-odds[hidden])][: int(y[hidden].sum())]
    assert y[first].mean() > 0.8
