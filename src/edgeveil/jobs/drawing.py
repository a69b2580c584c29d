"""The rows of a release, drawn afresh, or charged to a ledger and stored there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import BudgetError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.keys import noise_for
from edgeveil.jobs.request import ReleaseRequest
from edgeveil.jobs.stored import read_arrays, read_shared, write_rows, write_shared
from edgeveil.jobs.tasks import Metadata, Part, Parts, RowBlock, Task
from edgeveil.ledger import Batch, Price
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import Noised, digest_of
from edgeveil.results.release_folder import file_of

# A part is sent to a worker and back: much larger than the groups of rows that fit into a cache,
# so that a cluster is not busy with sending; small enough that a few fit into memory.
_PART_BYTES = 16 << 20
_PART_LISTS = 1024

# A batch is charged and stored as a whole; a few are in memory at a time.
_BATCH_BYTES = 64 << 20
_BATCH_ROWS = 8192


class RowBuffer:
    """Collect rows in the order of their sources, whatever order they are made in."""

    def __init__(self, indices: npt.NDArray[np.int64], n_nodes: int) -> None:
        self._indices = indices
        self._position = np.empty(n_nodes, dtype=np.int64)  # of a source among `indices`
        self._position[indices] = np.arange(len(indices))
        self.missing = len(indices)
        self._arrays: dict[str, Rows] = {}
        self._evidence: list[tuple[Any, Evidence]] = []  # with the positions of its rows

    def put(self, some: RowBlock) -> None:
        """Add some rows."""
        here = self._position[some.sources]
        self.missing -= len(here)
        if isinstance(some.rows, Evidence):
            self._evidence.append((here, some.rows))
            return
        for name, part in (("rows", some.rows), ("uncertainty", some.uncertainty)):
            if part is not None:
                if name not in self._arrays:
                    self._arrays[name] = np.empty((len(self._indices), part.shape[1]))
                self._arrays[name][here] = part

    @property
    def block(self) -> RowBlock:
        """All rows, once none is missing."""
        if not self._evidence:
            return RowBlock(self._indices, self._arrays["rows"], self._arrays.get("uncertainty"))
        positions = np.concatenate([here for here, _ in self._evidence])
        joined = Evidence.joined([rows for _, rows in self._evidence])
        return RowBlock(self._indices, joined.take(np.argsort(positions)), None)

    def write(self, path: Path) -> None:
        """Write all rows as a ledger's artifact."""
        write_rows(path, self.block)


FolderParts = Iterator[tuple[int, str, Sequence[NodeId], bytes]]  # for `ReleaseFolder.write`


class FreshRows:
    """Rows without a ledger: shared statistics are drawn once, and every row has its own noise."""

    def __init__(self, request: ReleaseRequest) -> None:
        self._request, noise = request, request.noise or NoiseSource.secure()
        numbers = shared_numbers(request.mechanism, request.graph, noise.derive("shared"))
        self._key = noise.derive("rows").export_key()
        self.metadata = request.metadata(noise=noise)
        self.task = _task(request, _fit(request, numbers))

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, some at a time, in any order."""
        return (made for _, made in self._run(self.task))

    def files(self) -> FolderParts:
        """All rows as files of a folder, encoded by the workers."""
        nodes = self._request.graph.nodes
        for part, file in self._run(replace(self.task, metadata=self.metadata)):
            yield part.batch, "of-one-call", nodes.take(part.sources), file

    def _run(self, task: Task) -> Iterator[tuple[Part, Any]]:
        parts = enumerate(_parts(self._request, self._request.indices))
        numbered = ((Part(number, sources), self._key) for number, sources in parts)
        return _computed(self._request, task, numbered)


def _task(request: ReleaseRequest, fitted: Any) -> Task:
    return Task(
        mechanism=request.mechanism, graph=request.graph, shared=fitted, lists=request.lists
    )


def _fit(request: ReleaseRequest, numbers: tuple[Noised, ...]) -> Any:
    return request.mechanism.fit_shared(numbers, request.graph.nodes)


def _parts(request: ReleaseRequest, indices: npt.NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Split the sources into parts; a worker takes one part at a time."""
    size = rows_at_once(request.width, _PART_BYTES)
    if request.mechanism.output == "suggestions":
        size = _PART_LISTS
    for first in range(0, len(indices), size):
        yield tuple(indices[first : first + size].tolist())


def _computed(
    request: ReleaseRequest, task: Task, parts: Parts, *, done: int = 0
) -> Iterator[tuple[Part, Any]]:
    """Run the engine, and report how many rows are done."""
    total = len(request.indices)
    for part, made in request.engine.run(task, parts):
        done += len(part.sources)
        if request.progress:
            request.progress(min(done, total), total)
        yield part, made


