"""Make a release, in memory or as a folder: check, charge, draw, store."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from edgeveil.errors import BudgetError, InputError, LedgerError, ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.jobs.keys import noise_for
from edgeveil.jobs.request import ReleaseOptions, ReleaseRequest, ask
from edgeveil.jobs.tasks import Metadata, Part, Parts, RowBlock, Task
from edgeveil.ledger import Batch, Price
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import Noised, NoisedTail, digest_of
from edgeveil.results.release import Release
from edgeveil.results.release_folder import ReleaseFolder, Result, file_of, part_name
from edgeveil.results.suggestions import Suggestions

# A part is sent to a worker and back: much larger than the groups of rows that fit into a cache,
# so that a cluster is not busy with sending; small enough that a few fit into memory.
_PART_BYTES = 16 << 20
_PART_LISTS = 1024

# A batch is charged and stored as a whole; a few are in memory at a time.
_BATCH_BYTES = 64 << 20
_BATCH_ROWS = 8192


@overload  # narrower than the next
def release(  # type: ignore[overload-overlap]
    graph: Graph, mechanism: Suggest, sources: Iterable[NodeId], **how: Unpack[ReleaseOptions]
) -> Suggestions: ...


@overload
def release(
    graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId], **how: Unpack[ReleaseOptions]
) -> Release: ...


def release(
    graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId], **how: Unpack[ReleaseOptions]
) -> Result:
    """Run a mechanism on a graph and return the rows with their guarantee.

    With a ledger every row is charged once, durably, before its noise is drawn, and then stored.
    A later request for the same row returns the stored one without a charge; after a crash the row
    is finished with the same noise. For more rows than fit into memory, see `release_to`.

    Parameters
    ----------
    graph : Graph
        The private graph. An object that `edgeveil.as_graph` takes, or a path for
        `edgeveil.read_graph`, is read first, without a node list.
    mechanism : Mechanism
        What to compute and how to protect it.
    sources : iterable of ids
        The nodes to compute rows for; ids, not indices. Repeats are dropped.

    Other Parameters
    ----------------
    ledger : Ledger or path, optional
        The budget to charge. Without one the release is not counted against any budget.
    label : str
        With a ledger: the public name of the graph, if the ledger holds several. When the graph
        has changed, declare a new snapshot with `Ledger.advance`; its rows are charged anew.
    snapshot : int, optional
        With a ledger: the snapshot number of this graph. Refused if the label's current snapshot
        has another number.
    skip_exhausted : bool
        With a ledger: leave out members whose budget does not allow a row, instead of refusing
        the whole release, which then has fewer rows (`sources`, `members`). Joint model only.
    purpose, operator : str
        With a ledger: what the release is for and who makes it, for its report.
    noise : NoiseSource, optional
        A seeded source for tests and demonstrations (``NoiseSource.insecure(seed)``), which makes
        the release not private; fresh secure noise by default. Not allowed with a ledger.
    engine : Engine, optional
        Where to compute: `edgeveil.jobs.Local` (the default) or `edgeveil.jobs.Ray`. The
        values do not depend on it.
    progress : callable, optional
        Called with the number of rows done and the number of all rows.
    k, candidates : int and iterable of ids, optional
        Suggestions only: length of a list (20 by default), and who may be suggested; `candidates`
        must not depend on edges. With a ledger, another k or other candidates charge nothing:
        lists are made from what is stored.

    Raises
    ------
    UnknownNodeError
        If a source is not in the public node set.
    BudgetError
        If the ledger refuses; nothing was drawn.
    LedgerError
        If the graph is not the one of the label's current snapshot.
    """
    return make(_of_rows(ask(graph, mechanism, sources, how, in_memory=True)))


def release_to(
    path: str | os.PathLike[str],
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    overwrite: bool = False,
    **how: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Run a mechanism and write the rows to a folder, up to 256 rows or 1,024 lists a file.

    Memory: the graph, and for every worker a block of rows. With a ledger the rows are stored
    there first, batch by batch, and then written to the folder in the order of their batches. An
    interrupted call can then be repeated without another charge; without a ledger, repeating it
    makes a new release.

    Parameters
    ----------
    path : path
        The folder to make; it appears only when it is complete.
    graph, mechanism, sources
        As for `edgeveil.release`.
    overwrite : bool
        Replace a release that is already there.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If the folder holds something else.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    question = _of_rows(ask(graph, mechanism, sources, how))
    return make_folder(Path(path), question, overwrite=overwrite)


def _of_rows(question: ReleaseRequest) -> ReleaseRequest:
    """Refuse a mechanism of predictions, which are not rows of some members."""
    if question.mechanism.output == "predictions":
        raise ParameterError("predictions are made for everybody at once: call edgeveil.classify")
    return question


def made_for_everybody(question: ReleaseRequest) -> tuple[Any, Metadata]:
    """What `fit_shared` gives, for a mechanism whose shared statistics are all that it releases.

    Charged once; with a ledger the statistics are stored. The one row of the question stands for
    everybody.
    """
    work = _work_on(question, None)
    for _ in work.rows():
        pass
    return work.task.shared, work.about


def make(question: ReleaseRequest, price: Price | None = None) -> Result:
    """Make a release in memory; `price` is the ledger's, if it was looked up already."""
    work, whole = _work_on(question, price), RowBuffer(question.indices, question.graph.n_nodes)
    for some in work.rows():
        whole.put(some)
    return work.task.result(whole.made, work.about)


