"""``edgeveil warmup``: compile all loops ahead, by real calls on small graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from edgeveil._internal import loops as _loops
from edgeveil._internal.words import counted
from edgeveil.cli.compiling import only
from edgeveil.cli.output import counting, say
from edgeveil.errors import EdgeveilError

if TYPE_CHECKING:
    from edgeveil.graph.graph import Graph

# Up to 2**16 nodes an index has 16 bits, which needs loops of its own.
_MANY = (1 << 16) + 1


def warmup() -> None:
    """Compile everything for this machine now, so that no later call has to.

    Run it when you build an image, for example, as the user that will run edgeveil.
    Example: edgeveil warmup
    """
    folder, problem = _loops.loop_folder()
    refused = EdgeveilError(f"what is compiled cannot be kept: {_loops.why_not_kept()}")
    if folder is None:
        raise refused
    compiled: list[str] = []
    begun, cpu = time.monotonic(), time.process_time()

    def watch(module: str, loop: str, ready: bool) -> None:
        if ready:
            compiled.append(f"{module}.{loop}")

    with only(watch), counting("steps") as show:
        calls = list(_calls())
        for done, call in enumerate(calls):
            show(done, len(calls))
            call()
    if not compiled:
        say(f"Everything was compiled before; it is kept in {folder}.")
        return
    if problem:
        raise refused
    took = f"{time.monotonic() - begun:.0f} s, {time.process_time() - cpu:.0f} s of CPU time"
    say(f"{counted(len(compiled), 'loop')} compiled in {took}; kept in {folder}.")


def _calls() -> Iterator[Callable[[], object]]:
    """Calls that together need every loop for every kind of array that graphs have."""
    from edgeveil.graph.datasets import social_network
    from edgeveil.graph.graph import Graph
    from edgeveil.graph.nodes import NodeSet
    from edgeveil.jobs import release
    from edgeveil.mechanisms import (
        DegreePrior,
        DPPushFlow,
        DPPushFlowCap,
        NonPrivate,
        Suggest,
        TwoHop,
    )

    yield _number_and_deal
    small = social_network(200, average_degree=8).graph
    ends = np.arange(_MANY)
    ring = partial(Graph.from_edges, ends, np.roll(ends, 1), NodeSet.range(_MANY))
    rows = [
        *(NonPrivate(), TwoHop(epsilon=1), DegreePrior(epsilon=1)),
        *(DPPushFlowCap(epsilon=1), DPPushFlowCap(epsilon=1, rounds=None)),
        DPPushFlow(epsilon=1, promised_min_degree=1),
        Suggest(epsilon=1),
    ]
    arcs = [Suggest(epsilon=1, directed=True)]
    for graph, mechanisms in ((small, rows), (ring(), rows), (ring(directed=True), arcs)):
        for mechanism in mechanisms:
            for count in (1, 40):  # a single source has loops of its own
                yield partial(release, graph, mechanism, list(range(count)))
    for directed in (False, True):
        yield partial(_sum_over_neighbours, ring(directed=directed))


def _sum_over_neighbours(graph: Graph) -> None:
    """The loop of classification; directed, the sums of a direction are parts of wider rows."""
    from edgeveil.flow.neighbour_sums import neighbour_sums

    n = graph.n_nodes
    ones, first = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    listens = np.ones(n, dtype=np.bool_)
    neighbour_sums(graph, np.arange(n + 1), first, ones, 1, listens)


def _number_and_deal() -> None:
    """The loops of readers: they are used for millions of entries only."""
    import polars as pl

    from edgeveil.graph import _csr
    from edgeveil.graph.edges import _LARGE, IdIndex

    numbers = IdIndex(pl.String(), _LARGE)
    numbers.add(pl.Series(["ann", "bob"]))
    for kind in (np.int32, np.int64):
        u, v = np.array([0, 1], dtype=kind), np.array([1, 2], dtype=kind)
        for n, shift in ((1 << 10, 10), (1 << 30, 30)):  # keys of 32 and of 64 bits
            counts = np.zeros(1, dtype=np.int64)
            _csr.count_buckets(u, v, n, shift, counts, directed=False)
            _csr.scatter_pairs([(u, v)], n, shift, counts)
