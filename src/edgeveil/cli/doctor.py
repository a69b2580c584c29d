"""``edgeveil doctor``: versions, what is kept where, and what is missing for what."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from edgeveil._internal import loops as _loops
from edgeveil._internal.words import counted
from edgeveil.cli.options import Format
from edgeveil.cli.output import print_table

_NAME = re.compile(r"[\w.-]+")
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[\w-]+)['"]""")


def doctor(*, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """Show what is installed, what is stored where, and what an extra lacks.

    The output holds names of folders, and nothing else that is private.
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
            name = _name(requirement)
            yield "version", name, _version(name) or "is missing"


def _folders() -> Iterator[tuple[str, str, str]]:
    folder = _loops.loop_folder().folder
    if folder is None:
        yield "kept", "compiled loops", f"compiled at every start: {_loops.why_not_kept()}"
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
        if match := _EXTRA.search(requirement):
            wrong = wanting.setdefault(match["extra"], [])
            if os.name == "nt" and "win32" in requirement:
                continue  # the marker leaves it out there
            if _version(name := _name(requirement)) is None:
                wrong.append(f"{name} is missing")
    for extra, wrong in sorted(wanting.items()):
        told = f"{', '.join(wrong)}: pip install 'edgeveil[{extra}]'" if wrong else "ready"
        yield "extra", extra, told


def _required() -> list[str]:
    """The requirements of the installed package; none if there is only its source."""
    try:
        return requires("edgeveil") or []
    except PackageNotFoundError:
        return []


def _name(requirement: str) -> str:
    """The package that a requirement names."""
    match = _NAME.match(requirement)
    assert match is not None
    return match[0]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
