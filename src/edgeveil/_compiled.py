"""Compiled loops: the decorator, two machine instructions, and a pool of threads for them.

Import this module late: it loads numba.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "compiled",
    "in_threads",
    "inlined",
    "load_word",
    "pieces",
    "threads_for",
    "trailing_zeros",
]

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


def inlined(function: F) -> F:
    """Compile as a part of every caller: arrays that pass through a call cost atomic counts."""
    decorated: F = njit(inline="always")(function)
    return decorated


def _load_word(typing_context: Any, array: Any, index: Any) -> Any:
    """Give bytes index .. index + 7 of an array of bytes as one little-endian word.

    The caller sees to it that 0 <= index <= len(array) - 8.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(array, types.int64), generate


def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Give the number of zero bits below the lowest one; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


load_word: Any = intrinsic(_load_word)
trailing_zeros: Any = intrinsic(_trailing_zeros)


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
