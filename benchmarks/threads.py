"""Two threads over blocks of sources against one, by the clock on the wall."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.graphs import described, small_graph, some_sources
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.ours import CALLS, call
from benchmarks.settings import Settings

__all__ = ["run"]


def run(settings: Settings) -> dict[str, Any]:
    """Measure on the small graph: 16 blocks, handed to a pool of one or two threads."""
    name, graph = small_graph(settings)
    blocks = np.array_split(some_sources(graph, 4 * settings.block), 16)
    print(f"\ntwo threads against one, {graph!r}, wall time")
    result: dict[str, Any] = {"graph": described(name, graph), "blocks": len(blocks), "calls": {}}
    for what in CALLS:
        solve = call(what, graph)[0]

        def work(threads: int, solve: Any = solve) -> None:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(solve, blocks))

        times = interleaved(
            {"one": lambda: work(1), "two": lambda: work(2)},
            rounds=settings.rounds,
            clock=time.perf_counter,
        )
        row = {
            "one": summary(times["one"]),
            "two": summary(times["two"]),
            "speedup": ratios(times["one"], times["two"]),
        }
        result["calls"][what] = row
        print(f"  {what:<12} {show(row['speedup'])}")
    return result
