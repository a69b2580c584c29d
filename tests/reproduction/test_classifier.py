"""Classification on problems with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from edgeveil.errors import ParameterError
from experiments.classifier import (
    classify,
    f1_scores,
    majority_floor,
    random_embedding,
    split_nodes,
)


def _separable(n=200):
    rng = np.random.default_rng(0)
    labels = np.zeros((n, 3), dtype=bool)
    labels[np.arange(n), rng.integers(0, 3, n)] = True
    labels[rng.random(n) < 0.3, 0] = True
    return labels, 5 * labels + rng.normal(0, 0.1, (n, 3))


def test_separable_labels_are_learned():
    labels, embedding = _separable()
    f1 = classify(embedding, sp.csr_array(labels), seed=1)
    assert f1.micro > 0.99
    assert f1.macro > 0.99


def test_a_sparse_embedding_gives_what_the_same_dense_one_does():
    labels, embedding = _separable()
    noisy = np.round(embedding + np.random.default_rng(1).normal(0, 2, embedding.shape))
    dense, sparse = (classify(e, labels, seed=1) for e in (noisy, sp.csr_array(noisy)))
    assert dense.micro < 0.99
    assert sparse == dense


def test_a_random_embedding_is_no_better_than_the_majority():
    labels, _ = _separable(600)
    floor = majority_floor(labels, seed=2)
    assert classify(random_embedding(600, 8, seed=1), labels, seed=2).micro < floor.micro + 0.1


def test_f1_by_hand():
    truth = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    scores = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    # Given: {0, 2}, {2}, {1}. Right: 2 of 4 given and 4 true.
    f1 = f1_scores(scores, truth)
    assert f1.micro == pytest.approx(0.5)
    assert f1.macro == pytest.approx(np.mean([2 / 3, 0, 2 / 3]))


def test_labels_that_nobody_or_everybody_has_do_no_harm():
    labels, embedding = _separable()
    wide = np.hstack([labels, np.zeros((200, 1), bool), np.ones((200, 1), bool)])
    assert classify(embedding, wide).micro > 0.99


def test_the_majority_is_predicted_as_often_as_labels_are_held():
    labels = np.zeros((100, 2), dtype=bool)
    labels[:80, 0] = True
    labels[80:, 1] = True
    assert majority_floor(labels).micro == pytest.approx(0.8, abs=0.1)


def test_a_split_uses_every_node_once():
    training, testing = split_nodes(101, train=0.5, seed=3)
    assert sorted([*training, *testing]) == list(range(101))
    assert abs(len(training) - len(testing)) <= 1
    with pytest.raises(ParameterError, match="share"):
        split_nodes(10, train=1.0)
