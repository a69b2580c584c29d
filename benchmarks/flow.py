"""Capped flow and exact PageRank against the same recursions in scipy.

Uses BlogCatalog where its file is (EDGEVEIL_DATA, or shared/data beside the checkout), and
else a generated network of the same size.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import interleaved, quartiles, ratios
from edgeveil import load_blogcatalog, personalized_pagerank, push_flow_cap, social_network
from edgeveil.flow import lazy_restart
from edgeveil.flow.bounds import edge_cap

RESTART, ROUNDS, SIGMA, SOURCES, TOL = 0.15, 100, 1e-6, 64, 1e-6


def run() -> dict[str, Any]:
    folder = Path(os.environ.get("EDGEVEIL_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if (folder / "blogcatalog.mat").exists():
        name, graph = "BlogCatalog", load_blogcatalog(folder).graph
    else:
        name, graph = "generated", social_network(10_312, average_degree=64.8).graph
    sources = np.random.default_rng(0).choice(graph.n_nodes, SOURCES, replace=False)
    adjacency, degrees = graph.adjacency(), np.maximum(graph.degrees, 1).astype(float)
    alpha = lazy_restart(RESTART)
    cap = edge_cap(SIGMA, alpha, ROUNDS)

    def scipy_capped(chosen: np.ndarray) -> np.ndarray:
        """The recursion on h, joint model, for a block of sources."""
        start = np.zeros((graph.n_nodes, len(chosen)))
        start[chosen, np.arange(len(chosen))] = 1
        caps = np.repeat((degrees * cap)[:, None], len(chosen), axis=1)
        caps[start > 0] = np.inf
        h = np.zeros_like(start)
        for _ in range(ROUNDS):
            inflow = h + adjacency @ (h / degrees[:, None])
            h = np.minimum(start + (1 - alpha) / 2 * inflow, caps)
        return alpha * h.T

    def scipy_exact(chosen: np.ndarray) -> np.ndarray:
        """Power iteration until the certified error is below TOL."""
        start = np.zeros((graph.n_nodes, len(chosen)))
        start[chosen, np.arange(len(chosen))] = RESTART
        p, walk = start.copy(), (1 - RESTART) * adjacency
        for _ in range(int(np.ceil(np.log(TOL) / np.log(1 - RESTART)))):
            p = start + walk @ (p / degrees[:, None])
        return p.T

    capped = push_flow_cap(graph, sources, sigma=SIGMA, rounds=ROUNDS)
    assert np.abs(capped - scipy_capped(sources)).max() < 1e-12
    exact = personalized_pagerank(graph, sources, tol=TOL)
    assert np.abs(exact - scipy_exact(sources)).sum(axis=1).max() < 2 * TOL

    print(f"{name}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {SOURCES} sources")
    result: dict[str, Any] = {"graph": name, "sources": SOURCES}
    parts = {
        f"capped flow, R = {ROUNDS}": (
            lambda: push_flow_cap(graph, sources, sigma=SIGMA, rounds=ROUNDS),
            {"scipy, one source": lambda: scipy_capped(sources[:1])},
            {f"scipy, block of {SOURCES}": lambda: scipy_capped(sources)},
        ),
        f"exact PageRank, L1 error {TOL:g}": (
            lambda: personalized_pagerank(graph, sources, tol=TOL),
            {"scipy, one source": lambda: scipy_exact(sources[:1])},
            {f"scipy, block of {SOURCES}": lambda: scipy_exact(sources)},
        ),
    }
    for what, (ours, single, block) in parts.items():
        times = interleaved({"edgeveil": ours, **single, **block}, seconds=15)
        per_source = {
            task: [t / (1 if task in single else SOURCES) for t in values]
            for task, values in times.items()
        }
        result[what] = {}
        print(f"\n{what}: CPU ms per source (median), times faster than (quartiles)")
        for task, values in per_source.items():
            ratio = ratios(values, per_source["edgeveil"])
            result[what][task] = {"seconds": quartiles(values), "edgeveil_is_faster": ratio}
            print(
                f"  {task:<22} {quartiles(values)['median'] * 1e3:8.2f}   "
                f"{ratio['median']:.2f} ({ratio['q1']:.2f} ... {ratio['q3']:.2f})"
            )
    return result
