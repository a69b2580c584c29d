"""`classify`: what it refuses, what it charges, and what its predictions say."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import edgeveil as ev
from edgeveil.errors import (
    BudgetError,
    InputError,
    LedgerError,
    ParameterError,
    UnknownNodeError,
)
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import Local
from edgeveil.jobs.classifying import classifier
from edgeveil.jobs.job import prepare
from edgeveil.results import predictions

SEEDED = ev.NoiseSource.insecure(1)


def two_groups(n=300, *, directed=False, seed=3, inside=0.1, outside=0.01):
    """A graph of two groups, each dense, and the group of every node."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    p = np.where(group[:, None] == group[None, :], inside, outside)
    drawn = np.triu(rng.random((n, n)) < p, 1)
    a, b = np.nonzero(drawn)
    return Graph.from_edges(a, b, NodeSet.range(n), directed=directed), group


GRAPH, GROUP = two_groups()
HALF = {v: "ab"[GROUP[v]] for v in range(0, 300, 3)}
MANY, MANY_GROUP = two_groups(2400, inside=0.006, outside=0.003)
MANY_LABELS = {v: "ab"[MANY_GROUP[v]] for v in range(2000)}


@pytest.fixture(scope="module")
def predicted():
    return ev.classify(GRAPH, HALF, epsilon=2.0, noise=ev.NoiseSource.insecure(1))


@pytest.fixture(scope="module")
def measured():
    return ev.classify(MANY, MANY_LABELS, epsilon=2.0, noise=ev.NoiseSource.insecure(2))


# -- predictions -----------------------------------------------------------------------------------


def test_unlabelled_nodes_are_predicted_from_neighbours(predicted):
    assert list(predicted.nodes) == [v for v in range(300) if v % 3]
    truth = ["ab"[GROUP[v]] for v in predicted.nodes]
    assert np.mean([a == b for a, b in zip(predicted.classified, truth, strict=True)]) > 0.9
    assert predicted.class_of(1) == "b"
    assert predicted.top(1, 2)[0][0] == "b"
    assert np.allclose(predicted.probabilities.sum(axis=1), 1)


def test_directed_graphs_hear_both_directions_apart():
    graph, _ = two_groups(directed=True)
    predictions = ev.classify(graph, HALF, epsilon=2.0, noise=SEEDED)
    assert predictions.blocks == (
        *("round 1, followed", "round 1, followers"),
        *("round 2, followed", "round 2, followers"),
    )
    truth = ["ab"[GROUP[v]] for v in predictions.nodes]
    assert np.mean([a == b for a, b in zip(predictions.classified, truth, strict=True)]) > 0.9


def test_only_targets_are_predicted():
    predictions = ev.classify(GRAPH, HALF, epsilon=1.0, targets=[5, 1], noise=SEEDED)
    assert list(predictions.nodes) == [1, 5]


def test_several_labels_and_text_ids_work():
    nodes = NodeSet.of([f"n{v}" for v in range(300)])
    rows, columns = GRAPH.adjacency().nonzero()
    graph = Graph.from_edges(rows, columns, nodes)
    labels = {f"n{v}": ["all", "ab"[GROUP[v]]] for v in range(0, 300, 3)}
    predictions = ev.classify(graph, labels, epsilon=2.0, noise=SEEDED)
    assert predictions.classes == ("a", "all", "b")
    assert {name for name, _ in predictions.top("n1", 2)} == {"all", "b"}


def test_features_and_prior_are_used_without_the_graph():
    useful = GROUP[:, None] + np.random.default_rng(0).normal(size=(300, 1)) / 4
    by_features = ev.classify(GRAPH, HALF, epsilon=0.01, features=useful, noise=SEEDED)
    truth = GROUP[list(by_features.nodes)]
    assert np.mean(by_features.without_graph.argmax(axis=1) == truth) > 0.9
    prior = np.stack([1 - GROUP * 0.9, GROUP * 0.9], axis=1)
    by_prior = ev.classify(GRAPH, HALF, epsilon=0.01, prior=prior, noise=SEEDED)
    assert (by_prior.without_graph.argmax(axis=1) == truth).all()


