"""The folder of a history. A new state replaces the old one atomically.

    history.json      snapshots, forgotten and returned indices, and the name of the current state
    state-*/          a graph folder with `first_seen` (`graph.saved`), and two more arrays:
      current.npy       for every entry, whether the edge is in the latest snapshot
      present.npy       for every node, whether it is in the latest snapshot
    lock              held while writing

A new state is written beside the old one and flushed. Replacing history.json makes it current, and
then the old one is removed. A state that history.json does not name is unfinished or obsolete.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import remove_folder, sync_folder, write_note
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.graph import UNKNOWN, Graph, ReadReport
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.saved import (
    describe_folder,
    description_of,
    is_private_folder,
    locked,
    open_array,
    open_graph,
    save_array,
)
from edgeveil.series.merging import Rows, write_rows

_FORMAT, _VERSION = "edgeveil history", 2
_TRIES = 10  # a state may be replaced between reading its name and opening it


@dataclass(frozen=True)
class Snapshot:
    """The public data of a snapshot.

    Attributes
    ----------
    number : int
        Number of the snapshot, from 1.
    date : str or None
        Date of the snapshot, ISO 8601; None if it has none.
    n_nodes : int
        Number of members at that time.
    nodes : str
        SHA-256 of their ids, in the order of the snapshot.
    token : str
        A random id that distinguishes this snapshot from another one with the same number, in a
        history that was restored from an older copy and continued differently.
    """

    number: int
    date: str | None
    n_nodes: int
    nodes: str
    token: str


@dataclass(frozen=True)
class HistoryManifest:
    """What history.json holds.

    Attributes
    ----------
    identity : str
        A random id.
    state : str
        The folder of the current state.
    snapshots : tuple of Snapshot
        All snapshots.
    forgotten : tuple of int
        Indices of forgotten members.
    returned : tuple of int
        Indices of members who were forgotten before, under another index.
    key : str
        A random key,
    marks : tuple of str
        and with it a hash of the id of everybody who was forgotten (see `mark_of`).
    """

    identity: str
    state: str
    snapshots: tuple[Snapshot, ...]
    forgotten: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()
    key: str = ""
    marks: tuple[str, ...] = ()

    @classmethod
    def new(
        cls, snapshots: tuple[Snapshot, ...] = (), forgotten: tuple[int, ...] = ()
    ) -> HistoryManifest:
        """One with another identity, in which nobody has returned."""
        return cls(secrets.token_hex(16), "", snapshots, forgotten, key=secrets.token_hex(16))

    def mark_of(self, node: object) -> str:
        """A keyed hash of an id: it tells whether somebody who joins was forgotten before."""
        return hmac.digest(self.key.encode(), str(node).encode(), "sha256").hex()


@dataclass(frozen=True)
class State:
    """An open state; its arrays are memory-mapped and stay valid if the state is removed."""

    manifest: HistoryManifest
    graph: Graph
    current: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]

    @cached_property
    def current_reversed(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The CSR structure of the reversed edges of the latest snapshot."""
        rows = np.repeat(np.arange(self.graph.n_nodes, dtype=np.int32), self.graph.degrees)
        rows, columns = rows[self.current], self.graph.indices[self.current]
        counts = np.bincount(columns, minlength=self.graph.n_nodes)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return indptr, rows[np.argsort(columns, kind="stable")]


def create_folder(path: Path) -> None:
    """Make the folder of a history; only this user can read it."""
    check_new_folder(path)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:  # an interrupted creation left it, or somebody made it just now
        check_new_folder(path)


def check_new_folder(path: Path) -> None:
    """Refuse a place where no history can be made; what an interrupted creation left is one."""
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to make the history in")
    left_over = path.is_dir() and is_private_folder(path) and not _has_foreign_files(path)
    if os.path.lexists(path) and not left_over:
        raise ParameterError(f"{path} exists; nothing was written")


