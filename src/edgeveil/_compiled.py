"""The decorator of compiled loops. Import this module late: it loads numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first use, once per installation; other threads run meanwhile.

    There are no bounds checks in compiled code: every index must be proven in the loop.
    """
    decorated: F = njit(cache=True, nogil=True)(function)
    return decorated
