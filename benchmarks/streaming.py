"""All sources of a graph, end to end: flow, noise, embedding, Parquet; one thread and two."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import described, small_graph
from benchmarks.measure import ratios, show, summary
from benchmarks.settings import Settings
from edgeveil import release_to
from edgeveil.jobs import Local
from edgeveil.mechanisms import DPInstantEmbedding, OwnListEmbedding

__all__ = ["MECHANISMS", "run"]

MECHANISMS = {
    "instant-embedding, R = 100": DPInstantEmbedding(epsilon=1.0, dimension=128),
    "instant-embedding, fixed point": DPInstantEmbedding(epsilon=1.0, dimension=128, rounds=None),
    "own-list-embedding": OwnListEmbedding(dimension=128),
}


def run(settings: Settings) -> dict[str, Any]:
    """Measure every mechanism in processes of their own, with one thread and two in turn."""
    name, graph = small_graph(settings)
    print(f"\nstreaming, all sources of {graph!r} to Parquet, wall time")
    result: dict[str, Any] = {"graph": described(name, graph), "mechanisms": {}}
    for what in MECHANISMS:
        by_threads: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        for _ in range(min(settings.rounds, 2)):
            for threads, runs in by_threads.items():
                job = {"what": what, "threads": threads, "settings": _plain(settings)}
                runs.append(in_child("streaming:stream", job))
        alone, both = ([row["seconds"] for row in by_threads[threads]] for threads in (1, 2))
        row = result["mechanisms"][what] = {
            "one": summary(alone),
            "two": summary(both),
            "speedup": ratios(alone, both),
            "peak_bytes": max(row["peak_bytes"] for row in by_threads[2]),
            "peak_bytes_before": by_threads[2][0]["peak_bytes_before"],
            "written_bytes": by_threads[2][0]["written_bytes"],
        }
        print(
            f"  {what:<32} {row['one']['median']:.1f} s, {row['two']['median']:.1f} s with two "
            f"threads ({show(row['speedup'])}); peak {row['peak_bytes'] / 2**20:.0f} MB, "
            f"{row['peak_bytes_before'] / 2**20:.0f} before"
        )
    return result


def _plain(settings: Settings) -> dict[str, Any]:
    return {
        "work": str(settings.work),
        "data": str(settings.data) if settings.data else None,
        "tiny": settings.tiny,
    }


def settings_of(plain: dict[str, Any]) -> Settings:
    """The settings that `_plain` took apart."""
    data = plain["data"]
    return Settings(work=Path(plain["work"]), data=Path(data) if data else None, tiny=plain["tiny"])


def stream(what: str, threads: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One run in this process, after one source to load the kernels."""
    graph = small_graph(settings_of(settings))[1]
    folder = Path(tempfile.mkdtemp())
    try:
        release_to(folder / "first", graph, MECHANISMS[what], [graph.nodes[0]])
        before = peak_memory()
        start = time.perf_counter()
        engine = Local(threads=threads)
        release = release_to(folder / "all", graph, MECHANISMS[what], graph.nodes, engine=engine)
        seconds = time.perf_counter() - start
        written = sum((release.path / part.name).stat().st_size for part in release.parts)
    finally:
        shutil.rmtree(folder)
    return {
        "seconds": seconds,
        "peak_bytes": peak_memory(),
        "peak_bytes_before": before,
        "written_bytes": written,
    }
