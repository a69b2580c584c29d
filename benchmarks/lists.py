"""Lists of suggestions, all of their way: weights, sums, noise, evidence, the best names.

    ./run bench lists --json benchmarks/results/lists.json

Beside every list, in the same rounds, one whose noise is drawn for all nodes. Graphs are generated
(average degree 20) up to `--max-edges`; members are either of median degree with about equally many
friends' friends at all sizes, or a random sample that stands for all.
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
from edgeveil.flow.common_neighbours import two_hop_tail_of_lists
from edgeveil.jobs import Local
from edgeveil.jobs.tasks import Metadata, Part, Task
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.results.provenance import Provenance

__all__ = ["run"]

EDGES = (1_000_000, 10_000_000, 100_000_000)
EPSILON, PLACES, MANY_PLACES = 1.0, 20, 100
MANY = "lazy, 100 places"
MEMBERS, PATHS = 256, 2_000  # of one call, and their friends' friends, counted with repeats
SAMPLE, LONG, PART = 20_000, 1_000_000, 256

Members = npt.NDArray[np.int64]


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    print("\nlists: CPU time of a list, from the graph to its places")
    sizes = (20_000, 40_000) if settings.tiny else [e for e in EDGES if e <= settings.max_edges]
    rows = {str(edges): _size(scaled_graph(edges, settings), settings) for edges in sizes}
    times = [row[MANY]["median"] for row in rows.values()]
    growth = exponent([row["nodes"] for row in rows.values()], times) if len(rows) > 1 else None
    print(f"  time at equally many friends' friends grows with n to the power {growth}")
    name, graph = small_graph(settings)
    small = {"name": name, **_small(graph, settings)}
    return {"sizes": rows, "exponent": growth, "small": small}


def _lists(graph: Graph, shared: Any, places: int, *, densely: bool = False) -> Callable[..., Any]:
    mechanism, noise = Suggest(epsilon=EPSILON, densely=densely), NoiseSource.secure()
    seeds = iter(range(10**9))

    def make(members: list[int]) -> object:
        own_noise = noise.derive("rows", next(seeds))
        evidence = rows_after(mechanism, graph, shared, members, own_noise)
        return mechanism.lists(evidence, shared, local_views(graph, members, "joint"), places)

    return make


def _size(graph: Graph, settings: Settings) -> dict[str, Any]:
    """One graph: members of median degree, lazily and densely, and a sample of all members."""
    shared = shared_part(Suggest(epsilon=EPSILON), graph, NoiseSource.secure())
    typical = _typical(graph)
    views = local_views(graph, typical, "joint")
    ones = np.ones(len(views.lists))
    tasks = {
        "lazy, sums alone": lambda: two_hop_tail_of_lists(
            graph, views.sources, views.lists, views.starts, ones
        ),
        "lazy, 20 places": lambda: _lists(graph, shared, PLACES)(typical),
        MANY: lambda: _lists(graph, shared, MANY_PLACES)(typical),
        "dense, 100 places": lambda: _lists(graph, shared, MANY_PLACES, densely=True)(typical[:1]),
    }
    times = interleaved(tasks, rounds=settings.rounds, seconds=20)
    for name in times:
        if name.startswith("lazy"):
            times[name] = [t / len(typical) for t in times[name]]
    figures: dict[str, Any] = {name: summary(of) for name, of in times.items()}
    faster = ratios(times["dense, 100 places"], times[MANY])
    sums = ratios(times[MANY], times["lazy, sums alone"])
    print(
        f"  {graph.n_nodes:>11,} nodes, {graph.degrees[typical[0]]} friends: 100 places "
        f"{figures[MANY]['median'] * 1e3:.3f} ms, 20 places "
        f"{figures['lazy, 20 places']['median'] * 1e3:.3f} ms, {show(sums)} times its sums, "
        f"{show(faster)} times faster than dense"
    )
    facts = described("generated, power law", graph)
    return {
        **facts, **figures, "times_faster_than_dense": faster, "times_its_sums": sums,
        "all": _all(graph, shared, settings)
    }  # fmt: skip


def _typical(graph: Graph) -> list[int]:
    """Members of median degree, those first whose friends have about `PATHS` friends together."""
    degrees = graph.degrees
    some = np.flatnonzero(degrees == np.median(degrees))[: 50 * MEMBERS]
    paths = np.array([degrees[graph.neighbours(int(s))].sum() for s in some])
    return [int(s) for s in some[np.argsort(abs(paths - PATHS), kind="stable")[:MEMBERS]]]


def _all(graph: Graph, shared: Any, settings: Settings) -> dict[str, Any]:
    """Random members by one thread and by two in turn, then up to a million of them by two."""
    rng, sample, long = np.random.default_rng(0), SAMPLE, LONG
    if settings.tiny:
        sample, long = 200, 400
    chosen = rng.choice(graph.n_nodes, min(long, graph.n_nodes), False)
    mechanism, noise = Suggest(epsilon=EPSILON), NoiseSource.secure()
    metadata = Metadata(mechanism.guarantee(long), Provenance(
        mechanism=mechanism.name, parameters={}, version="", noise=noise.kind, ledger=False
    ))  # fmt: skip
    task = Task(mechanism=mechanism, graph=graph, shared=shared, metadata=metadata)
    before, peak = _memory_mb(), [0.0]

    def make(threads: int, members: Members) -> None:
        key = NoiseSource.secure().export_key()
        parts = (
            (Part(0, tuple(members[first : first + PART].tolist())), key)
            for first in range(0, len(members), PART)
        )
        for _ in Local(threads=threads).run(task, parts):
            peak[0] = max(peak[0], _memory_mb())

    walls = interleaved(
        {str(threads): lambda t=threads: make(t, chosen[:sample]) for threads in (1, 2)},
        rounds=min(settings.rounds, 3), warm=True, clock=time.perf_counter,
    )  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    make(2, chosen)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    costs = {
        "members": len(chosen),
        "one_thread_ms_per_list": summary(t / min(sample, len(chosen)) * 1e3 for t in walls["1"]),
        "two_threads_times_one": ratios(walls["1"], walls["2"])["median"],
        "wall_ms_per_list": wall / len(chosen) * 1e3,
        "cpu_ms_per_list": cpu / len(chosen) * 1e3,
        "all_members_minutes": wall / len(chosen) * graph.n_nodes / 60,
        "memory_mb_beside_graph_and_degrees": peak[0] - before,
        "load": load_average(),
    }
    print(
        f"              {len(chosen):,} lists of 20, two threads: {costs['wall_ms_per_list']:.3f} "
        f"ms each ({costs['cpu_ms_per_list']:.3f} of CPU), {costs['two_threads_times_one']:.2f} "
        f"times one thread; all members {costs['all_members_minutes']:.1f} minutes "
        f"(load {costs['load']})"
    )
    return costs


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
    views = local_views(graph, members, "joint")
    ones = np.ones(len(views.lists))

    def sums() -> None:
        two_hop_tail_of_lists(graph, views.sources, views.lists, views.starts, ones)

    whole = _lists(graph, shared, PLACES)
    times = interleaved(
        {"sums": sums, "whole": lambda: whole(members.tolist())}, rounds=settings.rounds
    )
    ratio = ratios(times["whole"], times["sums"])
    costs = {name: summary(t / len(members) for t in of) for name, of in times.items()}
    print(
        f"  {graph.n_nodes:,} nodes, {graph.n_edges:,} edges: {costs['whole']['median'] * 1e3:.3f} "
        f"ms a list of 20, {show(ratio)} times its sums"
    )
    return {"nodes": graph.n_nodes, "edges": graph.n_edges, **costs, "times_its_sums": ratio}