def make_folder(
    folder: Path, question: ReleaseRequest, price: Price | None = None, *, overwrite: bool = False
) -> ReleaseFolder:
    """Make a release in a folder; `price` is the ledger's, if it was looked up already."""
    there = _release_in(folder)
    if there is not None and not overwrite:
        # The same release is returned without a charge; another one is never replaced.
        price = None if question.ledger is None else price or question.price()
        if price is None or price.n_new + price.n_open:
            raise _another(folder)
    work = _work_on(question, price)
    if there is not None and not overwrite:
        assert isinstance(work, Paid)
        work.check_same(there)
        return there
    files, output = work.files(), question.mechanism.output
    return ReleaseFolder.write(folder, output, *work.about, files, overwrite=overwrite)


def _release_in(folder: Path) -> ReleaseFolder | None:
    """The release that is in the folder already, if any; anything else there is refused."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        return ReleaseFolder.open(folder)
    except (InputError, OSError):
        raise ParameterError(
            f"{folder} exists and is not a release: choose another folder"
        ) from None


def _another(folder: Path) -> ParameterError:
    return ParameterError(
        f"{folder} holds another release: choose another place, or replace it (--overwrite, "
        "overwrite=True)"
    )


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
    def made(self) -> RowBlock:
        """All rows, once none is missing."""
        if not self._evidence:
            return RowBlock(self._indices, self._arrays["rows"], self._arrays.get("uncertainty"))
        positions = np.concatenate([here for here, _ in self._evidence])
        joined = Evidence.joined([rows for _, rows in self._evidence])
        return RowBlock(self._indices, joined.take(np.argsort(positions)), None)

    def write(self, path: Path) -> None:
        """Write all rows as a ledger's artifact."""
        write_rows(path, self.made)


FolderParts = Iterator[tuple[int, str, Sequence[NodeId], bytes]]  # for `ReleaseFolder.write`


def _work_on(question: ReleaseRequest, price: Price | None) -> Drawn | Paid:
    return Drawn(question) if question.ledger is None else Paid(question, price)