def _has_foreign_files(path: Path) -> bool:
    """Whether a folder holds anything but what an interrupted creation leaves."""
    ours = ("state-", ".history.json.")
    return any(file.name != "lock" and not file.name.startswith(ours) for file in path.iterdir())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Lock out other writers, and remove what a killed process left behind."""
    try:
        with locked(path / "lock", f"another process is writing to {path}; try again later"):
            (path / "lock").chmod(0o600)
            _sweep(path)
            yield
            _sweep(path)
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise EdgeveilError(
            f"writing to the history in {path} failed: {reason}; the history is intact, with or "
            "without the change"
        ) from error


def _sweep(path: Path) -> None:
    """Remove states that are not current, so that their bytes are gone."""
    left = list(_leftovers(path))
    for place in left:
        if place.is_dir():
            remove_folder(place)
        else:
            place.unlink(missing_ok=True)
    if left:
        sync_folder(path)


def _leftovers(path: Path) -> Iterator[Path]:
    state = _read_manifest(path).state if (path / "history.json").exists() else None
    for place in path.iterdir():
        if place.name.startswith((".history.json.", "state-")) and place.name != state:
            yield place


def read_state(path: Path, *, verify: bool) -> State:
    """Open the current state."""
    if not path.is_dir():
        raise InputError(f"there is no history {path}; edgeveil history create makes one")
    if not is_private_folder(path):
        raise InputError(f"{path} must be a folder that belongs to you and only you can read")
    for _ in range(_TRIES):
        manifest = _read_manifest(path)
        try:
            return _open_state(path, manifest, verify)
        except InputError:
            if _read_manifest(path).state == manifest.state:
                raise
    raise InputError(f"the history in {path} keeps changing while it is opened; try again")


def refuse_leftovers(path: Path) -> None:
    """Raise an error if old files are still there; the caller holds the lock."""
    _sweep(path)
    if left := next(_leftovers(path), None):
        raise EdgeveilError(f"the old files cannot be removed: delete {left}")


def tidy_up(path: Path) -> None:
    """Remove what a killed process left behind, unless another process is writing."""
    with suppress(EdgeveilError, OSError):
        if any(_leftovers(path)):
            with writing(path):
                pass


def _read_manifest(path: Path) -> HistoryManifest:
    strange = InputError(f"{path} is not a history: edgeveil did not write its history.json")
    try:
        text = (path / "history.json").read_bytes()
    except OSError as error:
        raise InputError(f"{path} is not a history: it has no readable history.json") from error
    try:
        content = json.loads(text)
        is_history, version = content["format"] == _FORMAT, content["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise strange from error
    if not is_history:
        raise strange
    if version != _VERSION:
        is_older = isinstance(version, int) and version < _VERSION
        advice = "make it again (docs/upgrading.md)" if is_older else "update edgeveil"
        raise InputError(
            f"the history in {path} has format version {version!r}, this edgeveil reads "
            f"{_VERSION}: {advice}"
        )
    try:
        snapshots = tuple(Snapshot(**snapshot) for snapshot in content["snapshots"])
        manifest = HistoryManifest(
            str(content["identity"]),
            str(content["state"]),
            snapshots,
            tuple(map(int, content["forgotten"])),
            tuple(map(int, content["returned"])),
            str(content["key"]),
            tuple(map(str, content["marks"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise strange from error
    numbers = [snapshot.number for snapshot in snapshots]
    if numbers != list(range(1, len(numbers) + 1)) or not _is_name(manifest.state):
        raise strange
    return manifest


def _is_name(state: str) -> bool:
    """Whether this names a state in the folder, and does not lead out of it."""
    return state.startswith("state-") and state.removeprefix("state-").isalnum()


def _open_state(path: Path, manifest: HistoryManifest, verify: bool) -> State:
    folder = path / manifest.state
    damaged = InputError(f"the history in {path} is damaged: its arrays do not fit")
    graph = open_graph(folder, verify=verify)
    arrays: dict[str, npt.NDArray[Any]] = {}
    try:
        listed = description_of(folder)["arrays"]
        for name in ("current", "present"):
            arrays[name] = open_array(folder, name, listed[name], verify=verify)
    except (KeyError, TypeError) as error:
        raise damaged from error
    current, present, first_seen = arrays["current"], arrays["present"], graph.first_seen
    if first_seen is None or len(current) != len(first_seen) or len(present) != graph.n_nodes:
        raise damaged
    gone, back = (
        np.array(some, dtype=np.int64) for some in (manifest.forgotten, manifest.returned)
    )
    indices = np.concatenate([gone, back])
    if len(indices) and not (indices.min() >= 0 and indices.max() < graph.n_nodes):
        raise damaged
    # Only `verify` passes over all of `first_seen`: they are not used as indices, so this is safe
    if verify:
        future = np.max(first_seen, where=first_seen != UNKNOWN, initial=0) > len(
            manifest.snapshots
        )
        unborn = np.setdiff1d(graph.indices[current & (first_seen == UNKNOWN)], back)
        if future or present[gone].any() or len(unborn):
            raise damaged
    for array in (current, present):
        array.setflags(write=False)
    return State(manifest, graph, current, present)


def write_state(
    path: Path,
    manifest: HistoryManifest,
    nodes: NodeSet,
    present: npt.NDArray[np.bool_],
    rows: Iterable[Rows],
    *,
    directed: bool,
    nodes_from_edges: bool,
) -> None:
    """Write the next state and make it current; the caller holds the lock.

    `manifest` names the state before it. If `rows` raises, nothing changes.
    """
    folder = path / f"state-{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        write_rows(folder, rows)
        if nodes.kind != "range":
            for name, array in nodes.arrays.items():
                save_array(folder / f"{name}.npy", array)
        save_array(folder / "present.npy", present)
        describe_folder(
            folder,
            nodes.kind,
            len(nodes),
            ReadReport(nodes_from_edges=nodes_from_edges),
            directed=directed,
            first_seen=True,
            more=("current", "present"),
        )
        sync_folder(path)
        content = {"format": _FORMAT, "version": _VERSION, **asdict(manifest), "state": folder.name}
        write_note(path / "history.json", content)
    except BaseException:
        if not _counts(path, folder.name):  # an error may come after it became current
            remove_folder(folder)
        raise


def _counts(path: Path, state: str) -> bool:
    try:
        return _read_manifest(path).state == state
    except InputError:
        return False
