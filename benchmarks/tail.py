"""A row whose noise is drawn only where it can be seen: time against the number of nodes.

    ./run bench tail --json benchmarks/results/tail.json

Beside it, in the same rounds, the dense draw of the same row, numpy's, and the two-hop sums of
a graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.graphs import described, draw_edges
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.scale import exponent
from benchmarks.settings import Settings
from edgeveil.flow.common_neighbours import two_hop_tail_of_lists
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import local_views
from edgeveil.privacy.noise import NoiseSource, calibrate
from edgeveil.privacy.statistic import Tail, randomise

__all__ = ["run"]

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
DENSE_UP_TO = 10_000_000  # beyond: as long as ten times that
PLACES, MARKS, ROWS = 2_000, 250, 64
EPSILON = 1.0
LAZY, DENSE = "lazy", "dense"


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    print(f"\ntail: CPU time a row, {PLACES:,} places with a value, {MARKS} marks expected")
    sizes = (10_000, 20_000) if settings.tiny else SIZES
    tasks = {(n, way): task for n in sizes for way, task in _tasks(n).items()}
    named = {f"{n} {way}": task for (n, way), task in tasks.items()}
    times = interleaved(named, rounds=2 * settings.rounds, seconds=20)
    rows = {}
    for n in sizes:
        of_size = {way: times[f"{n} {way}"] for m, way in tasks if m == n}
        rows[str(n)] = _row(n, {**of_size, LAZY: [t / ROWS for t in of_size[LAZY]]})
    growth = exponent(list(sizes), [row[LAZY]["median"] for row in rows.values()])
    print(f"  time grows with n to the power {growth:.3f}")
    sums = _sums(10_000 if settings.tiny else 1_000_000, settings)
    return {"sizes": rows, "exponent": growth, "sums": sums}


def _row(n: int, times: dict[str, list[float]]) -> dict[str, Any]:
    figures: dict[str, Any] = {way: summary(t) for way, t in times.items()}
    line = f"  {n:>11,}  lazy {figures[LAZY]['median'] * 1e3:.3f} ms"
    if DENSE in times:
        figures["times_faster_than_dense"] = ratios(times[DENSE], times[LAZY])
        line += f"   dense {figures[DENSE]['median'] * 1e3:.1f} ms"
        line += f"   {show(figures['times_faster_than_dense'])} times"
    print(line)
    return figures


def _tasks(n: int) -> dict[str, Callable[[], object]]:
    """Many lazy rows, one dense row, one row of numpy's."""
    generator = np.random.default_rng(0)
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=EPSILON)
    at_least = math.log(n / 2 / MARKS) * calibration.noise_scale
    most = min(PLACES, n // 8)
    some = [np.unique(generator.integers(0, n, 2 * most))[:most] for _ in range(ROWS)]
    starts = np.cumsum([0, *map(len, some)])
    places = np.concatenate(some).astype(np.int32)
    values = generator.geometric(0.5, len(places)).astype(float)
    seeds = iter(range(10**9))

    def draw(rows: int, densely: bool) -> None:
        noise, end = NoiseSource.insecure(next(seeds)), starts[rows]
        asked = Tail(
            places[:end], values[:end], starts[: rows + 1], n, calibration, at_least,
            densely=densely,
        )  # fmt: skip
        randomise(asked, noise, range(rows))

    def numpy_draw() -> None:
        np.flatnonzero(generator.laplace(scale=1 / EPSILON, size=n) >= at_least)

    tasks: dict[str, Callable[[], object]] = {LAZY: lambda: draw(ROWS, False)}
    if n <= DENSE_UP_TO:
        tasks |= {DENSE: lambda: draw(1, True), "numpy, not private": numpy_draw}
    return tasks


def _sums(n: int, settings: Settings) -> dict[str, Any]:
    """Sums of strangers, for members near the median degree."""
    graph = Graph.from_edges(*draw_edges(n, 10 * n), NodeSet.range(n))
    middle = int(np.median(graph.degrees))
    sources = np.flatnonzero(graph.degrees == middle)
    views = local_views(graph, np.random.default_rng(0).choice(sources, 256), "joint")
    weights, own_lists = np.ones(len(views.lists)), (views.lists, views.starts)
    places, _, _ = two_hop_tail_of_lists(graph, views.sources, *own_lists, weights)
    tasks: dict[str, Callable[[], object]] = {
        "sums": lambda: two_hop_tail_of_lists(graph, views.sources, *own_lists, weights),
    }
    times = interleaved(tasks, rounds=2 * settings.rounds)
    figures = {name: summary(t / 256 for t in of) for name, of in times.items()}
    print(
        f"  {n:,} nodes, degree {middle}, {len(places) / 256:.0f} strangers: "
        f"sums {figures['sums']['median'] * 1e3:.3f} ms"
    )
    graph_facts = described("generated, power law", graph)
    return {**graph_facts, "degree": middle, "strangers": len(places) / 256, **figures}
