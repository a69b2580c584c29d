"""Compiled loops: the decorator, and a pool of threads for them.

Import this module late: it loads numba.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

from numba import njit

__all__ = ["compiled", "in_threads", "pieces", "threads_for"]

F = TypeVar("F", bound=Callable[..., Any])

# Below this many entries a thread costs more than it brings
_WORTH_A_THREAD = 1 << 18
_MOST_THREADS = 8


def compiled(function: F) -> F:
    """Compile on first use, once per installation; other threads run meanwhile.

    There are no bounds checks in compiled code: every index must be proven in the loop.
    """
    decorated: F = njit(cache=True, nogil=True)(function)
    return decorated


def threads_for(entries: int) -> int:
    """Give the number of threads that pay for this many entries."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, _MOST_THREADS, entries // _WORTH_A_THREAD))


def pieces(size: int, count: int) -> list[tuple[int, int]]:
    """Cut 0 .. size into `count` ranges of nearly equal length."""
    cuts = [size * i // count for i in range(count + 1)]
    return list(pairwise(cuts))


def in_threads(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Call a compiled function with every tuple of arguments, each call in its own thread."""
    calls = list(calls)
    if len(calls) == 1:
        return [function(*calls[0])]
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda arguments: function(*arguments), calls))
