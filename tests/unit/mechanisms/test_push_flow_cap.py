"""DPPushFlowCap: the capped flow plus Laplace noise of scale sigma / epsilon."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.mechanisms import DPPushFlowCap
from tests.seam import calibrations_of, run

MODELS = [("joint", False), ("joint", True), ("public", False)]


@pytest.mark.parametrize(("model", "prepush"), MODELS)
@pytest.mark.parametrize(("sigma", "epsilon"), [(1e-6, 1), (1e-3, 0.2), (2.0, 7)])
def test_release_is_flow_plus_laplace_of_sigma_over_epsilon(
    model, prepush, sigma, epsilon, network, assert_laplace
):
    graph = network(400, 0.05)
    sources = range(0, 400, 8)
    options = {"sigma": sigma, "model": model, "prepush": prepush}
    mechanism = DPPushFlowCap(epsilon=epsilon, **options)
    noisy = run(mechanism, graph, sources, 8)
    assert_laplace(noisy - mechanism.flow(graph, sources), sigma / epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
def test_noise_scale_is_hardly_above_sigma_over_epsilon(epsilon, network, figure):
    (calibration,) = calibrations_of(DPPushFlowCap(epsilon=epsilon), network(1000, 0.01), [0])
    overhead = calibration.noise_scale / (1e-6 / epsilon) - 1
    assert 0 <= overhead < 0.005
    figure("DPPushFlowCap, n = 1000, sigma = 1e-6: noise beyond sigma / epsilon", f"{overhead:.2e}")


def test_coordinates_that_are_zero_get_noise_too(network):
    graph = network(50, 0.0)  # a path: two rounds reach three nodes
    row = run(DPPushFlowCap(epsilon=1, rounds=2), graph, [0], 1)[0]
    assert np.count_nonzero(row) == 50
