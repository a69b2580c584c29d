"""``edgeveil doctor``: versions, what is kept where, and what is missing for what."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from edgeveil import _loops
from edgeveil.cli.options import Format
from edgeveil.cli.output import counted, print_table

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]*\])?\s*(>=\s*(?P<least>[\d.]+))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[\w-]+)['"]""")


def doctor(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """Say what is installed, what is kept where, and what is missing for what.

    Nothing in it is private but names of folders.
    Example: edgeveil doctor
    """
    rows = [*_versions(), *_folders(), *_extras()]
    print_table(["part", "name", "state"], rows, style=format, title="edgeveil on this machine")


def _versions() -> Iterator[tuple[str, str, str]]:
    yield "version", "edgeveil", _version("edgeveil") or "not installed: run from its source"
    yield "version", "python", f"{platform.python_version()} ({sys.executable})"
    yield "version", "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    for requirement in _required():
        if not _EXTRA.search(requirement):
            name, state = _state(requirement)
            yield "version", name, state or str(_version(name))


def _folders() -> Iterator[tuple[str, str, str]]:
    folder = _loops.kept().folder
    if folder is None:
        yield "kept", "compiled loops", f"compiled at every start: {_loops.not_kept()}"
    else:
        loops = counted(sum(1 for _ in folder.rglob("*.nbc")), "loop")
        yield "kept", "compiled loops", f"{folder} ({_access(folder)}): {loops}"


def _access(folder: Path) -> str:
    while not folder.exists():
        folder = folder.parent
    return "can be written to" if os.access(folder, os.W_OK) else "cannot be written to"


def _extras() -> Iterator[tuple[str, str, str]]:
    wanting: dict[str, list[str]] = {}
    for requirement in _required():
        if found := _EXTRA.search(requirement):
            wrong = wanting.setdefault(found["extra"], [])
            if os.name == "nt" and "win32" in requirement:
                continue  # the marker leaves it out there
            name, state = _state(requirement)
            if state:
                wrong.append(f"{name} {state}")
    for extra, wrong in sorted(wanting.items()):
        told = f"{', '.join(wrong)}: pip install 'edgeveil[{extra}]'" if wrong else "ready"
        yield "extra", extra, told


def _required() -> list[str]:
    """The requirements of the installed package; none if there is only its source."""
    try:
        return requires("edgeveil") or []
    except PackageNotFoundError:
        return []


def _state(requirement: str) -> tuple[str, str]:
    """The name of a package, and what is wrong with it, if anything."""
    found = _REQUIREMENT.match(requirement)
    assert found is not None
    name, least = found["name"], found["least"]
    have = _version(name)
    if have is None:
        return name, "is missing"
    if least and _numbers(have) < _numbers(least):
        return name, f"is {have}, at least {least} is needed"
    return name, ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version; what follows a letter is left out.

    >>> _numbers("2.10.1rc1"), _numbers("0.9") < _numbers("0.21")
    ((2, 10, 1), True)
    """
    plain = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, plain[0].split("."))) if plain else ()
