"""Files of edges that are larger than memory -> a graph folder.

Three steps, in a folder ``.NAME.building`` beside the place of the result. What a step has
finished is in files that appear whole, so the same call goes on after any interruption.

    read   every part, piece by piece: the ends of its edges as indices in the node list; without
           one ids are numbered as they come, and those not seen before are kept (`part-*.json`
           is last)
    nodes  these ids, sorted: the node set, and the rank of every number in it
    rows   buckets of rows, as many as fit, sorted
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._csr import MOST_NODES
from edgeveil._files import write_atomically, write_note
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph import Directed, Intake, check_directed
from edgeveil.io.edges import Numbers, in_order, numbers_of, sorted_nodes
from edgeveil.io.folder import (
    clear_away,
    describe_folder,
    is_closed,
    locked,
    move_in,
    refuse_taken,
    save_array,
)
from edgeveil.io.lines import HEAD, TEXT, blocks, is_packed, refuse_unreadable, suffix_of
from edgeveil.io.node_lists import Nodes, read_nodes
from edgeveil.io.picking import Columns, Reading
from edgeveil.io.read import pieces_of
from edgeveil.io.rows import write_rows
from edgeveil.io.tables import PARQUET, count_rows
from edgeveil.memory import total_memory

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]

_MANY = 1 << 62  # ids that may come


def build_graph(
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    nodes: Nodes | None = None,
    directed: Directed = "refuse",
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
        The folder to make. Its parent must exist, and have room: 16 bytes for every line or row
        of the parts (12 if directions are kept), beside the parts, until it is done.
    nodes, directed, header, columns, delimiter
        As in `read_graph`, for every part.
    memory : int, optional
        Bytes that may be used, beside about 0.3 GB for Python and its libraries, and the ids of
        all nodes with up to 200 bytes for each. Default: half of what the machine has. With
        less, the edges are read more often. 32 bytes for every line or row that names one of
        2,000th of the nodes, those next to each other in the node set that have the most edges,
        are used in any case.
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
    refuse_unreadable(part)
    known = TEXT if is_packed(part) else (*TEXT, *PARQUET)
    if suffix_of(part) not in known:
        raise InputError(f"{part} is no part of a list of edges; known are {', '.join(known)}")
    return part


def _guess_rows(part: Path) -> int:
    """Give the number of rows of a Parquet file, or a guess at the lines of a text file."""
    if suffix_of(part) in PARQUET:
        return count_rows(part)
    head = next(blocks(part, HEAD), b"")
    packed = 4 if is_packed(part) else 1  # lists of edges: 2 to 10 times
    return packed * part.stat().st_size * head.count(b"\n") // max(1, len(head)) + 1


class _NamesError(Exception):
    """Ids are names, and those of earlier pieces were taken for integers."""


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
        if not is_closed(self.folder):  # it will hold the private graph
            raise EdgeveilError(f"{self.folder} is not a folder that only its owner can read")
        with locked(self.folder / "lock", f"another process builds in {self.folder}"):
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
            "version": 2,  # of the files in the folder
            "parts": [str(part.absolute()) for part in self.parts],
            "options": [options.header, options.columns, options.delimiter, self.directed],
            "nodes": None if nodes is None else nodes.digest().hexdigest(),
        }
        file = self.folder / "plan.json"
        if not file.exists():
            try:
                self._refuse_small_disk(sum(map(_guess_rows, self.parts)))
            except EdgeveilError:
                clear_away(self.folder)  # nothing was done yet
                raise
            write_note(file, plan)
        elif json.loads(file.read_text()) != json.loads(json.dumps(plan)):
            raise InputError(
                f"{self.folder} was begun with other parts or options, or by another version of "
                "edgeveil; delete it to begin anew"
            )

    def _refuse_small_disk(self, rows: int) -> None:
        """Compare what is still to be written with the room there is."""
        needed = rows * (12 if self.directed else 16)
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
            found, known = self._read_parts()
            kind, n, rank = self._make_nodes(known, new)
            del known
            entries = sum(part["entries"] for part in found)
            self._refuse_small_disk(entries)
            files = [self.folder / f"{name}.ends" for part in found for name in part["pieces"]]
            tally = write_rows(
                *(files, rank, n, new, self.memory * 3 // 4, self.progress), directed=self.directed
            )
            intake = Intake(
                entries=entries,
                self_loops=tally.self_loops,
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

    def _read_parts(self) -> tuple[list[dict[str, Any]], Numbers | None]:
        """Read all edges; give what was noted of every part, and the ids in their order."""
        note, nodes = self.folder / "text", self.reading.nodes
        while True:
            as_text = note.exists() or (nodes is not None and nodes.kind == "str")
            reading = replace(self.reading, as_text=as_text)
            known = None if nodes is None else numbers_of(nodes, _MANY)
            found = []
            try:
                for number in range(len(self.parts)):
                    self.progress("parts read", number, len(self.parts))
                    part, known = self._read_part(number, reading, known)
                    found.append(part)
            except _NamesError:  # then those read before are names as well
                # the last first: ends of a part are numbers of ids in all parts before it
                for number in reversed(range(len(self.parts))):
                    (self.folder / f"part-{number}.json").unlink(missing_ok=True)
                write_note(note, True)
            else:
                self.progress("parts read", len(self.parts), len(self.parts))
                return found, known

    def _read_part(
        self, number: int, reading: Reading, known: Numbers | None
    ) -> tuple[dict[str, Any], Numbers | None]:
        """Read a part, or what was noted of it; give the ids with those that are new."""
        import polars as pl

        note, path = self.folder / f"part-{number}.json", self.parts[number]
        file = [path.stat().st_size, path.stat().st_mtime_ns]
        if note.exists():
            before: dict[str, Any] = json.loads(note.read_text())
            if before["file"] != file:
                raise InputError(f"{path} was changed; delete {self.folder} to begin anew")
            if reading.nodes is None and before["pieces"]:
                kept = [self.folder / f"{name}.ids" for name in before["pieces"]]
                ids = pl.concat(pl.read_parquet(file, glob=False).to_series() for file in kept)
                known = known or Numbers(ids.dtype, _MANY)
                known.add(ids)
            return before, known
        found: dict[str, Any] = {"file": file, "entries": 0, "weighted": 0, "pieces": []}
        for piece in pieces_of(path, reading, self.memory):
            name = f"part-{number}-{len(found['pieces'])}"
            if reading.nodes is not None and known is not None:
                ends = np.array(piece.places(reading.nodes, known), dtype=np.int32)
            else:
                ids, u, v = piece.index()
                if not (reading.as_text or ids.dtype.is_integer()):
                    raise _NamesError
                known = known or Numbers(ids.dtype, _MANY)
                so_far, place = len(known.ids), known.add(ids)
                new = known.ids.slice(so_far).to_frame()
                write_atomically(self.folder / f"{name}.ids", new.write_parquet)
                ends = np.array([place[u], place[v]])
            save_array(self.folder / f"{name}.ends", ends)
            found["pieces"].append(name)
            found["entries"] += ends.shape[1]
            found["weighted"] += piece.weighted
            self.progress("parts read", number, len(self.parts))
        write_note(note, found)
        return found, known

    def _make_nodes(self, known: Numbers | None, new: Path) -> tuple[str, int, Array | None]:
        """Write the arrays of the node set; give its kind, its size, and the rank of every id."""
        nodes, rank = self.reading.nodes, None
        if nodes is None:
            if known is None:
                raise InputError("the parts hold no edge; give nodes= to build a graph without any")
            rank = np.arange(len(known.ids), dtype=np.int32)
            nodes = sorted_nodes(in_order(known.ids, rank))
        if len(nodes) > MOST_NODES:
            raise InputError(f"{len(nodes)} nodes: a graph has at most {MOST_NODES:,}")
        if nodes.kind != "range":
            for name, array in nodes.arrays.items():
                save_array(new / f"{name}.npy", array)
        return nodes.kind, len(nodes), rank