def test_predictions_do_not_depend_on_the_threads(predicted):
    for threads in (1, 3):
        engine = Local(threads=threads)
        again = ev.classify(GRAPH, HALF, epsilon=2.0, noise=SEEDED, engine=engine)
        assert np.array_equal(again.sums, predicted.sums)
        assert np.array_equal(again.probabilities, predicted.probabilities)


def test_progress_is_told_step_by_step_and_changes_nothing(tmp_path, predicted):
    told = []
    predictions = ev.classify(
        GRAPH, HALF, epsilon=2.0, noise=SEEDED, progress=lambda *step: told.append(step)
    )
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert np.array_equal(predictions.sums, predicted.sums)
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1)
    for progress in (None, lambda done, total: None):
        ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger, progress=progress)
    assert len(ledger.charges()) == 1


def test_a_cluster_is_not_asked():
    class Nowhere:
        def run(self, task, parts):
            raise AssertionError

    ev.classify(GRAPH, HALF, epsilon=1.0, engine=Nowhere())
    ev.aggregate(GRAPH, epsilon=1.0, engine=Nowhere())


def test_a_mechanism_with_its_data_can_be_pickled():
    mechanism = classifier(GRAPH, HALF, epsilon=1.0)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_fresh_noise_differs():
    first, second = (ev.classify(GRAPH, HALF, epsilon=1.0) for _ in range(2))
    assert not np.array_equal(first.sums, second.sums)
    assert first.guarantee.private


# -- the guarantee ---------------------------------------------------------------------------------


def test_the_guarantee_says_what_is_not_protected(tmp_path):
    predictions = ev.classify(GRAPH, HALF, epsilon=0.5)
    assert (predictions.guarantee.model, predictions.guarantee.epsilon) == ("public", 0.5)
    for words in (
        "Anyone may see this",
        "every edge of the graph",
        "Not protected: labels, features and who has a label",
    ):
        assert words in str(predictions.guarantee)
    predictions.write(tmp_path / "p.json")
    assert ev.Predictions.read(tmp_path / "p.json").guarantee == predictions.guarantee


def test_seeded_predictions_are_marked_not_private(predicted):
    assert not predicted.guarantee.private
    assert "NOT PRIVATE" in str(predicted)


# -- errors before anything is charged -------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "options", "error", "says"),
    [
        ({0: "a", 1: "a"}, {}, ParameterError, "at least two classes, got one, 'a'"),
        ({}, {}, ParameterError, "at least two classes, got none"),
        ({0: "a", 1: "a", 2: "b"}, {}, ParameterError, "'b' has one"),
        ({0: "a", 999: "b"}, {}, UnknownNodeError, "labels: 999"),
        (dict.fromkeys(range(300), 1) | {0: 0, 1: 0}, {}, ParameterError, "nobody to predict"),
        (HALF, {"targets": [1, 999]}, UnknownNodeError, "999"),
        (HALF, {"targets": [0]}, ParameterError, "1 target has a label already, for example 0"),
        (HALF, {"targets": []}, ParameterError, "targets must name at least one"),
        (HALF, {"targets": "abc"}, ParameterError, "targets must be a list"),
        (HALF, {"features": np.ones((2, 2))}, ParameterError, "features must have one row"),
        (HALF, {"prior": np.ones((300, 3))}, ParameterError, "each of the 2 classes"),
        (HALF, {"prior": 1, "features": 1}, ParameterError, "not both"),
        (HALF, {"epsilon": 0}, ParameterError, "epsilon must be"),
        (HALF, {"seed": -1}, ParameterError, "seed must be"),
        (HALF, {"skip_exhausted": True}, ParameterError, "nobody can be left out"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_charge(tmp_path, labels, options, error, says):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=3)
    with pytest.raises(error, match=says):
        ev.classify(GRAPH, labels, **{"epsilon": 1.0, "ledger": ledger, **options})
    assert ledger.charges() == []


def test_release_sends_predictions_to_classify(tmp_path):
    mechanism = classifier(GRAPH, HALF, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"call edgeveil\.classify"):
        ev.release(GRAPH, mechanism, [0])
    with pytest.raises(ParameterError, match=r"call edgeveil\.classify"):
        ev.release_to(tmp_path / "out", GRAPH, mechanism, [0])
    with pytest.raises(ParameterError, match="another node set"):
        ev.price(two_groups(20)[0], mechanism)


# -- the ledger ------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [None, lambda done, steps: None])
def test_a_job_runs_in_the_generation_of_its_price(tmp_path, progress):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=3)
    ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger)
    mechanism = classifier(GRAPH, HALF, epsilon=1.0)
    job = prepare(GRAPH, mechanism, ledger=ledger, progress=progress)
    assert job.price.in_ledger.epsilon == 0
    ledger.advance()  # by somebody else, while the price is being confirmed
    with pytest.raises(LedgerError, match="generation 2 is the current one"):
        job.run()
    assert ledger.account().charged == 1


