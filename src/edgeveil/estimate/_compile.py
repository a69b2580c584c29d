"""The decorators of this package's compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

__all__ = ["compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """As `edgeveil._compiled.compiled`, but without a branch before every division."""
    decorated: F = njit(cache=True, nogil=True, error_model="numpy")(function)
    return decorated


def inlined(function: F) -> F:
    """Compile as a part of every caller: arrays that pass through a call cost atomic counts."""
    decorated: F = njit(inline="always", error_model="numpy")(function)
    return decorated
