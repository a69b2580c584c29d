"""Make a release in memory: check, charge, draw, keep."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple, Unpack, overload

import numpy as np

from edgeveil.engine.question import How, Options, Question, ask, check_promise, graph_of
from edgeveil.engine.stored import StoredRows, read_rows, read_shared, write_rows, write_shared
from edgeveil.engine.tasks import Computed, Part, Task, release_of
from edgeveil.errors import BudgetError
from edgeveil.graph import Graph
from edgeveil.ledger import Batch, Campaign, Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_at_once, shared_numbers
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId
from edgeveil.privacy.noise import NoiseKey, NoiseSource
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
    graph, given = graph_of(graph), How.of(how)
    window = given.ledger.window if given.ledger else None
    question = ask(graph, mechanism, sources, in_memory=True, window=window)
    check_promise(question)
    if given.ledger is None:
        noise = given.noise or NoiseSource.secure()
        whole = Group(question.indices, noise.derive("rows").hand_over())
        task = task_for(question, noise)
        ((_, made),) = drawn(task, [whole], question, given)
        guarantee = replace(question.guarantee, private=noise.private)
        provenance = question.provenance(noise.kind)
    else:
        made, charged = _gathered(
            question, stored_batches(question, given, *check_price(question, given))
        )
        guarantee, provenance = question.guarantee, question.provenance("secure", charged=charged)
    return release_of(mechanism.gives, graph.nodes, question.indices, made, guarantee, provenance)


class Group(NamedTuple):
    """Sources whose rows are made together: all of a release, or a batch of a ledger."""

    sources: Sequence[int]
    key: NoiseKey
    batch: Batch | None = None


def task_for(question: Question, noise: NoiseSource) -> Task:
    """The shared part is drawn once, then every row has noise of its own: order is free."""
    numbers = shared_numbers(question.mechanism, question.graph, noise.derive("shared"))
    return _task(question, _learn(question, numbers))


def _task(question: Question, shared: Any) -> Task:
    return Task(mechanism=question.mechanism, graph=question.graph, shared=shared)


def _learn(question: Question, numbers: Any) -> Any:
    return None if numbers is None else question.mechanism.learn(numbers, question.graph.nodes)


def drawn(
    task: Task, groups: Iterable[Group], question: Question, how: How, done: int = 0
) -> Iterator[tuple[Group, Computed]]:
    """The rows of each group as soon as all are there; parts of several run side by side."""
    size = rows_at_once(math.prod(question.shape), _PART_BYTES)
    if question.mechanism.gives == "suggestions":
        size = _PART_LISTS
    begun: dict[int, tuple[Group, Computed]] = {}
    left: dict[int, int] = {}

    def parts() -> Iterator[tuple[Part, NoiseKey]]:
        for number, group in enumerate(groups):
            total = len(group.sources)
            begun[number], left[number] = (group, _room(total, question)), total
            for first in range(0, total, size):
                yield Part(number, first, tuple(group.sources[first : first + size])), group.key

    for part, computed in how.engine.run(task, parts()):
        group, made = begun[part.batch]
        here = slice(part.first, part.first + len(part.sources))
        begun[part.batch] = group, made = group, _put(made, here, computed)
        left[part.batch] -= len(part.sources)
        done += len(part.sources)
        if how.progress:
            how.progress(min(done, len(question.indices)), len(question.indices))
        if not left[part.batch]:
            del begun[part.batch]
            yield group, made


def _room(rows: int, question: Question) -> Computed:
    return Computed(np.empty((rows, *question.shape)), None)


def _put(made: Computed, here: Any, part: Computed) -> Computed:
    """Put rows where they belong; that there is an uncertainty is seen at the first ones."""
    rows, widths = made
    rows[here] = part.rows
    if part.uncertainty is not None:
        if widths is None:
            widths = np.empty((len(rows), part.uncertainty.shape[1]))
        widths[here] = part.uncertainty
    return Computed(rows, widths)


# -- with a ledger ------------------------------------------------------------------------


def rows_in_a_batch(question: Question) -> int:
    """How many rows are charged, made and kept in memory together."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // (8 * math.prod(question.shape))))


