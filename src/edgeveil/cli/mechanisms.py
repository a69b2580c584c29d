"""``edgeveil mechanisms``, and how a name on the command line becomes a mechanism.

A name is one of ours, one that an installed package announces (entry points of the group
"edgeveil.mechanisms"), or ``package.module:Class``.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, replace
from importlib.metadata import entry_points
from pkgutil import resolve_name
from textwrap import fill
from typing import TYPE_CHECKING, Any

from edgeveil._internal.checks import is_number
from edgeveil._internal.paper_names import refuse_paper_names
from edgeveil._internal.words import did_you_mean
from edgeveil.cli.options import PARAMETERS, Format, Parameters, required_epsilon
from edgeveil.cli.output import print_table
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.mechanisms import Mechanism
    from edgeveil.mechanisms.base import OutputKind


def mechanisms(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """List all mechanisms: what each does, what it protects, and when to use it.

    The list includes mechanisms of installed packages. Name a class of your own
    as --mechanism package.module:Class.
    Example: edgeveil mechanisms
    """
    rows = list(_listed())
    if format != "table":
        print_table(["name", "output", "does", "protects", "use"], rows, style=format)
        return
    for name, output, *parts in rows:  # too long for columns
        sys.stdout.write(f"{name} ({output})\n")
        for label, words in zip(("Does", "Protects", "Use"), parts, strict=True):
            if words:
                sys.stdout.write(f"{fill(f'  {label}: {words}', 80, subsequent_indent='    ')}\n")


def _listed() -> Iterator[tuple[str, str, str, str, str]]:
    from edgeveil.mechanisms import DATA_MECHANISMS, MECHANISMS

    for name in [*(kind.name for kind in (*MECHANISMS, *DATA_MECHANISMS)), *_announced()]:
        try:
            kind = find_mechanism(name)
        except ParameterError as error:
            yield name, "cannot be used", str(error), "", ""
            continue
        does = (kind.__doc__ or "").strip().partition("\n")[0]
        yield name, kind.output, does, _protects(kind), kind.when_to_use


def _protects(kind: type[Mechanism]) -> str:
    """The guarantee in a few words, from an example of the mechanism, which sees no graph."""
    example: Any = {"epsilon": 1.0, "promised_min_degree": 50}
    if kind.output == "predictions":
        return "every edge; labels and features are not protected"
    needed = [name for name, field in fields_of(kind).items() if _is_needed(field)]
    if not set(needed) <= set(example):
        return f"what its guarantee says, for given {', '.join(needed)}"
    claim = kind(**{name: example[name] for name in needed}).guarantee(2)
    if claim.model == "none":
        return "nothing"
    elsewhere = "edges that do not touch the member"
    words = elsewhere if claim.model == "joint" else "every edge"
    if "model" in fields_of(kind):
        words = f"joint model: {elsewhere}; public model: every edge"
    if claim.model == "joint" and claim.epsilon == 0:
        words += ": no such edge is used"
    elif claim.collusion == "shared":
        words += "; also if members combine their lists"
    if claim.promise:
        words += "; under a public promise about all graphs"
    return words


def find_mechanism(name: str, output: OutputKind | None = None) -> type[Mechanism]:
    """The class with this name on the command line; `output` is what the command needs."""
    from edgeveil.jobs.choice import built_in
    from edgeveil.mechanisms import MECHANISMS

    kind = built_in(name)
    if kind is not None:
        return kind
    announced = _announced()
    if ":" in name or name in announced:
        return _loaded(announced.get(name, name))
    names = [kind.name for kind in MECHANISMS if output in (None, kind.output)] + [*announced]
    raise ParameterError(
        f'there is no mechanism "{name}"{did_you_mean(name, names) or "."} There are: '
        f"{', '.join(names)}; one of your own is named as package.module:Class"
    )


def _announced() -> dict[str, str]:
    """The classes that installed packages announce, by name; nothing is loaded yet."""
    return {place.name: place.value for place in entry_points(group="edgeveil.mechanisms")}


def _loaded(place: str) -> type[Mechanism]:
    """The class at ``package.module:Class``; files of the working folder are found as well."""
    from edgeveil.mechanisms.base import Mechanism
    from edgeveil.mechanisms.requirements import missing_parts

    module, _, name = place.partition(":")
    if not module or not name:
        raise ParameterError(f"{place!r} is not of the form package.module:Class")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: it hides nothing that is installed
    try:
        loaded: Any = resolve_name(place)
    except Exception as error:  # this runs code from outside
        told = f"{place} cannot be imported: {type(error).__name__}: {error}"
        raise ParameterError(told) from error
    inherits = isinstance(loaded, type) and issubclass(loaded, Mechanism)
    if not inherits:
        raise ParameterError(
            f"{place} is not a mechanism: it must inherit from edgeveil.mechanisms.Mechanism"
        )
    kind: type[Mechanism] = loaded
    if missing := missing_parts(kind):
        raise ParameterError(f"{place} is not a mechanism: it needs {' and '.join(missing)}")
    return kind


def chosen_mechanism(
    name: str | None, output: OutputKind, parameters: Parameters, **options: Any
) -> Mechanism | None:
    """The mechanism that --mechanism names; None if the library is to choose.

    ParameterError if what it is to choose needs an epsilon: all but the own list, which is free.
    """
    if name is not None:
        return make_mechanism(name, output, **options, **parameters.given())
    refuse_parameters(replace(parameters, model=None))
    if output == "scores" or parameters.model == "public":
        required_epsilon(options["epsilon"])
    return None


def refuse_parameters(parameters: Parameters) -> None:
    """Refuse parameters if no mechanism is named that has them."""
    if parameters != PARAMETERS:
        raise ParameterError("parameters belong to a mechanism: name it with --mechanism")


def make_mechanism(
    name: str,
    output: OutputKind | None,
    /,
    settings: Sequence[str] | None = None,
    **options: Any,
) -> Mechanism:
    """Build a mechanism from those options that were given (not None), and ``--set`` settings."""
    given = {option: value for option, value in options.items() if value is not None}
    kind = find_mechanism(name, output)
    name = name if ":" in name else kind.name
    if output is not None and kind.output != output:
        raise ParameterError(f"{name} gives {kind.output}; {output} are asked for")
    known_fields = fields_of(kind)
    if "model" not in known_fields and given.get("model") == kind.model:
        del given["model"]  # it is for that model only
    if strange := sorted(set(given) - set(known_fields)):
        raise ParameterError(f"{name} has no option --{strange[0].replace('_', '-')}")
    for setting in settings or ():
        parameter, value = _setting(setting, known_fields, name)
        if parameter in given:
            raise ParameterError(f"{parameter} is given twice")
        given[parameter] = value
    needed = [n for n, field in known_fields.items() if _is_needed(field) and n not in given]
    if "epsilon" in needed:
        required_epsilon(None)
    if needed:
        told = {"promised_min_degree": "--promised-min-degree"}
        raise ParameterError(f"{name} needs {told.get(needed[0], f'--set {needed[0]}=VALUE')}")
    try:
        return kind(**given)
    except ParameterError:
        raise
    except (TypeError, ValueError) as error:  # from a class from outside
        raise ParameterError(f"{name}: {error}") from error


def fields_of(kind: type[Mechanism]) -> dict[str, Field[Any]]:
    """The parameters of a mechanism."""
    return {field.name: field for field in fields(kind) if field.init}


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _setting(text: str, known_fields: dict[str, Field[Any]], name: str) -> tuple[str, Any]:
    """Name and value of ``--set name=value``; a number, true, false, none, or text."""
    parameter, equals, value = text.partition("=")
    parameter = parameter.strip().replace("-", "_")
    if not equals:
        raise ParameterError(f"--set takes name=value, got {text!r}")
    if parameter not in known_fields:
        refuse_paper_names(name, {parameter: value}, known_fields)
        has = ", ".join(known_fields) or "no parameters"
        raise ParameterError(f"{name} has no parameter {parameter!r}; it has {has}")
    kind = known_fields[parameter].type
    kind = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if kind == "str":
        return parameter, value
    parsed: Any = {"none": None, "true": True, "false": False}.get(value.lower(), value)
    if parsed is value:
        with suppress(ValueError, SyntaxError):
            parsed = ast.literal_eval(value)
    if kind in ("float", "int") and not is_number(parsed):
        raise ParameterError(f"{parameter} of {name} takes a number, got {value!r}")
    return parameter, parsed
