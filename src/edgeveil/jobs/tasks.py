"""Tasks, which compute some rows of a release, and the engine that runs them in threads.

A task is plain data and can be sent to another process. The noise key is sent separately,
because what machines share may be spilled to disk, and a key must not be.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import DEFAULT_K, Candidates, Evidence
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import Mechanism, Rows, local_views
from edgeveil.mechanisms.run import groups_of, make_rows
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.results.provenance import Metadata
from edgeveil.results.release import Release
from edgeveil.results.release_folder import MemberResult, file_of
from edgeveil.results.suggestions import Suggestions


@dataclass(frozen=True)
class Part:
    """Some sources (indices) of a batch."""

    batch: int
    sources: tuple[int, ...]


Parts = Iterable[tuple[Part, NoiseKey]]
"""Parts, each with the noise key of its batch."""


class RowBlock(NamedTuple):
    """Rows of some sources (indices), and their uncertainty if the mechanism knows it.

    For suggestions the rows are the evidence that lists are made from: that is what is stored.
    """

    sources: npt.NDArray[np.int64]
    rows: Rows | Evidence
    uncertainty: Rows | None


class ListOptions(NamedTuple):
    """How lists are made from stored evidence: post-processing, without a charge."""

    k: int = DEFAULT_K
    candidates: Candidates | None = None  # None: everybody


@dataclass(frozen=True, kw_only=True)
class Task:
    """Compute the rows of a part; the same rows, however often it is run.

    With `metadata` the result is the bytes of a file of a release's folder, so that workers share
    the work of encoding it, too.
    """

    mechanism: Mechanism
    graph: Graph
    shared: Any  # what `Mechanism.fit_shared` gave
    metadata: Metadata | None = None
    lists: ListOptions = field(default_factory=ListOptions)

    def __call__(
        self, part: Part, noise: NoiseSource, check: Callable[[], None]
    ) -> RowBlock | bytes:
        """Compute the rows; every source has its own noise, however sources are split into parts.

        `check` is called between groups of rows and may raise to stop.
        """
        rows = self._rows(part, noise, check)
        return rows if self.metadata is None else file_of(self.result(rows, self.metadata))

    def _rows(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> RowBlock:
        mechanism, graph, total = self.mechanism, self.graph, len(part.sources)
        evidence: list[Evidence] = []
        arrays: list[Rows] = []  # rows and uncertainty; groups are copied in and reuse memory
        for here in groups_of(mechanism, graph.n_nodes, total):
            check()
            rows, views = make_rows(mechanism, graph, self.shared, part.sources[here], noise)
            outputs = [rows]
            if mechanism.output == "scores":
                half = mechanism.uncertainty(rows, self.shared, views)
                outputs += [] if half is None else [half]
            if any(len(output) != len(views.sources) for output in outputs):
                # A single row would be copied to all of them, with one member's own list in it
                raise ParameterError(f"{mechanism.name} must give one row for each source")
            if isinstance(rows, Evidence):
                evidence.append(rows)
                continue
            arrays = arrays or [np.empty((total, *array.shape[1:])) for array in outputs]
            for array, group in zip(arrays, outputs, strict=True):
                array[here] = group
        sources = np.array(part.sources)
        if evidence:
            return RowBlock(sources, Evidence.joined(evidence), None)
        return RowBlock(sources, arrays[0], arrays[1] if len(arrays) == 2 else None)

    def result(self, block: RowBlock, metadata: Metadata) -> MemberResult:
        """A Release of the rows, or Suggestions made of the evidence."""
        mechanism, nodes = self.mechanism, self.graph.nodes
        ids = tuple(nodes.take(block.sources.tolist()))
        if isinstance(block.rows, Evidence):
            claim = metadata.guarantee
            views = local_views(self.graph, block.sources, claim.model, claim.known_edges)
            lists = mechanism.lists(block.rows, self.shared, views, *self.lists)
            return Suggestions(
                members=ids,
                nodes=nodes,
                lists=lists,
                friends=np.diff(views.starts),
                k=self.lists.k,
                **metadata._asdict(),
            )
        return Release(
            values=block.rows,
            uncertainty=block.uncertainty,
            sources=ids,
            columns=nodes if mechanism.output == "scores" else NodeSet.range(block.rows.shape[1]),
            output=mechanism.output,
            **metadata._asdict(),
        )


class Engine(Protocol):
    """Where rows are computed: an engine runs a task for every part, and does nothing else."""

    def run(self, task: Task, parts: Parts) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts, in any order, more than once if need be.

        Yields each part once, with its result. Parts are taken from their iterator when a worker
        is free, in the caller's thread: the next one may charge a ledger. Closing the iterator
        stops the work.
        """
        ...


class _StoppedError(Exception):
    """Raised inside a worker whose result is no longer needed."""


@dataclass(frozen=True, kw_only=True)
class Local:
    """Compute rows in threads of this process, one part of the sources each.

    The kernels, the noise and most of numpy release Python's global interpreter lock, so threads
    share one graph and run in parallel. Results are bit-identical for any number of threads.

    Parameters
    ----------
    threads : int, optional
        Number of threads; by default the number of processors that this process may use.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_int("threads", self.threads)

    @property
    def workers(self) -> int:
        """Number of threads in use."""
        if self.threads is not None:
            return self.threads
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def run(self, task: Task, parts: Parts) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts; see `Engine.run`."""
        waiting, stop = iter(parts), threading.Event()

        def check() -> None:
            if stop.is_set():
                raise _StoppedError

        first = list(islice(waiting, 2 * self.workers))
        if len(first) == 1 or self.workers == 1:  # no thread is needed
            for part, key in chain(first, waiting):
                yield part, task(part, key.source(), check)
            return
        running: dict[Future[Any], Part] = {}
        with ThreadPoolExecutor(self.workers, thread_name_prefix="edgeveil") as pool:
            try:
                # At most two parts for each thread: finished rows stay in memory until the caller
                # takes them.
                while first or running:
                    for part, key in first:
                        running[pool.submit(task, part, key.source(), check)] = part
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield running.pop(future), future.result()
                    first = list(islice(waiting, 2 * self.workers - len(running)))
            finally:
                # After an error, Ctrl-C, or if the caller stops early: end between two groups.
                stop.set()
                for future in running:
                    future.cancel()
