"""What a series keeps between two refreshes. A new state replaces the old one atomically.

    series.json       public: the last refreshed snapshot, and the ledger entry that belongs to it
    pending.json      the snapshot that is being worked on; written before its first charge
    state-*/          one file for every 65,536 nodes: windows drawn so far, and evidence
    lock              held during a refresh

The state is derived from windows that are drawn only once, so it must never be older than what the
ledger has recorded: a refresh first compares the two.
"""

from __future__ import annotations

import json
import re
import secrets
import zipfile
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import remove_folder, sync_folder, write_atomically, write_note
from edgeveil.errors import LedgerError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.saved import is_private_folder, locked
from edgeveil.series.history import History

SHARD = 1 << 16  # nodes in a file
_FORMAT = 1


@dataclass(frozen=True)
class SeriesManifest:
    """What series.json holds.

    Attributes
    ----------
    series : str
        The key of the campaign in the ledger.
    until : int
        The last snapshot that was refreshed; 0 before the first.
    token : str
        That snapshot's token in the history.
    entry : tuple of int and str
        Number and hash of the ledger's last entry about this series.
    state : str
        The folder of the committed state.
    n_nodes : int
        Number of nodes in that state; nodes with a higher index are new.
    """

    series: str
    until: int = 0
    token: str = ""
    entry: tuple[int, str] = (0, "")
    state: str = ""
    n_nodes: int = 0

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> SeriesManifest:
        """What `vars` gives, read from a file; KeyError, TypeError or ValueError if it is not."""
        number, digest = content["entry"]
        manifest = cls(**content | {"entry": (number, digest)})
        texts = (manifest.series, manifest.token, digest, manifest.state)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a text is none")
        if not all(
            type(one) is int and one >= 0 for one in (manifest.until, number, manifest.n_nodes)
        ):
            raise TypeError("a number is none")
        if manifest.state and not re.fullmatch("state-[0-9a-z]+", manifest.state):
            raise ValueError("the state is no folder of the series")
        if set(content) != {one.name for one in fields(cls)}:
            raise KeyError("an entry is missing")
        return manifest


@dataclass(frozen=True)
class Shard:
    """The state of the members with index ``first``, ``first + 1``, ... in the history."""

    first: int
    charged: npt.NDArray[np.bool_]  # whether the member was charged for the series
    last: npt.NDArray[np.uint16]  # snapshot at which its last window ended; 0: no window yet
    windows: npt.NDArray[np.uint16]  # how many were drawn
    evidence: Evidence

    @classmethod
    def empty(cls, first: int, size: int) -> Shard:
        """Members without a window."""
        last, windows = np.zeros(size, np.uint16), np.zeros(size, np.uint16)
        return cls(first, np.zeros(size, np.bool_), last, windows, no_evidence(size))

    def grown(self, size: int) -> Shard:
        """The same shard with room for members who have joined."""
        if size == len(self.last):
            return self
        shards = self, Shard.empty(self.first, size - len(self.last))
        return Shard(
            self.first,
            np.concatenate([shard.charged for shard in shards]),
            np.concatenate([shard.last for shard in shards]),
            np.concatenate([shard.windows for shard in shards]),
            Evidence.joined([shard.evidence for shard in shards]),
        )

    def without(self, nodes: npt.NDArray[np.int64]) -> Shard:
        """The same shard without the state of these members, if they are in it."""
        here = nodes[(nodes >= self.first) & (nodes < self.first + len(self.last))] - self.first
        if not len(here):
            return self
        rows, keep = np.arange(len(self.last)), np.ones(len(self.last), np.bool_)
        rows[here], keep[here] = len(rows), False
        return Shard(
            self.first,
            self.charged & keep,
            self.last * keep,
            self.windows * keep,
            Evidence.joined([self.evidence, no_evidence(1)]).take(rows),
        )

    def write(self, folder: Path) -> None:
        """Write the file of this shard: up to 1.2 KB per member."""
        evidence = self.evidence
        arrays = {
            "charged": self.charged,
            "last": self.last,
            "windows": self.windows,
            "counts": np.diff(evidence.starts).astype(np.uint16),
            "nodes": evidence.nodes,
            "sums": evidence.sums.astype(np.float16),
            "rates": evidence.rates.astype(np.float32),
        }

        def write(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]

        write_atomically(folder / f"{self.first // SHARD:06d}.npz", write)

    @classmethod
    def read(cls, folder: Path, first: int, size: int) -> Shard:
        """Read the file of a shard of `size` members."""
        with _opened(folder, first) as arrays:
            counts = arrays["counts"].astype(np.int64)
            evidence = Evidence(
                np.concatenate(([0], np.cumsum(counts))),
                arrays["nodes"],
                arrays["sums"].astype(np.float32),
                arrays["rates"].astype(np.float64),
            )
            shard = cls(first, arrays["charged"], arrays["last"], arrays["windows"], evidence)
            _check_lengths(size, shard.charged, shard.last, shard.windows, evidence)
        return shard


class Columns(NamedTuple):
    """The state of all nodes, but for the evidence: as the columns of a `Shard`."""

    charged: npt.NDArray[np.bool_]
    last: npt.NDArray[np.uint16]
    windows: npt.NDArray[np.uint16]


