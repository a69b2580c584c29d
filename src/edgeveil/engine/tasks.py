"""What engines run: the rows of a part of a release.

A task is plain data and can be sent to another process; the key to its noise is sent apart
from it, because what is shared between machines may be spilled to a disk and a key must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, KnowsUncertainty, Mechanism, Rows
from edgeveil.mechanisms.run import groups_of, make_rows
from edgeveil.nodes import NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.release_folder import Result
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions


@dataclass(frozen=True)
class Part:
    """Some sources (indices) of a batch, from which place in it on."""

    batch: int
    first: int
    sources: tuple[int, ...]


Parts = Iterable[tuple[Part, NoiseKey]]
"""With the key to the noise of the batch's rows."""


class Computed(NamedTuple):
    """Rows, and the uncertainty of their scores if the mechanism knows it."""

    rows: Rows
    uncertainty: Rows | None


@dataclass(frozen=True, kw_only=True)
class Task:
    """Compute a part's rows and give them back: the same ones, however often it is run."""

    mechanism: Mechanism
    graph: Graph
    shared: Any  # what `Mechanism.learn` gave

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> Computed:
        """Every source has its own noise, so what a part holds does not matter.

        `check` is called between groups of rows and may raise to stop.
        """
        mechanism, graph, total = self.mechanism, self.graph, len(part.sources)
        wholes: list[Rows] = []  # one array each: a group's memory is then used for the next one
        for here in groups_of(mechanism, graph.n_nodes, total):
            check()
            made, own = make_rows(mechanism, graph, self.shared, part.sources[here], noise)
            parts = [made]
            if mechanism.gives == "scores" and isinstance(mechanism, KnowsUncertainty):
                parts.append(mechanism.uncertainty(made, self.shared, own))
            wholes = wholes or [np.empty((total, *part.shape[1:])) for part in parts]
            for whole, group in zip(wholes, parts, strict=True):
                whole[here] = group
        return Computed(wholes[0], wholes[1] if len(wholes) == 2 else None)


class Engine(Protocol):
    """Where rows are computed: the only thing an engine does is to run a task for every part."""

    def run(self, task: Task, parts: Parts) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts, in any order, more than once if need be.

        Yields each part once, with its result. Parts are taken when there is room for them, in
        the caller's thread: to ask for the next one may charge a ledger. Closing the iterator
        stops the work.
        """
        ...


def release_of(
    gives: Gives,
    nodes: NodeSet,
    sources: Sequence[int],
    made: Computed,
    guarantee: Guarantee,
    provenance: Provenance,
) -> Result:
    """Rows with what has to be known about them."""
    about: dict[str, Any] = {"guarantee": guarantee, "provenance": provenance}
    ids = tuple(nodes.take(list(sources)))
    if gives == "suggestions":
        return Suggestions(values=made.rows, members=ids, nodes=nodes, **about)
    columns = nodes if gives == "scores" else NodeSet.range(made.rows.shape[1])
    return Release(
        values=made.rows,
        uncertainty=made.uncertainty,
        sources=ids,
        columns=columns,
        gives=gives,
        **about,
    )
