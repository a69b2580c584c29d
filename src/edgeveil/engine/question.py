"""What is asked for, checked before anything is charged or drawn, and how it is to be made."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, TypedDict

from edgeveil.engine.keys import code_of, describe, parameters_of
from edgeveil.engine.local import Local
from edgeveil.engine.tasks import Engine
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.io import as_graph, read_graph
from edgeveil.ledger import Campaign, Ledger
from edgeveil.mechanisms.base import (
    ChecksNodes,
    Mechanism,
    RestsOnPromise,
    check_directions,
    check_mechanism,
)
from edgeveil.mechanisms.run import rows_at_once
from edgeveil.memory import total_memory
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.suggestions import FIELDS

Progress = Callable[[int, int], None]


class Options(TypedDict, total=False):
    """What every call that releases takes; see `edgeveil.release`."""

    ledger: Ledger | None
    label: str
    snapshot: int | None
    purpose: str
    operator: str
    noise: NoiseSource | None
    engine: Engine | None
    progress: Progress | None


def graph_of(given: Any) -> Graph:
    """The graph that was given: as such, as a path to it, or as another library's object."""
    return read_graph(given) if isinstance(given, str | os.PathLike) else as_graph(given)


def opened_ledger(given: Any) -> Ledger | None:
    """The ledger that was given: as such, or by its file or address."""
    if given is None or isinstance(given, Ledger):
        return given
    if isinstance(given, str | os.PathLike):
        return Ledger.open(given)
    raise ParameterError(f"ledger must be a Ledger or its path, got {type(given).__name__}")


_NODES_ARE_PUBLIC = (
    "that these nodes exist is public knowledge (no node list was given, so it was read off the "
    "edges: who appears here at all is not protected)"
)


@dataclass(frozen=True, kw_only=True)
class How:
    """Who pays for a release, under which names, and how it is made; see `edgeveil.release`."""

    ledger: Ledger | None = None
    label: str = ""
    snapshot: int | None = None
    purpose: str = ""
    operator: str = ""
    noise: NoiseSource | None = None
    engine: Engine = field(default_factory=Local)
    progress: Progress | None = None

    @classmethod
    def of(cls, options: Options) -> How:
        """Check what was given; one that is None is left out."""
        named = {name: given for name, given in options.items() if given is not None}
        how = cls(**named | {"ledger": opened_ledger(options.get("ledger"))})  # type: ignore[arg-type]
        if how.ledger is not None and how.noise is not None:
            raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
        if how.noise is not None and how.noise.private:
            # In two releases it would draw the same noise twice, which can then be subtracted.
            raise ParameterError("noise= takes a seeded source; leave it out for a private release")
        return how

    def campaign(self, question: Question) -> Campaign:
        """What the ledger has to know about a question."""
        mechanism = question.mechanism
        note = {
            "mechanism": mechanism.name,
            "parameters": _in_few_words(parameters_of(mechanism)),
            "version": version("edgeveil"),
            "purpose": self.purpose,
            "operator": self.operator,
        }
        return Campaign(
            question=describe(mechanism),
            guarantee=mechanism.guarantee,
            label=self.label,
            fingerprint=question.graph.fingerprint,
            code=code_of(mechanism),
            snapshot=self.snapshot,
            note={name: words for name, words in note.items() if words},
        )


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

    @cached_property
    def names(self) -> list[str]:
        """The recipients, by the names that a ledger has for them."""
        return [str(source) for source in self.sources]

    def indices_of(self, names: Iterable[str]) -> list[int]:
        """Where these recipients are in the node set, in its order."""
        id_of = type(self.graph.nodes[0])
        return sorted(self.graph.nodes.indices([id_of(name) for name in names]).tolist())

    def provenance(self, noise: str, *, charged: str = "") -> Provenance:
        """The public record of how the release is made, and of when a ledger was charged."""
        return Provenance(
            mechanism=self.mechanism.name,
            parameters=parameters_of(self.mechanism),
            version=version("edgeveil"),
            noise=noise,
            ledger=bool(charged),
            created=charged,
        )


def ask(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    in_memory: bool,
    window: int | None = None,
) -> Question:
    """Check what is asked for and say what it would protect; only public values are looked at.

    Whatever could fail later for public reasons (calibration, shapes, unknown ids, all rows at
    once `in_memory`) fails here, before anything is charged. `window` is the ledger's.
    """
    check_directions(check_mechanism(mechanism), graph)
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ParameterError(f"sources must be a list of node ids, got {sources!r}")
    if sources is graph.nodes:
        indices: Iterable[int] = range(graph.n_nodes)
    else:
        indices = dict.fromkeys(graph.nodes.index(node) for node in sources)
    listed = tuple(indices)
    if not listed:
        raise ParameterError("sources must name at least one node, got none")
    guarantee = replace(mechanism.guarantee(len(listed)), window=window)
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


def _in_few_words(parameters: dict[str, Any]) -> str:
    """The parameters for people; of a long list (candidates) only how long it is."""
    return json.dumps(
        {
            name: f"{len(value)} of them" if isinstance(value, tuple) and len(value) > 20 else value
            for name, value in parameters.items()
        }
    )
