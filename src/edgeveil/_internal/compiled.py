"""The decorators of compiled loops. Import this module late: it loads numba.

Divisions are not tested for zero and indices not for bounds: a loop must rule both out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import config, njit
from numba.core import event

from edgeveil._internal import loops as _loops

_loops.loop_source()  # the digest of all loops is taken before any of them is imported


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Reports which of our loops is being compiled, without those that it calls."""

    def __init__(self) -> None:
        self._depth = 0  # no race: numba compiles under a lock

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
    """Compile a loop that releases the GIL: at its first call, or now for a signature.

    Compiled code is cached on disk until the source of any loop changes (`loops`).
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
    """Give a loop its cache on disk; if that fails, every process compiles it."""
    try:
        from edgeveil._internal.loop_cache import LoopCache

        before, loop._cache = loop._cache, LoopCache(loop.py_func)
        if loop.stats.cache_path != loop._cache.cache_path:
            loop._cache = before  # this version of numba would load from elsewhere
    except (ImportError, AttributeError, TypeError, RuntimeError) as error:
        _loops.log.debug("%s is not kept: %s", loop.__name__, error)


def inner(function: F) -> F:
    """A loop that only compiled loops call; without a Python wrapper, a quarter less to compile."""
    decorated: F = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True)(function)
    return decorated


def inlined(function: F) -> F:
    """A short function of innermost loops, inlined: a call would count references to arrays."""
    decorated: F = njit(inline="always", error_model="numpy")(function)
    return decorated
