"""A mechanism by its name: that of the command line (two-hop), or of its class (TwoHop)."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from edgeveil._internal.paper_names import refuse_paper_names
from edgeveil._internal.words import did_you_mean
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import MECHANISMS, OF_DATA, Mechanism

SAY_EPSILON = "epsilon is required (for example epsilon=1); smaller is more private"


def built_in(name: str) -> type[Mechanism] | None:
    """The class with this name, in whatever case and with or without hyphens; None if none has it.

    >>> built_in("two-hop") is built_in("TwoHop") is built_in("two_hop")
    True
    """
    plain_name = _plain(name)
    for kind in (*MECHANISMS, *OF_DATA):
        if plain_name in (_plain(kind.name), _plain(kind.__name__)):
            return kind
    return None


def make_by_name(name: str, **given: Any) -> Mechanism:
    """Build a mechanism from its name and those parameters that are not None."""
    kind = built_in(name)
    if kind is None:
        names = [kind.name for kind in MECHANISMS]
        raise ParameterError(
            f'there is no mechanism "{name}"{did_you_mean(name, names) or "."} There are: '
            f"{', '.join(names)}; one of your own is given as an object"
        )
    fields_by_name = {field.name: field for field in fields(kind) if field.init}
    parameters = {parameter: value for parameter, value in given.items() if value is not None}
    if "model" not in fields_by_name and parameters.get("model") == getattr(kind, "model", "joint"):
        del parameters["model"]  # it is for that model only
    refuse_paper_names(kind.name, parameters, fields_by_name)
    for parameter in parameters:
        if parameter not in fields_by_name:
            raise ParameterError(f"{kind.name} has no {parameter}: leave it out")
    for parameter, field in fields_by_name.items():
        if field.default is MISSING and parameter not in parameters:
            if parameter == "epsilon":
                raise ParameterError(SAY_EPSILON)
            raise ParameterError(
                f"{kind.name} needs {parameter}: give the mechanism itself, as in "
                f"mechanism={kind.__name__}({parameter}=...)"
            )
    return kind(**parameters)


def _plain(name: str) -> str:
    return re.sub("[-_ ]", "", name).lower()
