"""The decorators of compiled loops. Import this module late: it loads numba.

Divisions are not tested for zero and indices not for bounds: a loop must rule both out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import config, njit
from numba.core import event

from edgeveil import _loops, _source

_source.loops()  # before any file with loops is loaded: they are known by what it was then


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Says which of our loops is being compiled; those that another one calls belong to it."""

    def __init__(self) -> None:
        self._depth = 0  # numba compiles under a lock

    def on_start(self, begun: Any) -> None:
        self._depth += 1
        self._tell(begun, ready=False)

    def on_end(self, ended: Any) -> None:
        self._tell(ended, ready=True)
        self._depth -= 1

    def _tell(self, what: Any, *, ready: bool) -> None:
        function = what.data["dispatcher"].py_func
        if self._depth == 1 and function.__module__.startswith("edgeveil."):
            _loops.tell(function.__module__, function.__name__.strip("_"), ready=ready)


event.register("numba:compile", _Listener())

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, signature: Any = None) -> F:
    """Compile, once per installation; other threads run meanwhile. At first use, or by signature.

    What was compiled is kept until the source of any loop changes (`_loops`).
    """
    loop: Any = njit(nogil=True, error_model="numpy")(function)
    if config.DISABLE_JIT:
        return function
    _keep(loop)
    if signature is not None:
        loop.compile(signature)
        loop.disable_compile()
    typed: F = loop
    return typed


def _keep(loop: Any) -> None:
    """Give a loop its cache; without one it is compiled in each process anew."""
    try:
        from edgeveil._loop_cache import LoopCache

        before, loop._cache = loop._cache, LoopCache(loop.py_func)
        if loop.stats.cache_path != loop._cache.cache_path:
            loop._cache = before  # this numba looks elsewhere, and what it finds is not ours
    except (ImportError, AttributeError, TypeError, RuntimeError) as error:
        _loops.log.debug("%s is not kept: %s", loop.__name__, error)


def inner(function: F) -> F:
    """The same for calls from compiled loops only: a quarter less to compile."""
    decorated: F = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True)(function)
    return decorated


def inlined(function: F) -> F:
    """The same for short ones in the innermost loops: a call would count references to arrays."""
    decorated: F = njit(inline="always", error_model="numpy")(function)
    return decorated