def check_price(question: Question, how: How) -> tuple[Campaign, Price]:
    """Refuse what the budget does not allow as a whole, before its first batch.

    From then on the campaign is that of this snapshot, should another one be declared meanwhile.
    """
    assert how.ledger is not None
    campaign = how.campaign(question)
    price = how.ledger.price(campaign, question.names)
    if price.short:
        raise BudgetError(price.short)
    return replace(campaign, snapshot=price.snapshot), price


def stored_batches(
    question: Question, how: How, campaign: Campaign, price: Price
) -> Iterator[Batch]:
    """All batches that hold the rows asked for, stored; missing rows are charged and made.

    A batch that somebody has charged and not finished is made here, wholly, from its secret: so
    it does not matter who else is at work, or was.
    """
    ledger = how.ledger
    assert ledger is not None
    size = rows_in_a_batch(question)
    shared: list[Batch] = []
    stored: list[Batch] = []
    seen: set[str] = set()

    def missing() -> Iterator[Group]:
        names = iter(question.names)
        while some := list(islice(names, size)):
            charged = ledger.charge(campaign, some)
            shared[:] = [charged.shared]
            for batch in charged.batches:
                if batch.key not in seen and batch.stored:
                    stored.append(batch)
                elif batch.key not in seen:
                    noise = NoiseSource.from_secret(batch.secret).derive("rows").hand_over()
                    yield Group(question.indices_of(batch.recipients), noise, batch)
                seen.add(batch.key)

    groups = missing()
    for first in groups:
        task = _task(question, _learned(question, shared[0]))
        for group, made in drawn(task, chain([first], groups), question, how, price.n_stored):
            assert group.batch is not None
            rows = StoredRows(np.asarray(group.sources), made)
            yield group.batch.store(lambda path, rows=rows: write_rows(path, rows))  # type: ignore[misc]
    yield from stored


# What was learnt from the shared numbers of the last campaigns, by key and digest of what is
# stored: post-processing. A member who asks alone must not wait for work for all nodes.
_recent: dict[tuple[str, str], Any] = {}
_MOST_RECENT = 2
_recent_lock = threading.Lock()


def _learned(question: Question, batch: Batch) -> Any:
    stored = _shared_once(question, batch)
    name = stored.key, stored.digest
    with _recent_lock:
        if name in _recent:
            return _recent[name]
    learned = _learn(question, read_shared(stored.artifact))
    with _recent_lock:
        while len(_recent) >= _MOST_RECENT:
            del _recent[next(iter(_recent))]
        _recent[name] = learned
    return learned


def _shared_once(question: Question, batch: Batch) -> Batch:
    """The noised numbers that a campaign shares: drawn by whoever is first, and stored."""
    if batch.stored:
        return batch
    noise = NoiseSource.from_secret(batch.secret).derive("shared")
    numbers = shared_numbers(question.mechanism, question.graph, noise)
    return batch.store(lambda path: write_shared(path, numbers, question.graph.nodes))


def rows_in(question: Question, batch: Batch) -> StoredRows:
    """Those of a batch's rows that were asked for.

    What the ledger recorded, not what was just made: should another process have been first, with
    other code under the same secret, two different values must not get out.
    """
    sources, made = read_rows(batch.artifact)
    asked = np.isin(sources, question.indices)
    if asked.all():
        return StoredRows(sources, made)
    widths = None if made.uncertainty is None else made.uncertainty[asked]
    return StoredRows(sources[asked], Computed(made.rows[asked], widths))


def _gathered(question: Question, batches: Iterable[Batch]) -> tuple[Computed, str]:
    """The rows in the order in which they were asked for, and when the last was charged."""
    made, charged = _room(len(question.indices), question), ""
    place = np.empty(question.graph.n_nodes, dtype=np.int64)
    place[list(question.indices)] = np.arange(len(question.indices))
    for batch in batches:
        found = rows_in(question, batch)
        made = _put(made, place[found.sources], found.made)
        charged = max(charged, batch.created)
    return made, charged
