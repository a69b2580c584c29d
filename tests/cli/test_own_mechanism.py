"""Mechanisms from outside, and parameters without an option of their own, on the command line."""

from __future__ import annotations

import json
from itertools import product

import pytest

from edgeveil.cli.mechanisms import make_mechanism
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlow, DPPushFlowCap, EdgeFlipping
from edgeveil.results.release import Release

POPULAR = '''
import numpy as np

from edgeveil.estimate.lists import Evidence, fit_popularity, make_lists
from edgeveil.mechanisms.base import Mechanism, OnceForAll, laplace_statistic


class Scores(OnceForAll):
    """Noisy degrees."""

    name = "outside-scores"
    output = "scores"
    when_to_use = "in tests"
    theorem = "an edge moves two degrees by one each"
    epsilon: float
    model: str = "public"
    power: float = 1.0
    label: str = ""
    word: str | None = None

    def __post_init__(self):
        if self.power < 0:
            raise ValueError("power must not be negative")

    def shared(self, graph):
        yield laplace_statistic(graph.degrees, sensitivity=2, epsilon=self.epsilon)

    def fit_shared(self, noised, nodes):
        return noised[0].values[0]

    def estimate(self, noised, shared, views):
        return np.tile(shared, (len(views.sources), 1))


class Vectors(Scores):
    name = "outside-vectors"
    output = "embeddings"
    dimension: int = 2

    def estimate(self, noised, shared, views):
        return np.tile(shared[: self.dimension], (len(views.sources), 1))


class Lists(Scores):
    name = "outside-lists"
    output = "lists"

    def fit_shared(self, noised, nodes):
        return fit_popularity(noised[0].values[0], noised[0].scale)

    def estimate(self, noised, shared, views):
        return Evidence.none(len(views.sources))  # nothing is asked for one member alone

    def lists(self, evidence, shared, views, k, candidates=None):
        return make_lists(shared, views, evidence, 1.0, k, candidates)


class NoLists(Scores):
    output = "lists"


class Needs(Scores):
    threshold: float


class Lacking(Mechanism):
    """Neither a proof nor rows."""


class Stranger:
    name = output = when_to_use = theorem = "x"
    guarantee = shared = fit_shared = measure = estimate = None


NUMBER = 3
'''


@pytest.fixture
def outside(folder, monkeypatch):
    """A module of one's own in the working folder, under a name that no other test has used."""
    name = f"outside_{abs(hash(folder))}"
    (folder / f"{name}.py").write_text(POPULAR)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    return name


def test_every_mechanism_option_takes_one_from_outside(outside, run, folder):
    assert run("ledger create l --epsilon 9").returncode == 0
    ranked = run(
        f"rank follows.csv --source alice --epsilon 1 --mechanism {outside}:Scores --ledger l "
        "--format json"
    )
    assert json.loads(ranked.stdout)["guarantee"]["epsilon"] == 1
    assert "outside-scores" in run("ledger report l --format csv").stdout
    assert run(f"rank follows.csv --source bob --epsilon 1 --mechanism {outside}:Scores --dry-run")
    embedded = run(f"embed follows.csv --epsilon 1 --mechanism {outside}:Vectors --out e.csv")
    assert embedded.returncode == 0, embedded.stderr
    listed = run(
        f"suggest follows.csv --member bob --epsilon 1 --top 3 --mechanism {outside}:Lists "
        "--format json"
    )
    assert len(json.loads(listed.stdout)["rows"]) == 3, listed.stderr
    audited = run(
        f"audit {outside}:Scores --epsilon 2 --trials 100 --confidence 0.9999999 --format json"
    )
    assert json.loads(audited.stdout)["consistent"] is True
    measured = run(
        f"evaluate follows.csv --mechanism {outside}:Scores --mechanism push-flow-cap "
        "--bound paper --epsilon 1 --epsilon 2 --sources 2 --min-degree 1 --top 2 --format json"
    )
    rows = json.loads(measured.stdout)["rows"]
    assert {(r["mechanism"], r["epsilon"]) for r in rows if r["epsilon"]} == set(
        product(("outside-scores", "push-flow-cap"), (1.0, 2.0))
    )


def test_series_label_refuses_another_mechanism(outside, run):
    run("ledger create l --epsilon 9")
    assert run("refresh follows.csv --ledger l --epsilon 1 --nodes-from-edges").returncode == 0
    line = "suggest follows.csv --member bob --epsilon 1 --ledger l"
    refused = run(f"{line} --mechanism {outside}:Lists")
    assert refused.returncode == 1
    assert "another mechanism needs another label" in refused.stderr


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("nowhere_at_all:Thing", "No module named 'nowhere_at_all'"),
        ("OUTSIDE:Thing", "has no attribute 'Thing'"),
        ("OUTSIDE:NUMBER", "is not a mechanism: it must inherit from edgeveil.mechanisms.Mec"),
        ("OUTSIDE:Lacking", "it needs a `theorem` and a method `estimate` or `measure`\n"),
        ("OUTSIDE:NoLists", "is not a mechanism: it needs a method `lists`\n"),
        ("OUTSIDE:Stranger", "it must inherit from edgeveil.mechanisms.Mechanism"),
        ("collections:Counter", "it must inherit from edgeveil.mechanisms.Mechanism"),
        (":Thing", "not of the form package.module:Class"),
        ("module:", "not of the form package.module:Class"),
        ("OUTSIDE:Vectors", "gives embeddings; scores are asked for"),
        ("OUTSIDE:Needs", "needs --set threshold=VALUE"),
        ("OUTSIDE:Scores --sigma 1", "has no option --sigma"),
        ("OUTSIDE:Scores --set sigma=1", "has no parameter 'sigma'; it has epsilon, model, power"),
        ("OUTSIDE:Scores --set power", "--set takes name=value, got 'power'"),
        ("OUTSIDE:Scores --set power=high", "takes a number, got 'high'"),
        ("OUTSIDE:Scores --set power=-1", "power must not be negative"),
        ("OUTSIDE:Scores --set epsilon=2", "epsilon is given twice"),
        ("twohops", "did you mean two-hop?"),
        ("magic", "one of your own is named as package.module:Class"),
    ],
)
def test_what_is_wrong_with_a_mechanism_is_said(outside, run, named, told):
    words = named.replace("OUTSIDE", outside)
    done = run(f"rank follows.csv --source alice --epsilon 1 --mechanism {words}")
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_a_module_that_does_not_load_is_named(folder, run):
    (folder / "broken_outside.py").write_text("1 / 0\n")
    done = run("audit broken_outside:Thing")
    assert done.returncode == 2
    assert "broken_outside:Thing cannot be imported: ZeroDivisionError" in done.stderr
    (folder / "lacking_outside.py").write_text("import nothing_like_it\n")
    assert "No module named 'nothing_like_it'" in run("audit lacking_outside:Thing").stderr


