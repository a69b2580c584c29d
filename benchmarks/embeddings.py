"""A row of the default embedding, whose noise comes after the hash, beside one with noise on all.

    ./run bench embeddings --json benchmarks/results/embeddings.json

The other one is a row of two-hop: the same weights and sums, but noise for every node, and
post-processing of all of them. Members are of median degree and have about equally many friends'
friends at all sizes.
"""

from __future__ import annotations

from typing import Any

from benchmarks.graphs import described, scaled_graph, typical_members
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.scale import exponent
from benchmarks.settings import Settings
from edgeveil import Graph, NoiseSource
from edgeveil.mechanisms import TwoHop, TwoHopEmbedding
from edgeveil.mechanisms.run import rows_after, shared_part

__all__ = ["run"]

EDGES = (1_000_000, 10_000_000, 100_000_000)
MEMBERS = 256


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    print("\nembeddings: CPU time of a row of 4,096 dimensions")
    sizes = (20_000, 40_000) if settings.tiny else [e for e in EDGES if e <= settings.max_edges]
    rows = {str(edges): _size(scaled_graph(edges, settings), settings) for edges in sizes}
    times = [row["hashed"]["median"] for row in rows.values()]
    growth = exponent([row["nodes"] for row in rows.values()], times) if len(rows) > 1 else None
    print(f"  its time grows with n to the power {growth}")
    return {"sizes": rows, "exponent": growth}


def _size(graph: Graph, settings: Settings) -> dict[str, Any]:
    noise, seeds = NoiseSource.secure(), iter(range(10**9))
    members = typical_members(graph, MEMBERS)
    tasks, each = {}, {"hashed": members, "dense": members[:2]}
    for name, mechanism in (("hashed", TwoHopEmbedding(epsilon=1.0)), ("dense", TwoHop(epsilon=1))):
        shared = shared_part(mechanism, graph, noise.derive("shared", next(seeds)))
        tasks[name] = lambda m=mechanism, s=shared, of=each[name]: rows_after(
            m, graph, s, of, noise.derive("rows", next(seeds))
        )
    times = interleaved(tasks, rounds=settings.rounds, seconds=20)
    found = {name: [t / len(each[name]) for t in of] for name, of in times.items()}
    faster = ratios(found["dense"], found["hashed"])
    print(
        f"  {graph.n_nodes:>11,} nodes: {summary(found['hashed'])['median'] * 1e3:.3f} ms, with "
        f"noise on all {summary(found['dense'])['median'] * 1e3:.3f} ms, {show(faster)} times"
    )
    facts = described("generated, power law", graph)
    return {**facts, **{n: summary(of) for n, of in found.items()}, "times_faster": faster}
