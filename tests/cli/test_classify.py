"""`edgeveil classify`: what it needs, what it writes and shows, what it charges, what it says."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from edgeveil import Ledger, NodeSet, Predictions
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.saved import save_graph
from tests.cli.test_json import validator

MEMBERS, LABELLED = 1400, 1050  # a tenth of the labels is over 100: accuracy is said
CLASSIFY = "classify payments --labels flags.csv --epsilon 1"


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    """Accounts of three kinds, most of which are known, and a number about each."""
    place = tmp_path_factory.mktemp("accounts")
    network = social_network(MEMBERS, average_degree=24, communities=3, seed=1)
    kind = network.labels.toarray().argmax(axis=1)
    names = [f"a{i}" for i in range(MEMBERS)]
    u, v = network.graph.adjacency().nonzero()
    save_graph(Graph.from_edges(u, v, NodeSet.of(names)), place / "payments")
    words = ["bank", "person", "shop"]
    flags = "".join(f"{names[i]},{words[kind[i]]}\n" for i in range(LABELLED))
    (place / "flags.csv").write_text(f"account,label\n{flags}")
    numbers = "".join(f"{names[i]},{kind[i] + i % 5}\n" for i in range(MEMBERS))
    (place / "features.csv").write_text(f"account,size\n{numbers}")
    (place / "some.txt").write_text(f"{names[-1]}\n{names[-2]}\n")
    return place


@pytest.fixture
def run(run, accounts, folder):
    for file in accounts.iterdir():
        (folder / file.name).symlink_to(file)
    return run


def _page(path: str) -> dict:
    text = Path(path).read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


def test_out_and_page_hold_predictions_of_unlabelled_nodes(run):
    done = run(f"{CLASSIFY} --features features.csv --out p.parquet --page p.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{Path('p.html').resolve()}\n"
    predictions = Predictions.read("p.parquet")
    assert list(predictions.nodes) == [f"a{i}" for i in range(LABELLED, MEMBERS)]
    assert f"p.parquet: {MEMBERS - LABELLED} predictions." in done.stderr
    assert "accuracy" in done.stderr
    assert "Not protected: labels, features" in done.stderr
    shown = _page("p.html")["predictions"]
    assert (shown["n_nodes"], shown["n_labelled"]) == (MEMBERS - LABELLED, LABELLED)
    assert shown["quality"]["accuracy"] == predictions.accuracy
    assert shown["without"] == "features alone"
    assert shown["private"]
    assert sum(shown["predicted"]) == MEMBERS - LABELLED


def test_the_charge_is_for_everybody_once_and_a_dry_run_shows_it(run):
    ledger = Ledger.create("f.ledger", epsilon=1.5)
    line = f"{CLASSIFY} --ledger f.ledger --purpose flags"
    done = run(f"{line} --dry-run --format json")
    [row] = json.loads(done.stdout)["rows"]
    assert (row["for_whom"], row["epsilon"], row["left_after"]) == ("everybody", 1.0, 0.5)
    assert ledger.charges() == []
    first = run(f"{line} --out first.json")
    assert "Charged 1 to everybody. Remaining budget: 0.5" in first.stderr
    again = run(f"{line} --out again.json --threshold 0.9")
    assert "costs nothing" in again.stderr
    original, repeated = Predictions.read("first.json"), Predictions.read("again.json")
    assert (original.probabilities == repeated.probabilities).all()
    assert repeated.n_abstained > 0
    refused = run(CLASSIFY.replace("--epsilon 1", "--epsilon 0.6 --ledger f.ledger --out x.csv"))
    assert refused.returncode == 3
    assert len(ledger.charges()) == 1


def test_targets_and_threshold_narrow_what_is_said(run):
    done = run(f"{CLASSIFY} --targets some.txt --threshold 1 --format csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["node"] for row in rows} == {f"a{MEMBERS - 1}", f"a{MEMBERS - 2}"}
    assert {row["class"] for row in rows} == {""}
    assert list(rows[0]) == ["node", "class", "probability", "p_bank", "p_person", "p_shop"]


def test_json_holds_all_rows_and_a_table_the_first_ones(run):
    printed = json.loads(run(f"{CLASSIFY} --format json").stdout)
    validator("classify").validate(printed)
    Draft202012Validator.check_schema(validator("classify").schema)
    assert len(printed["rows"]) == MEMBERS - LABELLED
    low, high = printed["accuracy_interval"]
    assert low <= printed["accuracy"] <= high
    assert [row["class"] for row in printed["by_class"]] == printed["classes"]
    done = run(CLASSIFY)
    assert done.stdout.count("│ a1") == 20
    assert f"{MEMBERS - LABELLED - 20} more: --out writes all" in done.stderr


def test_seeded_noise_makes_a_page_that_is_not_private(run):
    done = run(f"{CLASSIFY} --insecure-seed 1 --out p.csv --page p.html")
    assert done.returncode == 0, done.stderr
    shown = _page("p.html")["predictions"]
    assert not shown["private"]
    assert shown["in_short"] == ""
    assert shown["promise"].startswith("NOT PRIVATE")


def test_help_says_that_labels_and_features_are_not_protected(run):
    said = " ".join(run("classify --help").stdout.split())
    assert "Labels and features are NOT protected" in said
    assert "must not be computed from the graph" in said


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--threshold 1.5", 2, "--threshold must be from 0 to 1"),
        ("--page p.pdf", 2, "--page must end in .html or .htm"),
        ("--out folder", 2, "--out must end in"),
        ("--skip-exhausted --ledger f.ledger", 2, "to everybody: nobody can be left out"),
        ("--features features.csv --prior features.csv", 2, "not both"),
        ("--features nowhere.csv", 4, "nowhere.csv"),
        ("--targets flags.csv", 2, "have a label already"),
        ("--page flags.csv", 2, "--page must end in"),
    ],
)
def test_a_mistake_gets_one_sentence_and_costs_nothing(run, words, code, told):
    ledger = Ledger.create("f.ledger", epsilon=4)
    line = CLASSIFY if "--ledger" in words else f"{CLASSIFY} --ledger f.ledger"
    done = run(f"{line} {words}")
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert done.stdout == ""
    assert ledger.charges() == []


def test_missing_epsilon_and_unknown_labels_are_refused(run):
    done = run(CLASSIFY.replace(" --epsilon 1", ""))
    assert (done.returncode, "--epsilon is required" in done.stderr) == (2, True)
    Path("strange.csv").write_text("account,label\nnobody,shop\na1,bank\n")
    done = run(CLASSIFY.replace("flags.csv", "strange.csv"))
    assert (done.returncode, "nobody" in done.stderr) == (2, True)


def test_evaluate_measures_classification_for_the_curator(run):
    line = "evaluate payments --labels flags.csv --features features.csv --epsilon 1"
    done = run(f"{line} --format json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    validator("evaluate").validate(printed)
    assert printed["says"] == "NOT PRIVATE: for the curator only"
    names = [row["mechanism"] for row in printed["rows"]]
    assert names == ["node-classes", "exact sums", "features alone"]
    assert "do not publish" in done.stderr
    refused = run("evaluate payments --protocol classification")
    assert (refused.returncode, "(--labels FILE)" in refused.stderr) == (2, True)
    refused = run(f"{line} --protocol classification --mechanism two-hop")
    assert (refused.returncode, "no mechanisms" in refused.stderr) == (2, True)
