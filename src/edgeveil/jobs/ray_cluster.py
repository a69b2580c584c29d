"""Ray: compute a release on a cluster. Needs the extra ``edgeveil[ray]``.

The task is put into Ray's object store, where all workers of a machine share one copy of the
graph through read-only views. A graph in a folder that all machines see is sent as a path instead.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edgeveil._internal.checks import check_int
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.saved import open_graph
from edgeveil.jobs.keys import code_of
from edgeveil.jobs.tasks import Part, Parts, Task
from edgeveil.privacy.noise import NoiseKey

_ATTEMPTS = 5  # how often a part that the cluster lost is started, at most
_AHEAD = 2  # parts in flight per processor
_GRACE = 10.0  # seconds to wait for cancelled parts to end

_tasks: dict[str, Task] = {}  # in a worker: its current task, by the token of the run


@dataclass(frozen=True)
class GraphFolder:
    """A folder with the graph of a task, sent instead of the graph."""

    path: str
    fingerprint: str

    @classmethod
    def holding(cls, graph: Graph, path: Path) -> GraphFolder:
        """Check that the folder holds this graph; ParameterError if it does not."""
        if open_graph(path) != graph:
            raise ParameterError(f"{path} does not hold the graph that was given")
        return cls(str(path.resolve()), graph.fingerprint)

    def open(self) -> Graph:
        """The graph, on a worker's machine."""
        try:
            graph = open_graph(self.path)
        except InputError as error:
            raise InputError(f"on a worker's machine: {error}") from error
        if graph.fingerprint != self.fingerprint:  # two graphs under one key would share noise
            raise InputError(f"{self.path} on a worker holds another graph than on the caller")
        return graph


