"""``./run reproduce``: the paper's numbers, and the experiments' logic on a small graph."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import experiments
from edgeveil.errors import ParameterError
from edgeveil.graph.datasets import social_network
from experiments import EXPERIMENTS, reproduce
from experiments.__main__ import main
from experiments.attributed import attributed
from experiments.classification import EXACT, METHODS
from experiments.embeddings import own_list_of
from experiments.figures import select
from experiments.page import reproduction_page
from experiments.results import read_results

SMALL = {
    "figure1": {
        "epsilons": [1.0, 8.0],
        "min_degree": 20,
        "k": 30,
        "sources": 70,
        "repeats": 2,
        "flipping_sources": 5,
        "flipping_repeats": 2,
        "rounds": 30,
    },
    "figure2": {
        "datasets": None,
        "epsilons": [0.1, 10.0],
        "flipping_epsilons": [1.0, 9.0],
        "splits": 2,
        "dimension": 32,
        "rounds": 30,
        "checked_sources": 4,
    },
    "sigma": {"sigmas": [1e-6, 1e-2], "epsilons": [0.1, 5.0], "min_degree": 20, "sources": 5},
    "residual": {"sigmas": [1e-6, 1e-2], "min_degree": 20, "sources": 5, "rounds": 30},
    "beyond": {
        "epsilons": [1.0, 8.0],
        "min_degree": 20,
        "k": 30,
        "sources": 8,
        "repeats": 2,
        "slow_sources": 3,
    },
    "embeddings": {
        "datasets": None,
        "epsilons": [0.1, 10.0],
        "splits": 2,
        "dimension": 32,
        "widths": [32, 64],
        "generated": None,
        "rounds": 30,
    },
    "suggestions": {"epsilons": [1.0, 4.0], "per_group": 10},
    "time": {"datasets": None, "circles": None, "grown": [150, 30], "per_group": 8, "histories": 2},
    "classification": {
        "datasets": None,
        "epsilons": [1.0, 16.0],
        "shares": [0.5],
        "peer_shares": [0.5],
        "shuffled_epsilons": [16.0],
        "splits": 2,
        "peers": {"generated": [16.0]},
        "peer_splits": 2,
        "embedded": ["generated"],
        "rare": {"rare": [0.0, 0.2]},
        "dimension": 32,
        "rounds": 30,
    },
    "tightness": {"degrees": [3, 8]},
    "table1": {},
}


@pytest.fixture(scope="module")
def network():
    return {"generated": social_network(240, average_degree=20, communities=5, seed=2)}


@pytest.fixture(scope="module")
def whole(network, tmp_path_factory):
    """Each experiment once for all tests: its results, and the folder that it was written to."""
    folder = tmp_path_factory.mktemp("results")

    @cache
    def run(name):
        return _run(name, network, folder), folder / name

    return run


def _run(name, network, folder, **more):
    if EXPERIMENTS[name].data == "attributed":
        network = {name: _attributed(network["generated"]) for name in ("generated", "rare")}
    return reproduce(name, network, folder, quick=True, settings={**SMALL[name], **more})


def _attributed(data):
    """One class for each node, and features that know it half of the time."""
    classes = data.labels.tocsr().argmax(axis=1)
    rng = np.random.default_rng(0)
    guess = np.where(rng.random(len(classes)) < 0.5, classes, rng.integers(5, size=len(classes)))
    return attributed(data.graph, classes, data.label_names, sp.csr_array(np.eye(5)[guess]))


def _at(results, mechanism, metric, epsilon=None, scope="all"):
    [result] = [
        r
        for r in results
        if (r.mechanism, r.metric, r.scope) == (mechanism, metric, scope)
        and (epsilon is None or r.epsilon == epsilon)
    ]
    return result


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_writes_table_figure_and_machine_facts(name, whole):
    results, folder = whole(name)
    assert {p.name for p in folder.iterdir()} == {
        "results.csv",
        f"{name}.png",
        "machine.json",
        "parts",
    }
    written = read_results(folder / "results.csv")
    assert [r.mean for r in written] == pytest.approx([r.mean for r in results], rel=1e-5)
    assert all(r.low <= r.mean <= r.high for r in results)
    facts = json.loads((folder / "machine.json").read_text())
    assert {"cpu", "cores", "python", "versions", "seconds", "settings"} <= set(facts)
    assert str(folder.parent) not in json.dumps(facts)
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_figure1_has_every_baseline_beside_it(whole):
    results, _ = whole("figure1")
    recall = "recall@30"
    assert _at(results, "non-private", recall).mean == pytest.approx(1)
    assert _at(results, "random", recall).mean == pytest.approx(30 / 240)
    own = _at(results, "own neighbours", recall)
    assert own.epsilon == 0
    assert own.mean > 30 / 240
    private = [_at(results, "push-flow-cap", recall, e).mean for e in (1.0, 8.0)]
    assert private[0] < private[1]
    assert _at(results, "edge flipping", recall, 8.0).n_sources == 5
    assert math.isinf(_at(results, "own list + exact degrees (not private)", recall).epsilon)


def test_figure2_has_every_baseline_and_its_shortcut_error(whole):
    results, _ = whole("figure2")
    micro = "micro-F1 x 100"
    full = _at(results, "non-private", micro).mean
    assert full > _at(results, "majority labels", micro).mean + 10
    assert full > _at(results, "random embedding", micro).mean + 10
    assert _at(results, "instant-embedding", micro, 10.0).repeats == 2
    assert _at(results, "edge flipping + InstantEmbedding", micro, 9.0).mean > full - 20
    off = _at(results, "edge flipping, first step against exact", "L1 distance", 9.0)
    assert 0 <= off.mean < 0.05


def test_embeddings_are_measured_as_in_figure2(whole):
    ours, paper = (whole(name)[0] for name in ("embeddings", "figure2"))
    for label, epsilon in (
        ("majority labels", 0.0),
        ("non-private", math.inf),
        ("instant-embedding", 0.1),
        ("instant-embedding", 10.0),
    ):
        for metric in ("micro-F1 x 100", "macro-F1 x 100"):
            here, there = (_at(results, label, metric, epsilon) for results in (ours, paper))
            assert (here.mean, here.low, here.high) == (there.mean, there.low, there.high)


def test_wider_hash_of_own_list_loses_less_accuracy(whole):
    results, _ = whole("embeddings")
    metric = "micro-F1 x 100"
    by_width = [_at(results, own_list_of(width), metric) for width in (32, 64, None)]
    means = [r.mean for r in by_width]
    assert means == sorted(means)
    assert means[-1] > _at(results, "majority labels", metric).mean + 10
    assert all(r.epsilon == 0 and r.repeats == 2 for r in by_width)


def test_classification_has_every_method_on_the_same_nodes(whole):
    results, _ = whole("classification")
    accuracy = {(r.mechanism, r.epsilon): r.mean for r in select(results, metric="accuracy")}
    assert {name for name, _ in accuracy} == {"features alone", EXACT, *METHODS}
    alone = accuracy["features alone", 0.0]
    assert accuracy[EXACT, math.inf] > alone + 0.1
    assert accuracy["edgeveil", 16.0] > alone + 0.1
    assert accuracy["edgeveil, shuffled nodes", 16.0] > alone - 0.1
    assert {r.n_sources for r in select(results, metric="accuracy")} == {120}
    precision = select(results, metric="average precision", mechanism="edgeveil", epsilon=16.0)
    assert 0.3 < precision[0].mean <= 1


def test_a_year_has_every_use_of_the_budget_week_by_week(whole):
    results, _ = whole("time")
    scope, week = {"scope": "20-50 friends"}, "hits@20, week 52"
    here = [r for r in results if r.dataset == "generated"]
    assert {r.mechanism for r in here if r.metric == week} == {
        *("popularity", "53 lists", "4 lists", "base only", "series", "one list at the end")
    }
    weeks = [r.metric for r in here if r.mechanism == "series" and "above" not in r.metric]
    assert {"hits@20, week 0", "hits@20, week 25", "hits@20, week 26", "windows"} < set(weeks)
    start = [_at(here, m, "hits@20, week 0", 1.0, **scope).mean for m in ("base only", "series")]
    assert start[0] == pytest.approx(start[1])  # the first window is the one list
    assert _at(here, "base only", "windows", 1.0, **scope).mean == 1
    assert 2 <= _at(here, "series", "windows", 1.0, **scope).mean <= 4
    above = _at(here, "series", f"{week}, above base only", 1.0, **scope).mean
    both = [_at(here, m, week, 1.0, **scope).mean for m in ("series", "base only")]
    assert above == pytest.approx(both[0] - both[1])
    whole_list = _at(here, "one list at the end", week, 1.0, **scope).mean
    assert whole_list > _at(here, "53 lists", week, 1.0, **scope).mean
    assert {r.dataset for r in results} == {"generated", "generated, grown"}


@pytest.mark.parametrize("name", ["figure1", "figure2", "embeddings"])
def test_an_interrupted_experiment_ends_with_the_same_results(
    name, network, whole, tmp_path, monkeypatch
):
    results, _ = whole(name)
    get, calls = experiments.Cells.get, []

    def stopping(self, cell, compute):
        calls.append(cell)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return get(self, cell, compute)

    monkeypatch.setattr(experiments.Cells, "get", stopping)
    with pytest.raises(KeyboardInterrupt):
        _run(name, network, tmp_path)
    monkeypatch.undo()
    assert _run(name, network, tmp_path) == results


def test_a_larger_run_goes_on_from_a_smaller_one(network, tmp_path, monkeypatch):
    _run("figure1", network, tmp_path, sources=64)
    get, fresh = experiments.Cells.get, []

    def counting(self, cell, compute):
        fresh.extend([] if cell in self else [cell])
        return get(self, cell, compute)

    monkeypatch.setattr(experiments.Cells, "get", counting)
    _run("figure1", network, tmp_path)
    assert fresh
    assert all("/ 64+" in cell for cell in fresh)


def test_clique_changes_equal_closed_forms_within_bounds(network, tmp_path):
    results = _run("tightness", {}, tmp_path, degrees=[3, 5, 8, 20])
    for r in results:
        if r.mechanism == "exact PageRank":
            assert r.mean == pytest.approx(r.paper_value, abs=1e-10)
            for other in results:
                if (other.dataset, other.metric) == (r.dataset, r.metric) and (
                    "bound" in other.mechanism
                ):
                    assert r.mean <= other.mean
        if r.mechanism.startswith("push-flow-cap"):
            assert r.mean <= 1e-3


def test_table1_of_the_paper(paper_data, tmp_path, figure):
    assert main(["table1", "--data", str(paper_data), "--out", str(tmp_path)]) == 0
    counts = {
        (r.dataset, r.metric): r.mean for r in read_results(tmp_path / "table1" / "results.csv")
    }
    assert counts["POS", "nodes"] == 4_777
    assert counts["POS", "edges"] == 92_295
    # The paper's 185k are the entries of the matrix: both directions, and self-loops.
    assert counts["POS", "entries read"] == 184_812
    assert counts["BlogCatalog", "nodes"] == 10_312
    assert counts["BlogCatalog", "edges"] == 333_983
    assert (counts["POS", "labels"], counts["BlogCatalog", "labels"]) == (40, 39)
    assert counts["BlogCatalog", "average degree"] == pytest.approx(64.8, abs=0.05)
    assert counts["POS", "density"] == pytest.approx(8.1e-3, abs=5e-5)
    figure("Table 1, POS edges (paper 185k, both directions)", f"{counts['POS', 'edges']:,.0f}")


def test_tightness_runs_without_data_and_writes_a_page(tmp_path):
    assert main(["tightness", "--data", "nothing", "--out", str(tmp_path), "--quick"]) == 0
    assert (tmp_path / "tightness" / "tightness.png").exists()
    assert "experiments, repeated" in (tmp_path / "page.html").read_text()


def test_reproduction_page_shows_rankings_beside_the_truth(network, whole):
    _, folder = whole("figure1")
    dense = {"dense": social_network(150, average_degree=60, seed=1)}
    page = reproduction_page(folder.parent, dense)
    assert {r.experiment for r in page.results} >= {"figure1"}
    assert {r.epsilon for r in page.lists} == {None, 0.1, 0.5, 1.0, 2.0, 5.0}
    assert len({r.promise for r in page.lists if r.private}) == 5


def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.__main__.reproduce", stop)
    assert main(["tightness", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "tightness: interrupted; the same command resumes\n"


def test_missing_data_is_named_with_its_hash(tmp_path, capsys):
    assert main(["table1", "--data", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "POS.mat with SHA-256 b40977" in capsys.readouterr().err


def test_unknown_experiments_and_settings_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="no experiment"):
        reproduce("figure9", {}, tmp_path)
    with pytest.raises(ParameterError, match="no setting 'sauces'"):
        reproduce("tightness", {}, tmp_path, settings={"sauces": 1})
