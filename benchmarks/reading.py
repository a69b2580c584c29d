"""Reading ten million edges into a Graph, against what polars alone takes to parse the file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import draw_edges, nodes_for
from benchmarks.measure import ratios, show, summary
from benchmarks.settings import Settings
from edgeveil import open_graph, read_graph, save_graph

__all__ = ["run"]

FILES = {"integers": "integers.csv", "strings": "strings.csv", "parquet": "integers.parquet"}


def run(settings: Settings) -> dict[str, Any]:
    """Every file in a process of its own, once with one thread for polars and once with all."""
    edges = 20_000 if settings.tiny else 10_000_000
    folder = settings.work / f"reading-{edges}"
    _write_files(folder, edges)
    result: dict[str, Any] = {"edges": edges, "files": []}
    print(f"\nreading {edges:,} edges, as a multiple of polars' own parse")
    for what, name in FILES.items():
        for threads in ("1",) if settings.tiny else ("1", ""):
            job = {"path": str(folder / name), "rounds": min(settings.rounds, 5)}
            pinned = {"POLARS_MAX_THREADS": threads}
            row = {
                "what": what,
                "polars_threads": threads or "all",
                "bytes": (folder / name).stat().st_size,
                **in_child("reading:read", job, pinned),
            }
            result["files"].append(row)
            print(
                f"  {what:<9} polars threads {row['polars_threads']:<3}  "
                f"{row['cpu']['edgeveil']['median']:.2f} s, CPU {show(row['cpu']['ratio'])}, "
                f"wall {show(row['wall']['ratio'])}, peak {row['peak_bytes'] / 2**30:.2f} GB"
            )
    result["folder"] = in_child("reading:open_folder", {"path": str(folder / "graph")})
    print(f"  folder    opened in {result['folder']['seconds']['median'] * 1e3:.2f} ms")
    return result


def _write_files(folder: Path, edges: int) -> None:
    """Random edges, in random order, in every format; made once."""
    if (folder / "graph").exists():
        return
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    u, v = draw_edges(nodes_for(edges), edges)
    table = pl.DataFrame({"u": u, "v": v}).cast(pl.Int64)
    table.write_csv(folder / FILES["integers"], include_header=False)
    table.write_parquet(folder / FILES["parquet"])
    names = [pl.concat_str(pl.lit("user-"), pl.col(c).cast(pl.String)).alias(c) for c in "uv"]
    table.select(names).write_csv(folder / FILES["strings"], include_header=False)
    del table
    save_graph(read_graph(folder / FILES["integers"]), folder / "graph")


def read(path: str, rounds: int) -> dict[str, Any]:
    """Polars' parse and our reading in turn, CPU and wall seconds."""
    import polars as pl

    parse: Callable[[], object] = (
        (lambda: pl.read_parquet(path))
        if path.endswith(".parquet")
        else (lambda: pl.read_csv(path, has_header=False))
    )
    tasks = {"polars": parse, "edgeveil": lambda: read_graph(path)}
    cpu: dict[str, list[float]] = {name: [] for name in tasks}
    wall: dict[str, list[float]] = {name: [] for name in tasks}
    for i in range(rounds + 1):
        for name, task in tasks.items():
            starts = time.process_time(), time.perf_counter()
            task()
            if i > 0:  # the first round warms up
                cpu[name].append(time.process_time() - starts[0])
                wall[name].append(time.perf_counter() - starts[1])
    return {
        kind: {
            **{name: summary(values) for name, values in times.items()},
            "ratio": ratios(times["edgeveil"], times["polars"]),
        }
        for kind, times in (("cpu", cpu), ("wall", wall))
    } | {"peak_bytes": peak_memory()}


def open_folder(path: str) -> dict[str, Any]:
    """Open a saved graph again and again."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        open_graph(path)
        times.append(time.perf_counter() - start)
    return {"seconds": summary(times), "peak_bytes": peak_memory()}
