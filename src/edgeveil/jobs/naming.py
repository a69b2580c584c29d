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
    wanted = _plain(name)
    for kind in (*MECHANISMS, *OF_DATA):
        if wanted in (_plain(kind.name), _plain(kind.__name__)):
            return kind
    return None


def make_by_name(name: str, **given: Any) -> Mechanism:
    """Build a mechanism from its name and those parameters that are not None."""
    kind = built_in(name)
    if kind is None:
        known = [kind.name for kind in MECHANISMS]
        raise ParameterError(
            f'there is no mechanism "{name}"{did_you_mean(name, known) or "."} There are: '
            f"{', '.join(known)}; one of your own is given as an object"
        )
    known_fields = {field.name: field for field in fields(kind) if field.init}
    wanted = {parameter: value for parameter, value in given.items() if value is not None}
    if "model" not in known_fields and wanted.get("model") == getattr(kind, "model", "joint"):
        del wanted["model"]  # it is for that model only
    refuse_paper_names(kind.name, wanted, known_fields)
    for parameter in wanted:
        if parameter not in known_fields:
            raise ParameterError(f"{kind.name} has no {parameter}: leave it out")
    for parameter, field in known_fields.items():
        if field.default is MISSING and parameter not in wanted:
            if parameter == "epsilon":
                raise ParameterError(SAY_EPSILON)
            raise ParameterError(
                f"{kind.name} needs {parameter}: give the mechanism itself, as in "
                f"mechanism={kind.__name__}({parameter}=...)"
            )
    return kind(**wanted)


def _plain(name: str) -> str:
    return re.sub("[-_ ]", "", name).lower()
