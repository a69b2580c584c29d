"""Time per source, building time and peak memory from a million edges upwards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import draw_edges, nodes_for, scaled_graph, some_sources
from benchmarks.measure import summary
from benchmarks.ours import CALLS, call
from benchmarks.settings import Settings
from edgeveil import Graph, NodeSet

__all__ = ["exponent", "run"]

SOURCES = {"capped": 8}  # a full block is 8 sources in double precision,
_BLOCK = 16  # and 16 where the first sweeps are in single
_BUDGET = 60.0  # CPU seconds: a call that took longer is not repeated


def run(settings: Settings) -> dict[str, Any]:
    """Measure every size and algorithm in a process of its own."""
    sizes = [2_000, 8_000, 32_000] if settings.tiny else [1_000_000, 10_000_000, 100_000_000]
    result: dict[str, Any] = {"sizes": []}
    print("\nscale: CPU time per source, and the peak memory of a process that does only this")
    for edges in (size for size in sizes if size <= settings.max_edges):
        row = in_child("scale:build", {"edges": edges})
        scaled_graph(edges, settings)
        print(
            f"  {row['edges']:>11,} edges: built in {row['build_seconds']:.2f} s, "
            f"{row['peak_bytes'] / 2**30:.2f} GB"
        )
        row["bare"] = in_child("scale:bare", {"edges": edges, "work": str(settings.work)})
        print(f"    bare reading of rows: {row['bare']['seconds_per_row'] * 1e9:.2f} ns each")
        row["calls"] = {}
        for what in CALLS:
            job = {"edges": edges, "what": what, "work": str(settings.work)}
            figures = row["calls"][what] = in_child("scale:solve", job)
            print(
                f"    {what:<12} {figures['seconds']['median'] * 1e3:>10.1f} ms, prepared in "
                f"{figures['prepare_seconds']:.2f} s, {figures['peak_bytes'] / 2**30:.2f} GB"
            )
        result["sizes"].append(row)
    edges = [row["edges"] for row in result["sizes"]]
    if len(edges) > 1:
        series = {
            what: [row["calls"][what]["seconds"]["median"] for row in result["sizes"]]
            for what in CALLS
        }
        series["building"] = [row["build_seconds"] for row in result["sizes"]]
        series["bare reading"] = [
            row["bare"]["seconds_per_row"] * row["edges"] for row in result["sizes"]
        ]
        result["exponents"] = {what: exponent(edges, times) for what, times in series.items()}
        for what, value in result["exponents"].items():
            print(f"  {what}: time grows like edges^{value:.2f}")
    return result


def exponent(edges: list[int], seconds: list[float]) -> float:
    """Slope of log time against log edges, by least squares."""
    return float(np.polyfit(np.log(edges), np.log(seconds), 1)[0])


def build(edges: int) -> dict[str, Any]:
    """Make a graph from two arrays of ends."""
    n = nodes_for(edges)
    u, v = draw_edges(n, edges)
    before = peak_memory()
    start = time.process_time()
    graph = Graph.from_edges(u, v, NodeSet.range(n))
    return {
        "nodes": n,
        "edges": graph.n_edges,
        "graph_bytes": graph.indptr.nbytes + graph.indices.nbytes,
        "build_seconds": time.process_time() - start,
        "peak_bytes": peak_memory(),
        "peak_bytes_before": before,
    }


def solve(edges: int, what: str, work: str) -> dict[str, Any]:
    """Open the saved graph and rank a block of sources, up to three times."""
    graph = scaled_graph(edges, Settings(work=Path(work)))
    sources = some_sources(graph, SOURCES.get(what, _BLOCK))
    start = time.process_time()
    ranked, prepare = call(what, graph)
    prepare()
    prepared = time.process_time() - start
    times: list[float] = []
    while len(times) < 3 and sum(times) < _BUDGET:
        start = time.process_time()
        ranked(sources)
        times.append((time.process_time() - start) / len(sources))
    return {
        "sources": len(sources),
        "seconds": summary(times),
        "prepare_seconds": prepared,
        "peak_bytes": peak_memory(),
    }


def bare(edges: int, work: str) -> dict[str, Any]:
    """What the memory gives: one cache line per stored entry, in the kernels' order, no more.

    A sweep cannot be faster than this on the same graph, and this grows faster than the edges
    as the lines no longer fit the caches.
    """
    from numba import njit

    from edgeveil.flow._blocks import block_zeros, layout_of
    from edgeveil.flow._kernels import LANES
    from edgeveil.flow._lanes import store, sum_rows

    lanes = LANES

    @njit(nogil=True)
    def read(g: Any, indices: Any, out: Any) -> None:
        store(sum_rows(lanes, g, indices, 0, len(indices)), out, 0)

    layout = layout_of(scaled_graph(edges, Settings(work=Path(work))))
    g, out = block_zeros(len(layout.degree), lanes), np.empty((1, lanes))
    read(g, layout.indices, out)
    times = []
    for _ in range(3):
        start = time.process_time()
        read(g, layout.indices, out)
        times.append((time.process_time() - start) / len(layout.indices))
    return {"seconds_per_row": float(np.median(times))}