def test_everybody_is_charged_once_and_the_same_call_is_free(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.5)
    mechanism = classifier(GRAPH, HALF, epsilon=1.0)
    assert ev.price(GRAPH, mechanism, ledger=ledger).in_ledger.epsilon == 1.0
    first = ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger)
    second = ev.classify(GRAPH, list(HALF.items()), epsilon=1, ledger=ledger)
    assert np.array_equal(first.sums, second.sums)
    assert np.array_equal(first.probabilities, second.probabilities)
    (charge,) = ledger.charges()
    assert (charge.model, charge.epsilon_nano, charge.released) == ("public", 10**9, True)
    assert ev.price(GRAPH, mechanism, ledger=ledger).in_ledger.epsilon == 0
    assert first.provenance.ledger
    ledger.verify()


@pytest.mark.parametrize(
    "options",
    [{"labels": HALF | {1: "b"}}, {"seed": 1}, {"features": np.ones((300, 1))}, {"targets": [1]}],
    ids=lambda options: next(iter(options)),
)
def test_other_public_data_is_another_release(tmp_path, options):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.5)
    ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetError):
        ev.classify(GRAPH, **{"labels": HALF, "epsilon": 1.0, "ledger": ledger, **options})
    assert len(ledger.charges()) == 1


def test_an_interrupted_run_goes_on_with_the_same_noise(tmp_path, monkeypatch):
    from edgeveil.mechanisms import node_classes

    ledger, seen, sums_of = ev.Ledger.create(tmp_path / "ledger", epsilon=1), [], []
    real = node_classes.NodeClasses._heard

    def stop_after_round_1(self, noised, nodes):
        assert [charge.released for charge in ledger.charges()] == [False]  # charged before noise
        seen.append(noised.values.copy())
        if len(seen) == 1:
            raise KeyboardInterrupt
        return real(self, noised, nodes)

    monkeypatch.setattr(node_classes.NodeClasses, "_heard", stop_after_round_1)
    with pytest.raises(KeyboardInterrupt):
        ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger)
    monkeypatch.setattr(node_classes.NodeClasses, "_heard", real)
    predictions = ev.classify(GRAPH, HALF, epsilon=1.0, ledger=ledger)
    sums_of = predictions.sums[:, 0] * 2  # in half units
    listens = classifier(GRAPH, HALF, epsilon=1.0).data.roles.listeners
    asked = [v not in HALF for v in listens.tolist()]
    assert np.array_equal(seen[0].reshape(len(listens), 2)[asked], sums_of)
    assert len(ledger.charges()) == 1


# -- what predictions say about themselves ---------------------------------------------------------


def test_too_few_labels_say_no_accuracy(predicted):
    assert predicted.n_validated == 0
    for name in ("accuracy", "accuracy_without_graph", "recall", "quality"):
        assert getattr(predicted, name) is None
    assert "too few labels" in str(predicted)


