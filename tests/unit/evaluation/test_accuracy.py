"""Accuracy of predicted classes on a graph whose labels are known."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.evaluation.accuracy import _exact, _hide, _private, _quality
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.graph.datasets import social_network
from edgeveil.jobs.classifying import classifier


@pytest.fixture(scope="module")
def labelled():
    """A network, the community of most members, and a number that tells a little about it."""
    network = social_network(600, average_degree=24, communities=4, seed=2)
    kind = network.labels.toarray().argmax(axis=1)
    labels = {node: f"kind {kind[node]}" for node in range(500)}
    features = (kind + np.arange(600) % 3)[:, None].astype(float)
    return network.graph, labels, features


def test_accuracy_lies_between_features_alone_and_exact_sums(labelled):
    graph, labels, features = labelled
    table = evaluate(graph, [0.1, 4.0], labels=labels, features=features)
    rows = {(row[0], row[1]): row[2] for row in table.rows()}
    assert list(rows) == [
        ("node-classes", 0.1),
        ("node-classes", 4.0),
        ("exact sums", None),
        ("features alone", None),
    ]
    alone, exact = rows["features alone", None], rows["exact sums", None]
    assert rows["node-classes", 4.0] > alone + 0.2
    assert exact > alone + 0.2
    assert rows["node-classes", 0.1] < rows["node-classes", 4.0] <= exact + 0.05
    counts = np.unique(list(labels.values()), return_counts=True)
    assert table.columns[-1] == f"average precision, {counts[0][counts[1].argmin()]}"
    assert "FOR THE CURATOR ONLY, NOT PRIVATE" in str(table)


def test_the_measurement_can_be_repeated(labelled):
    graph, labels, _ = labelled
    first, again = (evaluate(graph, 1.0, labels=labels).rows() for _ in range(2))
    assert first == again
    assert first[-1][0] == "class frequencies"


def test_exact_sums_are_what_no_noise_gives(labelled):
    graph, labels, _ = labelled
    whole = classifier(graph, labels, epsilon=1.0)
    split = _hide(whole, np.flatnonzero(whole.data.labels.labelled), 0)
    outcome = _exact(graph, split.mechanism)
    exact = _quality(split, outcome.log_probabilities, outcome.log_prior)
    silent = _private(graph, split, 1000.0, 0)  # noise of another value than 0: e^-500
    assert silent.accuracy == exact.accuracy
    assert silent.average_precision == pytest.approx(exact.average_precision)


def test_hidden_labels_are_named_by_nobody(labelled):
    graph, labels, _ = labelled
    whole = classifier(graph, labels, epsilon=1.0)
    split = _hide(whole, np.flatnonzero(whole.data.labels.labelled), 0)
    data = split.mechanism.data
    assert len(split.hidden) == 100
    assert not data.labels.labelled[split.hidden].any()
    assert data.roles.listens[split.hidden].all()
    assert not (data.roles.trains | data.roles.validates)[split.hidden].any()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"protocol": "classification"}, "give labels"),
        ({"labels": {0: "a", 1: "a", 2: "b", 3: "b"}}, "at least 50: got 4"),
        ({"protocol": "rankings", "labels": {0: "a"}}, "not rankings"),
        ({"features": np.ones((600, 1))}, "not suggestions"),
        ({"labels": {0: "a"}, "k": 5}, "no mechanisms, sources, k"),
    ],
)
def test_what_does_not_fit_is_refused(labelled, given, told):
    with pytest.raises(ParameterError, match=told):
        evaluate(labelled[0], 1.0, **given)