class Drawn:
    """Rows without a ledger: shared statistics are drawn once, and every row has its own noise."""

    def __init__(self, question: ReleaseRequest) -> None:
        self._question, noise = question, question.noise or NoiseSource.secure()
        numbers = shared_numbers(question.mechanism, question.graph, noise.derive("shared"))
        self._key = noise.derive("rows").export_key()
        self.about = question.about(noise=noise)
        self.task = _task(question, _fit(question, numbers))

    def rows(self) -> Iterator[RowBlock]:
        """All rows, some at a time, in any order."""
        return (made for _, made in self._run(self.task))

    def files(self) -> FolderParts:
        """All rows as files of a folder, encoded by the workers."""
        nodes = self._question.graph.nodes
        for part, file in self._run(replace(self.task, about=self.about)):
            yield part.batch, "of-one-call", nodes.take(part.sources), file

    def _run(self, task: Task) -> Iterator[tuple[Part, Any]]:
        parts = enumerate(_parts(self._question, self._question.indices))
        numbered = ((Part(number, sources), self._key) for number, sources in parts)
        return _computed(self._question, task, numbered)


def _task(question: ReleaseRequest, fitted: Any) -> Task:
    return Task(
        mechanism=question.mechanism, graph=question.graph, shared=fitted, lists=question.lists
    )


def _fit(question: ReleaseRequest, numbers: tuple[Noised, ...]) -> Any:
    return question.mechanism.fit_shared(numbers, question.graph.nodes)


