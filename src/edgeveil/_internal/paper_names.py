"""The paper's symbols, given as arguments, are answered with our names (docs/notation.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from edgeveil.errors import ParameterError

P = ParamSpec("P")
T = TypeVar("T")

_NAMES = {
    "alpha": "restart",
    "teleport": "restart",
    "damping": "restart",
    "R": "rounds",
    "n_rounds": "rounds",
    "xi": "rounds",
    "eps": "epsilon",
    "dim": "dimension",
    "D": "promised_min_degree",
}
_OF_MECHANISMS = ("restart", "rounds", "sigma", "bound", "prepush", "promised_min_degree")


def refuse_paper_names(called: str, options: Mapping[str, Any], has: Collection[str]) -> None:
    """Raise a ParameterError that has our name for an option that has the paper's."""
    for name, value in options.items():
        right = _NAMES.get(name)
        if name not in has and right in has:
            raise ParameterError(f"{called} takes no {name}: say {right}={_hint(name, value)}")


def _hint(name: str, value: Any) -> str:
    """What the right name is to be set to, where that is not the same number."""
    number = float(value) if isinstance(value, int | float) else None
    fraction = number is not None and 0 < number < 1
    if name == "alpha":
        words = ", the ordinary walk's restart probability"
        if number is not None and fraction:
            words += f": {2 * number / (1 + number):.6g} if {number:g} is the paper's alpha, of "
            words += f"the lazy walk; {number:g} if it is that of the ordinary walk"
        return words
    if name == "damping":
        return f"{1 - number:.6g}" if number is not None and fraction else ", 1 - damping"
    if name == "xi":
        return ", the number of rounds: edgeveil.flow.walk.rounds_for(xi, restart) computes it"
    return str(value) if isinstance(value, int | float | str) else "..."


def with_paper_names(function: Callable[P, T]) -> Callable[P, T]:
    """A function that answers the paper's symbols with its own names."""
    has = signature(function).parameters

    @wraps(function)
    def answering(*args: P.args, **options: P.kwargs) -> T:
        called = function.__name__
        refuse_paper_names(called, options, has)
        for name in options:
            right = _NAMES.get(name, name)
            if name not in has and right in _OF_MECHANISMS:
                meant = "" if name == right else f"{name} is {right} here, and "
                raise ParameterError(
                    f"{called} takes no {name}: {meant}{right} is a parameter of a mechanism, as "
                    f"in mechanism=DPPushFlowCap(epsilon=1, {right}=...)"
                )
        return function(*args, **options)

    return answering
