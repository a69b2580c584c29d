"""``edgeveil mechanisms``, and how a name on the command line becomes a mechanism."""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from textwrap import fill
from typing import TYPE_CHECKING, Any

from edgeveil.cli.output import Format, print_table
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.mechanisms import Mechanism
    from edgeveil.mechanisms.base import Gives

__all__ = ["make_mechanism", "mechanisms"]


def mechanisms(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """List what there is, what each protects, and when to use it.

    Example: edgeveil mechanisms

    Parameters
    ----------
    format
        table, json or csv.
    """
    from edgeveil.mechanisms import MECHANISMS

    rows = []
    for kind in MECHANISMS:
        does = (kind.__doc__ or "").strip().splitlines()[0]
        rows.append((kind.name, kind.gives, does, _protects(kind), kind.when_to_use))
    if format == "table":
        for name, gives, *parts in rows:  # too long for columns
            sys.stdout.write(f"{name} ({gives})\n")
            for label, words in zip(("Does", "Protects", "Use"), parts, strict=True):
                sys.stdout.write(f"{fill(f'  {label}: {words}', 80, subsequent_indent='    ')}\n")
        return
    print_table(["name", "gives", "does", "protects", "use"], rows, style=format)


def _protects(kind: type[Mechanism]) -> str:
    """What the guarantee says, in a few words; an example is asked, it sees no graph."""
    example: Any = {"epsilon": 1.0, "promised_min_degree": 50}
    needed = {name: value for name, value in example.items() if _needs(kind, name)}
    claim = kind(**needed).guarantee(2)
    if claim.model == "none":
        return "nothing"
    elsewhere = "edges that do not touch the source"
    words = {"joint": elsewhere, "public": "every edge"}[claim.model]
    if any(field.name == "model" for field in fields(kind)):  # type: ignore[arg-type]  # all are dataclasses
        words = f"joint model: {elsewhere}; public model: every edge"
    if claim.model == "joint" and claim.epsilon == 0:
        words += ", wholly"
    elif claim.pooling == "shared":
        words += "; also if recipients pool their rows"
    if claim.promise:
        words += "; under a public promise about all graphs"
    return words


def _needs(kind: type[Mechanism], parameter: str) -> bool:
    """Whether the mechanism has this parameter and no default for it."""
    return any(f.name == parameter and f.default is MISSING for f in fields(kind))  # type: ignore[arg-type]  # all are dataclasses


def make_mechanism(
    name: str | None, gives: Gives | None, /, n_nodes: int | None = None, **options: Any
) -> Mechanism:
    """Build a mechanism from those options that were given (not None).

    Without a name it is the recommended one, for a public node set of this size.
    """
    from edgeveil.advice import recommended
    from edgeveil.mechanisms import MECHANISMS

    given = {option: value for option, value in options.items() if value is not None}
    kinds = {kind.name: kind for kind in MECHANISMS}
    if "epsilon" not in given and (name is None or _needs(kinds[name], "epsilon")):
        raise ParameterError("say how much may be learnt: --epsilon 1, for instance")
    if name is None:
        assert gives != "suggestions"  # they have a mechanism of their own
        asked = {"epsilon": given["epsilon"], "model": given.get("model", "joint")}
        name = recommended(**asked, gives=gives or "scores", n_nodes=n_nodes).name
    kind = kinds[name]
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    if given.get("model") == "joint" and "model" not in known:
        del given["model"]  # it is for the joint model only
    if strange := sorted(set(given) - set(known)):
        raise ParameterError(f"{name} has no option --{strange[0].replace('_', '-')}")
    needed = [option for option in known if _needs(kind, option) and option not in given]
    if needed:
        raise ParameterError(f"{name} needs --{needed[0].replace('_', '-')}")
    return kind(**given)
