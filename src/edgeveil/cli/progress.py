"""How far a long job is, and how long it will take: on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgeveil.cli.interrupts import raise_if_interrupted
from edgeveil.cli.output import say

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def counting(what: str, *, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Give a function to be told ``(done, total)``; it shows that and the time left.

    Both numbers must be public. On a terminal it draws a bar, which appears with the first call,
    so that a question can be asked before, and goes away at the end. With `lines` it says so
    elsewhere, too, from time to time: how fast it goes then stands in a log, so that is for
    graphs that are not private.
    """
    if not sys.stderr.isatty():
        yield _in_lines(what) if lines else lambda done, total: raise_if_interrupted()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = None

    def show(done: int, total: int) -> None:
        nonlocal task
        raise_if_interrupted()
        if task is None:
            task = bar.add_task(what, total=total)
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _in_lines(what: str) -> Callable[[int, int], None]:
    start = said = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal said
        raise_if_interrupted()
        now = time.monotonic()
        if done and now - said >= _SECONDS_BETWEEN_LINES:
            said = now
            left = (now - start) * (total - done) / done
            say(f"{done:,} of {total:,} {what}, about {left:.0f} s left")

    return show
