"""What engines run: parts of a release, and the two things that are done with a part's rows.

A task is plain data and can be sent to another process; the key to its noise is sent apart
from it, because what is shared between machines may be spilled to a disk and a key must not.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgeveil._files import sha256_of, write_atomically
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.run import rows_with_uncertainty
from edgeveil.nodes import NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.release_folder import Result
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions

__all__ = [
    "SEAL",
    "Computed",
    "Engine",
    "Part",
    "RowsTask",
    "Task",
    "WriteTask",
    "Written",
    "part_name",
    "release_of",
    "split",
]

SEAL = ".seal"  # suffix of the file beside a part, until the release is finished


@dataclass(frozen=True)
class Part:
    """Some of a release's sources (indices), in order; parts are numbered from 0."""

    number: int
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Computed:
    """Rows of a part, and the uncertainty of their scores if the mechanism knows it."""

    rows: Rows
    uncertainty: Rows | None


@dataclass(frozen=True)
class Written:
    """A part that is on the disk for good."""

    name: str
    sha256: str


class Task(Protocol):
    """What is done for one part. Must give the same result however often it is run."""

    @property
    def mechanism(self) -> Mechanism:
        """Whose code it runs."""
        ...

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> Any:
        """Do the part; `check` is called between blocks and may raise to stop."""
        ...


class Engine(Protocol):
    """Where rows are computed: the only thing an engine does is to run a task for every part."""

    def run(self, task: Task, parts: Sequence[Part], key: NoiseKey) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts, in any order, more than once if need be.

        Yields each part once, with its result. Closing the iterator stops the work.
        """
        ...


def part_name(number: int, run: str) -> str:
    """Name of a part's file."""
    return f"part-{number:06d}-{run[:12]}.parquet"


def split(sources: Sequence[int], rows: int) -> list[Part]:
    """Cut the sources into parts of `rows`, the last one shorter."""
    return [
        Part(number, tuple(sources[first : first + rows]))
        for number, first in enumerate(range(0, len(sources), rows))
    ]


@dataclass(frozen=True, kw_only=True)
class RowsTask:
    """Compute a part's rows and give them back.

    Attributes
    ----------
    mechanism, graph
        What to run on what.
    shared
        What all sources share, from `edgeveil.mechanisms.run.shared_part`.
    """

    mechanism: Mechanism
    graph: Graph
    shared: Any

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> Computed:
        """Every source has its own noise, so what a part holds does not matter."""
        rows, uncertainty = rows_with_uncertainty(
            self.mechanism, self.graph, self.shared, part.sources, noise, check
        )
        return Computed(rows, uncertainty)


@dataclass(frozen=True, kw_only=True)
class WriteTask:
    """Compute a part's rows and write them as a release file of their own.

    Attributes
    ----------
    rows : RowsTask
        How to compute them.
    folder : str
        Where to write; the same place for every worker.
    run : str
        Stands in the files' names: parts of two different runs never mix.
    guarantee, provenance
        Of the whole release; every part carries them.
    """

    rows: RowsTask
    folder: str
    run: str
    guarantee: Guarantee
    provenance: Provenance

    @property
    def mechanism(self) -> Mechanism:
        """Whose code it runs."""
        return self.rows.mechanism

    def path_of(self, part: Part) -> Path:
        """Where the part goes."""
        return Path(self.folder) / part_name(part.number, self.run)

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> Written:
        """Write the part, wholly or not at all, unless it is there already."""
        path = self.path_of(part)
        # Whoever can write to the folder could put a part there: what we find is ours only
        # with a seal that needs the release's secret.
        key = noise.derive("seal", part.number).words(4).tobytes()
        seal = path.with_suffix(SEAL)
        if path.is_file() and seal.is_file():
            digest = sha256_of(path)
            if hmac.compare_digest(seal.read_text(), _sealed(key, digest)):
                return Written(path.name, digest)
        self.release_of(part, self.rows(part, noise, check)).write(path)
        digest = sha256_of(path)
        write_atomically(seal, lambda place: place.write_text(_sealed(key, digest)))
        return Written(path.name, digest)

    def release_of(self, part: Part, made: Computed) -> Result:
        """The part as a release."""
        nodes = self.rows.graph.nodes
        return release_of(
            self.rows.mechanism, nodes, part.sources, made, self.guarantee, self.provenance
        )


def release_of(
    mechanism: Mechanism,
    nodes: NodeSet,
    sources: Sequence[int],
    made: Computed,
    guarantee: Guarantee,
    provenance: Provenance,
) -> Result:
    """Rows with what has to be known about them."""
    if mechanism.gives == "suggestions":
        return Suggestions(
            values=made.rows,
            members=tuple(nodes.take(list(sources))),
            nodes=nodes,
            guarantee=guarantee,
            provenance=provenance,
        )
    by_nodes = mechanism.gives == "scores"
    return Release(
        values=made.rows,
        uncertainty=made.uncertainty,
        sources=tuple(nodes.take(list(sources))),
        columns=nodes if by_nodes else NodeSet.range(made.rows.shape[1]),
        gives=mechanism.gives,
        guarantee=guarantee,
        provenance=provenance,
    )


def _sealed(key: bytes, digest: str) -> str:
    return hmac.digest(key, digest.encode(), "sha256").hex()
