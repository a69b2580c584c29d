"""Defaults from a TOML file.

Only a file named by ``--config`` or by EDGEVEIL_CONFIG is read: one that merely lies in the working
directory could raise epsilon or name another ledger unnoticed. Whatever the file sets is printed
on standard error, with its origin. The file cannot set options that silently weaken the protection
or that answer a question for the user.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil._internal.words import did_you_mean
from edgeveil.cli.output import say
from edgeveil.errors import InputError, ParameterError

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import ArgumentCollection

ENVIRONMENT = "EDGEVEIL_CONFIG"
_BY_HAND = ("accuracy", "config", "dry-run", "insecure-seed", "overwrite", "verbose", "yes")


def apply_config(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill in options that the command line left out (cyclopts calls this before a command runs).

    Unknown options, and options that must be given on the command line, are refused.
    """
    from cyclopts.config import Dict

    given = arguments.get("--config", None)
    if not commands or given is None:
        return
    said = [token.value for token in given.tokens]
    name = said[-1] if said else os.environ.get(ENVIRONMENT, "")
    if not name:
        return
    path, command = Path(name), commands[0]
    origin = str(path) if said else f"{path} ({ENVIRONMENT})"
    table = _read(path).get(command, {})
    options = [n[2:] for a in arguments for n in a.names if n.startswith("--")]
    values = {}
    for key, value in table.items():
        option = key.replace("_", "-")
        if option in _BY_HAND:
            raise ParameterError(f"{origin}: {key} has to be given on the command line")
        if option not in options:
            raise ParameterError(
                f"{origin}: {command} has no option {key!r}{did_you_mean(option, options)}"
            )
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, (str, int, float)) for part in parts):
            raise ParameterError(f"{origin}: {key} must be a text, a number, true or false")
        if not arguments[f"--{option}"].tokens:
            values[option] = value
            say(f"{origin} sets --{option} to {_shown(value)}")
    Dict({command: values}, source=origin)(app, commands, arguments)
    for option in values:
        if not arguments[f"--{option}"].tokens:  # the command line takes precedence
            raise ParameterError(f"{origin}: {option} has to be given on the command line")


def _read(path: Path) -> dict[str, dict[str, Any]]:
    from edgeveil.cli.app import COMMANDS

    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the configuration {path} is not a TOML file") from error
    for name, table in whole.items():
        if name not in COMMANDS or not isinstance(table, dict):
            near = did_you_mean(name, COMMANDS) if isinstance(table, dict) else ""
            raise ParameterError(
                f"{path}: {name!r} is not the table of a command such as [rank]{near}"
            )
    return whole


def _shown(value: Any) -> str:
    """The value as printed; the address of a database without a possible password."""
    return re.sub(r"(postgres(ql)?)://.*", r"\1://...", str(value), flags=re.DOTALL)