@dataclass(frozen=True, kw_only=True)
class Ray:
    """Compute rows on a Ray cluster, one Ray task for each part of the sources.

    The graph is put into the object store once per machine and is shared there by all workers.
    A part that is retried or computed twice gives the same values: a row's noise is a function of
    the release's secret and the row's source. The secret is passed in the calls themselves,
    never through the object store, which Ray may spill to disk. Ray does not encrypt calls
    between machines unless the cluster uses TLS (docs/scale.md).

    Parameters
    ----------
    address : str, optional
        Address of a running cluster; ``"auto"`` finds the one on this machine. By default the
        cluster that this process is connected to, or else a new one on this machine, for this
        call only.
    workers : int, optional
        Largest number of parts in flight; by default twice the cluster's processors.
    graph_path : path, optional
        A graph folder (`edgeveil.save_graph`) with the same graph, which all machines see at
        this path. Workers then memory-map it instead of using the object store.
    """

    address: str | None = None
    workers: int | None = None
    graph_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_int("workers", self.workers)

    def run(self, task: Task, parts: Parts) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts; see `Engine.run`."""
        ray = _import_ray()
        with self._connected(ray):
            sent = task
            if self.graph_path is not None:
                folder: Any = GraphFolder.holding(task.graph, Path(self.graph_path))
                sent = replace(task, graph=folder)
            yield from self._run(ray, sent, code_of(task.mechanism), iter(parts))

    def _run(
        self, ray: Any, sent: Task, code: str, parts: Iterator[tuple[Part, NoiseKey]]
    ) -> Iterator[tuple[Part, Any]]:
        remote = ray.remote(num_cpus=1, max_retries=_ATTEMPTS)(_run_part)
        token = secrets.token_hex(8)
        shared = ray.put(sent)
        lost: list[tuple[Part, NoiseKey, int]] = []
        running: dict[Any, tuple[Part, NoiseKey, int]] = {}

        def fill() -> None:
            at_once = self.workers or int(ray.cluster_resources().get("CPU", 1)) * _AHEAD
            while len(running) < at_once:
                todo = lost.pop() if lost else next(((*pair, 1) for pair in parts), None)
                if todo is None:
                    return
                running[remote.remote([shared], token, code, *todo[:2])] = todo

        try:
            fill()
            while running:
                (reference,) = ray.wait(list(running), num_returns=1)[0]
                part, key, attempt = running.pop(reference)
                try:
                    result = ray.get(reference)
                except _losses(ray) as error:
                    # A machine was lost, and with it a result or the task itself.
                    if attempt == _ATTEMPTS:
                        raise EdgeveilError(
                            f"the cluster lost some rows {_ATTEMPTS} times; "
                            "with a ledger, repeating the call resumes where this one stopped"
                        ) from error
                    shared = ray.put(sent)
                    lost.append((part, key, attempt + 1))
                    fill()
                except ray.exceptions.RayTaskError as error:
                    # The error as the worker raised it: Ray wraps it.
                    cause = getattr(error, "cause", None)
                    raise (cause if isinstance(cause, EdgeveilError | OSError) else error) from None
                else:
                    # Submit the next part first, so that no worker waits for the caller.
                    fill()
                    yield part, result
        finally:
            _end(ray, list(running))

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        """Connect for the duration of the run, unless this process is connected already."""
        if ray.is_initialized():
            yield
            return
        _refuse_silence(self.address)
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        with ExitStack() as undo:
            if self.address is None:
                # Logs, sockets and spilled objects of our own cluster must be private. Ray makes
                # its folder readable by everybody, so it gets one inside of a private folder.
                # Paths of sockets must be short.
                short = "/tmp" if os.path.isdir("/tmp") else None
                folder = undo.enter_context(TemporaryDirectory(prefix="ev-", dir=short))
                options |= {"num_cpus": self.workers, "include_dashboard": False}
                options |= {"_temp_dir": f"{folder}/r"}
            try:
                ray.init(address=self.address or "local", **options)
            except (ConnectionError, RuntimeError, ValueError) as error:
                message = f"no Ray cluster answers at {self.address!r}: {error}"
                raise EdgeveilError(message) from error
            undo.callback(ray.shutdown)
            yield


def _end(ray: Any, references: list[Any]) -> None:
    """Cancel tasks and wait for them: none may go on after the call has failed.

    A worker that cannot be interrupted (inside a long compiled loop) is killed. Errors are
    dropped: those of the tasks, which Ray would otherwise report as unread, and those of a
    cluster that is gone. The error that led here is the one to report.
    """
    unfinished = references
    for force in (False, True):
        for reference in unfinished:
            with suppress(Exception):
                ray.cancel(reference, force=force)
        with suppress(Exception):
            if unfinished:
                every = {"num_returns": len(unfinished), "timeout": _GRACE, "fetch_local": False}
                unfinished = ray.wait(unfinished, **every)[1]
    for reference in references:
        with suppress(Exception):
            ray.get(reference, timeout=0)


def _refuse_silence(address: str | None) -> None:
    """Refuse an address where nothing listens: Ray would retry silently for minutes."""
    if address is None or address in ("auto", "local") or "://" in address:
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise EdgeveilError(f"no Ray cluster answers at {address!r}: {error}") from error


def _run_part(sent: list[Any], token: str, code: str, part: Part, key: NoiseKey) -> Any:
    """Run a part in a worker.

    `sent` is a list, so that Ray passes the reference inside it without resolving it. The task is
    fetched once per run and kept for the next part, because kernels have prepared its graph.
    """
    if token not in _tasks:
        _tasks.clear()
        task = _import_ray().get(sent[0])
        if isinstance(task.graph, GraphFolder):
            task = replace(task, graph=task.graph.open())
        if code != code_of(task.mechanism):
            # Other code could compute other values, or draw less noise, under the same key.
            raise EdgeveilError("a worker runs other code than the process that started the work")
        _tasks[token] = task
    return _tasks[token](part, key.source(), lambda: None)  # Ray stops it from outside


def _import_ray() -> Any:
    # Ray sends usage statistics to its makers unless told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ParameterError("this needs Ray: pip install 'edgeveil[ray]'") from None
    return ray


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """Exceptions for a lost task or result, as opposed to a task that failed."""
    exceptions = ray.exceptions
    return (
        exceptions.ObjectLostError,
        exceptions.WorkerCrashedError,
        exceptions.NodeDiedError,
        exceptions.RaySystemError,
        exceptions.OutOfMemoryError,
    )
