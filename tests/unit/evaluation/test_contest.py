"""The protocol measures exactly what a release would give."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.evaluation.contest import (
    RandomOrder,
    RankingScores,
    choose_sources,
    measure_ranking,
    releases,
)
from edgeveil.evaluation.metrics import top_k_metrics
from edgeveil.flow import personalized_pagerank
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import release
from edgeveil.mechanisms import (
    DegreePrior,
    DPInstantEmbedding,
    DPPushFlowCap,
    DPSparsePPR,
    EdgeFlipping,
    NonPrivate,
    OwnNeighbours,
)
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import randomise

NOISE = NoiseSource.insecure(5)


@pytest.fixture(scope="module")
def graph():
    return social_network(300, average_degree=16, seed=3).graph


@pytest.mark.parametrize(
    "mechanism",
    [DPPushFlowCap(epsilon=1, prepush=True), DPSparsePPR(epsilon=3), NonPrivate(), OwnNeighbours()],
    ids=lambda m: m.name,
)
def test_a_repeat_is_the_release_with_the_same_noise(graph, mechanism):
    sources = [3, 77, 150]
    for repeat, (rows, _) in enumerate(releases(graph, mechanism, sources, 2, NOISE)):
        released = release(graph, mechanism, sources, noise=NOISE.derive("repeat", repeat))
        assert np.array_equal(rows, released.values)


def test_all_scopes_by_hand(graph):
    sources, mechanism = [4, 60], DPPushFlowCap(epsilon=2, prepush=True)
    exact = personalized_pagerank(graph, sources)
    measured = measure_ranking(graph, mechanism, sources, repeats=3, noise=NOISE, k=10)
    for repeat in range(3):
        rows = release(graph, mechanism, sources, noise=NOISE.derive("repeat", repeat)).values
        stream = NOISE.derive("degrees", repeat)
        [degrees] = randomise(next(DegreePrior(epsilon=2).shared(graph)), stream).values
        expected = {("recall@10", s): [] for s in ("all", "non-neighbours", "lift")}
        for source, truth, row in zip(sources, exact, rows, strict=True):
            others = np.setdiff1d(np.arange(300), [source, *graph.neighbours(source)])
            popular = others[graph.degrees[others] >= 20]
            expected["recall@10", "all"] += [top_k_metrics(truth, row, 10)[0][0]]
            expected["recall@10", "non-neighbours"] += [
                top_k_metrics(truth[others], row[others], 10)[0][0]
            ]
            # No degrees are released with the scores: noisy ones of the same epsilon.
            lift = truth[popular] / graph.degrees[popular]
            scores = row[popular] / np.maximum(degrees[popular], 20)
            expected["recall@10", "lift"] += [top_k_metrics(lift, scores, 10)[0][0]]
        for key, values in expected.items():
            assert measured.scores[key][:, repeat].mean() == pytest.approx(np.mean(values))
    assert measured.scores["ndcg@10", "all"][0].mean() == pytest.approx(
        np.mean(
            [
                top_k_metrics(exact[0], rows[0], 10)[1][0]
                for rows, _ in releases(graph, mechanism, sources, 3, NOISE)
            ]
        )
    )


def test_exact_pagerank_is_perfect_and_random_order_at_chance(graph):
    sources = choose_sources(graph, min_degree=20, limit=10)
    options = {"repeats": 1, "noise": NOISE, "k": 30}
    perfect = measure_ranking(graph, NonPrivate(), sources, **options)
    assert all(v.min() == pytest.approx(1) for v in perfect.scores.values())
    chance = measure_ranking(graph, RandomOrder(), sources, **options)
    assert chance.estimate("recall@30", "all").mean == pytest.approx(0.1)
    own = measure_ranking(graph, OwnNeighbours(), sources, **options)
    for metric in ("recall@30", "ndcg@30"):
        # Of nodes that are not its neighbours the own list says nothing.
        assert own.estimate(metric, "lift").mean == pytest.approx(
            chance.estimate(metric, "lift").mean
        )


def test_lift_divides_by_released_degrees_only(graph):
    class Known:
        degrees = graph.degrees + 0.0

    class WithDegrees(DegreePrior):
        def fit_shared(self, noised, nodes):
            return Known()

        def estimate(self, noised, shared, own):
            return personalized_pagerank(graph, own.sources)

    measurement = measure_ranking(graph, WithDegrees(epsilon=1), [8], repeats=1, noise=NOISE, k=20)
    assert measurement.scores["recall@20", "lift"][0].mean() == 1
    assert measurement.shared


def test_lift_is_the_same_with_and_without_released_degrees(graph):
    """The same scores at the same epsilon: degrees come with them, or are noised beside them."""

    class Scores(DegreePrior):
        def estimate(self, noised, shared, own):
            return personalized_pagerank(graph, own.sources)

    class ScoresAlone(Scores):
        def fit_shared(self, noised, nodes):
            return ()

    options = {"repeats": 3, "noise": NOISE, "k": 20}
    sources = range(0, 300, 10)
    for epsilon, low, high in ((0.5, 0.5, 0.95), (20.0, 0.97, 1)):
        lifts = [
            measure_ranking(graph, kind(epsilon=epsilon), sources, **options)
            .estimate("recall@20", "lift")
            .mean
            for kind in (Scores, ScoresAlone)
        ]
        assert lifts[0] == pytest.approx(lifts[1], abs=0.05)
        assert low <= min(lifts) <= max(lifts) <= high


def test_lift_of_edge_flipping_divides_by_flipped_degrees(graph):
    mechanism = EdgeFlipping(epsilon=3)
    measurement = measure_ranking(graph, mechanism, [8], repeats=1, noise=NOISE, k=20)
    [(rows, shared)] = releases(graph, mechanism, [8], 1, NOISE)
    others = np.setdiff1d(np.arange(300), [8, *graph.neighbours(8)])
    popular = others[graph.degrees[others] >= 20]
    scores = rows[0][popular] / np.maximum(shared.degrees[popular], 20)
    truth = personalized_pagerank(graph, [8])[0][popular] / graph.degrees[popular]
    assert (
        measurement.scores["recall@20", "lift"][0].mean() == top_k_metrics(truth, scores, 20)[0][0]
    )


def test_blocks_of_sources_add_up(graph):
    mechanism = DPPushFlowCap(epsilon=1)
    options = {"repeats": 4, "noise": NOISE, "k": 20}
    whole = measure_ranking(graph, mechanism, [1, 2, 3], **options)
    parts = [measure_ranking(graph, mechanism, s, **options) for s in ([1, 2], [3])]
    joined = RankingScores.joined(parts)
    for key, values in whole.scores.items():
        assert joined.scores[key] == pytest.approx(values)


def test_sources_have_the_degree_asked_for(graph):
    chosen = choose_sources(graph, min_degree=20)
    assert sorted(chosen) == np.flatnonzero(graph.degrees >= 20).tolist()
    # A smaller choice is the beginning of a larger one.
    assert choose_sources(graph, min_degree=20, limit=5) == chosen[:5]
    with pytest.raises(ParameterError, match="no node"):
        choose_sources(graph, min_degree=299)


def test_an_embedding_has_no_ranking(graph):
    with pytest.raises(ParameterError, match="scores"):
        measure_ranking(graph, DPInstantEmbedding(epsilon=1), [0], repeats=1, noise=NOISE)
