"""PrivateNodeClassifier in the real scikit-learn."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.semi_supervised import LabelPropagation
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import edgeveil as ev
from edgeveil.errors import ParameterError

KNOWN = nx.planted_partition_graph(2, 150, 0.12, 0.02, seed=1)
GRAPH = ev.as_graph(KNOWN, nodes=range(300))
TRUTH = np.repeat([0, 1], 150)
ASKED = np.arange(300) % 3 == 2
Y = np.where(ASKED, -1, TRUTH)
MATRIX = GRAPH.adjacency()


def fitted(X=GRAPH, y=Y, epsilon=4.0, **options):
    return ev.PrivateNodeClassifier(epsilon=epsilon, insecure_seed=1).fit(X, y, **options)


ONE_GRAPH = "it predicts the nodes of the graph it was fitted on, all of them and in its order"
UNLABELLED = "NaN and -1 mark nodes without a label"


@parametrize_with_checks(
    [ev.PrivateNodeClassifier(epsilon=1.0), ev.PrivateNodeClassifier(epsilon=1.0, insecure_seed=0)],
    expected_failed_checks=lambda _: {
        "check_methods_subset_invariance": ONE_GRAPH,
        "check_methods_sample_order_invariance": ONE_GRAPH,
        "check_fit_idempotent": ONE_GRAPH,
        "check_classifiers_classes": UNLABELLED,
    },
)
def test_scikit_learn_takes_it_for_a_classifier(estimator, check):
    check(estimator)


def test_classifier_has_the_semi_supervised_attributes():
    ours, theirs = fitted(), LabelPropagation().fit(MATRIX.toarray(), Y)
    for name in ("classes_", "transduction_", "label_distributions_", "n_features_in_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
    assert is_classifier(ours)
    assert get_tags(ours).input_tags.pairwise
    assert get_tags(ev.PrivateNodeClassifier(epsilon=1.0)).non_deterministic


def test_labels_stay_and_the_others_are_predicted():
    model = fitted()
    assert np.array_equal(model.transduction_[~ASKED], TRUTH[~ASKED])
    assert np.array_equal(model.predict(), model.transduction_)
    assert np.array_equal(model.predict(GRAPH), model.transduction_)
    assert np.array_equal(model.predict_proba(GRAPH), model.label_distributions_)
    assert np.allclose(model.label_distributions_.sum(axis=1), 1)
    expected = (model.transduction_[ASKED] == TRUTH[ASKED]).mean()
    assert model.score(GRAPH, TRUTH) == pytest.approx(expected)
    assert expected > 0.7
    assert model.guarantee_ == model.predictions_.guarantee


def test_matrices_networks_and_dicts_give_the_same():
    expected = fitted().label_distributions_
    labels = {v: int(Y[v]) for v in range(300) if not ASKED[v]}
    for X, y in ((MATRIX, Y), (MATRIX.toarray(), Y), (GRAPH, labels), (KNOWN, Y.astype(float))):
        assert np.array_equal(fitted(X, y).label_distributions_, expected)
    assert np.array_equal(ev.PrivateNodeClassifier(
        epsilon=4.0, insecure_seed=1).fit_predict(GRAPH, Y), fitted().transduction_)  # fmt: skip


def test_text_classes_and_features_work():
    names = np.array(["left", "right"])[TRUTH].astype(object)
    names[ASKED] = None
    features = TRUTH[:, None] + np.random.default_rng(0).normal(size=(300, 1)) / 3
    model = fitted(y=names, epsilon=1.0, features=features)
    assert model.classes_.tolist() == ["left", "right"]
    assert (model.transduction_[ASKED] == np.array(["left", "right"])[TRUTH[ASKED]]).mean() > 0.9


def test_the_ledger_is_charged_once_and_a_clone_has_the_same(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.5)
    model = ev.PrivateNodeClassifier(epsilon=1.0, ledger=ledger)
    first, second = model.fit(GRAPH, Y).transduction_, clone(model).fit(GRAPH, Y).transduction_
    assert np.array_equal(first, second)
    assert len(ledger.charges()) == 1


def test_all_labelled_releases_nothing(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.5)
    model = ev.PrivateNodeClassifier(epsilon=1.0, ledger=ledger).fit(GRAPH, TRUTH)
    assert np.array_equal(model.transduction_, TRUTH)
    assert model.predictions_ is None
    assert model.guarantee_.epsilon == 0
    assert model.score(GRAPH, TRUTH) == 1
    assert ledger.charges() == []


def test_a_pickle_holds_nothing_about_the_edges():
    model = pickle.loads(pickle.dumps(fitted()))
    assert "_fitted_on" not in vars(model)
    assert np.array_equal(model.predict(GRAPH), fitted().transduction_)


@pytest.mark.parametrize(
    ("X", "y", "options", "says"),
    [
        (GRAPH, None, {}, "requires y"),
        (GRAPH, Y, {"epsilon": None}, "epsilon is required"),
        (GRAPH, np.zeros(300, dtype=int), {}, "at least two classes"),
        (GRAPH, Y[:5], {}, "one entry for each of the 300 nodes"),
    ],
)
def test_unsuitable_input_is_refused(X, y, options, says):
    with pytest.raises(ParameterError, match=says):
        fitted(X, y, **options)


def test_another_graph_is_refused():
    other = ev.datasets.social_network(300, average_degree=10).graph
    with pytest.raises(ParameterError, match="another graph"):
        fitted().predict(other)
    with pytest.raises(ParameterError, match="no class of a node"):
        fitted().score(GRAPH, Y)


def test_score_takes_lists_and_dicts_of_classes():
    model = fitted()
    expected = model.score(GRAPH, TRUTH)
    assert model.score(GRAPH, TRUTH.tolist()) == expected
    assert model.score(GRAPH, dict(enumerate(TRUTH.tolist()))) == expected
    assert 0.5 < expected <= 1