def test_accuracy_of_the_validation_sample_is_that_of_the_rest(measured):
    assert measured.n_validated == 200
    truth = ["ab"[MANY_GROUP[v]] for v in measured.nodes]
    true = np.mean([a == b for a, b in zip(measured.classified, truth, strict=True)])
    low, high = measured.quality.accuracy_interval
    assert low < measured.accuracy < high
    assert abs(measured.accuracy - true) < 0.06
    assert measured.accuracy_without_graph < 0.65


def test_measures_agree_with_scikit_learn(measured):
    truth, probabilities, _ = measured.validation
    for c, name in enumerate(measured.classes):
        expected = average_precision_score(truth[:, c], probabilities[:, c])
        assert measured.average_precision[name] == pytest.approx(expected)
        here = truth[:, c] == 1
        right = probabilities.argmax(axis=1) == c
        assert measured.recall[name] == pytest.approx(right[here].mean())
        assert measured.precision[name] == pytest.approx(here[right].mean())
    assert np.sum(measured.quality.confusion) == 200
    assert sum(bucket.nodes for bucket in measured.quality.calibration) == 200


def test_a_class_without_nodes_in_the_sample_has_no_recall():
    from edgeveil.estimate.quality import measure_quality

    quality = measure_quality(
        np.array([[1.0, 0.0]]), np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])
    )
    assert quality.recall == (1.0, None)
    assert quality.average_precision == (1.0, None)
    assert measure_quality(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))) is None


def test_abstaining_says_less_and_is_right_more_often(measured):
    sure = measured.abstain(0.95)
    assert sure.n_abstained > 0
    assert sure.quality.coverage < 1
    assert sure.accuracy > measured.accuracy
    kept = [name for name in sure.classified if name is not None]
    assert len(kept) == len(sure.nodes) - sure.n_abstained
    assert (sure.table()["class"] == "").sum() == sure.n_abstained
    with pytest.raises(ParameterError, match="threshold must be"):
        measured.abstain(1.5)


def test_abstaining_from_everything_measures_nothing(measured):
    nothing = replace(measured, probabilities=measured.probabilities).abstain(1.0)
    if nothing.quality is None:
        assert nothing.accuracy is None
    assert nothing.table().height == len(nothing.nodes)


def test_an_explanation_adds_up_to_the_probability(predicted):
    reasons = predicted.explain(1)
    assert (reasons.node, reasons.class_) == (1, "b")
    scores = [np.log(line.without_graph) for line in reasons.lines]
    assert [line.class_ for line in reasons.lines] == ["b", "a"]
    assert reasons.lines[0].from_graph > reasons.lines[1].from_graph
    assert reasons.lines[0].heard == tuple(predicted.sums[0, :, 1])
    assert len(scores) == 2
    assert "1: b" in str(reasons)
    with pytest.raises(UnknownNodeError, match=r"no prediction for 0: .* without a label"):
        predicted.explain(0)  # has a label


@pytest.mark.parametrize(
    ("more", "told"), [(1, "and 1 less probable class"), (6, "and 6 less probable classes")]
)
def test_an_explanation_counts_the_classes_it_leaves_out(predicted, more, told):
    reasons = predicted.explain(1)
    longer = replace(reasons, lines=reasons.lines[:1] * (5 + more))
    assert str(longer).splitlines()[-1].strip() == told


def test_a_useless_graph_is_not_used():
    shuffled = np.random.default_rng(1).permutation(2400)
    labels = {int(shuffled[v]): name for v, name in MANY_LABELS.items()}
    predictions = ev.classify(MANY, labels, epsilon=0.05, noise=SEEDED)
    assert not predictions.uses_graph
    assert predictions.weights is None
    assert np.array_equal(predictions.probabilities, predictions.without_graph)
    assert "did not help" in str(predictions)
    assert predictions.explain(predictions.nodes[0]).lines[0].from_graph == 0


