"""A graph of a billion edges on one machine: built out of core, opened, lists for a sample.

    ./run bench billion --json benchmarks/results/billion.json
    ./run bench billion --edges 100000000 --memory 2000000000      a smaller one

A tenth and a hundredth of the size are measured too. Every step is a process of its own. The
edges are drawn part by part and deleted once the graph is built, and the graph once its lists are
made, also if a step fails. 1 billion edges need 24 GB of disk at the peak, in --work.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.beyond_memory import forget
from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import draw_spread_ends
from benchmarks.measure import summary
from benchmarks.settings import Settings
from edgeveil import NodeSet, NoiseSource, open_graph, suggest
from edgeveil.graph.building import build_graph
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import Local

__all__ = ["run"]

PART = 20_000_000  # edges
DEGREE = 40  # 1 billion edges of 50 million nodes
MEMBERS, PLACES, EPSILON = 4096, 20, 1.0
OPENED = 5


def run(settings: Settings) -> dict[str, Any]:
    """Measure all sizes, the largest first; nothing of them stays."""
    largest = 20_000 if settings.tiny else settings.edges
    start, sizes = time.perf_counter(), []
    print(f"\nbillion: built in {settings.memory / 1e9:.1f} GB, opened, {MEMBERS} lists")
    for edges in (largest, largest // 10, largest // 100):
        with settings.empty_folder(f"built-{edges}") as folder:
            sizes.append(_size({"folder": str(folder), "edges": edges}, settings.memory))
    return {
        "memory": settings.memory,
        "members": MEMBERS,
        "places": PLACES,
        "seconds": time.perf_counter() - start,
        "sizes": sizes[::-1],
    }


def _size(job: dict[str, Any], memory: int) -> dict[str, Any]:
    """Every step for one size."""
    edges = job["edges"]
    row = {"edges": edges, "nodes": 2 * edges // DEGREE, "drawing": in_child("billion:draw", job)}
    row["building"] = in_child("billion:build", {**job, "memory": memory})
    shutil.rmtree(Path(job["folder"], "parts"))
    _say(row)
    row["opening"] = in_child("billion:open_again", job)
    row["lists"] = in_child("billion:make_lists", job)
    print(
        f"    opened in {row['opening']['seconds']['median'] * 1e3:.1f} ms; shared by all "
        f"{row['lists']['shared_seconds']:.0f} s, a list {row['lists']['list_cpu'] * 1e3:.2f} "
        f"ms CPU, {row['lists']['peak_bytes'] / 1e9:.1f} GB",
        flush=True,
    )
    return row


def _say(row: dict[str, Any]) -> None:
    built = row["building"]
    steps = ", ".join(f"{what} {seconds:.0f}" for what, seconds in built["steps"].items())
    print(
        f"  {row['edges']:>13,} edges: drawn in {row['drawing']['seconds']:.0f} s, built in "
        f"{built['seconds']:.0f} s ({steps}), {built['cpu_seconds']:.0f} s CPU, peak "
        f"{built['peak_bytes'] / 1e9:.2f} GB, disk {built['disk_bytes'] / 1e9:.1f} GB",
        flush=True,
    )


def draw(folder: str, edges: int) -> dict[str, Any]:
    """Write the edges as Parquet, part by part; the same ones at every call."""
    start = time.perf_counter()
    n, parts = 2 * edges // DEGREE, Path(folder, "parts")
    parts.mkdir(exist_ok=True)
    size = 0
    for number, begin in enumerate(range(0, edges, PART)):
        ends = np.empty((2, min(PART, edges - begin)), dtype=np.int32)
        for column, out in enumerate(ends):
            draw_spread_ends(n, 2 * number + column + 1, out)
        file = parts / f"{number:04}.parquet"
        frame = pl.DataFrame({"source": ends[0], "target": ends[1]})
        frame.write_parquet(file, compression="uncompressed")
        size += file.stat().st_size
    return {"seconds": time.perf_counter() - start, "bytes": size, "parts": number + 1}


def build(folder: str, edges: int, memory: int) -> dict[str, Any]:
    """Build the folder, and look at it; the node set is public: 0 .. n-1."""
    parts = sorted(Path(folder, "parts").iterdir())
    place = Path(folder, "graph")
    steps: dict[str, float] = {}
    disk, last = 0, ("", time.perf_counter())

    def note(what: str, done: int, total: int) -> None:
        nonlocal disk, last
        now = time.perf_counter()
        if last[0]:
            steps[last[0]] = steps.get(last[0], 0.0) + now - last[1]
        last = (what, now)
        disk = max(disk, _bytes_under(place.with_name(f".{place.name}.building")))
        print(f"    {what}: {done} of {total}", file=sys.stderr)

    start, cpu = time.perf_counter(), time.process_time()
    nodes = NodeSet.range(2 * edges // DEGREE)
    build_graph(parts, place, nodes=nodes, memory=memory, progress=note)
    note("end", 1, 1)
    seconds, cpu, peak = time.perf_counter() - start, time.process_time() - cpu, peak_memory()
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "steps": steps,
        "peak_bytes": peak,
        "disk_bytes": disk,
        "folder_bytes": _bytes_under(place),
        **_looked_at(place, parts),
    }


def _looked_at(place: Path, parts: list[Path]) -> dict[str, Any]:
    """Check what can be checked without another graph, on a sample of the first and last part."""
    graph = open_graph(place)
    read_report = graph.read_report
    dropped = read_report.self_loops + read_report.repeated + read_report.both_directions
    assert read_report.entries == graph.n_edges + dropped, "every entry is an edge or was dropped"
    checked = 0
    for part in (parts[0], parts[-1]):
        frame = pl.read_parquet(part).sample(1000, with_replacement=True, seed=1)
        for u, v in frame.iter_rows():
            assert u == v or (v in graph.neighbours(u) and u in graph.neighbours(v))
            assert np.all(np.diff(graph.neighbours(u)) > 0)
            checked += 1
    largest = int(np.max(np.diff(graph.indptr)))
    return {"n_edges": graph.n_edges, "largest_degree": largest, "edges_looked_up": checked}


def _bytes_under(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def open_again(folder: str, edges: int) -> dict[str, Any]:
    """Open the folder, with its files out of the page cache."""
    place, times = Path(folder, "graph"), []
    for _ in range(OPENED):
        forget(place)
        start = time.perf_counter()
        open_graph(place)
        times.append(time.perf_counter() - start)
    return {"seconds": summary(times), "peak_bytes": peak_memory()}


def make_lists(folder: str, edges: int) -> dict[str, Any]:
    """Time of lists in one thread, and of what is done once for all of them before."""
    small = social_network(300, average_degree=12).graph
    suggest(small, [1], epsilon=EPSILON, k=PLACES, noise=NoiseSource.insecure(1))  # compiles
    graph = open_graph(Path(folder, "graph"))
    count = min(MEMBERS, graph.n_nodes // 2)
    members = np.random.default_rng(7).choice(graph.n_nodes, count, replace=False)
    told = [(0, time.perf_counter(), time.process_time())]

    def note(done: int, total: int) -> None:
        told.append((done, time.perf_counter(), time.process_time()))

    suggest(
        graph, members.tolist(), epsilon=EPSILON, k=PLACES, noise=NoiseSource.insecure(1),
        engine=Local(threads=1), progress=note,
    )  # fmt: skip
    begun, first, last = told[0], told[1], told[-1]
    rest = max(1, last[0] - first[0])  # lists after the first group, with which the shared part is
    seconds, cpu = ((last[i] - first[i]) / rest for i in (1, 2))
    return {
        "shared_seconds": first[1] - begun[1] - first[0] * seconds,
        "shared_cpu": first[2] - begun[2] - first[0] * cpu,
        "list_seconds": seconds,
        "list_cpu": cpu,
        "members": count,
        "median_degree": float(np.median(graph.indptr[members + 1] - graph.indptr[members])),
        "peak_bytes": peak_memory(),
    }