class ChargedRows:
    """Rows with a ledger: each is charged once, before its noise is drawn, and stored.

    A release that the budget does not allow as a whole is refused before the first batch. All
    batches are charged to the snapshot of the price, also if another one is declared meanwhile.
    """

    def __init__(self, request: ReleaseRequest, price: Price | None = None) -> None:
        assert request.ledger is not None
        self._request, self._ledger = request, request.ledger
        self.price = request.price() if price is None else price
        if self.price.refusal:
            raise BudgetError(self.price.refusal)
        self._campaign = replace(request.campaign, snapshot=self.price.snapshot)
        self._shared: Batch | None = None

    @cached_property
    def task(self) -> Task:
        """The task, with what was learned from the shared statistics; after the first charge."""
        return _task(self._request, self._common[0])

    @cached_property
    def batches(self) -> list[Batch]:
        """All batches that hold the rows; missing rows are charged, made and stored."""
        return sorted(self._stored(), key=lambda batch: batch.number)

    @property
    def metadata(self) -> Metadata:
        """Guarantee and provenance of the rows."""
        return self._request.metadata(charged=max(batch.created for batch in self.batches))

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, a batch at a time."""
        return map(self._rows_in, self.batches)

    def files(self) -> FolderParts:
        """All rows as files of a folder, one per batch."""
        for number, batch in enumerate(self.batches):
            made = self.task.result(self._rows_in(batch), self.metadata)
            yield number, batch.key, made.sources, file_of(made)

    def _stored(self) -> Iterator[Batch]:
        """Yield each batch when it is stored.

        A batch that another process has charged and not finished is computed here, all of it, from
        its secret. So it does not matter whether that process is still at work.
        """
        stored: list[Batch] = []
        begun: dict[int, tuple[Batch, RowBuffer]] = {}
        waiting = self._missing(stored, begun)
        for first in waiting:  # before the first charge there is no task
            parts = chain([first], waiting)
            for part, made in _computed(self._request, self.task, parts, done=self.price.n_stored):
                batch, whole = begun[part.batch]
                whole.put(made)
                if not whole.missing:
                    del begun[part.batch]
                    yield batch.store(whole.write)
        yield from stored

    def _missing(self, stored: list[Batch], begun: dict[int, tuple[Batch, RowBuffer]]) -> Parts:
        """Charge batch by batch; yield the parts of batches that are not stored yet."""
        request, seen, names = self._request, set[str](), iter(self._request.names)
        size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * request.width)))
        while some := list(islice(names, size)):
            charged = self._ledger.charge(self._campaign, some)
            self._shared = charged.shared
            for batch in charged.batches:
                if batch.key in seen:
                    continue
                seen.add(batch.key)
                if batch.stored:
                    stored.append(batch)
                    continue
                indices = request.indices_of(batch.members)
                begun[batch.number] = batch, RowBuffer(indices, request.graph.n_nodes)
                key = self._key(batch).export_key()
                for sources in _parts(request, indices):
                    yield Part(batch.number, sources), key

    def _key(self, batch: Batch) -> NoiseSource:
        """The noise of a batch's rows."""
        mechanism, graph = self._request.mechanism, self._request.graph
        return noise_for(batch.secret, "rows", mechanism, graph, released=self._common[1])

    @cached_property
    def _common(self) -> tuple[Any, str]:
        """What `_fitted` gives, after the first charge.

        Once: `_shared` does not learn that it was stored, so its noise would be drawn again.
        """
        assert self._shared is not None
        return _fitted(self._request, self._shared)

    def _rows_in(self, batch: Batch) -> RowBlock:
        """The requested rows of a batch, read from the stored artifact.

        Not those just made in this process: if another process was first and ran other code
        under the same secret, two different values of one row must not be released.
        """
        held = read_arrays(batch.artifact)
        wanted = np.flatnonzero(np.isin(held["sources"], self._request.indices))
        sources = held["sources"][wanted]
        if "rates" in held:
            evidence = Evidence(*(held[field.name] for field in fields(Evidence)))
            return RowBlock(sources, evidence.take(wanted), None)
        half = held.get("uncertainty")
        return RowBlock(sources, held["rows"][wanted], None if half is None else half[wanted])


# Cache of what was fitted to the shared statistics of the last two campaigns, and of their digest,
# by key and digest of the stored file: a request for one row skips the O(n) `fit_shared`.
_recent: dict[tuple[str, str], tuple[Any, str]] = {}
_MOST_RECENT = 2
_recent_lock = threading.Lock()


def stored_shared(mechanism: Mechanism, graph: Graph, batch: Batch) -> Batch:
    """The batch with the shared statistics of a campaign; computed and stored if it is not yet."""
    if batch.stored:
        return batch
    noise = noise_for(batch.secret, "shared", mechanism, graph)
    numbers = shared_numbers(mechanism, graph, noise)
    return batch.store(lambda path: write_shared(path, numbers))


def _fitted(request: ReleaseRequest, batch: Batch) -> tuple[Any, str]:
    """What `fit_shared` gives for the shared statistics of a campaign, and their digest."""
    batch = stored_shared(request.mechanism, request.graph, batch)
    name = batch.key, batch.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    numbers = read_shared(batch.artifact)
    found = _fit(request, numbers), " ".join(map(digest_of, numbers))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = found
    return found
