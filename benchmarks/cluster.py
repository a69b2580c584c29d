"""A Ray cluster on this machine: lists for all members, by two workers against one.

    ./run bench cluster --json benchmarks/results/cluster.json

From the graph to the folder of Parquet files, by the clock. What is not spread over the workers is
in it: the degrees that all members share, sending, putting files in their place. Beside it, as what
this machine allows at all, one process with all members against two plain ones with half of them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.children import in_child
from benchmarks.graphs import described, scaled_graph
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.settings import Settings
from benchmarks.streaming import settings_of
from edgeveil import NoiseSource, release, release_to
from edgeveil.jobs import Local, Ray
from edgeveil.jobs.tasks import Part
from edgeveil.mechanisms import Suggest

__all__ = ["run"]

_EDGES, _LARGE = 1_000_000, 10_000_000
_PARTS = 200
_LISTS = Suggest(epsilon=1.0)
_barrier: Any = None  # of a plain process and the others


def run(settings: Settings) -> dict[str, Any]:
    """Measure in a child: a cluster leaves threads and settings behind."""
    job = {"work": str(settings.work), "data": None, "tiny": settings.tiny}
    print("\nRay cluster on this machine, wall time")
    figures = in_child("cluster:measure", {"settings": job, "rounds": min(settings.rounds, 3)})
    print(f"  a part by itself {figures['part_seconds'] * 1e3:.1f} ms")
    print(f"  connecting and starting workers {figures['start_seconds']:.1f} s")
    print(
        f"  {figures['members']:,} lists: one worker {figures['one']['median']:.1f} s, two "
        f"{figures['two']['median']:.1f} s ({show(figures['speedup'])}); two threads "
        f"{figures['threads']['median']:.1f} s"
    )
    print(f"  two plain processes with half of the lists each: {show(figures['plain'])}")
    memory = figures["memory"]
    print(
        f"  a worker's own memory on {memory['graph']['edges']:,} edges: "
        f"{memory['worker_private_bytes'] / 2**20:.0f} MB; the graph "
        f"{memory['graph_bytes'] / 2**20:.0f} MB in the store once"
    )
    return figures


@dataclass(frozen=True)
class _Nothing:
    """A task without work: what is left is the cluster's own cost."""

    mechanism: Suggest = _LISTS
    graph: None = None

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> int:
        return part.batch


def measure(settings: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Everything on one cluster of two workers."""
    import ray

    chosen = settings_of(settings)
    graph = _small(settings)
    plain = [[_plain(settings, of) for of in (1, 2)] for _ in range(rounds)]
    start = time.perf_counter()
    quietly = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
    ray.init(address="local", num_cpus=2, **quietly)
    release(graph, _LISTS, range(500), engine=Ray())  # both workers have compiled code now
    result: dict[str, Any] = {
        "start_seconds": time.perf_counter() - start,
        "graph": described(f"generated, {graph.n_edges:,} edges", graph),
        "members": graph.n_nodes,
        "plain": ratios([alone for alone, _ in plain], [both for _, both in plain]),
    }
    key = NoiseSource.insecure(1).export_key()
    parts = [(Part(number, (0,)), key) for number in range(_PARTS)]
    start = time.perf_counter()
    nothing: Any = _Nothing()
    list(Ray(workers=1).run(nothing, parts))
    result["part_seconds"] = (time.perf_counter() - start) / _PARTS
    result |= _compare(graph, rounds)
    result["memory"] = _memory(chosen)
    ray.shutdown()
    return result


def _small(settings: dict[str, Any]) -> Any:
    chosen = settings_of(settings)
    return scaled_graph(20_000 if chosen.tiny else _EDGES, chosen)


def _plain(settings: dict[str, Any], of: int) -> float:
    """Seconds until so many processes, begun together, have made an equal share of the lists."""
    spawn = get_context("spawn")
    barrier = spawn.Barrier(of)
    with ProcessPoolExecutor(of, spawn, _meet_at, (barrier,)) as pool:
        shares = [pool.submit(_share, settings, which, of) for which in range(of)]
        return max(share.result() for share in shares)


def _meet_at(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def _share(settings: dict[str, Any], which: int, of: int) -> float:
    graph, engine = _small(settings), Local(threads=1)
    release(graph, _LISTS, range(500), engine=engine)
    members = range(which * graph.n_nodes // of, (which + 1) * graph.n_nodes // of)
    with tempfile.TemporaryDirectory() as folder:
        _barrier.wait()
        start = time.perf_counter()
        release_to(f"{folder}/lists", graph, _LISTS, members, engine=engine)
        return time.perf_counter() - start


def _compare(graph: Any, rounds: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())

    def stream(engine: Any) -> None:
        release_to(folder / "lists", graph, _LISTS, graph.nodes, engine=engine)
        shutil.rmtree(folder / "lists")

    engines = {"one": Ray(workers=1), "two": Ray(workers=2), "threads": Local(threads=2)}
    try:
        times = interleaved(
            {who: lambda engine=engine: stream(engine) for who, engine in engines.items()},
            rounds=rounds,
            warm=True,
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
    edges = 20_000 if settings.tiny else _LARGE
    graph = scaled_graph(edges, settings)
    release(graph, _LISTS, range(1000), engine=Ray(workers=2))
    return {
        "graph": described(f"generated, {edges:,} edges", graph),
        "graph_bytes": graph.indptr.nbytes + graph.indices.nbytes,
        "worker_private_bytes": max(_private_bytes()),
    }


def _private_bytes() -> list[int]:
    """Anonymous memory of all Ray workers of this machine."""
    sizes = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if (status.parent / "cmdline").read_bytes().startswith(b"ray::"):
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                sizes.append(int(lines["RssAnon"].split()[0]) * 1024)
        except (OSError, KeyError, ValueError):
            continue
    return sizes
