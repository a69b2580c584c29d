"""The conformance suite finds what is wrong with a mechanism; an author runs it in two lines."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from edgeveil.estimate import lists
from edgeveil.estimate.lists import Evidence
from edgeveil.mechanisms import DegreePrior, DPPushFlowCap, EdgeFlipping, OwnListEmbedding
from edgeveil.mechanisms.base import OnceForAll
from edgeveil.privacy.noise import calibrate
from edgeveil.privacy.statistic import Statistic
from edgeveil.results.release import Release
from edgeveil.testing.conformance import (
    CHECKS,
    ConformanceError,
    check,
    randomness_comes_from_the_engine,
)
from tests.docs.blocks import blocks_of
from tests.docs.test_pages import DOCS


class Popular(OnceForAll):
    """Right, and small: noisy degrees for everybody."""

    name: ClassVar[str] = "popular"
    output: ClassVar[str] = "scores"
    when_to_use: ClassVar[str] = "here"
    theorem: ClassVar[str] = "an edge moves two degrees by one each"
    epsilon: float
    model: str = "public"
    sensitivity: ClassVar[int] = 2

    def shared(self, graph):
        n = graph.n_nodes
        noise = calibrate(coordinates=n, sensitivity=self.sensitivity, epsilon=self.epsilon)
        yield Statistic(graph.degrees.astype(np.float64)[None], noise)

    def fit_shared(self, noised, nodes):
        return noised[0].values[0]

    def estimate(self, noised, shared, views):
        return np.tile(shared, (len(views.sources), 1))


class TooLittleNoise(Popular):
    sensitivity = 1


class RoundsThatAreNoRounds(Popular):
    """Says that two statistics are rounds of one: but an edge moves both of them."""

    def shared(self, graph):
        noise = calibrate(coordinates=2 * graph.n_nodes, sensitivity=2, epsilon=self.epsilon)
        for statistic in (*super().shared(graph), *super().shared(graph)):
            yield replace(statistic, calibration=noise, rounds_of="degrees")


class FivePercentTooLittle(DPPushFlowCap):
    def calibration(self, n_nodes):
        return dataclasses.replace(self, sigma=self.sigma / 1.05).honest(n_nodes)

    honest = DPPushFlowCap.calibration


class NoiseByTheGraph(Popular):
    """A scale that tells the number of edges."""

    def shared(self, graph):
        noise = calibrate(
            coordinates=graph.n_nodes, sensitivity=2 + graph.n_edges, epsilon=self.epsilon
        )
        yield Statistic(graph.degrees.astype(np.float64)[None], noise)


class ShapeByTheGraph(Popular):
    def estimate(self, noised, shared, views):
        return np.tile(shared[shared > 3], (len(views.sources), 1))


class RaisesOnSome(Popular):
    def shared(self, graph):
        if (graph.degrees == 0).any():
            raise ValueError("a member has no friends")
        return super().shared(graph)


class WarnsOnSome(Popular):
    def shared(self, graph):
        np.log(graph.degrees)
        return super().shared(graph)


class NotFinite(Popular):
    def fit_shared(self, noised, nodes):
        with np.errstate(all="ignore"):
            return np.sqrt(noised[0].values[0])


SEEN = []


class PastTheNoise(Popular):
    """Keeps the graph in a global and looks at it when there is no noise any more."""

    def shared(self, graph):
        SEEN[:] = [graph]
        return super().shared(graph)

    def estimate(self, noised, shared, views):
        return super().estimate(noised, shared, views) + SEEN[0].n_edges


class WritesToAnswers(DPPushFlowCap):
    """Writes to what came back noised, after it has seen the graph."""

    def measure(self, graph, shared, views):
        back = yield next(super().measure(graph, shared, views))
        back.values[:] += graph.n_edges


class AsksTwice(DPPushFlowCap):
    """Measures the same numbers twice, at the price of once."""

    def measure(self, graph, shared, views):
        for _ in range(2):
            yield from super().measure(graph, shared, views)


class AsksMoreOfSome(DPPushFlowCap):
    """Measures twice if there are more than two edges: the number of statistics tells."""

    def measure(self, graph, shared, views):
        yield from super().measure(graph, shared, views)
        if graph.n_edges > 2:
            yield Statistic(np.zeros((len(views.sources), 1)), self.calibration(1), noise_only=True)

    def estimate(self, noised, shared, views):
        return noised[0].values


class DrawsItself(Popular):
    def estimate(self, noised, shared, views):
        return super().estimate(noised, shared, views) + np.random.default_rng().random()


class IgnoresItsNoise(Popular):
    """Right about privacy, and of no use: what was released is not looked at."""

    def estimate(self, noised, shared, views):
        return np.zeros((len(views.sources), len(views.nodes)))


class ShowsTheGraphInstead(Popular):
    """The numbers that were noised are replaced by exact ones."""

    def shared(self, graph):
        SEEN[:] = [graph]
        return super().shared(graph)

    def estimate(self, noised, shared, views):
        return np.tile(SEEN[0].degrees.astype(float), (len(views.sources), 1))


class LooksAtTheOthers(Popular):
    def estimate(self, noised, shared, views):
        return super().estimate(noised, shared, views) + len(views.sources)


class OneRowForAll(Popular):
    def estimate(self, noised, shared, views):
        return np.broadcast_to(shared, (len(views.sources), len(shared)))


class Lists(Popular):
    """Right, and small: the most popular people for everybody."""

    output = "lists"

    def fit_shared(self, noised, nodes):
        return lists.fit_popularity(noised[0].values[0], noised[0].scale)

    def estimate(self, noised, shared, views):
        some = min(5, len(views.nodes))
        return Evidence(
            np.arange(len(views.sources) + 1) * some,
            np.tile(np.sort(shared.order[:some]), len(views.sources)),
            np.ones(some * len(views.sources), dtype=np.float32),
            np.ones(len(views.sources)),
        )

    def lists(self, evidence, shared, views, k, candidates=None):
        return lists.make_lists(shared, views, evidence, self.epsilon, k, candidates)


class EvidenceThatIsKept(Lists):
    """The same array of rates for every call."""

    rates: ClassVar = np.ones(3)

    def estimate(self, noised, shared, views):
        evidence = super().estimate(noised, shared, views)
        return replace(evidence, rates=self.rates) if len(evidence) == 3 else evidence


class UnevenEvidence(Lists):
    def estimate(self, noised, shared, views):
        evidence = super().estimate(noised, shared, views)
        return replace(evidence, sums=evidence.sums[:-1])


class ListsPastTheNoise(Lists):
    """Evidence is right; lists look at a graph that was kept."""

    def shared(self, graph):
        SEEN[:] = [graph]
        return super().shared(graph)

    def lists(self, evidence, shared, views, k, candidates=None):
        suggestions = super().lists(evidence, shared, views, k, candidates)
        return suggestions._replace(scores=suggestions.scores + SEEN[0].n_edges)


class NoLists(Popular):
    output = "lists"

    def estimate(self, noised, shared, views):
        return Lists.estimate(self, noised, shared, views)

    def fit_shared(self, noised, nodes):
        return lists.fit_popularity(noised[0].values[0], noised[0].scale)


class Published(Popular):
    """Right: one table for everybody."""

    def published(self, shared, nodes, metadata):
        rows = np.tile(shared, (len(nodes), 1))
        return Release(
            values=rows, sources=tuple(nodes), columns=nodes, output="scores", **metadata._asdict()
        )


class PublishedPastTheNoise(Published):
    def shared(self, graph):
        SEEN[:] = [graph]
        return super().shared(graph)

    def published(self, shared, nodes, metadata):
        return super().published(SEEN[0].degrees.astype(float), nodes, metadata)


class PublishedToOneMember(Published):
    """A ledger would charge one member for what everybody sees."""

    model: str = "joint"


class MorePeopleLearnLess(Popular):
    def guarantee(self, n_members):
        claim = super().guarantee(n_members)
        return dataclasses.replace(claim, epsilon=claim.epsilon / n_members)


class SeesTheGraph(Popular):
    def guarantee(self, n_members, graph=None):
        return super().guarantee(n_members)


class DefaultEpsilon(Popular):
    epsilon: float = 1.0


WRONG = {
    TooLittleNoise: "privacy loss is 2 times its epsilon",
    RoundsThatAreNoRounds: "privacy loss is 2 times its epsilon",
    FivePercentTooLittle: "privacy loss is 1.05 times its epsilon",
    NoiseByTheGraph: "privacy loss is inf times its epsilon",
    ShapeByTheGraph: "rows of shape",
    RaisesOnSome: "raised ValueError on",
    WarnsOnSome: "raised RuntimeWarning on",
    NotFinite: "not finite",
    PastTheNoise: "other than through noised values",
    WritesToAnswers: "raised ValueError on one node: .*read-only",
    AsksTwice: "uses epsilon 2 for one member",
    AsksMoreOfSome: "privacy loss is inf times its epsilon",
    DrawsItself: "other than through noised values|randomness or state of its own",
    IgnoresItsNoise: "other noise gave the same rows",
    LooksAtTheOthers: "differ from those computed among all sources",
    OneRowForAll: "share memory",
    EvidenceThatIsKept: "share memory with other rows",
    UnevenEvidence: "arrays of evidence do not fit together",
    ListsPastTheNoise: "other than through noised values",
    NoLists: "needs a method `lists`",
    PublishedPastTheNoise: "other than through noised values",
    PublishedToOneMember: "its guarantee must be public",
    MorePeopleLearnLess: "would learn less",
    SeesTheGraph: "may take n_members alone",
    DefaultEpsilon: "epsilon has a default",
}


@pytest.mark.parametrize("cls", WRONG, ids=lambda cls: cls.__name__)
def test_check_reports_each_broken_mechanism(cls):
    # A claim that is far from its bound hides little: one round and prepush use all of it.
    options = (
        {"rounds": 1, "prepush": True, "sigma": 1e-3} if issubclass(cls, DPPushFlowCap) else {}
    )
    with pytest.raises(ConformanceError, match=WRONG[cls]):
        check(cls(epsilon=1.0, **options))


def test_check_passes_sound_mechanisms():
    check(Popular(epsilon=1.0))
    check(Lists(epsilon=1.0))
    check(Published(epsilon=1.0))
    check(DegreePrior(epsilon=1.0))


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("model", ["public", "joint"])
@pytest.mark.parametrize("cls", [IgnoresItsNoise, ShowsTheGraphInstead])
def test_check_finds_ignored_noise_at_any_epsilon(cls, model, epsilon):
    with pytest.raises(ConformanceError, match="other noise gave the same rows"):
        randomness_comes_from_the_engine(cls(epsilon=epsilon, model=model))


@pytest.mark.parametrize(
    "mechanism",
    [
        *(OwnListEmbedding(dimension=d) for d in (1, 2, 3)),
        DegreePrior(epsilon=1e6),
        EdgeFlipping(epsilon=1e6),
    ],
    ids=repr,
)
def test_check_accepts_rows_hardly_changed_by_noise(mechanism):
    randomness_comes_from_the_engine(mechanism)


def test_conformance_class_runs_in_two_lines(tmp_path):
    # The two files of the page, as they stand there, and one more that is wrong.
    for block in blocks_of(DOCS / "own-mechanism.md"):
        first = block.body.splitlines()[0]
        if first.endswith(".py"):
            (tmp_path / first.removeprefix("# ")).write_text(block.body)
    (tmp_path / "test_wrong.py").write_text(
        "from dataclasses import replace\n"
        "from edgeveil.testing.conformance import Conformance\n"
        "from popular import Popular\n\n"
        "class Wrong(Popular):\n"
        "    def shared(self, graph):\n"
        "        return Popular(epsilon=2 * self.epsilon).shared(graph)\n\n"
        "class TestWrong(Conformance):\n"
        "    mechanisms = [Wrong(epsilon=1.0)]\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("test_wrong.py" in line for line in failed)
    assert any("no_pair_exceeds_the_claimed_epsilon" in line for line in failed)
    assert f"{2 * len(CHECKS)} passed" not in done.stdout  # some of the wrong one pass, too
    assert sum("test_popular" in line for line in failed) == 0
