"""Make a release in memory: check, charge, draw, keep."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from edgeveil.engine.question import Question, ReleaseOptions, ask
from edgeveil.engine.tasks import About, Made, Part, Parts, Task
from edgeveil.errors import BudgetError, LedgerError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph import Graph
from edgeveil.ledger import Batch, Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.privacy.statistic import Noised, NoisedTail
from edgeveil.release_folder import Result
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions

# A part is what a worker computes at a time: much larger than the groups that fit into a CPU
# cache, so that a cluster does not spend its time sending; small enough that a few fit into memory.
_PART_BYTES = 16 << 20
_PART_LISTS = 1024  # lists are short and quick to make

# A batch is charged and stored as a whole; a few are in memory at a time.
_BATCH_BYTES = 64 << 20
_BATCH_ROWS = 8192


@overload
def release(
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
        Where to compute: `edgeveil.engine.Local` (the default) or `edgeveil.engine.Ray`. The
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
    return make(ask(graph, mechanism, sources, how, in_memory=True))


def make(question: Question, price: Price | None = None) -> Result:
    """Make a release in memory; `price` is the ledger's, if it was looked up already."""
    whole = _Whole(question.indices, question.graph.n_nodes)
    work: Drawn | Paid
    if question.ledger is None:
        work = Drawn(question)
        rows: Iterable[Made] = (made for _, made in work.run())
    else:
        work = Paid(question, price)
        rows = map(work.rows_in, work.batches())
    for some in rows:
        whole.put(some)
    return work.task.result(whole.made, work.about)


class _Whole:
    """Collect rows in the order of their sources, whatever order they are made in."""

    def __init__(self, indices: npt.NDArray[np.int64], n_nodes: int) -> None:
        self._asked = indices
        self._place = np.empty(n_nodes, dtype=np.int64)
        self._place[self._asked] = np.arange(len(self._asked))
        self.missing = len(self._asked)
        self._rows: Any = None
        self._uncertainty: Any = None
        self._evidence: list[tuple[Any, Evidence]] = []  # with the places of its rows

    def put(self, some: Made) -> None:
        here = self._place[some.sources]
        self.missing -= len(here)
        if isinstance(some.rows, Evidence):
            self._evidence.append((here, some.rows))
            return
        if self._rows is None:
            self._rows = np.empty((len(self._asked), some.rows.shape[1]))
        self._rows[here] = some.rows
        if some.uncertainty is not None:
            if self._uncertainty is None:
                self._uncertainty = np.empty((len(self._asked), some.uncertainty.shape[1]))
            self._uncertainty[here] = some.uncertainty

    @property
    def made(self) -> Made:
        if not self._evidence:
            return Made(self._asked, self._rows, self._uncertainty)
        places = np.concatenate([here for here, _ in self._evidence])
        joined = Evidence.joined([rows for _, rows in self._evidence])
        return Made(self._asked, joined.take(np.argsort(places)), None)

    def write(self, path: Path) -> None:
        write_rows(path, self.made)


class Drawn:
    """Rows without a ledger: shared statistics are drawn once, and every row has its own noise."""

    def __init__(self, question: Question) -> None:
        self._question, noise = question, question.noise or NoiseSource.secure()
        numbers = shared_numbers(question.mechanism, question.graph, noise.derive("shared"))
        self._key = noise.derive("rows").hand_over()
        self.about = question.about(noise=noise)
        self.task = _task(question, _learn(question, numbers))

    def run(self, *, as_files: bool = False) -> Iterator[tuple[Part, Any]]:
        """Yield all rows in numbered parts, in any order; `as_files`: as files of a folder."""
        task = replace(self.task, about=self.about) if as_files else self.task
        parts = enumerate(_parts(self._question, 0, self._question.indices, self._key))
        numbered = ((replace(part, batch=number), key) for number, (part, key) in parts)
        return _computed(self._question, task, numbered)


def _task(question: Question, learned: Any) -> Task:
    return Task(
        mechanism=question.mechanism, graph=question.graph, shared=learned, lists=question.lists
    )


def _learn(question: Question, numbers: Noised | None) -> Any:
    return None if numbers is None else question.mechanism.learn(numbers, question.graph.nodes)


def _parts(question: Question, batch: int, indices: npt.NDArray[np.int64], key: NoiseKey) -> Parts:
    size = rows_at_once(question.width, _PART_BYTES)
    if question.mechanism.gives == "suggestions":
        size = _PART_LISTS
    for first in range(0, len(indices), size):
        yield Part(batch, tuple(indices[first : first + size].tolist())), key


