"""A Ray cluster on this machine: two workers against one, and what a part costs by itself."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.children import in_child
from benchmarks.graphs import described, scaled_graph, small_graph
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.settings import Settings
from benchmarks.streaming import MECHANISMS, settings_of
from edgeveil import NoiseSource, release, release_to
from edgeveil.engine import Local, Ray
from edgeveil.engine.packing import pack
from edgeveil.engine.tasks import Part, Task
from edgeveil.mechanisms import TwoHop

__all__ = ["run"]

_PARTS = 200


def run(settings: Settings) -> dict[str, Any]:
    """Measure in a child: a cluster leaves threads and settings behind."""
    job = {
        "work": str(settings.work),
        "data": str(settings.data) if settings.data else None,
        "tiny": settings.tiny,
    }
    print("\nRay cluster on this machine, wall time")
    found = in_child("cluster:measure", {"settings": job, "rounds": min(settings.rounds, 3)})
    print(f"  a part by itself {found['part_seconds'] * 1e3:.1f} ms")
    print(f"  connecting and starting workers {found['start_seconds']:.1f} s")
    for what, row in found["mechanisms"].items():
        print(
            f"  {what:<32} {row['one']['median']:.1f} s, two workers {row['two']['median']:.1f} s "
            f"({show(row['speedup'])}); two threads {row['threads']['median']:.1f} s"
        )
    print(
        f"  a worker's own memory on {found['memory']['graph']['edges']:,} edges: "
        f"{found['memory']['worker_private_bytes'] / 2**20:.0f} MB; the graph "
        f"{found['memory']['graph_bytes'] / 2**20:.0f} MB in the store once"
    )
    return found


@dataclass(frozen=True)
class _Nothing:
    """A task without work: what is left is the cluster's own cost."""

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> int:
        return part.batch


def measure(settings: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Everything on one cluster of two workers."""
    import ray

    chosen = settings_of(settings)
    name, graph = small_graph(chosen)
    start = time.perf_counter()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    warm = release(graph, MECHANISMS["two-hop-embedding"], graph.nodes, engine=Ray())
    result: dict[str, Any] = {
        "start_seconds": time.perf_counter() - start,
        "graph": described(name, graph),
        "rows": len(warm.sources),
    }
    key = NoiseSource.insecure(1).hand_over()
    parts = [(Part(number, 0, (0,)), key) for number in range(_PARTS)]
    start = time.perf_counter()
    list(Ray(workers=1).run(_Nothing(), parts))
    result["part_seconds"] = (time.perf_counter() - start) / _PARTS
    result["mechanisms"] = {what: _compare(what, graph, rounds) for what in MECHANISMS}
    result["memory"] = _memory(chosen)
    ray.shutdown()
    return result


def _compare(what: str, graph: Any, rounds: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    count = iter(range(1_000))

    def stream(engine: Any) -> None:
        place = folder / str(next(count))
        release_to(place, graph, MECHANISMS[what], graph.nodes, engine=engine)
        shutil.rmtree(place)

    try:
        times = interleaved(
            {
                "one": lambda: stream(Ray(workers=1)),
                "two": lambda: stream(Ray(workers=2)),
                "threads": lambda: stream(Local(threads=2)),
            },
            rounds=rounds,
            clock=time.perf_counter,
        )
    finally:
        shutil.rmtree(folder)
    return {
        **{who: summary(values) for who, values in times.items()},
        "speedup": ratios(times["one"], times["two"]),
    }


def _memory(settings: Settings) -> dict[str, Any]:
    """What a worker holds for itself while the graph is shared."""
    edges = 20_000 if settings.tiny else 10_000_000
    graph = scaled_graph(edges, settings)
    mechanism = TwoHop(epsilon=1.0)
    release(graph, mechanism, [graph.nodes[i] for i in range(16)], engine=Ray(workers=2))
    packed = pack(Task(mechanism=mechanism, graph=graph, shared=None))
    return {
        "graph": described(f"generated, {edges:,} edges", graph),
        "graph_bytes": sum(buffer.nbytes for buffer in packed.buffers),
        "worker_private_bytes": max(_private_bytes()),
    }


def _private_bytes() -> list[int]:
    """Anonymous memory of all Ray workers of this machine."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if (status.parent / "cmdline").read_bytes().startswith(b"ray::"):
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                found.append(int(lines["RssAnon"].split()[0]) * 1024)
        except (OSError, KeyError, ValueError):
            continue
    return found
