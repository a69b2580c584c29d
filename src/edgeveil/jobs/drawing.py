"""The rows of a release, drawn afresh, or charged to a ledger and stored there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.words import counted
from edgeveil.errors import BudgetError, EdgeveilError, ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.keys import describe, noise_for
from edgeveil.jobs.request import ReleaseRequest
from edgeveil.jobs.stored import read_arrays, read_shared, write_rows, write_shared
from edgeveil.jobs.tasks import Part, Parts, RowBlock, Task
from edgeveil.ledger import Batch, Campaign, Price
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import digest_of
from edgeveil.results.provenance import Metadata
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

    def put(self, block: RowBlock) -> None:
        """Add some rows."""
        positions = self._position[block.sources]
        self.missing -= len(positions)
        if isinstance(block.rows, Evidence):
            self._evidence.append((positions, block.rows))
            return
        for name, part in (("rows", block.rows), ("uncertainty", block.uncertainty)):
            if part is not None:
                if name not in self._arrays:
                    self._arrays[name] = np.empty((len(self._indices), part.shape[1]))
                self._arrays[name][positions] = part

    @property
    def block(self) -> RowBlock:
        """All rows, once none is missing."""
        if not self._evidence:
            return RowBlock(self._indices, self._arrays["rows"], self._arrays.get("uncertainty"))
        positions = np.concatenate([at for at, _ in self._evidence])
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
        mechanism, graph = request.mechanism, request.graph
        request.report_round(0)
        numbers = shared_numbers(
            mechanism, graph, noise.derive("shared"), on_round=request.report_round
        )
        self._key = noise.derive("rows").export_key()
        self.metadata = request.metadata(noise=noise)
        self.task = request.task(mechanism.fit_shared(numbers, graph.nodes))

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, some at a time, in any order."""
        return (block for _, block in self._run(self.task))

    def files(self) -> FolderParts:
        """All rows as files of a folder, encoded by the workers."""
        nodes = self._request.graph.nodes
        for part, file in self._run(replace(self.task, metadata=self.metadata)):
            yield part.batch, "of-one-call", nodes.take(part.sources), file

    def _run(self, task: Task) -> Iterator[tuple[Part, Any]]:
        parts = enumerate(_parts(self._request, self._request.indices))
        return _run(self._request, task, ((Part(n, sources), self._key) for n, sources in parts))


class ChargedRows:
    """Rows with a ledger: each is charged once, before its noise is drawn, and stored.

    A release that the budget does not allow as a whole is refused before the first batch. All
    batches are charged in the generation of the price; if another one is declared meanwhile, the
    rest is refused.
    """

    task: Task  # after the first charge

    def __init__(self, request: ReleaseRequest, price: Price) -> None:
        if describe(request.mechanism) != request.campaign.identity:
            raise ParameterError(
                f"{request.mechanism.name} has other parameters than when it was priced: nothing "
                "was charged"
            )
        if price.refusal:
            raise BudgetError(price.refusal)
        self._request, self._price = request, price

    @cached_property
    def batches(self) -> list[Batch]:
        """All batches that hold the rows; missing rows are charged, drawn and stored."""
        stored: list[Batch] = []
        campaign = replace(self._request.campaign, generation=self._price.generation)
        drawn = draw_charged(
            self._request, campaign, self._fit, stored.append, done=self._price.n_stored
        )
        for batch, rows in drawn:
            stored.append(batch.store(rows.write))
        return sorted(stored, key=lambda batch: batch.number)

    @cached_property
    def metadata(self) -> Metadata:
        """Guarantee and provenance of the rows."""
        return self._request.metadata(charged=max(batch.created for batch in self.batches))

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, a batch at a time."""
        return map(self._rows_in, self.batches)

    def files(self) -> FolderParts:
        """All rows as files of a folder, one per batch."""
        for number, batch in enumerate(self.batches):
            result = self.task.result(self._rows_in(batch), self.metadata)
            yield number, batch.key, result.sources, file_of(result)

    def _fit(self, shared: Batch) -> tuple[Task, str]:
        fitted, digest = _fitted(self._request, shared)
        self.task = self._request.task(fitted)
        return self.task, digest

    def _rows_in(self, batch: Batch) -> RowBlock:
        """The requested rows of a batch, read from the stored artifact.

        Not those just made in this process: if another process was first and ran other code
        under the same secret, two different values of one row must not be released.
        """
        arrays = read_arrays(batch.artifact)
        requested = np.flatnonzero(np.isin(arrays["sources"], self._request.indices))
        sources = arrays["sources"][requested]
        if "rates" in arrays:
            evidence = Evidence(*(arrays[field.name] for field in fields(Evidence)))
            return RowBlock(sources, evidence.take(requested), None)
        half = arrays.get("uncertainty")
        return RowBlock(
            sources, arrays["rows"][requested], None if half is None else half[requested]
        )


def draw_charged(
    request: ReleaseRequest,
    campaign: Campaign,
    fit: Callable[[Batch], tuple[Task, str]],
    on_stored: Callable[[Batch], None],
    *,
    indices_of: Callable[[Iterable[str]], npt.NDArray[np.int64]] | None = None,
    done: int = 0,
) -> Iterator[tuple[Batch, RowBuffer]]:
    """Charge rows batch by batch, each before its noise is drawn; yield what is to be stored.

    The only place where rows are drawn for a charge, those of a release or the windows of a series
    (`stored_shared` draws what a campaign shares). A batch that another process has charged and not
    finished is drawn here, all of it, from its secret. So it does not matter whether that process
    is still at work.

    Parameters
    ----------
    fit : callable
        Gives the task, and the digest of the released numbers that it uses, from the batch of the
        shared statistic. Called once, after the first charge: that batch does not learn that it
        was stored meanwhile, so its noise would be drawn again.
    on_stored : callable
        Called with each batch that is stored already.
    indices_of : callable, optional
        Whom of a batch's members to draw for; by default all, whoever is asked for.
    done : int
        Rows to count as done from the start, for the progress.
    """
    assert request.ledger is not None
    ledger, names = request.ledger, iter(request.names)
    size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * request.width)))
    begun: dict[int, tuple[Batch, RowBuffer]] = {}
    indices_of = indices_of or request.indices_of
    first_charge = ledger.charge(campaign, islice(names, size))
    task, released = fit(first_charge.shared)

    def charged() -> Iterator[Batch]:
        yield from first_charge.batches
        while members := list(islice(names, size)):
            yield from ledger.charge(campaign, members).batches

    def parts() -> Parts:
        seen = set[str]()
        for batch in charged():
            if batch.key in seen:  # with members of several charges
                continue
            seen.add(batch.key)
            if batch.stored:
                on_stored(batch)
                continue
            indices = indices_of(batch.members)
            begun[batch.number] = batch, RowBuffer(indices, request.graph.n_nodes)
            noise = noise_for(batch.secret, "rows", task.mechanism, task.graph, released=released)
            key = noise.export_key()
            for sources in _parts(request, indices):
                yield Part(batch.number, sources), key

    for part, block in _run(request, task, parts(), done=done):
        batch, rows = begun[part.batch]
        rows.put(block)
        if not rows.missing:
            del begun[part.batch]
            yield batch, rows


def _parts(request: ReleaseRequest, indices: npt.NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Split the sources into parts; a worker takes one part at a time."""
    size = rows_at_once(request.width, _PART_BYTES)
    if request.mechanism.output == "lists":
        size = _PART_LISTS
    for first in range(0, len(indices), size):
        yield tuple(indices[first : first + size].tolist())


