"""Local: the threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from edgeveil._check import whole
from edgeveil.engine.tasks import Part, Parts, Task


class _StoppedError(Exception):
    """Raised inside a worker when nobody wants its result any more."""


@dataclass(frozen=True, kw_only=True)
class Local:
    """Compute rows in threads of this process, one part of the sources each.

    The kernels, the noise and most of numpy run without Python's lock, so threads share one
    graph and really run side by side. Results are the same bits for any number of threads.

    Parameters
    ----------
    threads : int, optional
        How many; by default as many as this process may use processors.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            whole("threads", self.threads)

    @property
    def workers(self) -> int:
        """Number of threads in use."""
        if self.threads is not None:
            return self.threads
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def run(self, task: Task, parts: Parts) -> Iterator[tuple[Part, Any]]:
        """Run the task for all parts; see `Engine.run`."""
        waiting = iter(parts)
        first = list(islice(waiting, 2 * self.workers))
        if len(first) == 1 or self.workers == 1:  # no thread is needed
            for part, key in chain(first, waiting):
                yield part, task(part, key.source(), _go_on)
            return
        stop = threading.Event()

        def check() -> None:
            if stop.is_set():
                raise _StoppedError

        running: dict[Future[Any], Part] = {}
        with ThreadPoolExecutor(self.workers, thread_name_prefix="edgeveil") as pool:
            try:
                # No more than are running and next: a finished part's rows wait here in memory
                # until they are taken.
                while first or running:
                    for part, key in first:
                        running[pool.submit(task, part, key.source(), check)] = part
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield running.pop(future), future.result()
                    first = list(islice(waiting, 2 * self.workers - len(running)))
            finally:
                # An error, Ctrl-C, or nobody asks for more: end between two blocks.
                stop.set()
                for future in running:
                    future.cancel()


def _go_on() -> None:
    """Nothing stops a single thread but an exception in it."""
