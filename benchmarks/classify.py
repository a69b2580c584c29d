"""Classes of all nodes for one epsilon: time and memory from a million edges upwards.

    ./run bench classify --json benchmarks/results/classify.json

The whole call, in a process of its own; and, in another one, the sums of a round beside scipy's
sparse product, in one thread and in two, and their noise beside the bare sampler.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import edgeveil as ev
from benchmarks.children import in_child, peak_memory
from benchmarks.graphs import scaled_graph
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.scale import exponent
from benchmarks.settings import Settings
from edgeveil import Graph
from edgeveil.estimate.classification import Messages
from edgeveil.flow.neighbour_sums import neighbour_sums
from edgeveil.privacy.noise import NoiseSource, calibrate_whole, discrete_laplace
from edgeveil.privacy.statistic import Statistic, randomise

__all__ = ["run"]

CLASSES, LABELLED, EPSILON = 10, 0.5, 1.0
_BUDGET = 60.0  # seconds: a call that took longer is not repeated


def run(settings: Settings) -> dict[str, Any]:
    """Measure every size."""
    sizes = [2_000, 8_000, 32_000] if settings.tiny else [1_000_000, 10_000_000, 100_000_000]
    print(
        f"\nclassify: {CLASSES} classes, {LABELLED:.0%} labelled, two rounds, epsilon {EPSILON:g}"
    )
    rows: list[dict[str, Any]] = []
    for edges in (size for size in sizes if size <= settings.max_edges):
        scaled_graph(edges, settings)
        job = {"edges": edges, "work": str(settings.work)}
        row = {"edges": edges, **in_child("classify:whole", job)}
        rows.append(row)
        print(
            f"  {edges:>11,} edges, {row['nodes']:,} nodes: {row['wall']['median']:.1f} s "
            f"({row['cpu']['median']:.1f} s CPU), {row['peak_bytes'] / 2**30:.2f} GB: graph, "
            f"Python and {row['arrays']:.1f} arrays of nodes x classes"
        )
        row["parts"] = in_child("classify:parts", {**job, "rounds": settings.rounds_large or 3})
        for name, ratio in row["parts"]["ratios"].items():
            print(f"    {name}: {show(ratio)}")
    result: dict[str, Any] = {"classes": CLASSES, "labelled": LABELLED, "sizes": rows}
    if len(rows) > 1:
        times = [row["cpu"]["median"] for row in rows]
        result["exponent"] = exponent([row["edges"] for row in rows], times)
        print(f"  CPU time grows like edges^{result['exponent']:.2f}")
    return result


def _classes(graph: Graph) -> npt.NDArray[np.int64]:
    """What most neighbours drew: friends are alike, so that there is something to learn.

    Such labels come from the edges, which a real call must never be given.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(CLASSES, size=graph.n_nodes)
    everybody = np.ones(graph.n_nodes, dtype=bool)
    heard = neighbour_sums(graph, *_messages(drawn), CLASSES, everybody, threads=1)
    return np.asarray(heard.argmax(axis=1))


def _messages(classes: npt.NDArray[np.int64]) -> Messages:
    """Every node sends its class."""
    return Messages(np.arange(len(classes) + 1), classes, np.full(len(classes), 2))


def whole(edges: int, work: str) -> dict[str, Any]:
    """`edgeveil.classify` from labels to predictions, up to three times."""
    graph = scaled_graph(edges, Settings(work=Path(work)))
    n = graph.n_nodes
    classes = _classes(graph)
    hidden = np.random.default_rng(1).random(n) >= LABELLED
    labels = np.where(hidden, -1, classes)
    before, wall, cpu = peak_memory(), list[float](), list[float]()
    predictions = None
    while len(wall) < 3 and sum(wall) < _BUDGET:
        predictions = None  # what a call before gave is not in memory
        start = time.perf_counter(), time.process_time()
        predictions = ev.classify(graph, labels, epsilon=EPSILON)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    graph_bytes = graph.indptr.nbytes + graph.indices.nbytes
    array = n * CLASSES * 8
    peak = peak_memory()
    bare = in_child("classify:bare", {})["peak_bytes"]
    return {
        "nodes": n,
        "wall": summary(wall),
        "cpu": summary(cpu),
        "accuracy_on_validation": predictions.accuracy,
        "peak_bytes": peak,
        "peak_bytes_before": before,
        "graph_bytes": graph_bytes,
        "array_bytes": array,
        "arrays": (peak - graph_bytes - bare) / array,
    }


def bare() -> dict[str, Any]:
    """Python and the libraries that are loaded by all of this."""
    ev.classify([(0, 1), (1, 2), (2, 3), (3, 4)], {0: 0, 1: 0, 2: 1, 3: 1}, epsilon=1.0)
    return {"peak_bytes": peak_memory()}


def parts(edges: int, work: str, rounds: int) -> dict[str, Any]:
    """Sums and noise of one round, each beside what does the least that is possible."""
    import scipy.sparse as sp

    graph = scaled_graph(edges, Settings(work=Path(work)))
    n = graph.n_nodes
    listens = np.random.default_rng(1).random(n) >= LABELLED
    messages = _messages(np.random.default_rng(0).integers(CLASSES, size=n))
    starts, columns, units = messages
    said = sp.csr_array((units.astype(float), columns, starts), shape=(n, CLASSES)).toarray()
    heard_by = graph.adjacency()[np.flatnonzero(listens)]

    def sums(threads: int) -> npt.NDArray[np.float64]:
        return neighbour_sums(graph, *messages, CLASSES, listens, threads=threads)

    values = sums(1)
    assert np.array_equal(values, sums(2))
    assert np.array_equal(values, heard_by @ said)
    few = min(values.size, 10_000_000)
    flat = values.reshape(1, -1)[:, :few]
    noise = NoiseSource.insecure(0)
    calibration = calibrate_whole(coordinates=few, sensitivity=2, epsilon=EPSILON)
    ours, product = "sums, one thread", "scipy's product of the same rows, dense"
    cpu = interleaved(
        {
            ours: lambda: sums(1),
            product: lambda: heard_by @ said,
            "noise": lambda: randomise(Statistic(flat.copy(), calibration), noise),
            "bare sampler": lambda: discrete_laplace(calibration.scale, few, noise),
        },
        rounds=rounds,
    )
    wall = interleaved(
        {"one": lambda: sums(1), "two": lambda: sums(2)}, rounds=rounds, clock=time.perf_counter
    )
    return {
        "listeners": len(values),
        "noise_draws": few,
        "cpu": {name: summary(times) for name, times in cpu.items()},
        "wall": {name: summary(times) for name, times in wall.items()},
        "ratios": {
            "sums: times scipy's product": ratios(cpu[ours], cpu[product]),
            "noise: times the bare sampler": ratios(cpu["noise"], cpu["bare sampler"]),
            "two threads: times faster than one": ratios(wall["one"], wall["two"]),
        },
        "two_threads_give_the_same": True,
    }
