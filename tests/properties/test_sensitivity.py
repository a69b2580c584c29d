"""One edge moves the capped flow at most sigma: exhaustive up to 5 nodes, searched beyond."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from edgeveil.audit.search import anneal, every_graph
from edgeveil.flow import lazy_restart, push_flow_cap
from edgeveil.flow.bounds import edge_cap, float_error_bound

STARTS = [("joint", False), ("joint", True), ("public", False)]


def largest_change(rows_by_mask: np.ndarray, n: int, model: str) -> float:
    """Largest L1 change over all pairs of neighbouring graphs; rows_by_mask is (2^m, n, n)."""
    worst = 0.0
    masks = np.arange(len(rows_by_mask))
    for k, edge in enumerate(combinations(range(n), 2)):
        sources = [s for s in range(n) if model == "public" or s not in edge]
        without = masks[(masks >> k & 1) == 0]
        change = rows_by_mask[without] - rows_by_mask[without | 1 << k]
        if sources:
            worst = max(worst, np.abs(change[:, sources]).sum(axis=2).max())
    return worst


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_removing_one_edge_moves_the_flow_at_most_sigma_on_all_small_graphs(n):
    graphs = [graph for _, graph in every_graph(n)]
    for restart, rounds, sigma, (model, prepush) in product(
        [0.15, 0.6], [1, 2, 5, 100], [1e-6, 0.03, 0.4, 3.0], STARTS
    ):
        rows = np.array(
            [
                push_flow_cap(
                    graph,
                    range(n),
                    sigma=sigma,
                    model=model,
                    restart=restart,
                    rounds=rounds,
                    prepush=prepush,
                )
                for graph in graphs
            ]
        )
        slack = 2 * float_error_bound(n, lazy_restart(restart))
        assert largest_change(rows, n, model) <= sigma + slack


@pytest.mark.parametrize(("model", "prepush"), STARTS)
def test_removing_one_edge_moves_the_flow_at_most_sigma_on_all_graphs_of_5_nodes(
    model, prepush, figure
):
    """All 1,024 graphs at once in dense form, so that the grid of parameters can be wide."""
    n = 5
    graphs = [graph for _, graph in every_graph(n)]
    adjacency = np.array([graph.adjacency().toarray() for graph in graphs])
    best, best_at = 0.0, ()
    for restart, rounds, sigma in product(
        [0.02, 0.15, 0.5, 0.75, 0.98], [1, 2, 3, 10, 100], np.logspace(-6, 0.5, 14)
    ):
        rows = dense_flow(adjacency, restart, rounds, sigma, model == "joint", prepush)
        ratio = largest_change(rows, n, model) / sigma
        slack = 2 * float_error_bound(n, lazy_restart(restart)) / sigma
        assert ratio <= 1 + slack, (restart, rounds, sigma)
        if ratio > best:
            best, best_at = ratio, (restart, rounds, round(float(sigma), 6))
    # The dense form is only worth something if it is the kernel's function.
    restart, rounds, sigma = best_at
    rows = dense_flow(adjacency, restart, rounds, sigma, model == "joint", prepush)
    for graph, expected in list(zip(graphs, rows, strict=True))[::7]:
        flow = push_flow_cap(
            graph,
            range(n),
            sigma=sigma,
            model=model,
            restart=restart,
            rounds=rounds,
            prepush=prepush,
        )
        np.testing.assert_allclose(flow, expected, rtol=0, atol=1e-14)
    assert best > 0.3, "the search never came near the bound: it cannot have looked well"
    figure(
        f"sensitivity, all graphs of 5 nodes, {model}{', prepush' * prepush}",
        f"largest change {best:.3f} sigma (restart, rounds, sigma = {best_at})",
    )


def dense_flow(adjacency, restart, rounds, sigma, joint, prepush):
    """The capped recursion for every graph and every source: (graphs, sources, nodes)."""
    alpha = lazy_restart(restart)
    cap = edge_cap(sigma, alpha, rounds)
    n = adjacency.shape[1]
    degree = adjacency.sum(axis=2)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    alone = (degree == 0)[:, None, :]
    eye = np.eye(n)[None]
    caps = np.where((eye > 0) & joint, np.inf, degree[:, None, :] * cap)
    start, offset = np.broadcast_to(eye, adjacency.shape), np.zeros_like(adjacency)
    if prepush:
        spread = adjacency * inverse[:, :, None]
        lonely = alone.transpose(0, 2, 1) * eye
        start = (1 - restart) ** 2 * spread + lonely
        offset = restart * eye * (1 - lonely) + restart * (1 - restart) * spread
    h = np.zeros_like(adjacency)
    for _ in range(rounds):
        inflow = h * np.where(alone, 2, 1) + (h * inverse[:, None, :]) @ adjacency
        h = np.minimum(start + (1 - alpha) / 2 * inflow, caps)
    return offset + alpha * h


@pytest.mark.parametrize(("model", "prepush"), STARTS)
@pytest.mark.parametrize("n", [7, 12])
def test_annealing_finds_no_pair_beyond_sigma(n, model, prepush, figure):
    best = 0.0
    settings = [(0.15, 2, 0.01), (0.5, 3, 0.02), (0.98, 2, 0.003)]
    for seed, (restart, rounds, sigma) in enumerate(settings):
        options = {"sigma": sigma, "model": model, "restart": restart, "rounds": rounds}

        def ratio(pair, options=options, sigma=sigma):
            flow = [
                push_flow_cap(graph, [pair.source], prepush=prepush, **options)[0]
                for graph in (pair.graph, pair.neighbour)
            ]
            return float(np.abs(flow[0] - flow[1]).sum()) / sigma

        _, found = anneal(ratio, n=n, model=model, seed=seed, steps=1500)
        assert found <= 1 + 2 * float_error_bound(n, lazy_restart(restart)) / sigma
        best = max(best, found)
    assert best > 0.3
    figure(
        f"sensitivity, annealing on {n} nodes, {model}{', prepush' * prepush}",
        f"largest change {best:.3f} sigma",
    )
