"""The regressions of all labels at once are those of scikit-learn, one by one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from edgeveil.errors import EdgeveilError
from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.graph.datasets import load_pos
from edgeveil.mechanisms import NonPrivate
from edgeveil.mechanisms.run import rows_of
from edgeveil.privacy.noise import NoiseSource
from experiments.classifier import classify, f1_scores, split_nodes
from experiments.logistic import fit_logistic


def _problem(n=300, k=12, labels=7):
    rng = np.random.default_rng(4)
    features = rng.normal(3, 2, (n, k)) * rng.pareto(1.5, k)
    scores = (features - features.mean(axis=0)) @ rng.normal(0, 0.1, (k, labels))
    return features, scores + rng.logistic(0, 1, (n, labels)) > rng.normal(1, 1, labels)


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_weights_are_those_of_scikit_learn(kind, strength):
    features, truth = _problem()
    weights, start = fit_logistic(kind(features), truth, strength=strength, tolerance=1e-7)
    for label in range(truth.shape[1]):
        model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-10)
        model.fit(features, truth[:, label])
        np.testing.assert_allclose(weights[:, label], model.coef_[0], rtol=1e-5, atol=1e-6)
        assert start[label] == pytest.approx(model.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("tolerance", [1.0, 1e-2, 1e-6])
def test_the_gradient_is_as_small_as_promised(tolerance):
    features, truth = _problem()
    weights, start = fit_logistic(features, truth, tolerance=tolerance)
    off = 1 / (1 + np.exp(-(features @ weights + start))) - truth
    # On centred features, as the regression sees them: the intercept is another one there.
    slope = np.vstack([(features - features.mean(axis=0)).T @ off + weights, off.sum(axis=0)])
    assert np.linalg.norm(slope, axis=0).max() <= tolerance * (1 + 1e-6) + 1e-9
    best, _ = fit_logistic(features, truth, tolerance=1e-8)
    assert np.linalg.norm(weights - best, axis=0).max() <= 1.5 * tolerance


def test_separable_labels_and_features_of_no_use_do_no_harm():
    features, _ = _problem()
    features = np.hstack([features, np.zeros((300, 2)), np.ones((300, 1))])
    truth = np.stack([features[:, 0] > 3, np.arange(300) == 7], axis=1)
    weights, _ = fit_logistic(features, truth)
    assert np.isfinite(weights).all()
    assert (weights[-3:] == 0).all()


def test_too_few_iterations_are_an_error():
    with pytest.raises(EdgeveilError, match="converge"):
        fit_logistic(*_problem(), most=2)


def test_a_cell_of_figure_2_has_the_f1_of_scikit_learn(paper_data):
    """Non-private embedding of POS, split 0."""
    data = load_pos(paper_data)
    graph, truth = data.graph, data.labels.toarray()
    everybody, noise = range(graph.n_nodes), NoiseSource.insecure(0)
    rows = rows_of(NonPrivate(tol=1e-4), graph, everybody, noise)
    embedding = instant_embedding(rows, hash_nodes(graph.nodes, 256))
    training, testing = split_nodes(graph.n_nodes)
    scores = np.full((len(testing), truth.shape[1]), -np.inf)
    for label in np.flatnonzero(truth[training].any(axis=0)):
        model = LogisticRegression(solver="newton-cholesky", tol=1e-6)
        model.fit(embedding[training], truth[training, label])
        scores[:, label] = model.decision_function(embedding[testing])
    theirs, ours = f1_scores(scores, truth[testing]), classify(embedding, data.labels)
    assert ours.micro == pytest.approx(theirs.micro, abs=5e-4)
    assert ours.macro == pytest.approx(theirs.macro, abs=5e-4)
