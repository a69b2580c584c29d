"""The contests' shortcuts give what the library does, and their baselines what they say."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.evaluation.contest import choose_sources, measure_ranking, releases
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlowCap, DPSparsePPR
from edgeveil.mechanisms.run import rows_of
from edgeveil.privacy.noise import NoiseSource
from experiments.baselines import CapWithoutNoise, OwnListWithDegrees
from experiments.contests import as_json, from_json
from experiments.rows import repeated_rows, with_noise

NOISE = NoiseSource.insecure(5)


@pytest.fixture(scope="module")
def graph():
    return social_network(300, average_degree=16, seed=3).graph


@pytest.mark.parametrize(
    "mechanism",
    [DPPushFlowCap(epsilon=1, prepush=True), DPSparsePPR(epsilon=3)],
    ids=lambda m: m.name,
)
def test_repeated_rows_are_those_of_the_releases(graph, mechanism):
    given = [graph, mechanism, [3, 77, 150], 2, NOISE]
    for (rows, _), (released, _) in zip(repeated_rows(*given), releases(*given), strict=True):
        assert np.array_equal(rows, released)


@pytest.mark.parametrize("kind", [DPPushFlowCap, DPInstantEmbedding])
@pytest.mark.parametrize("options", [{"prepush": True}, {"model": "public", "sigma": 1e-3}])
def test_noise_on_exact_rows_equals_the_mechanism(graph, kind, options):
    mechanism, sources = kind(epsilon=0.7, **options), [0, 5, 9]
    exact = kind(epsilon=3.0, **options).exact_rows(graph, np.array(sources))
    rows = with_noise(graph, mechanism, exact, sources, NOISE.derive("rows"))
    assert np.array_equal(rows, rows_of(mechanism, graph, sources, NOISE))


def test_tiny_sigma_flow_ranks_own_list_then_degrees():
    # edges by degree alone: where friends share friends, the flow knows more than degrees
    rng = np.random.default_rng(3)
    weight = rng.pareto(2.0, 300) + 1
    pairs = rng.choice(300, (2, 2400), p=weight / weight.sum())
    graph = Graph.from_edges(*pairs[:, pairs[0] != pairs[1]], NodeSet.range(300))
    sources = choose_sources(graph, min_degree=20, limit=10)
    options = {"repeats": 1, "noise": NOISE, "k": 50}
    flow = measure_ranking(graph, CapWithoutNoise(sigma=1e-9, prepush=True), sources, **options)
    plain = measure_ranking(graph, OwnListWithDegrees(), sources, **options)
    assert flow.estimate("recall@50", "all").mean == pytest.approx(
        plain.estimate("recall@50", "all").mean, abs=0.03
    )


def test_a_part_file_keeps_what_was_measured_to_six_digits(graph):
    options = {"repeats": 3, "noise": NOISE, "k": 20}
    measured = measure_ranking(graph, DPPushFlowCap(epsilon=1), [1, 2], **options)
    kept = from_json(as_json(measured))
    assert kept.shared == measured.shared
    for key, values in measured.scores.items():
        assert kept.scores[key] == pytest.approx(values, abs=1e-6)
