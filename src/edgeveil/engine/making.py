"""Make a release in memory: check, charge, draw, keep."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np

from edgeveil.engine.question import Options, Question, ask
from edgeveil.engine.tasks import About, Made, Part, Parts, Task, release_of
from edgeveil.errors import BudgetError, LedgerError
from edgeveil.graph import Graph
from edgeveil.ledger import Batch, Campaign, Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.privacy.statistic import Noised, NoisedTail
from edgeveil.release_folder import Result
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions

# A part goes to a worker and comes back: much larger than the groups that stay in a cache, or a
# cluster would spend its time on sending; small enough that a few fit into memory.
_PART_BYTES = 16 << 20
_PART_LISTS = 1024  # lists are short and soon made

# A batch is charged and stored as a whole, and a few are in memory at once.
_BATCH_BYTES = 64 << 20
_BATCH_ROWS = 8192


@overload
def release(
    graph: Graph, mechanism: Suggest, sources: Iterable[NodeId], **how: Unpack[Options]
) -> Suggestions: ...


@overload
def release(
    graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId], **how: Unpack[Options]
) -> Release: ...


def release(
    graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId], **how: Unpack[Options]
) -> Result:
    """Run a mechanism on a graph and give the rows with their guarantee.

    With a ledger every row is charged once, durably, before its noise is drawn, and stored. Asked
    for again, alone or among others, it is the stored one and costs nothing; after a crash it is
    finished with the same noise. For more rows than fit into memory see `release_to`.

    Parameters
    ----------
    graph : Graph
        The private graph; whatever `edgeveil.as_graph` takes, or a path for `edgeveil.read_graph`,
        is read first, without a node list.
    mechanism : Mechanism
        What to compute and how to protect it.
    sources : iterable of ids
        The nodes whose rows are wanted; ids, not indices. Repeats are dropped.

    Other Parameters
    ----------------
    ledger : Ledger or path, optional
        The budget to charge. Without one nothing is charged and nobody keeps count.
    label : str
        With a ledger: the public name of the graph, if the ledger is for several. Of a graph that
        has changed, `Ledger.advance` declares a new snapshot, whose rows are charged anew.
    snapshot : int, optional
        With a ledger: the number of the snapshot that the graph is; refused if the label's is
        another one by now.
    purpose, operator : str
        With a ledger: what the release is for and who makes it, for its report.
    noise : NoiseSource, optional
        Random bits for tests and demonstrations (``NoiseSource.insecure(seed)``); fresh secure
        ones if left out. Not together with a ledger.
    engine : Engine, optional
        Where to compute: `edgeveil.engine.Local` (the default) or `edgeveil.engine.Ray`. The
        values do not depend on it.
    progress : callable, optional
        Called with the number of rows that are done and the number of all.

    Raises
    ------
    UnknownNodeError
        If a source is not in the public node set.
    BudgetError
        If the ledger refuses; nothing was drawn.
    LedgerError
        If the graph is another one than the snapshot's.
    """
    question = ask(graph, mechanism, sources, how, in_memory=True)
    whole = _Whole(question, question.indices)
    if question.ledger is None:
        noise = question.noise or NoiseSource.secure()
        for _, rows in drawn(question, noise):
            whole.put(rows)
        about = question.about(noise=noise)
    else:
        created = []
        for batch in stored_batches(question, *check_price(question)):
            whole.put(rows_in(question, batch))
            created.append(batch.created)
        about = question.about(charged=max(created))
    return release_of(mechanism.gives, question.graph.nodes, whole.made, about)


class _Whole:
    """The rows of some sources, in the order of these, in whatever order they are made."""

    def __init__(self, question: Question, indices: Sequence[int]) -> None:
        asked = np.array(indices)
        self.made = Made(asked, np.empty((len(asked), *question.shape)), None)
        self.missing = len(asked)
        self._place = np.empty(question.graph.n_nodes, dtype=np.int64)
        self._place[asked] = np.arange(len(asked))

    def put(self, some: Made) -> None:
        here = self._place[some.sources]
        self.missing -= len(here)
        self.made.rows[here] = some.rows
        if some.uncertainty is not None:
            if self.made.uncertainty is None:
                room = np.empty((len(self.made.rows), some.uncertainty.shape[1]))
                self.made = self.made._replace(uncertainty=room)
            self.made.uncertainty[here] = some.uncertainty  # type: ignore[index]

    def write(self, path: Path) -> None:
        write_rows(path, self.made)


def drawn(
    question: Question, noise: NoiseSource, about: About | None = None
) -> Iterator[tuple[Part, Any]]:
    """All rows, in numbered parts, in any order; with `about` as files (see `Task`).

    What is shared is drawn once, then every row has noise of its own: order is free.
    """
    numbers = shared_numbers(question.mechanism, question.graph, noise.derive("shared"))
    key = noise.derive("rows").hand_over()
    parts = enumerate(_parts(question, 0, question.indices, key))
    numbered = ((replace(part, batch=number), key) for number, (part, _) in parts)
    return _computed(question, _learn(question, numbers), numbered, about=about)


def _learn(question: Question, numbers: Noised | None) -> Any:
    return None if numbers is None else question.mechanism.learn(numbers, question.graph.nodes)


def _parts(question: Question, batch: int, indices: Sequence[int], key: NoiseKey) -> Parts:
    size = rows_at_once(math.prod(question.shape), _PART_BYTES)
    if question.mechanism.gives == "suggestions":
        size = _PART_LISTS
    for first in range(0, len(indices), size):
        yield Part(batch, tuple(indices[first : first + size])), key


def _computed(
    question: Question, shared: Any, parts: Parts, *, about: About | None = None, done: int = 0
) -> Iterator[tuple[Part, Any]]:
    """Let the engine run, and tell how many rows are done."""
    task = Task(mechanism=question.mechanism, graph=question.graph, shared=shared, about=about)
    total = len(question.indices)
    for part, made in question.engine.run(task, parts):
        done += len(part.sources)
        if question.progress:
            question.progress(min(done, total), total)
        yield part, made


# -- with a ledger ------------------------------------------------------------------------


def check_price(question: Question) -> tuple[Campaign, Price]:
    """Refuse what the budget does not allow as a whole, before its first batch.

    From then on the campaign is that of this snapshot, should another one be declared meanwhile.
    """
    assert question.ledger is not None
    campaign = question.campaign
    price = question.ledger.price(campaign, question.names)
    if price.short:
        raise BudgetError(price.short)
    return replace(campaign, snapshot=price.snapshot), price


def stored_batches(question: Question, campaign: Campaign, price: Price) -> Iterator[Batch]:
    """All batches that hold the rows asked for, stored; missing rows are charged and made.

    A batch that somebody has charged and not finished is made here, wholly, from its secret: so
    it does not matter who else is at work, or was.
    """
    ledger = question.ledger
    assert ledger is not None
    shared: list[Batch] = []
    stored: list[Batch] = []
    seen: set[str] = set()
    begun: dict[int, tuple[Batch, _Whole]] = {}

    def missing() -> Parts:
        names = iter(question.names)
        size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * math.prod(question.shape))))
        while some := list(islice(names, size)):
            charged = ledger.charge(campaign, some)
            shared[:] = [charged.shared]
            for batch in charged.batches:
                if batch.key in seen:
                    continue
                seen.add(batch.key)
                if batch.stored:
                    stored.append(batch)
                    continue
                indices = question.indices_of(batch.recipients)
                begun[batch.number] = batch, _Whole(question, indices)
                key = NoiseSource.from_secret(batch.secret).derive("rows").hand_over()
                yield from _parts(question, batch.number, indices, key)

    waiting = iter(missing())
    for first in waiting:
        parts = chain([first], waiting)
        learned = _learned(question, shared[0])
        for part, made in _computed(question, learned, parts, done=price.n_stored):
            batch, whole = begun[part.batch]
            whole.put(made)
            if not whole.missing:
                del begun[part.batch]
                yield batch.store(whole.write)
    yield from stored


# What was learnt from the shared numbers of the last campaigns, by key and digest of what is
# stored: post-processing. A member who asks alone must not wait for work for all nodes.
_recent: dict[tuple[str, str], Any] = {}
_MOST_RECENT = 2
_recent_lock = threading.Lock()


def _learned(question: Question, batch: Batch) -> Any:
    """What the numbers that a campaign shares tell: drawn by whoever is first, and stored."""
    if not batch.stored:
        noise = NoiseSource.from_secret(batch.secret).derive("shared")
        numbers = shared_numbers(question.mechanism, question.graph, noise)
        batch = batch.store(lambda path: _write_shared(path, numbers, question.graph.nodes))
    name = batch.key, batch.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    learned = _learn(question, _read_shared(batch.artifact))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = learned
    return learned


def rows_in(question: Question, batch: Batch) -> Made:
    """Those of a batch's rows that were asked for.

    What the ledger recorded, not what was just made: should another process have been first, with
    other code under the same secret, two different values must not get out.
    """
    held = _read(batch.artifact)
    asked = np.isin(held["sources"], question.indices)
    half = held.get("uncertainty")
    half = None if half is None else half[asked]
    return Made(held["sources"][asked], held["rows"][asked], half)


# -- files of a ledger: the noised numbers that a campaign shares, and rows of a batch -------

_KINDS: dict[str, type[Noised]] = {"numbers": Noised, "tail": NoisedTail}


def _write_shared(path: Path, numbers: Noised | None, nodes: NodeSet) -> None:
    """Write noised numbers, or that there are none, and what the indices in rows stand for."""
    held: dict[str, Any] = {f"node_{name}": array for name, array in nodes.arrays.items()}
    if numbers is not None:
        kind = next(name for name, cls in _KINDS.items() if type(numbers) is cls)
        held |= {kind: True} | {f.name: getattr(numbers, f.name) for f in fields(numbers)}
    _write(path, held)


def _read_shared(path: Path) -> Noised | None:
    held = _read(path)
    for name, cls in _KINDS.items():
        if name in held:
            given = {f.name: held[f.name] for f in fields(cls)}
            return cls(**given | {"scale": float(given["scale"])})
    return None


def write_rows(path: Path, made: Made) -> None:
    """Write the rows of a batch."""
    _write(path, {name: array for name, array in made._asdict().items() if array is not None})


def _write(path: Path, held: dict[str, Any]) -> None:
    with path.open("xb") as file:
        np.savez(file, **held)


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return dict(held)
    except (OSError, ValueError, KeyError) as error:
        raise LedgerError(f"{path} is not what this edgeveil stores: {error}") from error
