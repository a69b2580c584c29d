"""DPInstantEmbedding: embedding of the capped flow, noise of scale n log(1+sigma) / epsilon."""

from __future__ import annotations

import math

import pytest

from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.mechanisms import DPInstantEmbedding
from tests.seam import calibrations_of, run


@pytest.mark.parametrize(
    ("model", "prepush"), [("joint", False), ("joint", True), ("public", False)]
)
@pytest.mark.parametrize(("sigma", "epsilon", "key"), [(1e-6, 1, "edgeveil"), (1.5, 0.3, "other")])
def test_the_release_is_the_embedding_of_the_flow_plus_laplace(
    model, prepush, sigma, epsilon, key, network, assert_laplace
):
    graph, n, k = network(200, 0.05), 200, 128
    sources = range(0, 200, 4)
    options = {"sigma": sigma, "model": model, "prepush": prepush}
    mechanism = DPInstantEmbedding(epsilon=epsilon, dimension=k, hash_key=key, **options)
    noisy = run(mechanism, graph, sources, 4)
    flow = mechanism.flow(graph, sources)
    exact = instant_embedding(flow, hash_nodes(graph.nodes, k, key))
    scale = n * math.log1p(sigma) / epsilon
    assert_laplace(noisy - exact, scale)
    for calibration in calibrations_of(mechanism, graph, sources):
        assert 0 <= calibration.noise_scale / scale - 1 < 0.005


def test_the_noise_does_not_depend_on_the_dimension(network):
    # n log(1+sigma) bounds all coordinates of the embedding together.
    scales = [
        calibration.noise_scale
        for k in (1, 10, 1000)
        for calibration in calibrations_of(
            DPInstantEmbedding(epsilon=1, dimension=k), network(50, 0.1), [0]
        )
    ]
    assert len(scales) == 3
    assert max(scales) / min(scales) < 1.001
