"""From a question to its price: checked, then charged, before anything is drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from edgeveil.engine.keys import describe, parameters_of
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Charge, Ledger, Price, Reservation
from edgeveil.mechanisms.base import ChecksNodes, Mechanism, RestsOnPromise, check_directions
from edgeveil.mechanisms.run import rows_at_once
from edgeveil.memory import total_memory
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.suggestions import FIELDS

__all__ = ["Payment", "Question", "ask", "check_promise", "fresh_noise", "price_of", "reserve"]

_NODES_ARE_PUBLIC = (
    "that these nodes exist is public knowledge (no node list was given, so it was read off the "
    "edges: who appears here at all is not protected)"
)


@dataclass(frozen=True)
class Payment:
    """Who pays for a release, and under which names; see `edgeveil.release`."""

    ledger: Ledger
    nonce: str
    label: str
    new_node_set: bool

    def about(self, graph: Graph) -> dict[str, Any]:
        """What the ledger has to know about the public node set."""
        return {
            "label": self.label,
            "node_set": self.ledger.node_set_digest(graph.nodes),
            "new_node_set": self.new_node_set,
        }


@dataclass(frozen=True, kw_only=True)
class Question:
    """A release that was asked for and checked; nothing is charged or drawn yet."""

    graph: Graph
    mechanism: Mechanism
    sources: tuple[NodeId, ...]
    indices: tuple[int, ...]
    guarantee: Guarantee

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row; public."""
        if self.mechanism.gives == "scores":
            return (self.graph.n_nodes,)
        if self.mechanism.gives == "suggestions":
            return (int(self.mechanism.top), len(FIELDS))  # type: ignore[attr-defined]  # lists have it
        return (int(self.mechanism.dimension),)  # type: ignore[attr-defined]  # embeddings have it

    def key_in(self, payment: Payment) -> str:
        """The key that stands for this question in a ledger.

        Keyed by the ledger: it names the artifact's file and is quoted in errors, and a plain
        hash would let anybody test a guess at what is in it.
        """
        text = describe(self.mechanism, list(self.sources), payment.nonce, payment.label)
        return payment.ledger.key_of(text)

    def charge(self) -> Charge:
        """Who is to pay how much."""
        return Charge.from_guarantee(self.guarantee, [str(s) for s in self.sources])

    def provenance(self, noise: str, *, charged: bool) -> Provenance:
        """The public record of how the release is made."""
        return Provenance(
            mechanism=self.mechanism.name,
            parameters=parameters_of(self.mechanism),
            version=version("edgeveil"),
            noise=noise,
            ledger=charged,
        )


def ask(
    graph: Graph, mechanism: Mechanism, sources: Iterable[NodeId], *, in_memory: bool
) -> Question:
    """Check what is asked for and say what it would protect; only public values are looked at.

    Whatever could fail later for public reasons (calibration, shapes, memory) fails here, before
    anything is charged.

    Parameters
    ----------
    graph, mechanism, sources
        What is asked for.
    in_memory : bool
        Whether all rows have to fit into memory together.

    Raises
    ------
    ParameterError
        If `sources` is not a list with at least one id, the release could never be made, or the
        graph is directed and the mechanism is not for such graphs.
    UnknownNodeError
        If a source is not in the public node set.
    """
    check_directions(mechanism, graph)
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
    question = Question(
        graph=graph,
        mechanism=mechanism,
        # The node set's own ids: plain integers or strings, whatever the caller's were.
        sources=tuple(graph.nodes.take(list(listed))),
        indices=listed,
        guarantee=guarantee,
    )
    _check_size(question, in_memory=in_memory)
    return question


def _check_size(question: Question, *, in_memory: bool) -> None:
    """Refuse what could never be made with this many nodes and this much memory."""
    if isinstance(question.mechanism, ChecksNodes):
        question.mechanism.check_nodes(question.graph.nodes)
    rows = len(question.sources)
    at_once = rows if in_memory else min(rows, rows_at_once(question.graph.n_nodes))
    width = math.prod(question.shape)
    needed, there = 8 * at_once * width, total_memory()
    if needed > there:
        raise ParameterError(
            f"{at_once:,} rows of {width:,} values take {needed / 2**30:,.0f} GiB of "
            f"memory; there are {there / 2**30:,.0f}"
            + "; edgeveil.release_to writes them to a folder instead"
            * in_memory
        )


def check_promise(question: Question) -> None:
    """Refuse a graph that breaks what a guarantee rests on (PromiseError); it costs nothing."""
    if isinstance(question.mechanism, RestsOnPromise):
        question.mechanism.check_promise(question.graph)


def fresh_noise(noise: NoiseSource | None) -> NoiseSource:
    """The noise of a release that no ledger keeps: new and secure, or the given seeded one."""
    if noise is None:
        return NoiseSource.secure()
    if noise.private:
        # In two releases it would draw the same noise twice, which can then be subtracted.
        raise ParameterError("noise= takes a seeded source; leave it out for a private release")
    return noise


def price_of(question: Question, payment: Payment) -> Price:
    """What the ledger would charge. Whether a promise holds is not looked at: it would tell."""
    return payment.ledger.price(
        question.key_in(payment),
        question.charge(),
        question.graph.fingerprint,
        **payment.about(question.graph),
    )


def _in_few_words(parameters: dict[str, Any]) -> str:
    """The parameters for people; of a long list (candidates) only how long it is."""
    return json.dumps(
        {
            name: f"{len(value)} of them" if isinstance(value, tuple) and len(value) > 20 else value
            for name, value in parameters.items()
        }
    )


def reserve(question: Question, payment: Payment) -> Reservation:
    """Charge the ledger, unless the question was charged before."""
    note = {
        "mechanism": question.mechanism.name,
        "parameters": _in_few_words(parameters_of(question.mechanism)),
        "nonce": payment.nonce,
    }
    return payment.ledger.reserve(
        question.key_in(payment),
        question.charge(),
        note,
        fingerprint=question.graph.fingerprint,
        **payment.about(question.graph),
    )
