"""Make a release in this process: check, charge, draw, keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism, RestsOnPromise
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.ledger import Charge, Ledger, Reservation
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Provenance, Release

__all__ = ["release"]


def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    noise: NoiseSource | None = None,
) -> Release:
    """Run a mechanism on a graph and give the rows with their guarantee.

    With a ledger the price is charged, durably, before any noise is drawn. The same call
    again (same graph, sources, mechanism, nonce) gives the stored release and costs nothing;
    after a crash it goes on with the same noise.

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

    Raises
    ------
    UnknownNodeError
        If a source is not in the public node set.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ParameterError(f"sources must be a list of node ids, got {sources!r}")
    indices = list(dict.fromkeys(graph.nodes.index(node) for node in sources))
    if not indices:
        raise ParameterError("sources must name at least one node, got none")
    # The node set's own ids: plain integers or strings, whatever the caller's were.
    listed = tuple(graph.nodes.take(indices))
    guarantee = mechanism.guarantee(len(listed))
    if isinstance(mechanism, RestsOnPromise):
        mechanism.check_promise(graph)  # before the charge: a refusal costs nothing
    if noise is not None and noise.private:
        # In two releases it would draw the same noise twice, which can then be subtracted.
        raise ParameterError("noise= takes a seeded source; leave it out for a private release")
    if ledger is None:
        source = noise if noise is not None else NoiseSource.secure()
        return _compute(graph, mechanism, listed, indices, guarantee, source, charged=False)
    if noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
    reservation = _reserve(ledger, graph, mechanism, listed, guarantee, nonce)
    if reservation.artifact is not None:
        return Release.read(reservation.artifact)
    source = NoiseSource.from_secret(reservation.secret)
    made = _compute(graph, mechanism, listed, indices, guarantee, source, charged=True)
    reservation.release(made.write, suffix=".parquet")
    return made


def _reserve(
    ledger: Ledger,
    graph: Graph,
    mechanism: Mechanism,
    sources: tuple[NodeId, ...],
    guarantee: Guarantee,
    nonce: str,
) -> Reservation:
    """Charge the ledger under a key that stands for exactly this release."""
    parameters = _parameters(mechanism)
    query = {
        "graph": graph.fingerprint,
        "mechanism": mechanism.name,
        # 1 and 1.0 are the same question
        "parameters": {k: float(v) if type(v) is int else v for k, v in parameters.items()},
        "version": version("edgeveil"),
        "sources": list(sources),
        "nonce": nonce,
    }
    key = hashlib.sha256(json.dumps(query, sort_keys=True).encode()).hexdigest()
    note = {"mechanism": mechanism.name, "parameters": json.dumps(parameters), "nonce": nonce}
    charge = Charge.from_guarantee(guarantee, [str(s) for s in sources])
    return ledger.reserve(key, charge, note, fingerprint=graph.fingerprint)


def _compute(
    graph: Graph,
    mechanism: Mechanism,
    sources: tuple[NodeId, ...],
    indices: list[int],
    guarantee: Guarantee,
    noise: NoiseSource,
    *,
    charged: bool,
) -> Release:
    """Prepare once, then all rows. Each source has its own noise, so order does not matter."""
    prepared = mechanism.prepare(graph, noise.derive("shared"))
    values = mechanism.rows(prepared, indices, noise.derive("rows"))
    by_nodes = mechanism.columns == "nodes"
    return Release(
        values=values,
        sources=sources,
        columns=graph.nodes if by_nodes else NodeSet.range(values.shape[1]),
        kind=mechanism.columns,
        guarantee=replace(guarantee, private=noise.private),
        provenance=Provenance(
            mechanism=mechanism.name,
            parameters=_parameters(mechanism),
            version=version("edgeveil"),
            noise=noise.kind,
            ledger=charged,
        ),
    )


def _parameters(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's public parameters as plain data."""
    fields: dict[str, Any] = asdict(mechanism)  # type: ignore[call-overload]  # all are dataclasses
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in fields.items()}
