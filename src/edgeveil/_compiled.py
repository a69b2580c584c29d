"""The decorators of compiled loops. Import this module late: it loads numba.

Divisions are not tested for zero and indices not for bounds: a loop must rule both out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, signature: Any = None) -> F:
    """Compile, once per installation; other threads run meanwhile. At first use, or by signature.

    numba keeps a loop until its own file changes, not those of the loops that it calls: in a
    checkout `./run` throws away what it keeps as soon as any of them has changed.
    """
    how: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    given = () if signature is None else (signature,)
    decorated: F
    try:
        decorated = njit(*given, cache=True, **how)(function)
    except RuntimeError:  # neither the package nor a home can be written to: in each process anew
        decorated = njit(*given, **how)(function)
    return decorated


def inner(function: F) -> F:
    """The same for calls from compiled loops only: a quarter less to compile."""
    decorated: F = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True)(function)
    return decorated


def inlined(function: F) -> F:
    """The same for short ones in the innermost loops: a call would count references to arrays."""
    decorated: F = njit(inline="always", error_model="numpy")(function)
    return decorated
