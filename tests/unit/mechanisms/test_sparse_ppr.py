"""DPSparsePPR: which coordinates, and what noise on them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from edgeveil.auditing.search import graph_of_pairs
from edgeveil.flow.capped_flow import CappedFlow
from edgeveil.mechanisms import DPSparsePPR
from edgeveil.privacy.noise import NoiseSource

GRAPHS = {
    "path of 3": graph_of_pairs(3, [(0, 1), (1, 2)]),
    "star": graph_of_pairs(8, [(0, v) for v in range(1, 8)]),
    "with isolated nodes": graph_of_pairs(6, [(0, 1), (1, 2), (0, 2)]),
}
TRIALS = 2000


@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize("shape", GRAPHS)
def test_a_node_is_chosen_with_the_papers_probability_and_gets_fresh_noise(
    shape, model, assert_laplace
):
    graph, n = GRAPHS[shape], GRAPHS[shape].n_nodes
    sigma = 0.5
    shape_of_flow = DPSparsePPR(epsilon=1, sigma=sigma, model=model)
    flow = CappedFlow.of(shape_of_flow).rows(graph, [0])[0]
    # So that the threshold lies between the largest value and the others.
    gamma = 0.8 * flow.max()
    b = gamma / (3 * math.log(n))
    epsilon = 2 * sigma / b
    mechanism = replace(shape_of_flow, epsilon=epsilon)
    rows = np.array([mechanism.rows(graph, [0], NoiseSource.insecure(t))[0] for t in range(TRIALS)])
    for v in range(n):
        if flow[v] <= gamma:
            expected = 0.5 * math.exp(-(gamma - flow[v]) / b)
        else:
            expected = 1 - 0.5 * math.exp((gamma - flow[v]) / b)
        chosen = int(np.count_nonzero(rows[:, v]))
        assert stats.binomtest(chosen, TRIALS, expected).pvalue > 1e-3
    # A choice by the released noise itself would cut the distribution off below.
    assert_laplace((rows - flow)[rows != 0], b)


def test_everything_outside_the_choice_is_exactly_zero():
    graph = graph_of_pairs(300, [(v, v + 1) for v in range(299)])
    row = DPSparsePPR(epsilon=1).rows(graph, [0], NoiseSource.insecure(1))[0]
    # Seen from the end of a path the flow falls off; far nodes stay out but for 1 in n.
    assert row[0] > 0.1
    assert np.count_nonzero(row[100:]) == 0
    assert (np.signbit(row[row == 0]) == 0).all()
