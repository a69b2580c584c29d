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

import numpy as np
import numpy.typing as npt

from edgeveil._files import sha256_of, write_atomically
from edgeveil.mechanisms.protocol import KnowsUncertainty, Mechanism, Rows
from edgeveil.nodes import NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseKey, NoiseSource
from edgeveil.releases import Provenance, Release

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
    "rows_per_block",
    "split",
]

# Rows that a mechanism is asked for at once. Whatever lies between graph and result, such as
# the flow under an embedding, takes this many times n doubles.
_BLOCK_BYTES = 16 << 20
_LANES = 16  # rows that the kernels compute side by side, at most
_MOST_ROWS = 256

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
    uncertainty: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class Written:
    """A part that is on the disk for good."""

    name: str
    sha256: str


class Task(Protocol):
    """What is done for one part. Must give the same result however often it is run."""

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


def rows_per_block(n_nodes: int) -> int:
    """How many rows are computed at once: whole groups of lanes, about 16 MiB of doubles."""
    fitting = _BLOCK_BYTES // (8 * max(n_nodes, 1))
    return min(max(fitting // _LANES * _LANES, _LANES), _MOST_ROWS)


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
    """Compute a part's rows and give them back."""

    mechanism: Mechanism
    prepared: Any
    block: int  # rows at once
    with_uncertainty: bool = False

    def __call__(self, part: Part, noise: NoiseSource, check: Callable[[], None]) -> Computed:
        """Compute block by block. Every source has its own noise, so blocks do not matter."""
        mechanism = self.mechanism
        rows: list[Rows] = []
        widths: list[npt.NDArray[np.float64]] = []
        for first in range(0, len(part.sources), self.block):
            check()
            sources = part.sources[first : first + self.block]
            rows.append(mechanism.rows(self.prepared, sources, noise))
            if self.with_uncertainty and isinstance(mechanism, KnowsUncertainty):
                widths.append(mechanism.uncertainty(self.prepared, sources, rows[-1]))
        return Computed(_stacked(rows), _stacked(widths) if widths else None)


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
    nodes : NodeSet
        The public node set.
    guarantee, provenance
        Of the whole release; every part carries them.
    """

    rows: RowsTask
    folder: str
    run: str
    nodes: NodeSet
    guarantee: Guarantee
    provenance: Provenance

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
        self.release_of(part, self.rows(part, noise, check).rows).write(path)
        digest = sha256_of(path)
        write_atomically(seal, lambda place: place.write_text(_sealed(key, digest)))
        return Written(path.name, digest)

    def release_of(self, part: Part, values: Rows) -> Release:
        """The part as a release."""
        by_nodes = self.rows.mechanism.columns == "nodes"
        return Release(
            values=values,
            sources=tuple(self.nodes.take(list(part.sources))),
            columns=self.nodes if by_nodes else NodeSet.range(values.shape[1]),
            kind=self.rows.mechanism.columns,
            guarantee=self.guarantee,
            provenance=self.provenance,
        )


def _sealed(key: bytes, digest: str) -> str:
    return hmac.digest(key, digest.encode(), "sha256").hex()


def _stacked(blocks: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
