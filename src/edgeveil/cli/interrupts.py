"""Make sure that no Ctrl-C is lost.

While kernels are loaded, LLVM calls back into Python. A KeyboardInterrupt that is raised there
cannot propagate: Python passes it to ``sys.unraisablehook``, prints it and drops it. This module
notes it instead, and raises it between two parts of the work.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_interrupted = threading.Event()


def raise_if_interrupted() -> None:
    """Raise the KeyboardInterrupt that got lost, if there was one."""
    if _interrupted.is_set():
        _interrupted.clear()
        raise KeyboardInterrupt


@contextmanager
def watching() -> Iterator[None]:
    """Note lost interrupts while a command runs."""
    before = sys.unraisablehook

    def note(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            _interrupted.set()
        else:
            before(lost)

    _interrupted.clear()
    sys.unraisablehook = note
    try:
        yield
    finally:
        sys.unraisablehook = before
        _interrupted.clear()


def wait_for_input() -> None:
    """Wait until the standard input has something to read, or Ctrl-C.

    A plain read can miss a Ctrl-C: one that comes just before the system call is only noted, and
    one that comes during it is not seen if a library (polars) has asked for reads to be restarted.
    Here every signal writes a byte to a pipe, and we wait for that as well.
    """
    if os.name == "nt":  # select knows only sockets there
        return
    heard, tell = os.pipe()
    os.set_blocking(tell, False)
    before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    try:
        while sys.stdin not in select.select([sys.stdin, heard], [], [])[0]:
            os.read(heard, 4096)  # another signal: keep waiting
            raise_if_interrupted()
    finally:
        signal.set_wakeup_fd(before)
        os.close(heard)
        os.close(tell)