def _run(
    request: ReleaseRequest, task: Task, parts: Parts, *, done: int = 0
) -> Iterator[tuple[Part, Any]]:
    """Run the engine, and report how many rows are done.

    EdgeveilError if it does not give every part once: rows that are missing would be released as
    what their memory held before.
    """
    total, waiting, expected = len(request.indices), iter(parts), set[Part]()

    def sent(some: Parts) -> Parts:
        for part, key in some:
            expected.add(part)
            yield part, key

    for first in waiting:  # if there is nothing to draw, no engine is started
        for part, result in request.engine.run(task, sent(chain([first], waiting))):
            other = isinstance(result, RowBlock) and tuple(result.sources.tolist()) != part.sources
            if part not in expected or other:
                raise EdgeveilError("the engine gave rows twice, or other rows than asked for")
            expected.remove(part)
            done += len(part.sources)
            if request.progress and not request.for_everybody:
                request.progress(min(done, total), total)
            yield part, result
        if expected:
            raise EdgeveilError(f"the engine lost {counted(len(expected), 'part')} of the rows")


# Cache of what was fitted to the shared statistics of the last two campaigns, and of their digest,
# by key and digest of the stored file: a request for one row skips the O(n) `fit_shared`.
_recent: dict[tuple[str, str], tuple[Any, str]] = {}
_MOST_RECENT = 2
_recent_lock = threading.Lock()


def stored_shared(
    mechanism: Mechanism,
    graph: Graph,
    batch: Batch,
    on_round: Callable[[int], None] = lambda _: None,
) -> Batch:
    """The batch with the shared statistics of a campaign; computed and stored if it is not yet."""
    if batch.stored:
        return batch
    noise = noise_for(batch.secret, "shared", mechanism, graph)
    numbers = shared_numbers(mechanism, graph, noise, on_round=on_round)
    return batch.store(lambda path: write_shared(path, numbers))


def _fitted(request: ReleaseRequest, batch: Batch) -> tuple[Any, str]:
    """What `fit_shared` gives for the shared statistics of a campaign, and their digest."""
    mechanism, graph = request.mechanism, request.graph
    request.report_round(0)
    batch = stored_shared(mechanism, graph, batch, request.report_round)
    name = batch.key, batch.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    numbers = read_shared(batch.artifact)
    fitted = mechanism.fit_shared(numbers, graph.nodes), " ".join(map(digest_of, numbers))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = fitted
    return fitted
