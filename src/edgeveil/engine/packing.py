"""A task as bytes and buffers, so that workers on one machine share one copy of the graph.

Arrays stay outside of the pickle (protocol 5): a worker's arrays are read-only views of the
shared memory they came in. A graph that lies in a folder all machines see travels as its path.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._files import sha256_of
from edgeveil.engine.tasks import Task
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import Graph
from edgeveil.io import open_graph


@dataclass(frozen=True)
class Packed:
    """A task, taken apart: `body` is small, `buffers` are the arrays in it."""

    body: bytes
    buffers: list[npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class GraphAt:
    """A graph folder that is the same on all machines; `header` is the digest of graph.json."""

    path: str
    header: str

    @classmethod
    def of(cls, path: Path, graph: Graph) -> GraphAt:
        """The folder as a stand-in for `graph`, if it holds that graph."""
        if open_graph(path) != graph:
            raise ParameterError(f"{path} holds another graph than the one given")
        return cls(str(path.resolve()), _header(path))

    def open(self) -> Graph:
        """The graph, memory-mapped, if the folder is the one that was checked."""
        # graph.json records the digests of all arrays, so equal headers mean equal graphs.
        if _header(Path(self.path)) != self.header:
            raise InputError(f"{self.path} is another graph here than where the work was started")
        return open_graph(self.path)


def _header(path: Path) -> str:
    try:
        return sha256_of(path / "graph.json")
    except OSError as error:
        raise InputError(f"there is no graph folder at {path} on this machine") from error


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, buffers: list[Any], folder: Path | None) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self._folder = folder
        self._known: dict[int, GraphAt] = {}

    def persistent_id(self, obj: Any) -> GraphAt | None:
        if self._folder is None or not isinstance(obj, Graph):
            return None
        if id(obj) not in self._known:
            self._known[id(obj)] = GraphAt.of(self._folder, obj)
        return self._known[id(obj)]


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Graph:
        graph: Graph = pid.open()
        return graph


def pack(task: Task, folder: Path | None = None) -> Packed:
    """Take a task apart. With `folder`, every graph in it must be the one in that folder."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Packer(file, buffers, folder).dump(task)
    raw = [np.frombuffer(buffer.raw(), dtype=np.uint8) for buffer in buffers]
    return Packed(file.getvalue(), raw)


def unpack(packed: Packed) -> Task:
    """Put a task together again; its arrays are views of the buffers."""
    task: Task = _Unpacker(io.BytesIO(packed.body), buffers=packed.buffers).load()
    return task
