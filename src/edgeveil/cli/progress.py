"""How far a long job is, and how long it will take: on a terminal, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgeveil.cli.interrupts import raise_if_interrupted

__all__ = ["counting"]


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to be told ``(done, total)``; it draws a bar with the time left.

    The bar appears with the first call, so that a question can be asked before, and goes away
    at the end. Where standard error is no terminal nothing is shown. Both numbers must be
    public: how many sources, how many trials.

    Parameters
    ----------
    what : str
        What is counted.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: raise_if_interrupted()
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