def test_an_estimator_of_ones_own_on_the_released_sums(measured):
    given = measured.labelled_listeners
    assert int(given.validates.sum()) == measured.n_validated
    assert len(given.nodes) == measured.n_validated + measured.n_trained
    teach = ~given.validates
    X, y = given.sums.reshape(len(given.nodes), -1), given.labels.argmax(axis=1)
    model = LogisticRegression().fit(X[teach], y[teach])
    told = model.predict(measured.sums.reshape(len(measured.nodes), -1))
    assert (told == MANY_GROUP[measured.nodes.ids]).mean() > 0.6


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.parquet", "p.json", "folder"])
def test_what_was_written_is_read_back_whole(tmp_path, measured, name):
    measured.write(tmp_path / name)
    again = ev.Predictions.read(tmp_path / name)
    assert again.classes == measured.classes
    assert again.nodes == measured.nodes
    for array in ("probabilities", "without_graph", "sums"):
        assert np.array_equal(getattr(again, array), getattr(measured, array))
    assert again.quality == measured.quality
    assert again.explain(again.nodes[3]) == measured.explain(measured.nodes[3])
    with pytest.raises(ParameterError, match="abstain before writing"):
        again.abstain(0.5)


def test_a_csv_has_the_guarantee_in_its_last_column(tmp_path, predicted):
    predicted.write(tmp_path / "p.csv")
    table = pl.read_csv(tmp_path / "p.csv")
    assert table.columns == ["node", "class", "probability", "p_a", "p_b", "guarantee"]
    assert set(table["guarantee"]) == {"NOT PRIVATE"}


def test_a_folder_that_cannot_be_finished_does_not_appear(tmp_path, predicted, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(predictions, "write_atomically", full)  # of the last file
    with pytest.raises(OSError, match="no space"):
        predicted.write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_has_the_guarantee_beside_the_table(tmp_path, predicted):
    predicted.write(tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["guarantee.txt", "predictions.csv", "predictions.parquet"]
    assert "NOT PRIVATE" in (tmp_path / "out" / "guarantee.txt").read_text()


def test_a_file_of_something_else_is_refused(tmp_path, predicted):
    ev.rank(GRAPH, 1, epsilon=1.0).write(tmp_path / "r.json")
    with pytest.raises(InputError, match="not a release"):
        ev.Predictions.read(tmp_path / "r.json")
    predicted.write(tmp_path / "p.json")
    held = json.loads((tmp_path / "p.json").read_text())
    del held["columns"]["p_a"]
    (tmp_path / "p.json").write_text(json.dumps(held))
    with pytest.raises(InputError, match="damaged"):
        ev.Predictions.read(tmp_path / "p.json")


def test_a_plot_is_written(tmp_path, predicted, measured):
    predicted.plot(tmp_path / "few.png")
    measured.plot(tmp_path / "many.svg")
    assert (tmp_path / "few.png").read_bytes()[:4] == b"\x89PNG"
    assert b"accuracy on 200" in (tmp_path / "many.svg").read_bytes()


def test_tables_of_other_libraries_are_the_same(predicted):
    table = predicted.table()
    assert predicted.to_pandas()["class"].tolist() == table["class"].to_list()
    assert predicted.to_arrow()["class"].to_pylist() == table["class"].to_list()
    assert predicted.to_pandas().attrs["edgeveil"]["output"] == "predictions"
    assert "classes of 200 nodes" in predicted._repr_html_()


def test_predictions_load_without_readers_of_graphs(tmp_path, predicted):
    predicted.write(tmp_path / "p.json")
    script = (
        "import sys\nfrom edgeveil.results.predictions import Predictions\n"
        f"print(Predictions.read({str(tmp_path / 'p.json')!r}).class_of(1))\n"
        "read = [m for m in sys.modules if m.startswith(('edgeveil.graph.read', 'edgeveil.flow', "
        "'edgeveil.graph.graph', 'edgeveil.jobs'))]\nprint(read)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["b", "[]"], done.stderr
