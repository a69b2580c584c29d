"""Make a release in memory: check, charge, draw, keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from edgeveil.engine.charging import Question, ask, fresh_noise, key_of, reserve
from edgeveil.engine.local import Local
from edgeveil.engine.tasks import Engine, RowsTask, rows_per_block, split
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.noise import NoiseSource
from edgeveil.release_folder import ReleaseFolder
from edgeveil.releases import Release

__all__ = ["Progress", "release"]

Progress = Callable[[int, int], None]


def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    noise: NoiseSource | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Release:
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
    question = ask(graph, mechanism, sources)
    engine = engine or Local()
    if ledger is None:
        return _compute(question, fresh_noise(noise), engine, progress, charged=False)
    if noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
    reservation = reserve(question, ledger, key_of(question, ledger, nonce), nonce)
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
    return Release.read(reservation.artifact)


def _compute(
    question: Question,
    noise: NoiseSource,
    engine: Engine,
    progress: Progress | None,
    *,
    charged: bool,
) -> Release:
    """Prepare once, then all rows. Each source has its own noise, so order does not matter."""
    graph, mechanism = question.graph, question.mechanism
    block = rows_per_block(graph.n_nodes)
    task = RowsTask(
        mechanism=mechanism,
        prepared=mechanism.prepare(graph, noise.derive("shared")),
        block=block,
        with_uncertainty=True,
    )
    total = len(question.indices)
    values: npt.NDArray[np.float64] | None = None
    widths: npt.NDArray[np.float64] | None = None
    done = 0
    for part, computed in engine.run(
        task, split(question.indices, block), noise.derive("rows").hand_over()
    ):
        if values is None:
            values = np.empty((total, computed.rows.shape[1]))
            if computed.uncertainty is not None:
                widths = np.empty((total, computed.uncertainty.shape[1]))
        places = slice(part.number * block, part.number * block + len(part.sources))
        values[places] = computed.rows
        if widths is not None:
            widths[places] = computed.uncertainty
        done += len(part.sources)
        if progress:
            progress(done, total)
    if values is None:
        raise ParameterError("sources must name at least one node, got none")
    by_nodes = mechanism.columns == "nodes"
    return Release(
        values=values,
        uncertainty=widths,
        sources=question.sources,
        columns=graph.nodes if by_nodes else NodeSet.range(values.shape[1]),
        kind=mechanism.columns,
        guarantee=replace(question.guarantee, private=noise.private),
        provenance=question.provenance(noise.kind, charged=charged),
    )
