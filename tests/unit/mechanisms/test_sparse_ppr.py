"""DPSparsePPR: which coordinates, and what noise on them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from edgeveil.mechanisms import DPSparsePPR, capped_flow
from edgeveil.mechanisms.capped_flow import CappedFlow
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.noise import NoiseSource
from edgeveil.testing.verdict import draw_rows
from tests.seam import run

GRAPHS = {
    "path of 3": graph_of_pairs(3, [(0, 1), (1, 2)]),
    "star": graph_of_pairs(8, [(0, v) for v in range(1, 8)]),
    "with isolated nodes": graph_of_pairs(6, [(0, 1), (1, 2), (0, 2)]),
}
TRIALS = 2000


@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize("shape", GRAPHS)
def test_node_is_chosen_by_the_paper_law_with_fresh_noise(shape, model, assert_laplace):
    graph, n = GRAPHS[shape], GRAPHS[shape].n_nodes
    sigma = 0.5
    shape_of_flow = DPSparsePPR(epsilon=1, sigma=sigma, model=model)
    flow = shape_of_flow.flow(graph, [0])[0]
    # So that the threshold lies between the largest value and the others.
    gamma = 0.8 * flow.max()
    b = gamma / (3 * math.log(n))
    epsilon = 2 * sigma / b
    mechanism = replace(shape_of_flow, epsilon=epsilon)
    rows = draw_rows(mechanism, graph, 0, TRIALS, NoiseSource.insecure(1), lambda _: None)
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
    row = run(DPSparsePPR(epsilon=1), graph, [0], 1)[0]
    # Seen from the end of a path the flow falls off; far nodes stay out but for 1 in n.
    assert row[0] > 0.1
    assert np.count_nonzero(row[100:]) == 0
    assert (np.signbit(row[row == 0]) == 0).all()


# -- Algorithm 6, DPSparsification: the probabilities of the choice ---------------------------

MANY = 20_000


@pytest.fixture
def shares(monkeypatch):
    """Which of many nodes with the same flow are chosen, by a run of the whole mechanism."""

    def chosen(mechanism, flow, seed, error=None) -> np.ndarray:
        with monkeypatch.context() as patch:
            patch.setattr(
                CappedFlow, "flow", lambda self, graph, s: np.full((len(s), graph.n_nodes), flow)
            )
            if error is not None:
                patch.setattr(capped_flow, "flow_error", lambda flow, n: error)
            (row,) = run(mechanism, graph_of_pairs(MANY, []), [0], seed)
        return row != 0  # that the noise takes a value to 0 exactly is too rare to matter

    return chosen


def gamma_and_scale(sigma, epsilon):
    """Half of epsilon goes to the choice."""
    b = sigma / (epsilon / 2)
    return 3 * b * math.log(MANY), b


@pytest.mark.parametrize(("sigma", "epsilon"), [(1e-6, 1.0), (0.3, 4.0)])
@pytest.mark.parametrize("t", [-5.0, -3, -1, -0.3, 0, 0.3, 1, 3, 5])
def test_coordinate_is_marked_by_the_paper_two_case_law(sigma, epsilon, t, shares):
    gamma, b = gamma_and_scale(sigma, epsilon)
    mechanism = DPSparsePPR(epsilon=epsilon, sigma=sigma)
    marked = shares(mechanism, gamma + t * b, int(10 * t) + 100)
    expected = 0.5 * math.exp(t) if t <= 0 else 1 - 0.5 * math.exp(-t)
    assert stats.binomtest(int(marked.sum()), MANY, expected).pvalue > 1e-3


def test_marks_of_different_coordinates_are_independent(shares):
    gamma, b = gamma_and_scale(1.0, 2.0)
    marked = shares(DPSparsePPR(epsilon=2.0, sigma=1.0), gamma - 0.5 * b, 1)
    assert abs(np.corrcoef(marked[1:], marked[:-1])[0, 1]) < 4 / math.sqrt(MANY)


@pytest.mark.parametrize("n", [1, 2, 10, 10_312])
def test_the_threshold_is_the_papers(n):
    mechanism, gamma = DPSparsePPR(epsilon=0.5), 3e-6 * math.log(n) / 0.25
    assert mechanism.is_large(np.full((1, n), gamma + 1e-15)).all()
    assert not mechanism.is_large(np.full((1, n), gamma - 1e-15)).any()


def test_a_proven_float_error_widens_the_choice(shares):
    # The error enters the noise's scale, on both graphs: far coordinates are marked more often.
    gamma, b = gamma_and_scale(1.0, 2.0)
    mechanism = DPSparsePPR(epsilon=2.0, sigma=1.0)
    without, with_error = (
        shares(mechanism, gamma - 3 * b, 1, error).mean() for error in (0.0, 1.0)
    )
    assert without == pytest.approx(0.5 * math.exp(-3), rel=0.15)
    assert with_error == pytest.approx(0.5 * math.exp(-1), rel=0.05)
