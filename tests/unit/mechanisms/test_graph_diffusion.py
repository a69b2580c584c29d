"""GraphDiffusion: noisy clipped power iteration, with the guarantee that we derived for it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.flow import lazy_restart, personalized_pagerank
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.testing import anneal
from experiments.forward_cap import forward_edge_cap
from experiments.graph_diffusion import GraphDiffusion
from tests.dense_flows import every_graph
from tests.flows import forward_flow
from tests.seam import calibrations_of, run


def change(mechanism, pair, seed):
    """What one edge changes, in units of the sensitivity, where both graphs get the same noise."""
    rows = [run(mechanism, graph, [pair[2]], seed)[0] for graph in pair[:2]]
    return float(np.abs(rows[0] - rows[1]).sum()) / mechanism.sensitivity


# With the noise of all steps the same on both graphs, the rows differ by what the proof bounds,
# by the lattice, and by calibrations that differ where float error differs (it does not here).
SLACK = 1 + 2.0**-10


@pytest.mark.parametrize(  # every epsilon with two restarts, from few steps to many
    ("restart", "steps", "epsilon"),
    [
        *((1 / 3, 2, 0.3), (1 / 3, 2, 1e6), (1 / 3, 3, 5.0)),
        *((0.1, 6, 0.3), (0.1, 6, 1e6), (0.9, 9, 5.0)),
    ],
)
def test_one_edge_moves_the_last_step_at_most_sensitivity(restart, steps, epsilon):
    """Whatever the noise in the steps before."""
    n = 4
    all_graphs = dict(every_graph(n))
    for seed, eta in enumerate([1e-6, 0.01, 0.1, 1.0]):
        mechanism = GraphDiffusion(epsilon=epsilon, eta=eta, restart=restart, steps=steps)
        rows = {mask: run(mechanism, graph, range(n), seed) for mask, graph in all_graphs.items()}
        for k, edge in enumerate(combinations(range(n), 2)):
            for mask, row in rows.items():
                moved = np.abs(row - rows[mask ^ 1 << k]).sum(axis=1)
                others = [s for s in range(n) if s not in edge]
                assert moved[others].max() <= mechanism.sensitivity * SLACK


def test_annealing_finds_no_pair_beyond_the_sensitivity(figure):
    best = 0.0
    for seed, (n, epsilon, eta, restart, steps) in enumerate(
        [(7, 1e6, 0.01, 0.9, 3), (9, 1e6, 1e-4, 0.5, 5), (9, 20.0, 0.01, 1 / 3, 8)]
    ):
        mechanism = GraphDiffusion(epsilon=epsilon, eta=eta, restart=restart, steps=steps)
        _, worst = anneal(
            lambda p, m=mechanism, s=seed: change(m, (p.graph, p.neighbour, p.source), s),
            n=n,
            model="joint",
            seed=seed,
            steps=300,
        )
        assert worst <= SLACK
        best = max(best, worst)
    figure("graph diffusion, annealing on up to 9 nodes", f"largest change {best:.3f} of the bound")
    assert best > 0.4


def test_diffusion_without_noise_equals_the_forward_cap(network):
    """Theorem 2 of the page: T = eta / alpha. The starts differ, which many steps forget."""
    graph = network(60, 0.1)
    mechanism = GraphDiffusion(epsilon=1e12, eta=1e-3, steps=200)
    rows = run(mechanism, graph, range(5), 1)
    alpha = lazy_restart(1 / 3)
    sigma = 1e-3 / alpha / forward_edge_cap(1.0, alpha, 200)  # T = eta / alpha
    flow = forward_flow(graph, range(5), sigma=sigma, restart=1 / 3, rounds=200)
    np.testing.assert_allclose(rows, flow, rtol=0, atol=1e-11)


def test_a_large_eta_clips_nothing_and_gives_pagerank(network):
    graph = network(60, 0.1)
    rows = run(GraphDiffusion(epsilon=1e12, eta=1.0), graph, [0, 9], 1)
    exact = personalized_pagerank(graph, [0, 9], restart=1 / 3)
    np.testing.assert_allclose(rows, exact, rtol=0, atol=1e-8)


@pytest.mark.parametrize("bound", ["tight", "paper"])
def test_every_step_gets_noise_of_the_stated_scale(bound, network):
    mechanism = GraphDiffusion(epsilon=0.5, steps=7, bound=bound)
    seen = calibrations_of(mechanism, network(100, 0.1), [0])
    assert len(seen) == (7 if bound == "tight" else 14)
    alpha = lazy_restart(1 / 3)
    scale = 2 * (1 - alpha) / alpha * 1e-8 / 0.5
    scale *= 1 - (1 - alpha) ** 6 if bound == "tight" else 2
    for calibration in seen:
        assert scale <= calibration.noise_scale <= scale * 1.002


def test_the_noise_of_the_last_step_is_laplace(network, assert_laplace):
    # Nothing of the first step's noise passes a clip this low. Off the source and its
    # neighbours the last noise is all there is.
    graph = network(300, 0.02)
    mechanism = GraphDiffusion(epsilon=1e-6, eta=1e-9, restart=0.999, steps=2)
    sources = range(0, 300, 30)
    rows = run(mechanism, graph, sources, 4)
    for row, source in zip(rows, sources, strict=True):
        row[source] = 0.0
        row[graph.neighbours(source)] = 0.0
    kept = rows[rows != 0]
    assert_laplace(kept, mechanism.sensitivity / 1e-6)


def test_defaults_are_those_of_the_authors():
    """An isolated source keeps its mass."""
    assert 1 - lazy_restart(GraphDiffusion(epsilon=1).restart) == pytest.approx(0.8)
    assert GraphDiffusion(epsilon=1).sensitivity == pytest.approx(8e-8)
    assert GraphDiffusion(epsilon=1, bound="paper").sensitivity == pytest.approx(16e-8)
    graph = graph_of_pairs(3, [(0, 1)])
    row = run(GraphDiffusion(epsilon=1e9), graph, [2], 1)[0]
    np.testing.assert_allclose(row, [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("eta", [0, -1, float("nan"), float("inf"), True, "1", None, [1e-8]]),
        ("steps", [0, 1, 2.5, True, "3", None, 100_001]),
        ("restart", [0, 1, None, "0.5"]),
        ("bound", ["", None, 1]),
        ("epsilon", [0, None, float("nan")]),
    ],
)
def test_a_bad_parameter_is_refused(name, values):
    for value in values:
        with pytest.raises(ParameterError, match=rf"^{name} must be .*, got "):
            GraphDiffusion(**{"epsilon": 1.0, name: value})
