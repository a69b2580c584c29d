"""DPEmbeddingSparse: the private choice, the empty choice, and the scale of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.mechanisms import DPEmbeddingSparse
from tests.seam import run, statistics_of


def of_the_embedding(mechanism, graph, sources, seed):
    """Calibrations of what is asked after the choice."""
    _, (embedding, _) = statistics_of(mechanism, graph, sources, seed)
    return embedding.calibration


@pytest.mark.parametrize(("sigma", "epsilon"), [(1e-6, 1e-6), (1.0, 0.5)])
def test_empty_choice_gives_noise_as_for_one_coordinate(sigma, epsilon, network, assert_laplace):
    n, k = 300, 2000
    graph = network(n, 0.05)
    mechanism = DPEmbeddingSparse(epsilon=epsilon, sigma=sigma, dimension=k, model="public")
    rows = run(mechanism, graph, range(10), 3)
    scale = math.log1p(sigma * n) / (epsilon / 2)
    assert_laplace(rows, scale)
    seen = of_the_embedding(mechanism, graph, range(10), 3)
    assert len(seen) == 10
    for calibration in seen:
        assert 0 <= calibration.noise_scale / scale - 1 < 0.005


@pytest.mark.parametrize(("model", "sigma"), [("joint", 1e-6), ("joint", 1.0), ("public", 1.0)])
def test_noise_has_the_scale_of_the_size_of_the_choice(model, sigma, network, assert_laplace):
    # At a large epsilon the choice is certain, and what is below can be computed.
    n, k, rounds = 200, 2000, 2
    epsilon = 1e4 if sigma < 1 else 1e7
    graph, source = network(n, 0.08), 17
    mechanism = DPEmbeddingSparse(
        epsilon=epsilon, sigma=sigma, dimension=k, model=model, rounds=rounds
    )
    flow = mechanism.flow(graph, [source])[0]
    b = sigma / (epsilon / 2)
    gamma = 3 * b * math.log(n)
    assert (np.abs(flow - gamma) > 12 * b).all(), "choose a graph on which the choice is certain"
    row = run(mechanism, graph, [source], 3)[0]
    m = int((flow > gamma).sum())
    assert 1 < m < n
    scale = m * math.log1p(sigma * n / m) / (epsilon / 2)
    kept = np.where(flow > gamma, flow, 0.0)[None]
    exact = instant_embedding(kept, hash_nodes(graph.nodes, k))[0]
    assert np.abs(exact).max() > 100 * scale  # or the embedding could be missing unnoticed
    assert_laplace(row - exact, scale)
    (calibration,) = of_the_embedding(mechanism, graph, [source], 3)
    assert 0 <= calibration.noise_scale / scale - 1 < 0.005


def test_scores_outside_of_the_choice_do_not_reach_the_embedding(network):
    # The source's own score is large (n p = 3) but stays below the threshold, 0.9.
    n, sigma, epsilon, trials = 20, 1e-6, 2e-5, 400
    graph = network(n, 0.2)
    mechanism = DPEmbeddingSparse(epsilon=epsilon, sigma=sigma, dimension=8)
    flow = mechanism.flow(graph, [0])
    hidden = np.abs(instant_embedding(flow, hash_nodes(graph.nodes, 8)))
    mean = np.mean([run(mechanism, graph, [0], t)[0] for t in range(trials)], axis=0)
    deviation = math.sqrt(2 / trials) * math.log1p(sigma * n) / (epsilon / 2)
    assert hidden.max() > 7 * deviation
    assert np.abs(mean).max() < 4 * deviation
