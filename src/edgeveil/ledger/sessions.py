"""Sessions: a thread may keep one connection to a ledger open between its transactions.

Opening a connection takes longer than most transactions. A kept connection is lent to one
transaction at a time and, after an error, closed, which undoes what was not committed. A process
that was forked meanwhile opens its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class _Kept(threading.local):
    """The sessions of a thread: each place with its idle connection, None if there is none."""

    def __init__(self) -> None:
        self.idle: dict[Hashable, Any] = {}


_kept = _Kept()


@contextmanager
def session(place: Hashable) -> Iterator[None]:
    """Keep one connection to `place` within the block, for transactions of this thread."""
    key = (os.getpid(), place)
    if key in _kept.idle:
        yield
        return
    _kept.idle[key] = None
    try:
        yield
    finally:
        idle = _kept.idle.pop(key)
        if idle is not None:
            idle.close()


@contextmanager
def connection(
    place: Hashable,
    connect: Callable[[], Any],
    is_alive: Callable[[Any], bool] = lambda connection: True,
) -> Iterator[Any]:
    """The session's connection, if it is still alive, or one for this block alone."""
    key = (os.getpid(), place)
    opened = _kept.idle.get(key)
    if opened is None or not is_alive(opened):
        opened = connect()
    if key in _kept.idle:
        _kept.idle[key] = None  # lent
    try:
        yield opened
    except BaseException:
        opened.close()
        raise
    if key in _kept.idle and _kept.idle[key] is None:
        _kept.idle[key] = opened
    else:
        opened.close()
