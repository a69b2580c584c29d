"""A year of lists as a series: the first refresh, and the one a week later.

    ./run bench series --json benchmarks/results/series.json

One million members with ten million edges. In the week one edge in a hundred ends, as many are
new, and one member in a hundred has joined. Lists of 20 places are written both times. Needs 3 GB
of disk.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import draw_spread_ends
from benchmarks.measure import load_average
from benchmarks.settings import Settings
from edgeveil import Graph, Ledger, NodeSet, open_graph, refresh, save_graph
from edgeveil.graph.datasets import social_network

__all__ = ["run"]

DEGREE, CHANGED = 20, 100


def run(settings: Settings) -> dict[str, Any]:
    """Measure both refreshes in a process of their own; nothing of them stays."""
    edges = 20_000 if settings.tiny else min(10_000_000, settings.max_edges)
    with settings.empty_folder(f"series-{edges}") as folder:
        job = {"folder": str(folder), "edges": edges}
        in_child("series:draw", job)
        figures = {"edges": edges, **in_child("series:weeks", job)}
    print("  " + ", ".join(f"{name} {value:,.1f}" for name, value in figures.items()), flush=True)
    return figures


def draw(folder: str, edges: int) -> dict[str, Any]:
    """Save two snapshots: ids are text, as members' ids often are."""
    n, few = 2 * edges // DEGREE, edges // CHANGED
    joined = n // CHANGED
    ends = np.empty((2, edges + few), dtype=np.int32)
    for column, out in enumerate(ends):
        draw_spread_ends(n, column + 1, out)
    names = [f"member{i:07d}" for i in range(n)]
    stayed = n - joined
    first = (ends[:, :edges] < stayed).all(axis=0)
    before = Graph.from_edges(*ends[:, :edges][:, first], NodeSet.of(names[:stayed]))
    save_graph(before, Path(folder, "first"))
    save_graph(Graph.from_edges(*ends[:, few:], NodeSet.of(names)), Path(folder, "second"))
    return {}


def weeks(folder: str, edges: int) -> dict[str, Any]:
    """Refresh with both, one after the other."""
    # What is compiled once is not measured.
    small, tried = social_network(300).graph, Path(folder, "tried")
    refresh(small, ledger=Ledger.create(tried, epsilon=1), epsilon=1.0).write(f"{tried}.lists")
    ledger = Ledger.create(Path(folder, "ledger"), epsilon=1)
    figures: dict[str, Any] = {}
    for name, date in (("first", "2026-11-09"), ("second", "2026-11-16")):
        snapshot = open_graph(Path(folder, name))
        figures[f"{name}_load"] = load_average()
        start, cpu = time.perf_counter(), time.process_time()
        lists = refresh(snapshot, ledger=ledger, epsilon=1.0, label="friends", date=date)
        refreshed, busy = time.perf_counter() - start, time.process_time() - cpu
        lists.write(Path(folder, f"lists-{name}"))
        figures |= {
            f"{name}_refresh_seconds": refreshed,
            f"{name}_refresh_cpu_seconds": busy,
            f"{name}_seconds": time.perf_counter() - start,
            f"{name}_cpu_seconds": time.process_time() - cpu,
            f"{name}_windows": lists.n_windows,
            f"{name}_newcomers": lists.n_newcomers,
        }
    place = Path(folder, "ledger.series", "friends")
    figures |= {
        "members": lists.n_lists,
        "peak_bytes": peak_memory(),
        "state_bytes_a_member": _size(place.glob("state-*/*")) / lists.n_lists,
        "history_bytes_a_member": _size((place / "history").rglob("*")) / lists.n_lists,
        "ledger_bytes_a_member": Path(folder, "ledger").stat().st_size / lists.n_lists,
    }
    return figures


def _size(files: Any) -> int:
    return sum(file.stat().st_size for file in files if file.is_file())
