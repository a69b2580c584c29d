"""``edgeveil mechanisms``, and how a name on the command line becomes a mechanism."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from edgeveil.cli.output import Format, print_table
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import MECHANISMS, Mechanism

__all__ = ["make_mechanism", "mechanisms"]


def mechanisms(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """List what there is, and what each protects.

    Example: edgeveil mechanisms
    """
    rows = [
        (kind.name, "embeddings" if kind.columns == "dimensions" else "scores", _summary(kind))
        for kind in MECHANISMS
    ]
    print_table(["name", "gives", "what it does"], rows, style=format)


def _summary(kind: type[Mechanism]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def make_mechanism(name: str, **options: Any) -> Mechanism:
    """Build a mechanism by name from those options that were given (not None).

    Raises
    ------
    ParameterError
        If there is no such mechanism, or it does not know an option.
    """
    by_name = {kind.name: kind for kind in MECHANISMS}
    if name not in by_name:
        raise ParameterError(f"there is no mechanism {name!r}; choose from {', '.join(by_name)}")
    given = {option: value for option, value in options.items() if value is not None}
    known = {field.name for field in fields(by_name[name])}  # type: ignore[arg-type]
    if strange := sorted(set(given) - known):
        raise ParameterError(f"{name} has no option {strange[0].replace('_', '-')!r}")
    try:
        return by_name[name](**given)
    except TypeError:
        raise ParameterError(f"{name} needs epsilon or another option that is missing") from None
