"""Snapshots merged into a history: a first one, and one a week later.

    ./run bench history --json benchmarks/results/history.json

The second snapshot lacks one edge in a hundred of the first, has as many new ones, and as many of
its members are new; their ids lie among the old ones, so that the order of nodes is another one.
100 million edges need 6 GB of disk and 6 GB of memory, most of it to draw them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import draw_spread_ends
from benchmarks.settings import Settings
from edgeveil import Graph, History, NodeSet, open_graph, save_graph

__all__ = ["run"]

DEGREE, CHANGED = 40, 100
SIZES = (1_000_000, 10_000_000, 100_000_000)


def run(settings: Settings) -> dict[str, Any]:
    """Measure all sizes, each step in a process of its own; nothing of them stays."""
    sizes = (20_000,) if settings.tiny else [s for s in SIZES if s <= settings.max_edges]
    rows = []
    for edges in sizes:
        with settings.empty_folder(f"history-{edges}") as folder:
            job = {"folder": str(folder), "edges": edges}
            in_child("history:draw", job)
            rows.append({"edges": edges, **in_child("history:merge", job)})
        line = ", ".join(f"{name} {value:,.1f}" for name, value in rows[-1].items())
        print(f"  {line}", flush=True)
    return {"sizes": rows}


def draw(folder: str, edges: int) -> dict[str, Any]:
    """Save two snapshots."""
    n, few = 2 * edges // DEGREE, edges // CHANGED
    ends = np.empty((2, edges + few), dtype=np.int32)
    for column, out in enumerate(ends):
        draw_spread_ends(n, column + 1, out)
    save_graph(Graph.from_edges(*ends[:, :edges], NodeSet.range(n)), Path(folder, "first"))
    ids = np.arange(n)
    ids[np.random.default_rng(3).choice(n, n // CHANGED, replace=False)] += n
    later = Graph.from_edges(*ends[:, few:], NodeSet.of_ints(ids))
    save_graph(later, Path(folder, "second"))
    return {}


def merge(folder: str, edges: int) -> dict[str, Any]:
    """Merge both, and forget a member who left."""
    history = History.create(Path(folder, "history"))
    figures: dict[str, Any] = {}
    for name in ("first", "second"):
        snapshot = open_graph(Path(folder, name))
        start, cpu = time.perf_counter(), time.process_time()
        history.add(snapshot)
        figures |= _seconds(name, start, cpu)
    figures["peak_bytes"] = peak_memory()
    figures["own_bytes"] = _own_memory()
    files = Path(folder, "history").rglob("*")
    figures["folder_bytes"] = sum(file.stat().st_size for file in files if file.is_file())
    figures |= {"nodes": len(history.nodes), "edges_ever": history.graph.n_edges}
    start, cpu = time.perf_counter(), time.process_time()
    history.forget(history.nodes.take(np.flatnonzero(~history.present)[:1]))
    return figures | _seconds("forget", start, cpu)


def _seconds(name: str, start: float, cpu: float) -> dict[str, float]:
    wall, busy = time.perf_counter() - start, time.process_time() - cpu
    return {f"{name}_seconds": wall, f"{name}_cpu_seconds": busy}


def _own_memory() -> int:
    """Memory of this process now, without pages of mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024
