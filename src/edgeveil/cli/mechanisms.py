"""``edgeveil mechanisms``, and how a name on the command line becomes a mechanism."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Literal

from edgeveil.advice import recommended, when_to_use
from edgeveil.cli.output import Format, print_table
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import MECHANISMS, Mechanism

__all__ = ["make_mechanism", "mechanisms"]


def mechanisms(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """List what there is, what each does, and when to use it.

    Example: edgeveil mechanisms
    """
    rows = [(kind.name, _gives(kind), _summary(kind), when_to_use(kind)) for kind in MECHANISMS]
    print_table(["name", "gives", "what it does", "when to use it"], rows, style=format)


def _gives(kind: type[Mechanism]) -> str:
    return "embeddings" if kind.columns == "dimensions" else "scores"


def _summary(kind: type[Mechanism]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def make_mechanism(
    name: str | None, gives: Literal["scores", "embeddings"] | None, /, **options: Any
) -> Mechanism:
    """Build a mechanism from those options that were given (not None).

    Parameters
    ----------
    name : str or None
        Its name; None takes the recommended one.
    gives : {"scores", "embeddings"} or None
        What it has to give; None for either.
    **options
        Its parameters.

    Raises
    ------
    ParameterError
        If there is no such mechanism, it gives something else, or it does not know an option.
    """
    given = {option: value for option, value in options.items() if value is not None}
    by_name = {kind.name: kind for kind in MECHANISMS}
    if name is None:
        if "epsilon" not in given:
            raise ParameterError("say how much may be learnt: --epsilon 1, for instance")
        model = given.get("model", "joint")
        name = recommended(epsilon=given["epsilon"], model=model, gives=gives or "scores").name
    if name not in by_name:
        raise ParameterError(f"there is no mechanism {name!r}; choose from {', '.join(by_name)}")
    kind = by_name[name]
    if gives is not None and _gives(kind) != gives:
        raise ParameterError(f"{name} gives {_gives(kind)}, not {gives}")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    if given.get("model") == "joint" and "model" not in known:
        del given["model"]  # it is for the joint model only
    if strange := sorted(set(given) - set(known)):
        raise ParameterError(f"{name} has no option --{strange[0].replace('_', '-')}")
    needed = [n for n, field in known.items() if field.default is MISSING and n not in given]
    if needed:
        raise ParameterError(f"{name} needs --{needed[0].replace('_', '-')}")
    return kind(**given)