def test_parameters_are_set_by_name_with_their_type(outside, folder):
    def mechanism_with(*settings):
        return make_mechanism(f"{outside}:Scores", "scores", settings=settings, epsilon=1)

    plain = mechanism_with()
    assert (plain.power, plain.label, plain.word) == (1.0, "", None)
    given = mechanism_with("power=0.5", "label=12", "word=x=y", "model=joint")
    assert (given.power, given.label, given.word, given.model) == (0.5, "12", "x=y", "joint")
    assert mechanism_with("word=none").word is None
    assert make_mechanism("push-flow-cap", None, settings=["rounds=none"], epsilon=1) == (
        DPPushFlowCap(epsilon=1, rounds=None)
    )
    with pytest.raises(ParameterError, match="rounds must be an integer"):
        make_mechanism("push-flow-cap", None, settings=["rounds=1.5"], epsilon=1)


def test_an_installed_package_announces_its_mechanism(outside, run, folder, monkeypatch):
    metadata = folder / "announcing-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: announcing\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[edgeveil.mechanisms]\nannounced = {outside}:Scores\ngone = nowhere_at_all:Thing\n"
    )
    monkeypatch.syspath_prepend(folder)
    rows = {row["name"]: row for row in json.loads(run("mechanisms --format json").stdout)["rows"]}
    assert rows["announced"]["does"] == "Noisy degrees."
    assert rows["announced"]["protects"].startswith("joint model: edges")
    assert rows["gone"]["output"] == "cannot be used"
    assert "nowhere_at_all" in rows["gone"]["does"]
    assert "announced (scores)" in run("mechanisms").stdout
    ranked = run("rank follows.csv --source alice --epsilon 1 --mechanism announced")
    assert ranked.returncode == 0, ranked.stderr
    assert "did you mean announced?" in run("audit anounced").stderr


# --- The paper's configuration -------------------------------------------------------------------


def test_paper_preset_equals_its_options():
    given = make_mechanism(
        "push-flow-cap", None, epsilon=1, sigma=1e-6, rounds=100, bound="paper", prepush=True
    )
    assert given == DPPushFlowCap.paper(1) == DPPushFlowCap(epsilon=1, prepush=True, bound="paper")
    assert DPPushFlowCap.paper(1, model="public").prepush is False
    assert DPPushFlowCap.paper(1, sigma=1e-4).sigma == 1e-4
    assert DPInstantEmbedding.paper(2).dimension == 256
    assert DPPushFlow.paper(1, 50).bound == "paper"
    assert EdgeFlipping.paper(1) == EdgeFlipping(epsilon=1)


def test_the_papers_options_reach_the_release(folder, run):
    line = "rank follows.csv --source alice --epsilon 1 --mechanism push-flow-cap --out r.json "
    line += "--overwrite"
    paper = run(f"{line} --bound paper --prepush --rounds 100 --sigma 1e-6")
    assert paper.returncode == 0, paper.stderr
    parameters = Release.read(folder / "r.json").provenance.parameters
    assert make_mechanism("push-flow-cap", None, **parameters) == DPPushFlowCap.paper(1)
    # ln(1/xi) / alpha rounds: alpha = 0.15 / 1.85 at the usual restart
    assert run(f"{line} --xi 3e-4").returncode == 0
    assert Release.read(folder / "r.json").provenance.parameters["rounds"] == 101
    assert "give one of them" in run(f"{line} --xi 3e-4 --rounds 7").stderr
    assert "xi must be a number between 0 and 1" in run(f"{line} --xi 2").stderr
    assert (
        "none of two-hop has --bound"
        in run("evaluate follows.csv --mechanism two-hop --bound paper").stderr
    )
    assert "name it with --mechanism" in run("evaluate follows.csv --bound paper").stderr


def test_evaluate_writes_its_plot_and_refuses_wrong_paths(folder, run):
    """A wrong path is refused before the work begins."""
    line = "evaluate follows.csv --mechanism two-hop --sources 2 --min-degree 1 --top 2 --plot"
    done = run(f"{line} f.png")
    assert done.returncode == 0, done.stderr
    assert (folder / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "--plot must end in .png, .svg or .pdf" in run(f"{line} f.xyz").stderr
    assert "--plot: there is no folder" in run(f"{line} no/f.png").stderr
