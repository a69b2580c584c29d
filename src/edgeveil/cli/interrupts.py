"""Ctrl-C that is not lost.

While kernels are loaded, LLVM calls back into Python. A KeyboardInterrupt that is raised there
cannot go anywhere: Python hands it to ``sys.unraisablehook``, prints it and forgets it. Here it
is noted instead, and raised between two parts of the work.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["raise_if_interrupted", "watching"]

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