def damaged(file: Path, folder: Path) -> LedgerError:
    """A file of a series is damaged, and what to do about it."""
    return LedgerError(
        f"{file} is damaged. Restore it from a backup; or renew the series (edgeveil ledger "
        f"renew), which charges all members again, and delete {folder}"
    )


def no_evidence(members: int) -> Evidence:
    """Empty evidence for this many members."""
    return Evidence(
        np.zeros(members + 1, dtype=np.int64),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.float32),
        np.zeros(members),
    )


class SeriesFolder:
    """The folder of a series; only the user who made it can read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder if needed, and lock it against other writers."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private_folder(self.path):
            raise LedgerError(f"{self.path} belongs to another user, or is open to others")
        with locked(self.path / "lock", f"another process is refreshing {self.path}"):
            yield

    def history(self) -> History | None:
        """The history of the series; None before the first snapshot."""
        path = self.path / "history"
        return History.open(path) if (path / "history.json").exists() else None

    def manifest(self) -> SeriesManifest | None:
        """The content of series.json; None before the first refresh."""
        return self._read("series.json")

    def pending(self) -> SeriesManifest | None:
        """The refresh that was begun but not finished, if any."""
        return self._read("pending.json")

    def manifest_of(self, series: str) -> SeriesManifest:
        """The content of series.json if it is about this series; otherwise that of a new one."""
        manifest = self.manifest()
        if manifest is None or manifest.series != series:
            return SeriesManifest(series)
        return manifest

    def pending_of(self, series: str) -> SeriesManifest | None:
        """The refresh of this series that was begun but not finished, if any."""
        pending = self.pending()
        return None if pending is None or pending.series != series else pending

    def _read(self, name: str) -> SeriesManifest | None:
        file = self.path / name
        try:
            content = json.loads(file.read_bytes())
            written_by = content.pop("format", None)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
            raise damaged(file, self.path) from error
        if written_by != _FORMAT:
            raise LedgerError(f"{file} was written by another version of edgeveil")
        try:
            return SeriesManifest.from_dict(content)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(file, self.path) from error

    def begin(self, manifest: SeriesManifest) -> None:
        """Record durably which snapshot is worked on, before anything is charged."""
        write_note(self.path / "pending.json", {"format": _FORMAT, **vars(manifest)})

    def commit(self, manifest: SeriesManifest) -> None:
        """Commit a new state, and remove the old one."""
        sync_folder(self.path / manifest.state)
        old = self.manifest()
        write_note(self.path / "series.json", {"format": _FORMAT, **vars(manifest)})
        if old is not None and old.state and old.state != manifest.state:
            remove_folder(self.path / old.state)

    def finish(self) -> None:
        """Record that the refresh is done: all its batches are stored."""
        (self.path / "pending.json").unlink(missing_ok=True)
        sync_folder(self.path)

    def new_state(self) -> Path:
        """An empty folder for the next state; remove what an interrupted refresh left there."""
        manifest = self.manifest()
        for left in self.path.glob("state-*"):
            if manifest is None or left.name != manifest.state:
                remove_folder(left)
        folder = self.path / f"state-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        return folder

    def shards(
        self,
        n_nodes: int,
        manifest: SeriesManifest,
        of: npt.NDArray[np.integer] | None = None,
    ) -> Iterator[Shard]:
        """The state of all members, shard by shard.

        With `of`: only the shards that hold these nodes.
        """
        firsts = range(0, n_nodes, SHARD) if of is None else np.unique(of // SHARD) * SHARD
        for first in map(int, firsts):
            size, n_stored = (min(SHARD, max(n - first, 0)) for n in (n_nodes, manifest.n_nodes))
            # A missing file must not count as an empty one: its windows would be drawn again.
            if n_stored:
                yield Shard.read(self.path / manifest.state, first, n_stored).grown(size)
            else:
                yield Shard.empty(first, size)

    def columns(self, n_nodes: int, manifest: SeriesManifest) -> Columns:
        """The state of all nodes, but for the evidence, which is not read."""
        if manifest.n_nodes > n_nodes:
            raise LedgerError(
                f"{self.path} has more members than its history: one of them was restored from an "
                "older copy"
            )
        charged = np.zeros(n_nodes, np.bool_)
        columns = Columns(charged, np.zeros(n_nodes, np.uint16), np.zeros(n_nodes, np.uint16))
        for first in range(0, manifest.n_nodes, SHARD):
            rows = slice(first, min(first + SHARD, manifest.n_nodes))
            with _opened(self.path / manifest.state, first) as arrays:
                parts = [arrays[name] for name in Columns._fields]
                _check_lengths(rows.stop - first, *parts)
            for column, part in zip(columns, parts, strict=True):
                column[rows] = part
        return columns


@contextmanager
def _opened(folder: Path, first: int) -> Iterator[Any]:
    """Open the file of a shard; LedgerError if it is missing or damaged."""
    path = folder / f"{first // SHARD:06d}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            yield arrays
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        words = f"{path} is missing or damaged: restore it, or renew the series"
        raise LedgerError(words) from error


def _check_lengths(size: int, *columns: Sized) -> None:
    lengths = {len(column) for column in columns}
    if lengths != {size}:
        raise ValueError(f"{lengths} members instead of {size}")
