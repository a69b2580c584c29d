"""The folder format: graph.json and plain .npy arrays, opened memory-mapped.

    graph.json     format, version, sizes, kind of ids, dtype and SHA-256 of every array;
                   version 1: undirected, 2: directed, 3: with `first_seen`, of either kind
    indptr.npy     the CSR structure
    indices.npy
    first_seen.npy if the graph has it
    ids.npy | text.npy, offsets.npy    the ids, unless they are 0 .. n-1

The folder holds the private graph. It and its files are made readable for their owner only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import flush, is_own_folder, new_folder, sha256_of, sync_folder
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.graph import UNKNOWN, Graph, ReadReport
from edgeveil.graph.nodes import NodeSet

_FORMAT = "edgeveil graph"
_UNDIRECTED, _DIRECTED, _FIRST_SEEN = 1, 2, 3  # versions: older code must refuse newer ones
_ARRAYS_OF_IDS = {"range": (), "int": ("ids",), "str": ("text", "offsets")}
_HEAD = 128  # bytes of the header of a one-dimensional array of any length
# Types of arrays other than indices
_KINDS = {"text": ("|u1",), "first_seen": ("<u2",), "current": ("|b1",), "present": ("|b1",)}

Arrays = dict[str, npt.NDArray[Any]]


def save_graph(graph: Graph, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Save a graph as a folder that `open_graph` opens at once.

    The folder appears whole or not at all: it is written under another name, flushed to disk and
    then renamed.

    Parameters
    ----------
    graph : Graph
        The graph. The folder holds it in full: keep it as private as the graph.
    path : path
        The folder to make; its parent must exist.
    overwrite : bool
        Replace a graph that was saved there before. Nothing else is ever replaced.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ParameterError
        If the folder exists, or its parent does not.
    EdgeveilError
        If the disk is full or cannot be written; nothing is left behind.
    """
    path = Path(path)
    check_target(path, overwrite)
    arrays = {"indptr": graph.indptr, "indices": graph.indices, **graph.nodes.arrays}
    kind, first_seen = graph.nodes.kind, graph.first_seen
    if first_seen is not None:
        arrays["first_seen"] = first_seen
    dated, directed, n = first_seen is not None, graph.directed, graph.n_nodes
    try:
        with new_folder(path, overwrite=overwrite) as new:
            for name in _names_of(kind, first_seen=dated):
                save_array(new / f"{name}.npy", arrays[name])
            describe_folder(new, kind, n, graph.read_report, directed=directed, first_seen=dated)
    except OSError as error:
        reason = error.strerror or "the disk refused"
        raise EdgeveilError(f"the graph was not saved in {path}: {reason}") from error
    return path


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a path without a parent, or with something that must not be replaced."""
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to save the graph in")
    if not (path.exists() or path.is_symlink()):
        return
    try:
        description_of(path)
    except InputError as error:
        raise ParameterError(f"{path} exists and is no saved graph; nothing was written") from error
    if not overwrite:
        raise ParameterError(f"{path} exists; --overwrite replaces it (in Python overwrite=True)")


def is_private_folder(folder: Path) -> bool:
    """Whether this is a folder (no link) of this user that nobody else can read."""
    open_to_all = not hasattr(os, "geteuid")  # no such permissions on this system
    return is_own_folder(folder) and (open_to_all or not folder.lstat().st_mode & 0o077)


@contextmanager
def locked(file: Path, message: str) -> Iterator[None]:
    """Hold the lock of a file, or raise with this message if another process holds it."""
    with file.open("w") as lock:  # closing it unlocks it, also if the process is killed
        if not _lock(lock.fileno()):
            raise EdgeveilError(message)
        yield


def _lock(handle: int) -> bool:
    """Lock an open file; False if another process holds the lock."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        windows: Any = msvcrt  # whose types are unknown elsewhere
        try:
            windows.locking(handle, windows.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def save_array(file: Path, array: npt.NDArray[Any]) -> None:
    """Write an array, and return when it is on disk.

    Not by `numpy.save` or `tofile`: they miss an error at the very end of the write.
    """
    array = np.ascontiguousarray(array)
    with file.open("wb") as handle:
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(handle, header)
        handle.write(array.data)
        flush(handle)


@contextmanager
def appendable(file: Path, kind: type[Any], length: int = 0) -> Iterator[IO[bytes]]:
    """Open a .npy file for appending, after its first `length` numbers; others are cut off.

    Append by ``write(array.data)``: `tofile` misses an error at the very end of the write.
    """
    dtype = np.dtype(kind)
    with file.open("r+b" if length else "w+b") as handle:
        handle.truncate(_HEAD + length * dtype.itemsize)
        handle.seek(0, 2)
        yield handle
        length = (handle.seek(0, 2) - _HEAD) // dtype.itemsize
        handle.seek(0)
        header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(handle, header)
        assert handle.tell() == _HEAD
        flush(handle)


def _names_of(kind: str, *, first_seen: bool) -> tuple[str, ...]:
    """Names of the arrays of a graph."""
    return ("indptr", "indices", *(("first_seen",) if first_seen else ()), *_ARRAYS_OF_IDS[kind])


def _describe_array(file: Path) -> dict[str, Any]:
    """Type, size and hash of an array, which are compared when it is opened."""
    file.chmod(0o600)  # private also when copied or moved out of its folder
    array = np.load(file, mmap_mode="r", allow_pickle=False)
    return {"dtype": array.dtype.str, "size": array.size, "sha256": sha256_of(file)}


def describe_folder(
    folder: Path,
    kind: str,
    n_nodes: int,
    read_report: ReadReport,
    *,
    directed: bool,
    first_seen: bool = False,
    more: Sequence[str] = (),
) -> None:
    """Write graph.json, the last file of a folder; `more` names arrays beside the graph's."""
    names = _names_of(kind, first_seen=first_seen)
    described = {name: _describe_array(folder / f"{name}.npy") for name in (*names, *more)}
    entries = described["indices"]["size"]
    version = _DIRECTED if directed else _UNDIRECTED
    description = {
        "format": _FORMAT,
        "version": _FIRST_SEEN if first_seen else version,
        **({"directed": directed} if first_seen else {}),
        "n_nodes": n_nodes,
        "n_edges": entries if directed else entries // 2,
        "ids": kind,
        "read_report": {k: v for k, v in asdict(read_report).items() if k != "layout"},
        "arrays": described,
    }
    with (folder / "graph.json").open("w", encoding="utf-8") as handle:
        json.dump(description, handle, indent=2)
        flush(handle)
    (folder / "graph.json").chmod(0o600)
    sync_folder(folder)


def open_graph(path: str | os.PathLike[str], *, verify: bool = False) -> Graph:
    """Open a folder of `save_graph`, memory-mapped.

    Processes that open the same folder share its pages in memory. Opening takes one pass over
    the arrays (0.05 s for fifty million edges in memory; else as long as the disk needs), which
    checks that every index is in range: the compiled loops do not. Nobody may write to the files
    while they are in use.

    Parameters
    ----------
    path : path
        The folder.
    verify : bool
        Check everything: the hash of every array, that the graph is sorted and, if undirected,
        symmetric, and that ids are distinct. Use it for a folder of unknown origin: otherwise a
        damaged folder may give a wrong graph, though never an access outside of its arrays.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        If it is not a saved graph, is damaged, or was written by a newer edgeveil.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> graph = Graph.from_edges([0, 1], [1, 2], NodeSet.of(["ann", "bob", "cem"]))
    >>> with TemporaryDirectory() as folder:
    ...     open_graph(save_graph(graph, f"{folder}/friends"), verify=True) == graph
    True
    """
    path = Path(path)
    description = description_of(path)
    damaged = InputError(
        f"the graph in {path} is damaged, or of a version before 0.4: "
        "graph.json is not complete; save it again"
    )
    try:
        n, kind, described = description["n_nodes"], description["ids"], description["arrays"]
        first_seen = description["version"] == _FIRST_SEEN
        directed = description["directed"] if first_seen else description["version"] == _DIRECTED
        names = _names_of(kind, first_seen=first_seen)
        read_report = ReadReport(**description["read_report"])
        arrays = {name: open_array(path, name, described[name], verify=verify) for name in names}
    except (KeyError, TypeError) as error:
        raise damaged from error
    ids: Arrays = {name: arrays[name] for name in _ARRAYS_OF_IDS[kind]}
    if kind == "range":
        if not isinstance(n, int) or n < 0:
            raise damaged
        ids = {"n": np.array(n, dtype=np.int64)}
    try:
        nodes = NodeSet.from_arrays(kind, ids)
        graph = Graph(
            arrays["indptr"],
            arrays["indices"],
            nodes,
            read_report,
            directed=bool(directed),
            first_seen=arrays.get("first_seen"),
        )
    except (InputError, IndexError) as error:
        raise InputError(f"the graph in {path} is damaged: the arrays do not fit") from error
    if graph.n_nodes != n or graph.n_edges != description.get("n_edges"):
        raise InputError(f"the graph in {path} is damaged: its sizes are not those noted")
    if not (_is_in_range(graph) and _are_texts(graph.nodes)):
        raise InputError(f"the graph in {path} is damaged: an index leads out of its arrays")
    if verify and not (_is_sound(graph) and len(set(graph.nodes)) == graph.n_nodes):
        kind = "directed" if directed else "undirected"
        raise InputError(f"the graph in {path} is damaged: it is no simple {kind} graph")
    return graph


def description_of(path: Path) -> dict[str, Any]:
    """The content of graph.json."""
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    try:
        text = (path / "graph.json").read_bytes()
    except OSError as error:
        raise InputError(f"{path} is no saved graph: it has no readable graph.json") from error
    foreign = InputError(f"{path} is no saved graph: its graph.json was not written by edgeveil")
    try:
        description = json.loads(text)
        is_ours, version = description["format"] == _FORMAT, description["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise foreign from error
    if not is_ours:
        raise foreign
    if version not in (_UNDIRECTED, _DIRECTED, _FIRST_SEEN):
        raise InputError(
            f"the graph in {path} has format version {version!r}, this edgeveil reads "
            f"up to {_FIRST_SEEN}: update edgeveil"
        )
    return dict(description)


# What numpy raises for a damaged .npy file, whose header is a Python literal.
_BAD_HEADER: tuple[type[Exception], ...] = (EOFError, OSError, OverflowError, RecursionError)
_BAD_HEADER += (SyntaxError, TokenError, TypeError, ValueError)


def open_array(
    path: Path, name: str, described: dict[str, Any], *, verify: bool
) -> npt.NDArray[Any]:
    """Map an array, which must be what graph.json says."""
    file, damaged = path / f"{name}.npy", f"the graph in {path} is damaged: {name}.npy"
    try:
        array = np.lib.format.open_memmap(file, "r")
    except FileNotFoundError as error:
        raise InputError(f"{damaged} is missing") from error
    except _BAD_HEADER as error:
        raise InputError(f"{damaged} cannot be read") from error
    if verify and sha256_of(file) != described["sha256"]:
        raise InputError(f"{damaged} was changed")
    fits = array.dtype.str == described["dtype"] and array.size == described["size"]
    if array.ndim != 1 or array.dtype.str not in _KINDS.get(name, ("<i4", "<i8")) or not fits:
        raise InputError(f"{damaged} is not what was saved")
    return np.asarray(array)


def _is_in_range(graph: Graph) -> bool:
    """Whether rows lie within the indices, indices within the nodes, and no `first_seen` is 0."""
    indptr, indices, first_seen = graph.indptr, graph.indices, graph.first_seen
    if np.any(indptr[:-1] > indptr[1:]) or (first_seen is not None and not first_seen.all()):
        return False
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < graph.n_nodes)


def _are_texts(nodes: NodeSet) -> bool:
    """Whether string ids are valid UTF-8 each, by their offsets."""
    if nodes.kind != "str":
        return True
    text, offsets = nodes.arrays["text"], nodes.arrays["offsets"]
    if offsets[0] != 0 or offsets[-1] != len(text) or np.any(offsets[:-1] > offsets[1:]):
        return False
    try:
        str(text.data, "utf-8")
    except UnicodeDecodeError:
        return False
    firsts = text[offsets[:-1][offsets[:-1] < len(text)]]
    return not np.any(firsts & 0xC0 == 0x80)  # no id starts inside a character


def _is_sound(graph: Graph) -> bool:
    """Whether CSR arrays that are in range are those of a simple graph."""
    rows, first_seen = np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.first_seen
    simple = Graph.from_edges(rows, graph.indices, graph.nodes, directed=graph.directed)
    if first_seen is not None and not graph.directed:
        # entries sorted by column and row are the reversed edges
        turned = first_seen[np.lexsort((rows, graph.indices))]
        # In a history, an edge to who was forgotten and has returned is UNKNOWN in that direction
        if np.any((turned != first_seen) & (turned != UNKNOWN) & (first_seen != UNKNOWN)):
            return False
    return replace(simple, first_seen=first_seen) == graph
