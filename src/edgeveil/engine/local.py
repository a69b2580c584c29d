"""Make a release in this process: check, charge, draw, keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism, RestsOnPromise
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.ledger import Charge, Ledger, Reservation
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Provenance, Release

__all__ = ["release"]


_NODES_ARE_PUBLIC = (
    "that these nodes exist is public knowledge (no node list was given, so it was read off the "
    "edges: who appears here at all is not protected)"
)


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
    if graph.intake.nodes_from_edges:
        promises = [p for p in (guarantee.promise, _NODES_ARE_PUBLIC) if p]
        guarantee = replace(guarantee, promise="; ".join(promises))
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
    done = reservation.release(made.write, suffix=".parquet")
    # What the ledger recorded, not what was just made: should another process have been first,
    # with other code under the same secret, two different values must not get out.
    if done.artifact is None:
        raise LedgerError("the ledger did not record the release")
    return Release.read(done.artifact)


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
        "code": _code_digest(),
        "sources": list(sources),
        "nonce": nonce,
    }
    # Keyed by the ledger: the key names the artifact's file and is quoted in errors, and a plain
    # hash would let anybody test a guess at the graph.
    key = ledger.key_of(json.dumps(query, sort_keys=True))
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


@cache
def _code_digest() -> str:
    """SHA-256 of edgeveil's own code: other code under one key would reuse its noise."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256(version("edgeveil").encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _parameters(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism's public parameters as plain data."""
    fields: dict[str, Any] = asdict(mechanism)  # type: ignore[call-overload]  # all are dataclasses
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in fields.items()}
