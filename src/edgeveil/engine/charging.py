"""From a question to its price and its key: checked, then charged, before anything is drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Charge, Ledger, Reservation
from edgeveil.mechanisms.protocol import Mechanism, RestsOnPromise
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.releases import Provenance

__all__ = ["Question", "ask", "code_digest", "fresh_noise", "key_of", "reserve"]

_NODES_ARE_PUBLIC = (
    "that these nodes exist is public knowledge (no node list was given, so it was read off the "
    "edges: who appears here at all is not protected)"
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A release that was asked for and checked; nothing is charged or drawn yet."""

    graph: Graph
    mechanism: Mechanism
    sources: tuple[NodeId, ...]
    indices: tuple[int, ...]
    guarantee: Guarantee

    def provenance(self, noise: str, *, charged: bool) -> Provenance:
        """The public record of how the release is made."""
        return Provenance(
            mechanism=self.mechanism.name,
            parameters=_parameters(self.mechanism),
            version=version("edgeveil"),
            noise=noise,
            ledger=charged,
        )


def ask(graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId]) -> Question:
    """Check what is asked for and say what it would protect.

    Raises
    ------
    ParameterError
        If `sources` is not a list with at least one id.
    UnknownNodeError
        If a source is not in the public node set.
    PromiseError
        If the mechanism rests on a promise that the graph breaks. A refusal costs nothing.
    """
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ParameterError(f"sources must be a list of node ids, got {sources!r}")
    if sources is graph.nodes:
        indices: Iterable[int] = range(graph.n_nodes)
    else:
        indices = dict.fromkeys(graph.nodes.index(node) for node in sources)
    listed = tuple(indices)
    if not listed:
        raise ParameterError("sources must name at least one node, got none")
    guarantee = mechanism.guarantee(len(listed))
    if graph.intake.nodes_from_edges:
        promises = [p for p in (guarantee.promise, _NODES_ARE_PUBLIC) if p]
        guarantee = replace(guarantee, promise="; ".join(promises))
    if isinstance(mechanism, RestsOnPromise):
        mechanism.check_promise(graph)
    return Question(
        graph=graph,
        mechanism=mechanism,
        # The node set's own ids: plain integers or strings, whatever the caller's were.
        sources=tuple(graph.nodes.take(list(listed))),
        indices=listed,
        guarantee=guarantee,
    )


def fresh_noise(noise: NoiseSource | None) -> NoiseSource:
    """The noise of a release that no ledger keeps: new and secure, or the given seeded one."""
    if noise is None:
        return NoiseSource.secure()
    if noise.private:
        # In two releases it would draw the same noise twice, which can then be subtracted.
        raise ParameterError("noise= takes a seeded source; leave it out for a private release")
    return noise


def key_of(question: Question, ledger: Ledger, nonce: str) -> str:
    """The key that stands for this question in this ledger.

    The graph's edges are not part of it: otherwise the same call would give the stored rows
    while the graph is the same and new rows as soon as one edge has changed, and whoever sees
    them would know. A question that was asked of another state of the graph is refused by the
    ledger instead, whatever the two states are.
    """
    asked = {
        "mechanism": question.mechanism.name,
        # 1 and 1.0 are the same question
        "parameters": {
            name: float(value) if type(value) is int else value
            for name, value in _parameters(question.mechanism).items()
        },
        "code": code_digest(),
        "sources": list(question.sources),
        "nonce": nonce,
    }
    # Keyed by the ledger: the key names the artifact's file and is quoted in errors, and a plain
    # hash would let anybody test a guess at the graph.
    return ledger.key_of(json.dumps(asked, sort_keys=True))


def reserve(question: Question, ledger: Ledger, key: str, nonce: str) -> Reservation:
    """Charge the ledger, unless the key was charged before."""
    note = {
        "mechanism": question.mechanism.name,
        "parameters": json.dumps(_parameters(question.mechanism)),
        "nonce": nonce,
    }
    charge = Charge.from_guarantee(question.guarantee, [str(s) for s in question.sources])
    return ledger.reserve(key, charge, note, fingerprint=question.graph.fingerprint)


@cache
def code_digest() -> str:
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
