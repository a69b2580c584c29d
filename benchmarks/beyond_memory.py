"""A graph larger than the memory a process may use: mapped from its folder, page by page.

The limit is a control group's, which counts mapped file pages too, so the graph really does
not fit. Needs the right to make a control group (root, as a rule).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import in_child
from benchmarks.graphs import described, draw_edges
from benchmarks.settings import RESTART, SIGMA, Settings
from edgeveil import Graph, NodeSet, NoiseSource, open_graph, save_graph
from edgeveil.flow import push_flow_cap
from edgeveil.mechanisms import TwoHop
from edgeveil.mechanisms.run import make_rows, shared_part

__all__ = ["forget", "run"]

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_CALLS = ("two-hop", "fixed point")


def run(settings: Settings) -> dict[str, Any]:
    """Measure the same calls with and without the limit."""
    nodes, edges = (20_000, 400_000) if settings.tiny else (1_000_000, 100_000_000)
    folder = settings.work / f"dense-{edges}"
    if not folder.exists():
        settings.work.mkdir(parents=True, exist_ok=True)
        save_graph(Graph.from_edges(*draw_edges(nodes, edges), NodeSet.range(nodes)), folder)
    graph = open_graph(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    limit = int(0.8 * size) if not settings.tiny else 400 << 20
    print(f"\n{graph!r}, {size / 2**20:.0f} MB on disk, limit {limit / 2**20:.0f} MB")
    result: dict[str, Any] = {
        "graph": described(f"generated, {edges:,} edges", graph),
        "graph_bytes": size,
        "limit_bytes": limit,
        "calls": {},
    }
    for what in _CALLS:
        job = {"folder": str(folder), "what": what}
        free = in_child("beyond_memory:solve", {**job, "limit": None})
        tight = in_child("beyond_memory:solve", {**job, "limit": limit})
        same = free.pop("digest") == tight.pop("digest")
        result["calls"][what] = {"free": free, "limited": tight, "same_bits": same}
        print(
            f"  {what:<12} {free['seconds']:.2f} s a source, limited {tight['seconds']:.2f} s; "
            f"{'the same bits' if same else 'DIFFERENT VALUES'}"
        )
    return result


@contextmanager
def _limited(limit: int | None) -> Iterator[None]:
    """Put this process into a control group with a memory limit."""
    if limit is None:
        yield
        return
    parent, knob = (_V1, "memory.limit_in_bytes") if _V1.is_dir() else (_V2, "memory.max")
    group = parent / f"edgeveil-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / knob).write_text(str(limit))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def forget(folder: Path) -> None:
    """Take the files out of the page cache: pages that another process read are not counted."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def solve(folder: str, what: str, limit: int | None) -> dict[str, Any]:
    """Rank two sources under the limit; the first one also loads the kernels."""
    forget(Path(folder))
    with _limited(limit):
        graph = open_graph(folder)
        noise, mechanism = NoiseSource.insecure(1), TwoHop(epsilon=1.0)
        two_hop = what == "two-hop"
        shared = shared_part(mechanism, graph, noise.derive("shared")) if two_hop else None
        times = []
        row = np.empty(0)
        for source in (3, 5):
            start = time.perf_counter()
            if what == "two-hop":
                row, _ = make_rows(mechanism, graph, shared, [source], noise.derive("rows"))
            else:
                row = push_flow_cap(graph, [source], sigma=SIGMA, restart=RESTART, rounds=None)
            times.append(time.perf_counter() - start)
        return {"seconds": times[-1], "digest": hashlib.sha256(row.tobytes()).hexdigest()}
