"""The recommendation sees epsilon, the model and n, and says why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.flow import personalized_pagerank
from edgeveil.graph.datasets import social_network
from edgeveil.jobs.choice import recommended
from edgeveil.mechanisms import (
    MECHANISMS,
    DegreePrior,
    DPInstantEmbedding,
    EdgeFlipping,
    OwnListEmbedding,
    TwoHop,
)
from tests.seam import run


@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize("n", [100, 5_000, 10_000, 1_000_000])
def test_edge_flipping_from_four_false_edges_on_down(model, n):
    usual = TwoHop if model == "joint" else DegreePrior
    edge = max(math.log(n / 4 - 1), 4.0)
    for epsilon in (0.01, 1, edge - 0.01):
        assert type(recommended(epsilon=epsilon, model=model, n_nodes=n)) is usual
    for epsilon in (edge + 0.01, 50, 1000):
        chosen = recommended(epsilon=epsilon, model=model, n_nodes=n)
        assert chosen == EdgeFlipping(epsilon=epsilon, model=model)
    assert type(recommended(epsilon=50, model=model)) is usual  # nothing known about n


def test_a_tiny_graph_does_not_get_a_coin_for_every_pair():
    assert recommended(epsilon=0.1, n_nodes=4).name == "two-hop"


def test_joint_embeddings_recommendation_costs_nothing():
    for given in ({}, {"epsilon": 10}, {"epsilon": 10, "n_nodes": 10}):
        chosen = recommended(output="embeddings", **given)
        assert chosen == OwnListEmbedding()
        assert chosen.guarantee(100).epsilon == 0
    for needs in ({}, {"output": "embeddings", "model": "public"}):
        with pytest.raises(ParameterError, match="epsilon is required"):
            recommended(**needs)
    with pytest.raises(ParameterError, match="output must be"):
        recommended(epsilon=1, output="both")


def test_public_embeddings_cost_epsilon_however_many():
    chosen = recommended(epsilon=2, model="public", output="embeddings")
    assert chosen.guarantee(1).epsilon == chosen.guarantee(50).epsilon == 2
    assert "one epsilon for all rows" in chosen.when_to_use
    other = DPInstantEmbedding(epsilon=2, model="public")
    assert other.guarantee(50).epsilon == 100
    assert "n times epsilon" in other.when_to_use


@pytest.mark.parametrize("model", ["joint", "public"])
def test_where_the_rule_takes_edge_flipping_it_is_better(model, figure):
    n = 1000
    graph = social_network(n, average_degree=30, seed=4).graph
    sources = [int(s) for s in np.random.default_rng(0).choice(n, 15, replace=False)]
    exact = personalized_pagerank(graph, sources)
    epsilon = math.log(n / 4)
    recalls = []
    for mechanism in (
        recommended(epsilon=epsilon, model=model, n_nodes=n),
        recommended(epsilon=epsilon, model=model),
    ):
        rows = run(mechanism, graph, sources)
        best = [np.argsort(-np.stack([a, b]))[:, :100] for a, b in zip(rows, exact, strict=True)]
        recalls.append(np.mean([len(np.intersect1d(*pair)) / 100 for pair in best]))
    assert recalls[0] > recalls[1]
    figure(
        f"Recall@100 at 4 false edges per node, {model}", f"{recalls[0]:.3f} over {recalls[1]:.3f}"
    )


def test_every_mechanism_says_when_to_use_it():
    for mechanism in MECHANISMS:
        assert mechanism.when_to_use
    assert "false edges" in EdgeFlipping.when_to_use
