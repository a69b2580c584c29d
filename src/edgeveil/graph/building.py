"""Files of edges that are larger than memory -> a graph folder.

Three steps, in a work folder ``.NAME.building`` beside the result. Their files are written
atomically, so the same call resumes after an interruption.

    read   every part in chunks: the endpoints of its edges as indices in the node list; without
           one, ids are numbered in the order in which they occur, and each chunk's new ids are
           saved (`part-*.json` is written last)
    nodes  the ids are sorted: the node set, and the rank of every number in it
    rows   the rows of the graph, by groups of buckets that fit into memory
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import (
    flush,
    remove_folder,
    replace_folder,
    write_atomically,
    write_note,
)
from edgeveil._internal.memory import total_memory
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph._csr import (
    MOST_NODES,
    bucket_shift,
    count_buckets,
    key_type,
    scatter_pairs,
    sort_buckets,
)
from edgeveil.graph.columns import Columns, ReadOptions, refuse_two_kinds
from edgeveil.graph.edges import IdIndex, index_of, sort_ids, sorted_nodes
from edgeveil.graph.graph import Directed, ReadReport, check_directed, index_type
from edgeveil.graph.node_lists import Nodes, read_nodes
from edgeveil.graph.nodes import Ids, NodeSet, check_ids
from edgeveil.graph.read import check_edge_list, chunks_of
from edgeveil.graph.saved import (
    appendable,
    check_target,
    describe_folder,
    is_private_folder,
    locked,
    save_array,
)

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]

_MANY = 1 << 62  # expected number of ids: unknown
_BLOCK = 1 << 20  # degrees that are summed at a time


def build_graph(
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    nodes: Nodes | None = None,
    directed: Directed = "refuse",
    header: bool | None = None,
    columns: Columns | None = None,
    delimiter: str | None = None,
    ids: Ids = "auto",
    one_kind: bool = False,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    r"""Build a graph folder from files of edges that may be larger than memory.

    The folder is the one that `save_graph` writes of what `read_graph` reads, had all edges been
    in one file. It appears whole or not at all. After an interruption the same call resumes, and
    repeats at most one part, or one step over all nodes.

    Parameters
    ----------
    parts : path or sequence of paths
        Text (``.csv .tsv .txt .edges .edgelist``, each also ``.gz``) and Parquet, in any order.
    path : path
        The folder to make. Its parent must exist, and have room: 16 bytes for every line or row
        of the parts (12 if directions are kept), beside the parts, until it is done.
    nodes, directed, header, columns, delimiter, ids, one_kind
        As in `read_graph`, for every part.
    memory : int, optional
        Bytes to use, beside about 0.3 GB for Python and its libraries, and up to 200 bytes for
        each node id. Default: half of the machine's memory. With less, the edges are read more
        often. At least the largest bucket must fit: 32 bytes for each line or row that names a
        node of one 2,000th of the node set.
    overwrite : bool
        Replace a graph that was saved there before. Nothing else is ever replaced.
    progress : callable, optional
        Called with the name of the step, how much is done, and the total.

    Returns
    -------
    Path
        The folder, for `open_graph`.

    Raises
    ------
    InputError
        If a part cannot be read, or changed since an interrupted call.
    ParameterError
        If the folder exists, or an option is wrong.
    EdgeveilError
        If the disk is full, or another process builds the same graph.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edgeveil.graph.saved import open_graph
    >>> with TemporaryDirectory() as folder:
    ...     for name, edges in (("a.csv", "ann,bob\nbob,cem\n"), ("b.csv", "bob,ann\n")):
    ...         _ = Path(folder, name).write_text(edges)
    ...     parts = sorted(Path(folder).glob("*.csv"))
    ...     open_graph(build_graph(parts, Path(folder, "friends")))
    Graph(3 nodes, 2 edges)
    """
    path = Path(path)
    paths = [Path(parts)] if isinstance(parts, (str, os.PathLike)) else list(map(Path, parts))
    if not paths:
        raise ParameterError("there is no part to read edges from")
    for part in paths:
        check_edge_list(part)
    if memory is not None and memory < 1:
        raise ParameterError(f"memory must be a positive number of bytes, got {memory}")
    check_target(path, overwrite)
    options = ReadOptions(
        nodes=read_nodes(nodes, ids=ids),
        header=header,
        columns=columns,
        delimiter=delimiter,
        text=check_ids(ids),
        one_kind=one_kind,
    )
    build = _Build(
        folder=path.parent / f".{path.name}.building",
        parts=paths,
        options=options,
        directed=check_directed(directed) == "keep",
        memory=total_memory() // 2 if memory is None else memory,
        progress=progress or (lambda what, done, total: None),
    )
    try:
        with build.locked_folder():
            build.run()
            replace_folder(build.folder / "new", path)
            remove_folder(build.folder)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(
            f"progress is kept in {build.folder}; run the same call again to resume"
        ) from interrupt
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise EdgeveilError(
            f"the graph was not built in {path}: {reason}; run the same call again to resume"
        ) from error
    return path


class _TextError(Exception):
    """An id is text, and earlier chunks or the node list were read as integers."""


@dataclass
class _Build:
    folder: Path
    parts: list[Path]
    options: ReadOptions
    directed: bool
    memory: int
    progress: Progress

    @contextmanager
    def locked_folder(self) -> Iterator[None]:
        """Create the work folder, or resume in it, under a lock."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if not is_private_folder(self.folder):  # it will hold the private graph
            raise EdgeveilError(f"{self.folder} must be a folder that only its owner can read")
        with locked(self.folder / "lock", f"another process builds in {self.folder}"):
            if (self.folder / "done").exists() and not (self.folder / "new").exists():
                # interrupted after the graph was moved to its place: start afresh
                for file in self.folder.iterdir():
                    if file.name != "lock":
                        shutil.rmtree(file) if file.is_dir() else file.unlink()
            self._check_plan()
            yield

    def _check_plan(self) -> None:
        nodes, options = self.options.nodes, self.options
        plan = {
            "version": 4,  # of the files in the folder
            "parts": [str(part.absolute()) for part in self.parts],
            "options": [
                options.header,
                options.columns,
                options.delimiter,
                self.directed,
                options.text,
            ],
            "nodes": None if nodes is None else nodes.digest().hexdigest(),
        }
        file = self.folder / "plan.json"
        if not file.exists():
            write_note(file, plan)
        elif json.loads(file.read_text()) != json.loads(json.dumps(plan)):
            raise InputError(
                f"{self.folder} was begun with other parts or options, or by another version of "
                "edgeveil; delete it to begin anew"
            )

    # -- the steps ------------------------------------------------------------------------

    def run(self) -> None:
        """Run the steps that are left, until ``new`` is the folder of the graph."""
        new, done = self.folder / "new", self.folder / "done"
        if not done.exists():
            new.mkdir(mode=0o700, exist_ok=True)
            notes, index, nodes = self._read_parts()
            kind, n, rank = self._make_nodes(index, nodes, new)
            del index
            entries = sum(part["entries"] for part in notes)
            files = [self.folder / f"{name}.ends" for part in notes for name in part["chunks"]]
            if not self.options.one_kind:
                refuse_two_kinds(
                    "the parts", n, lambda: (np.load(file, mmap_mode="r") for file in files)
                )
            memory, directed = self.memory * 3 // 4, self.directed
            written = _write_rows(files, rank, n, new, memory, self.progress, directed=directed)
            read_report = ReadReport(
                entries=entries,
                self_loops=written.self_loops,
                repeated=written.repeated // (2 - self.directed),
                both_directions=(written.dropped - written.repeated) // 2,
                weighted=sum(part["weighted"] for part in notes),
                nodes_from_edges=self.options.nodes is None,
            )
            self.progress("folder described", 0, 1)
            describe_folder(new, kind, n, read_report, directed=self.directed)
            write_note(done, True)
        for file in self.folder.glob("part-*"):
            file.unlink()

    def _read_parts(self) -> tuple[list[dict[str, Any]], IdIndex | None, NodeSet | None]:
        """Read all edges.

        Returns the notes of every part, the ids in order of occurrence, and the node list; its
        ids are text if one of the edges has an id that is text.
        """
        as_text, nodes = self.folder / "text", self.options.nodes
        while True:
            options = self.options
            if as_text.exists():
                nodes = None if nodes is None else nodes.as_text()
                options = replace(self.options, nodes=nodes, text=True)
            index = None if options.nodes is None else index_of(options.nodes, _MANY)
            notes = []
            try:
                for number in range(len(self.parts)):
                    self.progress("parts read", number, len(self.parts))
                    part, index = self._read_part(number, options, index)
                    notes.append(part)
            except _TextError:  # read everything again as text
                # last part first: its endpoints are numbers of ids in all parts before it
                for number in reversed(range(len(self.parts))):
                    (self.folder / f"part-{number}.json").unlink(missing_ok=True)
                write_note(as_text, True)
            else:
                self.progress("parts read", len(self.parts), len(self.parts))
                return notes, index, options.nodes

    def _read_part(
        self, number: int, options: ReadOptions, index: IdIndex | None
    ) -> tuple[dict[str, Any], IdIndex | None]:
        """Read a part, or the notes of an earlier call; return the ids with the new ones added."""
        import polars as pl

        note, path = self.folder / f"part-{number}.json", self.parts[number]
        status = path.stat()
        version = [status.st_size, status.st_mtime_ns]
        if note.exists():
            before: dict[str, Any] = json.loads(note.read_text())
            if before["file"] != version:
                raise InputError(f"{path} was changed; delete {self.folder} to begin anew")
            if options.nodes is None and before["chunks"]:
                files = [self.folder / f"{name}.ids" for name in before["chunks"]]
                ids = pl.concat(pl.read_parquet(file, glob=False).to_series() for file in files)
                index = index or IdIndex(ids.dtype, _MANY)
                index.add(ids)
            return before, index
        part: dict[str, Any] = {"file": version, "entries": 0, "weighted": 0, "chunks": []}
        for chunk in chunks_of(path, options, self.memory):
            name = f"part-{number}-{len(part['chunks'])}"
            if chunk.is_text and not options.as_text:
                raise _TextError
            if options.nodes is not None and index is not None:
                ends = np.array(chunk.indices_in(options.nodes, index), dtype=np.int32)
            else:
                ids, u, v = chunk.index()
                index = index or IdIndex(ids.dtype, _MANY)
                so_far, place = len(index.ids), index.add(ids)
                new = index.ids.slice(so_far).to_frame()
                write_atomically(self.folder / f"{name}.ids", new.write_parquet)
                ends = np.array([place[u], place[v]])
            save_array(self.folder / f"{name}.ends", ends)
            part["chunks"].append(name)
            part["entries"] += ends.shape[1]
            part["weighted"] += chunk.weighted
            self.progress("parts read", number, len(self.parts))
        write_note(note, part)
        return part, index

    def _make_nodes(
        self, index: IdIndex | None, nodes: NodeSet | None, new: Path
    ) -> tuple[str, int, Array | None]:
        """Write the arrays of the node set; return its kind, size, and the rank of every id."""
        rank = None
        if nodes is None:
            if index is None:
                raise InputError("the parts hold no edge; give nodes= to build a graph without any")
            rank = np.arange(len(index.ids), dtype=np.int32)
            nodes = sorted_nodes(sort_ids(index.ids, rank))
        if len(nodes) > MOST_NODES:
            raise InputError(f"{len(nodes)} nodes: a graph has at most {MOST_NODES:,}")
        if nodes.kind != "range":
            for name, array in nodes.arrays.items():
                save_array(new / f"{name}.npy", array)
        return nodes.kind, len(nodes), rank


