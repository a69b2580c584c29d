"""Two-hop: the whole private mechanism per source, and its sums against scipy's products."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.graphs import described, large_graph, small_graph, some_sources
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.ours import call
from benchmarks.settings import Settings
from edgeveil import Graph
from edgeveil.flow.common_neighbours import two_hop_sums_of_lists

__all__ = ["run"]


def run(settings: Settings) -> dict[str, Any]:
    """Measure on the small and the large graph."""
    graphs = [_compare(*small_graph(settings), settings.rounds, settings)]
    if settings.rounds_large:
        graphs.append(_compare(*large_graph(settings), settings.rounds_large, settings))
    return {"graphs": graphs}


def _compare(name: str, graph: Graph, rounds: int, settings: Settings) -> dict[str, Any]:
    sources = some_sources(graph, settings.block)
    mechanism = call("two-hop", graph)[0]
    matrix = graph.adjacency()
    weights = 1 / np.maximum(graph.degrees, 1)

    def sums(source: int) -> Any:
        own = graph.neighbours(source)
        return two_hop_sums_of_lists(graph, own, np.array([0, len(own)]), weights[own])

    def vectors() -> None:
        for source in sources:
            start = np.zeros(graph.n_nodes)
            own = graph.neighbours(source)
            start[own] = weights[own]
            matrix @ start

    def sparse_block() -> Any:
        return matrix[sources].multiply(weights).tocsr() @ matrix

    tasks = {
        "edgeveil, whole mechanism with noise": lambda: mechanism(sources),
        "edgeveil, sums only": lambda: [sums(int(s)) for s in sources],
        "scipy, sums only, one source": vectors,
        "scipy, sums only, sparse block": sparse_block,
    }
    print(f"\ntwo-hop, {graph!r}, {len(sources)} sources")
    times = interleaved(tasks, rounds=rounds)
    rows = []
    for task, values in times.items():
        row = {
            "name": task,
            "kind": "ours" if task.startswith("edgeveil") else "peer",
            "seconds": summary(t / len(sources) for t in values),
            "times_ours": ratios(values, times["edgeveil, sums only"]),
        }
        rows.append(row)
        print(f"  {task:<38} {row['seconds']['median'] * 1e3:8.3f} ms   {show(row['times_ours'])}")
    return {"graph": described(name, graph), "sources": len(sources), "contenders": rows}
