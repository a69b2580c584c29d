"""Files of edges that are larger than memory -> a graph folder.

Three steps, in a folder ``.NAME.building`` beside the place of the result. What a step has
finished is in files that appear whole, so the same call goes on after any interruption.

    read   every part, piece by piece: the ends of its edges as numbers (`part-*.json` is last)
    nodes  the distinct ids of all parts, sorted: the node set (`nodes.json` is last)
    rows   keys of every piece, in buckets; then buckets of all pieces together, sorted

Integers below a limit are their own numbers while parts are read, and a table says which of them
occur. For others, and for names, the numbers are those of the piece's own sorted ids.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._csr import MOST_NODES, width_of_buckets
from edgeveil._files import flush, write_note
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph import Directed, Intake, check_directed
from edgeveil.io.buckets import Pieces, deal_piece, write_rows
from edgeveil.io.folder import clear_away, describe_folder, move_in, refuse_taken
from edgeveil.io.lines import read_bytes, suffix_of
from edgeveil.io.merging import merge_runs, read_map, write_run
from edgeveil.io.node_lists import Nodes, read_nodes
from edgeveil.io.numbering import Ids, Numbering, OtherIdsError
from edgeveil.io.picking import Columns
from edgeveil.io.read import PARQUET, TEXT, check_columns
from edgeveil.io.streams import Reading, count_rows, edges_by_pieces, rows_within
from edgeveil.memory import total_memory
from edgeveil.nodes import NodeSet

__all__ = ["build_graph"]

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]


def build_graph(
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    nodes: Nodes | None = None,
    directed: Directed = False,
    header: bool | None = None,
    columns: Columns | None = None,
    delimiter: str | None = None,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    r"""Build a graph folder from files of edges that may be larger than memory.

    The folder is the one that `save_graph` writes of what `read_graph` reads, had all edges been
    in one file. It appears whole or not at all. Interrupted in any way, the same call goes on
    where it was, and loses at most the part, or the step over all nodes, that it was at.

    Parameters
    ----------
    parts : path or sequence of paths
        Text (``.csv .tsv .txt .edges .edgelist``, each also ``.gz``) and Parquet, in any order.
    path : path
        The folder to make. Its parent must exist, and have room: 24 bytes for every line or row
        of the parts (12 if directions are kept), beside the parts, until it is done.
    nodes, directed, header, columns, delimiter
        As in `read_graph`, for every part. A node list is held in memory.
    memory : int, optional
        Bytes that may be used, beside about 0.3 GB for Python and its libraries. Default: half
        of what the machine has. 32 bytes for every line or row that names the most connected
        node are used in any case.
    overwrite : bool
        Replace a graph that was saved there before. Nothing else is ever replaced.
    progress : callable, optional
        Told what is counted, how many are done, and how many there are.

    Returns
    -------
    Path
        The folder, for `open_graph`.

    Raises
    ------
    InputError
        If a part cannot be read, or changed since an interrupted call.
    ParameterError
        If the place is taken, or an option cannot be.
    EdgeveilError
        If the disk has not enough room, or another process builds the same graph.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edgeveil.io import open_graph
    >>> with TemporaryDirectory() as folder:
    ...     for name, edges in (("a.csv", "ann,bob\nbob,cem\n"), ("b.csv", "bob,ann\n")):
    ...         _ = Path(folder, name).write_text(edges)
    ...     parts = sorted(Path(folder).glob("*.csv"))
    ...     open_graph(build_graph(parts, Path(folder, "friends")))
    Graph(3 nodes, 2 edges)
    """
    path = Path(path)
    given = [parts] if isinstance(parts, (str, os.PathLike)) else parts
    listed = [_checked(Path(part)) for part in given]
    if not listed:
        raise ParameterError("there is no part to read edges from")
    if memory is not None and memory < 1:
        raise ParameterError(f"memory must be a positive number of bytes, got {memory}")
    check_columns(columns, header, delimiter)
    refuse_taken(path, overwrite)
    reading = Reading(nodes=read_nodes(nodes), header=header, columns=columns, delimiter=delimiter)
    build = _Build(
        folder=path.parent / f".{path.name}.building",
        parts=listed,
        reading=reading,
        directed=check_directed(directed) == "keep",
        memory=total_memory() // 2 if memory is None else memory,
        progress=progress or (lambda what, done, total: None),
    )
    try:
        with build.owned():
            build.run()
            move_in(build.folder, path)
            clear_away(build.folder)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(
            f"what was done is kept in {build.folder}, and the same call goes on"
        ) from interrupt
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise EdgeveilError(
            f"the graph was not built in {path}: {reason}; the same call goes on where it was"
        ) from error
    return path


def _checked(part: Path) -> Path:
    read_bytes(part, limit=1)
    known = TEXT if part.suffix.lower() == ".gz" else (*TEXT, *PARQUET)
    if suffix_of(part) not in known:
        raise InputError(f"{part} is no part of a list of edges; known are {', '.join(known)}")
    return part


@dataclass
class _Build:
    folder: Path
    parts: list[Path]
    reading: Reading
    directed: bool
    memory: int
    progress: Progress

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Make the folder, or go on with the one that is there; no other process may."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        about = self.folder.lstat()
        ours = not hasattr(os, "geteuid") or (
            about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) & 0o077 == 0
        )
        if not (stat.S_ISDIR(about.st_mode) and ours):  # it will hold the private graph
            raise EdgeveilError(f"{self.folder} is not a folder that only its owner can read")
        with (self.folder / "lock").open("w") as lock:
            with suppress(ImportError):  # not on Windows
                import fcntl

                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise EdgeveilError(f"another process builds in {self.folder}") from error
            if (self.folder / "done").exists() and not (self.folder / "new").exists():
                # killed after the graph was moved to its place
                for file in self.folder.iterdir():
                    if file.name != "lock":
                        shutil.rmtree(file) if file.is_dir() else file.unlink()
            self._refuse_another_plan()
            yield

    def _refuse_another_plan(self) -> None:
        nodes, options = self.reading.nodes, self.reading
        plan = {
            "parts": [str(part.absolute()) for part in self.parts],
            "options": [options.header, options.columns, options.delimiter, self.directed],
            "nodes": None if nodes is None else _digest(nodes),
        }
        file = self.folder / "plan.json"
        if not file.exists():
            try:
                self._refuse_small_disk(sum(map(count_rows, self.parts)))
            except EdgeveilError:
                clear_away(self.folder)  # nothing was done yet
                raise
            write_note(file, plan)
        elif json.loads(file.read_text()) != json.loads(json.dumps(plan)):
            raise InputError(
                f"{self.folder} was begun with other parts or options; delete it to begin anew"
            )

    def _refuse_small_disk(self, rows: int) -> None:
        """Compare what is still to be written with the room there is."""
        needed = rows * (12 if self.directed else 24)
        needed -= sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise EdgeveilError(
                f"the disk of {self.folder.parent} has {free / 1e9:.1f} GB free, "
                f"{needed / 1e9:.1f} GB are needed until the graph is built"
            )

    # -- the steps ------------------------------------------------------------------------

    def run(self) -> None:
        """Do what is left to be done, until ``new`` is the folder of the graph."""
        new, done = self.folder / "new", self.folder / "done"
        if not done.exists():
            new.mkdir(mode=0o700, exist_ok=True)
            found = self._read_parts()
            kind, n = self._find_nodes(found, new)
            entries = sum(part["entries"] for part in found)
            self._refuse_small_disk(entries)
            pieces = self._deal(found, n, width_of_buckets(n, entries * (2 - self.directed)))
            tally = write_rows(
                pieces, new, self.memory // 4, lambda i, of: self.progress("buckets of rows", i, of)
            )
            intake = Intake(
                entries=entries,
                self_loops=pieces.self_loops,
                repeated=tally.repeated // (2 - self.directed),
                both_directions=(tally.dropped - tally.repeated) // 2,
                weighted=sum(part["weighted"] for part in found),
                nodes_from_edges=self.reading.nodes is None,
            )
            self.progress("folder described", 0, 1)
            describe_folder(new, kind, n, intake, directed=self.directed)
            write_note(done, True)
        for file in self.folder.glob("part-*"):
            file.unlink()

    def _read_parts(self) -> list[dict[str, Any]]:
        """Number the ends of all edges; give what was noted of every part."""
        note = self.folder / "ids.json"
        while True:
            first: Ids = "dense" if self.reading.nodes is None else "listed"
            ids: Ids = json.loads(note.read_text()) if note.exists() else first
            try:
                return [self._read_part(number, ids) for number in range(len(self.parts))]
            except OtherIdsError as other:
                for file in self.folder.glob("part-*"):
                    file.unlink()
                write_note(note, other.ids)

    def _read_part(self, number: int, ids: Ids) -> dict[str, Any]:
        self.progress("parts read", number, len(self.parts))
        note = self.folder / f"part-{number}.json"
        nodes, path = self.reading.nodes, self.parts[number]
        file = [path.stat().st_size, path.stat().st_mtime_ns]
        if note.exists():
            before: dict[str, Any] = json.loads(note.read_text())
            if before["file"] == file:
                return before
            raise InputError(f"{path} was changed; delete {self.folder} to begin anew")
        as_text = ids == "text" or (nodes is not None and nodes.kind == "str")
        numbering = Numbering(ids, nodes, min(self.memory // 16, MOST_NODES))
        found: dict[str, Any] = {
            "file": file,
            "entries": 0,
            "weighted": 0,
            "pieces": [],
            "ids": ids,
        }
        reading = replace(self.reading, as_text=as_text)
        for edges, weighted in edges_by_pieces(path, reading, self.memory):
            piece = f"part-{number}-{len(found['pieces'])}"
            ends, own = numbering(edges, f"{path}, after {found['entries']} edges")
            if own is not None:
                write_run(own, self.folder / f"{piece}.ids")
            _save(self.folder / f"{piece}.npy", ends)
            found["pieces"].append(piece)
            found["entries"] += ends.shape[1]
            found["weighted"] += weighted
            self.progress("parts read", number, len(self.parts))
        if ids == "dense":
            _save(self.folder / f"part-{number}-seen.npy", np.packbits(numbering.seen))
        write_note(note, found)
        return found

    def _find_nodes(self, found: list[dict[str, Any]], new: Path) -> tuple[str, int]:
        """Write the arrays of the node set; give its kind and size."""
        self.progress("parts read", len(self.parts), len(self.parts))
        note, nodes = self.folder / "nodes.json", self.reading.nodes
        if note.exists():
            kind, n = json.loads(note.read_text())
            return kind, n
        if nodes is not None:
            kind, n = nodes.kind, len(nodes)
            for name, array in nodes.arrays.items() if kind != "range" else ():
                _save(new / f"{name}.npy", array)
        elif not any(part["entries"] for part in found):
            raise InputError("the parts hold no edge; give nodes= to build a graph without edges")
        elif found[0]["ids"] == "dense":
            occurring = np.flatnonzero(self._seen(found))
            n = len(occurring)
            kind = "range" if occurring[-1] == n - 1 else "int"
            if kind == "int":
                _save(new / "ids.npy", occurring)
        else:
            runs = [self.folder / f"{piece}.ids" for part in found for piece in part["pieces"]]
            kind, n = merge_runs(runs, new, rows_within(self.memory))
        if n > MOST_NODES:
            raise InputError(f"{n} nodes are too many: a graph has at most {MOST_NODES:,}")
        write_note(note, [kind, n])
        return kind, n

    def _seen(self, found: list[dict[str, Any]]) -> Array:
        """Tell which integers occur in any part."""
        seen = np.zeros(0, dtype=np.bool_)
        for number in range(len(found)):
            own = np.unpackbits(np.load(self.folder / f"part-{number}-seen.npy")).view(np.bool_)
            seen, own = sorted((seen, own), key=len, reverse=True)
            seen[: len(own)] |= own
        return seen

    def _deal(self, found: list[dict[str, Any]], n: int, shift: int) -> Pieces:
        """Turn the ends of every piece into keys."""
        ids = found[0]["ids"]
        names = [piece for part in found for piece in part["pieces"]]
        table: Array | None = None
        if ids == "dense" and (self.folder / "new" / "ids.npy").exists():
            table = np.cumsum(self._seen(found), dtype=np.int32) - np.int32(1)
        for number, piece in enumerate(names):
            self.progress("pieces dealt", number, len(names))
            ends_file, keys_file = (self.folder / f"{piece}.{end}" for end in ("npy", "keys"))
            if not keys_file.exists():
                ends = np.load(ends_file)
                if ids in ("integers", "text"):
                    table = read_map(self.folder / f"{piece}.ids")
                u, v = ends if table is None else table[ends]
                deal_piece(u, v, n, shift, keys_file, directed=self.directed)
            ends_file.unlink(missing_ok=True)
        self.progress("pieces dealt", len(names), len(names))
        return Pieces([self.folder / f"{piece}.keys" for piece in names], n, shift)


def _save(file: Path, array: Array) -> None:
    with file.open("wb") as handle:
        np.save(handle, array, allow_pickle=False)
        flush(handle)


def _digest(nodes: NodeSet) -> str:
    digest = hashlib.sha256(nodes.kind.encode())
    for name, array in sorted(nodes.arrays.items()):
        digest.update(f"{name}:{array.size};".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
