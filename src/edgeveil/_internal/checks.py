"""Checks of parameters, with one form of message."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil.errors import ParameterError


def is_number(value: Any) -> bool:
    """Whether this is a real number; a bool is not."""
    plain = _plain(value)
    return isinstance(plain, (int, float)) and not isinstance(plain, bool)


def _plain(value: Any) -> Any:
    """The Python number of numpy's: narrow types of numpy warn when compared with 1e280."""
    return value.item() if isinstance(value, np.generic) else value


def is_whole(value: Any) -> bool:
    """Whether this is an integer; a bool is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def positive(name: str, value: Any) -> float:
    """Refuse what is not a positive number well within the range of float64."""
    if not is_number(value) or not 1e-280 < _plain(value) < 1e280:
        raise ParameterError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_int(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Refuse what is not an integer from `least` to `most`."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        kind = f"an integer from {least:,} to {most:,}" if most else f"an integer >= {least}"
        raise ParameterError(f"{name} must be {kind}, got {value!r}")
    return int(value)


def check_share(name: str, value: Any) -> float:
    """Refuse what is not a number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ParameterError(f"{name} must be from 0 to 1, got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, *words: str) -> str:
    """Refuse anything but one of these words."""
    if not isinstance(value, str) or value not in words:
        listed = " or ".join(map(repr, words))
        raise ParameterError(f"{name} must be {listed}, got {value!r}")
    return value


def check_bool(name: str, value: Any) -> bool:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False, got {value!r}")
    return value
