"""DPPushFlow: noise by the promised minimum degree."""

from __future__ import annotations

import pytest

from edgeveil.errors import PromiseError
from edgeveil.flow.push_rounds import push_flow
from edgeveil.mechanisms import DPPushFlow
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from tests.seam import calibrations_of, run


def clique(n: int):
    return graph_of_pairs(n, [(u, v) for u in range(n) for v in range(u)])


def scale(model: str, restart: float, epsilon: float, d: int, bound: str) -> float:
    alpha = restart / (2 - restart)
    unit = (1 - alpha) / (alpha * epsilon)
    if bound == "paper":
        return 2 * unit / (d**2 if model == "joint" else d)
    if model == "joint":
        return 2 * unit * (1 - restart) / (d * (d + 1))
    return unit * min(1, restart + (1 - restart) * (2 - restart) / d) / (d + 1)


@pytest.mark.parametrize("bound", ["tight", "paper"])
@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize(("d", "restart", "epsilon"), [(1, 0.15, 1), (7, 0.15, 0.3), (20, 0.6, 2)])
def test_the_noise_has_the_scale_of_the_formula(model, d, restart, epsilon, bound, assert_laplace):
    graph = clique(60)
    mechanism = DPPushFlow(
        epsilon=epsilon, promised_min_degree=d, model=model, restart=restart, bound=bound
    )
    noisy = run(mechanism, graph, range(60), 2)
    expected = scale(model, restart, epsilon, d, bound)
    assert_laplace(noisy - push_flow(graph, range(60), restart=restart), expected)
    for calibration in calibrations_of(mechanism, graph, range(60)):
        assert 0 <= calibration.noise_scale / expected - 1 < 0.001


def test_promise_holds_with_equality_and_fails_by_one():
    graph = clique(6)
    DPPushFlow(epsilon=1, promised_min_degree=5).check_promise(graph)
    with pytest.raises(PromiseError, match="push-flow-cap, which needs no promise"):
        DPPushFlow(epsilon=1, promised_min_degree=6).check_promise(graph)


def test_the_guarantee_names_the_promise():
    guarantee = DPPushFlow(epsilon=1, promised_min_degree=3).guarantee(1)
    assert guarantee.promise == "every node has at least 3 neighbours"
    assert "public promise: every node has at least 3 neighbours" in str(guarantee)
