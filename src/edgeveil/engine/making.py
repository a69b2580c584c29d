"""Make a release in memory: check, charge, draw, keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import overload

import numpy as np

from edgeveil.engine.charging import Payment, Question, ask, check_promise, fresh_noise, reserve
from edgeveil.engine.local import Local
from edgeveil.engine.tasks import Computed, Engine, RowsTask, release_of, split
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_at_once, shared_part
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId
from edgeveil.privacy.noise import NoiseSource
from edgeveil.release_folder import ReleaseFolder, Result, read_result
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions

__all__ = ["Progress", "make", "release"]

Progress = Callable[[int, int], None]

# A part goes to a worker and comes back: much larger than the groups that stay in a cache, or a
# cluster would spend its time on sending; small enough that a few fit into memory.
_PART_BYTES = 16 << 20


@overload
def release(
    graph: Graph,
    mechanism: Suggest,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    label: str = "",
    new_node_set: bool = False,
    noise: NoiseSource | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Suggestions: ...


@overload
def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    label: str = "",
    new_node_set: bool = False,
    noise: NoiseSource | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Release: ...


def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    label: str = "",
    new_node_set: bool = False,
    noise: NoiseSource | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run a mechanism on a graph and give the rows with their guarantee.

    With a ledger the price is charged, durably, before any noise is drawn. The same call
    again (same graph, sources, mechanism, nonce) gives the stored release and costs nothing;
    after a crash it goes on with the same noise. For more rows than fit into memory see
    `release_to`.

    Parameters
    ----------
    graph : Graph
        The private graph.
    mechanism : Mechanism
        What to compute and how to protect it.
    sources : iterable of ids
        The nodes whose rows are wanted; ids, not indices. Repeats are dropped.
    ledger : Ledger, optional
        The budget to charge. Without one nothing is charged and nobody keeps count.
    nonce : str
        Ask for a fresh, separately charged release by changing it.
    label : str
        With a ledger: the public name of the graph, if the ledger is for several.
    new_node_set : bool
        With a ledger: the public node set is another one than last time, and everybody who
        stayed has kept their id. (One person under two ids would have two budgets.)
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
    """
    payment = None if ledger is None else Payment(ledger, nonce, label, new_node_set)
    return make(
        graph,
        mechanism,
        sources,
        payment=payment,
        noise=noise,
        engine=engine,
        progress=progress,
    )


def make(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    payment: Payment | None,
    noise: NoiseSource | None,
    engine: Engine | None,
    progress: Progress | None,
) -> Result:
    """Make a release of any kind; the parameters are those of `release`."""
    question = ask(graph, mechanism, sources, in_memory=True)
    check_promise(question)
    engine = engine or Local()
    if payment is None:
        return _compute(question, fresh_noise(noise), engine, progress, charged=False)
    if noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
    reservation = reserve(question, payment)
    if reservation.artifact is None:
        source = NoiseSource.from_secret(reservation.secret)
        made = _compute(question, source, engine, progress, charged=True)
        reservation = reservation.release(made.write, suffix=".parquet")
    # What the ledger recorded, not what was just made: should another process have been first,
    # with other code under the same secret, two different values must not get out.
    if reservation.artifact is None:
        raise LedgerError("the ledger did not record the release")
    if reservation.artifact.suffix == ".json":  # it was released to a folder
        return ReleaseFolder.from_record(reservation.artifact).read()
    return read_result(reservation.artifact, mechanism.gives)


def _compute(
    question: Question,
    noise: NoiseSource,
    engine: Engine,
    progress: Progress | None,
    *,
    charged: bool,
) -> Result:
    """The shared part once, then all rows. Each source has its own noise: order is free."""
    graph, mechanism = question.graph, question.mechanism
    shared = shared_part(mechanism, graph, noise.derive("shared"))
    task = RowsTask(mechanism=mechanism, graph=graph, shared=shared)
    total, size = len(question.indices), rows_at_once(math.prod(question.shape), _PART_BYTES)
    made = Computed(np.empty((total, *question.shape)), None)
    done = 0
    for part, computed in engine.run(
        task, split(question.indices, size), noise.derive("rows").hand_over()
    ):
        places = slice(part.number * size, part.number * size + len(part.sources))
        made.rows[places] = computed.rows
        if computed.uncertainty is not None:
            if made.uncertainty is None:
                made = Computed(made.rows, np.empty((total, computed.uncertainty.shape[1])))
            made.uncertainty[places] = computed.uncertainty  # type: ignore[index]  # made above
        done += len(part.sources)
        if progress:
            progress(done, total)
    guarantee = replace(question.guarantee, private=noise.private)
    provenance = question.provenance(noise.kind, charged=charged)
    return release_of(mechanism, graph.nodes, question.indices, made, guarantee, provenance)
