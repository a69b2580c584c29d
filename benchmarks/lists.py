"""Lists of suggestions, all of their way: sums, noise, weights, estimate, the best places.

    ./run bench lists --json benchmarks/results/lists.json

Beside every list, in the same rounds, one whose noise is drawn for all nodes. Graphs are generated
(average degree 20) up to `--max-edges`; members are either of median degree with about equally many
friends' friends at all sizes, or a random sample that stands for all. The picture:

    python -c 'import json; from pathlib import Path; from benchmarks.pictures import draw
    file = Path("benchmarks/results/lists.json"); draw(json.loads(file.read_text()), file.parent)'
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.graphs import described, scaled_graph, small_graph
from benchmarks.measure import interleaved, load_average, ratios, show, summary
from benchmarks.scale import exponent
from benchmarks.settings import Settings
from edgeveil import Graph, NoiseSource
from edgeveil.engine import Local
from edgeveil.engine.tasks import Part, Task
from edgeveil.flow.two_hop import friend_counts_of_lists, two_hop_tail_of_lists
from edgeveil.mechanisms.base import own_lists
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.mechanisms.suggest import Suggest

__all__ = ["run"]

EDGES = (1_000_000, 10_000_000, 100_000_000)
EPSILON, PLACES, MANY_PLACES = 1.0, 20, 100
MEMBERS, PATHS = 256, 2_000  # of one call, and their friends' friends, counted with repeats
SAMPLE, PART = 20_000, 256

Members = npt.NDArray[np.int64]


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    print("\nlists: CPU time of a list, from the graph to its places")
    sizes = (20_000, 40_000) if settings.tiny else [e for e in EDGES if e <= settings.max_edges]
    rows = {str(edges): _size(scaled_graph(edges, settings), settings) for edges in sizes}
    times = [row["lazy, 100 places"]["median"] for row in rows.values()]
    growth = exponent([row["nodes"] for row in rows.values()], times) if len(rows) > 1 else None
    print(f"  time at equally many friends' friends grows with n to the power {growth}")
    name, graph = small_graph(settings)
    return {"sizes": rows, "exponent": growth, "small": {"name": name, **_small(graph, settings)}}


def _lists(graph: Graph, shared: Any, places: int, *, densely: bool = False) -> Callable[..., Any]:
    mechanism, noise = Suggest(epsilon=EPSILON, top=places, densely=densely), NoiseSource.secure()
    seeds = iter(range(10**9))
    return lambda members: rows_after(
        mechanism, graph, shared, members, noise.derive("rows", next(seeds))
    )


def _size(graph: Graph, settings: Settings) -> dict[str, Any]:
    """One graph: members of median degree, lazily and densely, and a sample of all members."""
    shared = shared_part(Suggest(epsilon=EPSILON), graph, NoiseSource.secure())
    typical = _typical(graph)
    tasks = {
        "lazy, 20 places": lambda: _lists(graph, shared, PLACES)(typical),
        "lazy, 100 places": lambda: _lists(graph, shared, MANY_PLACES)(typical),
        "dense, 100 places": lambda: _lists(graph, shared, MANY_PLACES, densely=True)(typical[:1]),
    }
    times = interleaved(tasks, rounds=settings.rounds, seconds=20)
    for name in times:
        if name.startswith("lazy"):
            times[name] = [t / len(typical) for t in times[name]]
    found: dict[str, Any] = {name: summary(of) for name, of in times.items()}
    faster = ratios(times["dense, 100 places"], times["lazy, 100 places"])
    print(
        f"  {graph.n_nodes:>11,} nodes, {graph.degrees[typical[0]]} friends: 100 places "
        f"{found['lazy, 100 places']['median'] * 1e3:.3f} ms, 20 places "
        f"{found['lazy, 20 places']['median'] * 1e3:.3f} ms, {show(faster)} times faster than dense"
    )
    facts = described("generated, power law", graph)
    return {
        **facts, **found, "times_faster_than_dense": faster, "all": _all(graph, shared, settings)
    }  # fmt: skip


def _typical(graph: Graph) -> list[int]:
    """Members of median degree, those first whose friends have about `PATHS` friends together."""
    degrees = graph.degrees
    some = np.flatnonzero(degrees == np.median(degrees))[: 50 * MEMBERS]
    paths = np.array([degrees[graph.neighbours(int(s))].sum() for s in some])
    return [int(s) for s in some[np.argsort(abs(paths - PATHS), kind="stable")[:MEMBERS]]]


def _all(graph: Graph, shared: Any, settings: Settings) -> dict[str, Any]:
    """A random sample of members, by one thread and by two: what all of them would take."""
    count = 200 if settings.tiny else SAMPLE
    chosen = np.random.default_rng(0).choice(graph.n_nodes, min(count, graph.n_nodes), False)
    task = RowsTask(mechanism=Suggest(epsilon=EPSILON, top=PLACES), graph=graph, shared=shared)
    found: dict[str, Any] = {"members": len(chosen)}
    before = most = _memory_mb()
    for threads in (1, 2):
        key = NoiseSource.secure().hand_over()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in Local(threads=threads).run(task, split(tuple(chosen.tolist()), PART), key):
            most = max(most, _memory_mb())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found[f"threads {threads}"] = {
            "wall_ms_per_list": wall / len(chosen) * 1e3,
            "cpu_ms_per_list": cpu / len(chosen) * 1e3,
            "all_members_minutes": wall / len(chosen) * graph.n_nodes / 60,
            "all_members_minutes_of_two_free_cores": cpu / len(chosen) * graph.n_nodes / 120,
            "load": load_average(),
        }
        line = found[f"threads {threads}"]
        print(
            f"              {threads} threads: {line['wall_ms_per_list']:.3f} ms a list of 20 "
            f"({line['cpu_ms_per_list']:.3f} of CPU); all members "
            f"{line['all_members_minutes']:.1f} minutes (load {line['load']})"
        )
    found["memory_mb_beside_graph_and_degrees"] = most - before
    return found


def _memory_mb() -> float:
    """Resident memory without what is mapped from files; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0.0


def _small(graph: Graph, settings: Settings) -> dict[str, Any]:
    """The whole mechanism beside its sums."""
    shared = shared_part(Suggest(epsilon=EPSILON), graph, NoiseSource.secure())
    members = np.random.default_rng(0).choice(graph.n_nodes, min(256, graph.n_nodes), False)
    own = own_lists(graph, members, "joint")
    ones = np.ones(len(own.lists))

    def sums() -> None:
        friend_counts_of_lists(graph, own.lists, own.starts)
        two_hop_tail_of_lists(graph, own.sources, own.lists, own.starts, ones)

    whole = _lists(graph, shared, PLACES)
    times = interleaved(
        {"sums": sums, "whole": lambda: whole(members.tolist())}, rounds=settings.rounds
    )
    ratio = ratios(times["whole"], times["sums"])
    found = {name: summary(t / len(members) for t in of) for name, of in times.items()}
    print(
        f"  {graph.n_nodes:,} nodes, {graph.n_edges:,} edges: {found['whole']['median'] * 1e3:.3f} "
        f"ms a list of 20, {show(ratio)} times its sums"
    )
    return {"nodes": graph.n_nodes, "edges": graph.n_edges, **found, "times_its_sums": ratio}