# -- the rows ------------------------------------------------------------------------------


class WrittenRows(NamedTuple):
    """How far `_write_rows` has come: buckets and columns written, and what was dropped."""

    buckets: int = 0
    columns: int = 0
    repeated: int = 0
    dropped: int = 0
    self_loops: int = 0


def _write_rows(
    files: Sequence[Path],
    rank: Array | None,
    n: int,
    folder: Path,
    memory: int,
    progress: Progress,
    *,
    directed: bool,
) -> WrittenRows:
    """Write indices.npy and indptr.npy to a folder; the same call resumes after an interruption.

    For every group of buckets (`edgeveil.graph._csr`) that fits into memory all files are read: the
    arcs of its rows are selected and sorted, and their columns appended.

    `files` hold pairs of numbers in two rows, `rank` the node of each number (None: itself); they
    must not change. `memory` is for keys and degrees, beside two files; one bucket is processed in
    any case. Progress is saved beside the folder.
    """

    def pairs() -> Iterator[tuple[Array, Array]]:
        for file in files:
            u, v = np.load(file)
            yield (u, v) if rank is None else (rank[u], rank[v])

    entries = sum(np.load(file, mmap_mode="r").shape[1] for file in files)
    shift = bucket_shift(n, entries * (2 - directed))
    counts = np.zeros(max(1, ((n - 1) >> shift) + 1), dtype=np.int64)
    loops = 0
    for number, (u, v) in enumerate(pairs()):
        progress("chunks counted", number, len(files))
        loops_of_file = count_buckets(u, v, n, shift, counts, directed=directed)
        assert loops_of_file >= 0, "indices come from the node set"
        loops += loops_of_file
    note, degrees_file = folder.with_name("rows.json"), folder.with_name("degrees.npy")
    written = (
        WrittenRows(*json.loads(note.read_text()))
        if note.exists()
        else WrittenRows(self_loops=loops)
    )
    bucket_bytes = counts * np.dtype(key_type(n, shift)).itemsize + (4 << shift)
    with (
        appendable(folder / "indices.npy", np.int32, written.columns) as indices,
        appendable(degrees_file, np.int32, min(written.buckets << shift, n)) as degrees,
    ):
        while written.buckets < len(counts):
            progress("buckets of rows", written.buckets, len(counts))
            first = written.buckets
            fitting = np.searchsorted(np.cumsum(bucket_bytes[first:]), memory, side="right")
            last = first + max(1, int(fitting))
            own = np.zeros(min(last << shift, n) - (first << shift), dtype=np.int32)
            part = counts[first:last]
            keys = scatter_pairs(pairs(), n, shift, part, first=first, directed=directed)
            total, repeated, dropped = sort_buckets(keys, max(1, (n - 1).bit_length()), own)
            indices.write(keys.keys.view(np.int32)[:total].data)
            del keys  # free the memory before the next group
            degrees.write(own.data)
            flush(indices)
            flush(degrees)
            columns, dropped = written.columns + total, written.dropped + dropped
            written = WrittenRows(last, columns, written.repeated + repeated, dropped, loops)
            write_note(note, written)
    progress("buckets of rows", len(counts), len(counts))
    _write_starts(degrees_file, written.columns, folder / "indptr.npy")
    return written


def _write_starts(degrees_file: Path, total: int, file: Path) -> None:
    """Write indptr, in the type that `Graph.from_edges` would choose."""
    degrees: Any = np.load(degrees_file, mmap_mode="r")
    kind = index_type(total)
    with appendable(file, kind) as starts:
        before = np.zeros(1, dtype=np.int64)
        starts.write(before.astype(kind).data)
        for begin in range(0, len(degrees), _BLOCK):
            sums = before + np.cumsum(degrees[begin : begin + _BLOCK], dtype=np.int64)
            starts.write(sums.astype(kind).data)
            before = sums[-1:]
