"""ReleaseFolder: a release larger than memory, as a folder of Parquet files.

    release.json                    guarantee, provenance, and every part with its SHA-256
    index.parquet                   the part of each source
    part-000000-....parquet, ...    a complete release of some sources each

``release.json`` is written last, so a folder that has it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil._internal.files import new_folder, sha256_of, write_atomically
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import OutputKind, Provenance, label_of, metadata_of, output_of
from edgeveil.results.release import Release
from edgeveil.results.suggestions import Suggestions
from edgeveil.results.tabular import (
    as_json,
    parquet_bytes,
    read_labelled_table,
    write_labelled_table,
)

MemberResult = Release | Suggestions

_MANIFEST = "release.json"
_INDEX = "index.parquet"
_FORMAT = 1


@dataclass(frozen=True)
class PartFile:
    """One file of the folder."""

    name: str
    sha256: str
    rows: int


def part_name(number: int, batch: str) -> str:
    """The name of a part's file."""
    return f"part-{number:06d}-{batch[:12]}.parquet"


def file_of(result: MemberResult) -> bytes:
    """A part's file, as bytes."""
    return parquet_bytes(*result.to_parts())


def read_result(path: Path, output: OutputKind) -> MemberResult:
    """Read a file of rows, or of lists."""
    return Suggestions.read(path) if output == "lists" else Release.read(path)


@dataclass(frozen=True, kw_only=True)
class ReleaseFolder:
    """Rows of many sources on disk, with their guarantee. Iterating gives one part at a time.

    Attributes
    ----------
    path : Path
        The folder.
    output : {"scores", "embeddings"}
        What a column is, as in `Release`.
    guarantee : Guarantee
        What is protected.
    provenance : Provenance
        How it was made.
    parts : tuple of PartFile
        The files, in the order of the sources.
    """

    path: Path
    output: OutputKind
    guarantee: Guarantee
    provenance: Provenance
    parts: tuple[PartFile, ...]

    @classmethod
    def write(
        cls,
        path: Path,
        output: OutputKind,
        guarantee: Guarantee,
        provenance: Provenance,
        parts: Iterable[tuple[int, str, Sequence[NodeId], bytes]],
        *,
        overwrite: bool = False,
    ) -> ReleaseFolder:
        """Write a folder from numbered files, each of a batch and some sources, in any order.

        It is written under another name, and renamed when it is complete. A release that is in its
        place is replaced then, if `overwrite` allows it; nothing else ever is.
        """
        cls.at(path)
        with new_folder(path, overwrite=overwrite) as unfinished:
            written = []
            for number, batch, sources, file in parts:
                name = part_name(number, batch)
                write_atomically(unfinished / name, partial(Path.write_bytes, data=file))
                part = PartFile(name, hashlib.sha256(file).hexdigest(), len(sources))
                written.append((number, part, sources))
            _, files, listed = zip(*sorted(written), strict=True)
            folder = cls(
                path=unfinished,
                output=output,
                guarantee=guarantee,
                provenance=provenance,
                parts=files,
            )
            folder.verify()
            numbers = np.repeat(np.arange(len(files)), [part.rows for part in files])
            index = {"source": list(chain.from_iterable(listed)), "part": numbers}
            write_labelled_table(unfinished / _INDEX, index, {})
            text = json.dumps(as_json(folder.manifest), indent=1)
            write_atomically(unfinished / _MANIFEST, lambda path: path.write_text(text))
        return cls.open(path)

    @classmethod
    def at(cls, path: Path) -> ReleaseFolder | None:
        """The release at a path, if there is one; ParameterError if something else is there."""
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return None
        try:
            return cls.open(path)
        except (InputError, OSError):
            raise ParameterError(
                f"{path} exists and is not a release: choose another folder"
            ) from None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ReleaseFolder:
        """Open a finished folder.

        Raises
        ------
        InputError
            If it is not such a folder.
        """
        folder = Path(path)
        try:
            text = (folder / _MANIFEST).read_text()
        except OSError:
            raise InputError(f"{folder} is not a folder with a release") from None
        try:
            manifest = json.loads(text)
            if manifest["format"] != _FORMAT:
                raise InputError(f"{folder} was written by another version of edgeveil")
            return cls(
                path=folder,
                output=output_of(manifest),
                **metadata_of(manifest)._asdict(),
                parts=tuple(PartFile(**part) for part in manifest["parts"]),
            )
        except InputError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{folder / _MANIFEST} is damaged") from error

    @property
    def manifest(self) -> dict[str, Any]:
        """What `release.json` says."""
        return {
            "format": _FORMAT,
            "rows": len(self),
            **label_of(self.output, self.guarantee, self.provenance),
            "parts": [vars(part) for part in self.parts],
        }

    def verify(self) -> None:
        """Compare the digest of every part with the manifest's; InputError at the first change."""
        for part in self.parts:
            self._check(part)

    def _check(self, part: PartFile) -> Path:
        path = self.path / part.name
        if path.name != part.name or not path.is_file():
            raise InputError(f"{path} is missing")
        if sha256_of(path) != part.sha256:
            raise InputError(f"{path} was changed since it was released")
        return path

    def __len__(self) -> int:
        return sum(part.rows for part in self.parts)

    def __iter__(self) -> Iterator[MemberResult]:
        for part in self.parts:
            yield read_result(self._check(part), self.output)

    @property
    def sources(self) -> tuple[NodeId, ...]:
        """The sources, in the order of the parts."""
        return tuple(self._index()[0])

    def _index(self) -> tuple[NodeSet, Any]:
        table, _ = read_labelled_table(self.path / _INDEX)
        return NodeSet.of(table["source"]), table["part"]

    def only(self, source: NodeId) -> MemberResult:
        """The part of the release that the member at this source may see."""
        ids, parts = self._index()
        if source not in ids:
            raise UnknownNodeError(f"the release has no row for {source!r}")
        number = int(parts[ids.index(source)])
        return read_result(self._check(self.parts[number]), self.output).only(source)

    def read(self) -> MemberResult:
        """All rows as one release in memory."""
        parts: list[Any] = list(self)
        joined: MemberResult = parts[0].joined(parts)
        return joined

    def __str__(self) -> str:
        rows = f"{self.provenance.mechanism}: {counted(len(self), 'row')}"
        files = counted(len(self.parts), "file")
        return f"{rows} in {files} in {self.path}. {self.guarantee}"

    __repr__ = __str__