def _computed(
    question: Question, task: Task, parts: Parts, *, done: int = 0
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
    batches belong to the snapshot that was priced, even if another one is declared meanwhile.
    """

    def __init__(self, question: Question, price: Price | None = None) -> None:
        assert question.ledger is not None
        self._question, self._ledger = question, question.ledger
        self.price = question.price() if price is None else price
        if self.price.short:
            raise BudgetError(self.price.short)
        self._campaign = replace(question.campaign, snapshot=self.price.snapshot)
        self._shared: Batch | None = None
        self._created = ""

    @cached_property
    def task(self) -> Task:
        """The task, with what was learned from the campaign's shared statistics.

        Available after the first charge.
        """
        assert self._shared is not None
        return _task(self._question, _learned(self._question, self._shared))

    @property
    def about(self) -> About:
        """Guarantee and provenance of the rows; complete after the last batch."""
        return self._question.about(charged=self._created)

    def batches(self) -> Iterator[Batch]:
        """Yield all batches that hold the requested rows; charge and make the missing ones.

        A batch that another process charged but did not finish is made here as a whole, from its
        secret. So concurrent and interrupted processes do no harm.
        """
        stored: list[Batch] = []
        begun: dict[int, tuple[Batch, _Whole]] = {}
        waiting = self._missing(stored, begun)
        for first in waiting:
            parts = chain([first], waiting)
            for part, made in _computed(self._question, self.task, parts, done=self.price.n_stored):
                batch, whole = begun[part.batch]
                whole.put(made)
                if not whole.missing:
                    del begun[part.batch]
                    yield self._noted(batch.store(whole.write))
        yield from map(self._noted, stored)

    def _noted(self, batch: Batch) -> Batch:
        self._created = max(self._created, batch.created)
        return batch

    def _missing(self, stored: list[Batch], begun: dict[int, tuple[Batch, _Whole]]) -> Parts:
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
                begun[batch.number] = batch, _Whole(indices, question.graph.n_nodes)
                key = NoiseSource.from_secret(batch.secret).derive("rows").hand_over()
                yield from _parts(question, batch.number, indices, key)

    def rows_in(self, batch: Batch) -> Made:
        """The requested rows of a batch, read from the stored artifact.

        Not those just made in this process: if another process was first and ran other code
        under the same secret, two different values of one row must not be released.
        """
        held = _read(batch.artifact)
        asked = np.flatnonzero(self._question.asked[held["sources"]])
        sources = held["sources"][asked]
        if "rates" in held:
            evidence = Evidence(*(held[field.name] for field in fields(Evidence)))
            return Made(sources, evidence.take(asked), None)
        half = held.get("uncertainty")
        return Made(sources, held["rows"][asked], None if half is None else half[asked])


# Cache of what was learned from the shared statistics of the last campaigns, by key and digest of
# the artifact: a request for one row skips the O(n) `learn`.
_recent: dict[tuple[str, str], Any] = {}
_MOST_RECENT = 2
_recent_lock = threading.Lock()


def stored_shared(mechanism: Mechanism, graph: Graph, batch: Batch) -> Batch:
    """The batch of a campaign's shared statistics; drawn and stored here if they are not yet."""
    if batch.stored:
        return batch
    noise = NoiseSource.from_secret(batch.secret).derive("shared")
    numbers = shared_numbers(mechanism, graph, noise)
    return batch.store(lambda path: _write_shared(path, numbers, graph.nodes))


def _learned(question: Question, batch: Batch) -> Any:
    """What `Mechanism.learn` makes of a campaign's shared statistics; cached."""
    batch = stored_shared(question.mechanism, question.graph, batch)
    name = batch.key, batch.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    learned = _learn(question, read_shared(batch.artifact))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = learned
    return learned


# -- files of a ledger: a campaign's shared noised statistics, and the rows of a batch --------

_KINDS: dict[str, type[Noised]] = {"numbers": Noised, "tail": NoisedTail}


def _write_shared(path: Path, numbers: Noised | None, nodes: NodeSet) -> None:
    """Write the noised statistics, if there are any, and the node set that row indices refer to."""
    held: dict[str, Any] = {f"node_{name}": array for name, array in nodes.arrays.items()}
    if numbers is not None:
        kind = next(name for name, cls in _KINDS.items() if type(numbers) is cls)
        held |= {kind: True} | {f.name: getattr(numbers, f.name) for f in fields(numbers)}
    _write(path, held)


def read_shared(path: Path) -> Noised | None:
    """The noised statistics that a campaign shares, or None."""
    held = _read(path)
    for name, cls in _KINDS.items():
        if name in held:
            given = {f.name: held[f.name] for f in fields(cls)}
            return cls(**given | {"scale": float(given["scale"])})
    return None


def write_rows(path: Path, made: Made) -> None:
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