def _parts(question: ReleaseRequest, indices: npt.NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Split the sources into parts; a worker takes one part at a time."""
    size = rows_at_once(question.width, _PART_BYTES)
    if question.mechanism.output == "suggestions":
        size = _PART_LISTS
    for first in range(0, len(indices), size):
        yield tuple(indices[first : first + size].tolist())


def _computed(
    question: ReleaseRequest, task: Task, parts: Parts, *, done: int = 0
) -> Iterator[tuple[Part, Any]]:
    """Run the engine, and report how many rows are done."""
    total = len(question.indices)
    for part, made in question.engine.run(task, parts):
        done += len(part.sources)
        if question.progress:
            question.progress(min(done, total), total)
        yield part, made


class Paid:
    """Rows with a ledger: each is charged once, before its noise is drawn, and stored.

    A release that the budget does not allow as a whole is refused before the first batch. All
    batches are charged to the snapshot of the price, also if another one is declared meanwhile.
    """

    def __init__(self, question: ReleaseRequest, price: Price | None = None) -> None:
        assert question.ledger is not None
        self._question, self._ledger = question, question.ledger
        self.price = question.price() if price is None else price
        if self.price.refusal:
            raise BudgetError(self.price.refusal)
        self._campaign = replace(question.campaign, snapshot=self.price.snapshot)
        self._shared: Batch | None = None

    @cached_property
    def task(self) -> Task:
        """The task, with what was learned from the shared statistics; after the first charge."""
        return _task(self._question, self._common[0])

    @cached_property
    def batches(self) -> list[Batch]:
        """All batches that hold the rows; missing rows are charged, made and stored."""
        return sorted(self._stored(), key=lambda batch: batch.number)

    @property
    def about(self) -> Metadata:
        """Guarantee and provenance of the rows."""
        return self._question.about(charged=max(batch.created for batch in self.batches))

    def rows(self) -> Iterator[RowBlock]:
        """All rows, a batch at a time."""
        return map(self._rows_in, self.batches)

    def files(self) -> FolderParts:
        """All rows as files of a folder, one per batch."""
        for number, batch in enumerate(self.batches):
            made = self.task.result(self._rows_in(batch), self.about)
            yield number, batch.key, made.sources, file_of(made)

    def check_same(self, there: ReleaseFolder) -> None:
        """Refuse (ParameterError) a folder that holds another release."""
        names = [part_name(number, batch.key) for number, batch in enumerate(self.batches)]
        sources = self._question.graph.nodes.take(self._question.indices)
        if set(there.sources) != set(sources) or [part.name for part in there.parts] != names:
            raise _another(there.path)
        if there.provenance.lists != self._question.lists_made:
            raise ParameterError(
                f"{there.path} holds lists of another length or for other candidates: choose "
                "another folder, where nothing more is charged, or replace them (--overwrite, "
                "overwrite=True)"
            )

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
            for part, made in _computed(self._question, self.task, parts, done=self.price.n_stored):
                batch, whole = begun[part.batch]
                whole.put(made)
                if not whole.missing:
                    del begun[part.batch]
                    yield batch.store(whole.write)
        yield from stored

    def _missing(self, stored: list[Batch], begun: dict[int, tuple[Batch, RowBuffer]]) -> Parts:
        """Charge batch by batch; yield the parts of batches that are not stored yet."""
        question, seen, names = self._question, set[str](), iter(self._question.names)
        size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * question.width)))
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
                indices = question.indices_of(batch.members)
                begun[batch.number] = batch, RowBuffer(indices, question.graph.n_nodes)
                key = self._key(batch).export_key()
                for sources in _parts(question, indices):
                    yield Part(batch.number, sources), key

    def _key(self, batch: Batch) -> NoiseSource:
        """The noise of a batch's rows."""
        mechanism, graph = self._question.mechanism, self._question.graph
        return noise_for(batch.secret, "rows", mechanism, graph, released=self._common[1])

    @cached_property
    def _common(self) -> tuple[Any, str]:
        """What `_fitted` gives, after the first charge.

        Once: `_shared` does not learn that it was stored, so its noise would be drawn again.
        """
        assert self._shared is not None
        return _fitted(self._question, self._shared)

    def _rows_in(self, batch: Batch) -> RowBlock:
        """The requested rows of a batch, read from the stored artifact.

        Not those just made in this process: if another process was first and ran other code
        under the same secret, two different values of one row must not be released.
        """
        held = _read(batch.artifact)
        wanted = np.flatnonzero(np.isin(held["sources"], self._question.indices))
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
    return batch.store(lambda path: _write_shared(path, numbers, graph.nodes))


def _fitted(question: ReleaseRequest, batch: Batch) -> tuple[Any, str]:
    """What `fit_shared` gives for the shared statistics of a campaign, and their digest."""
    batch = stored_shared(question.mechanism, question.graph, batch)
    name = batch.key, batch.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    numbers = read_shared(batch.artifact)
    found = _fit(question, numbers), " ".join(map(digest_of, numbers))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = found
    return found


# -- Artifacts of a ledger: the noised shared statistics of a campaign, and the rows of a batch ----

_KINDS: dict[str, type[Noised]] = {"numbers": Noised, "tail": NoisedTail}


def _write_shared(path: Path, numbers: tuple[Noised, ...], nodes: NodeSet) -> None:
    """Write the noised numbers of every round, and the node set that indices in rows refer to."""
    held: dict[str, Any] = {f"node_{name}": array for name, array in nodes.arrays.items()}
    for number, noised in enumerate(numbers):
        kind = next(name for name, cls in _KINDS.items() if type(noised) is cls)
        held |= {f"{number}_{kind}": True}
        held |= {f"{number}_{f.name}": getattr(noised, f.name) for f in fields(noised)}
    _write(path, held)


def read_shared(path: Path) -> tuple[Noised, ...]:
    """The noised shared statistics of a campaign, round by round."""
    held, numbers = _read(path), list[Noised]()
    while kind := next((name for name in _KINDS if f"{len(numbers)}_{name}" in held), None):
        cls = _KINDS[kind]
        given = {f.name: held[f"{len(numbers)}_{f.name}"] for f in fields(cls)}
        numbers.append(cls(**given | {"scale": float(given["scale"])}))
    return tuple(numbers)


def write_rows(path: Path, made: RowBlock) -> None:
    """Write the rows of a batch; for suggestions, the evidence rather than the lists."""
    if isinstance(made.rows, Evidence):
        _write(path, {"sources": made.sources, **vars(made.rows)})
    else:
        _write(path, {name: array for name, array in made._asdict().items() if array is not None})


def _write(path: Path, held: dict[str, Any]) -> None:
    with path.open("xb") as file:
        np.savez(file, **held)


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return dict(held)
    except (OSError, ValueError, KeyError) as error:
        raise LedgerError(f"{path} is damaged, or from another version: {error}") from error
