"""Digests of the package's own source: which code runs.

Caches of compiled loops (`_loops`) and unfinished batches (`jobs.keys`) are named by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
# Files with compiled loops, or with rules for them, have one of these lines.
_MARKS = (b"\nfrom edgeveil._internal.compiled import", b"\nfrom numba", b"\nfrom llvmlite")


def digest_of(
    files: Iterable[Path], root: Path, form: Callable[[bytes], bytes] | None = None
) -> str:
    """SHA-256 of the names and contents of files; `form` is applied to each content first."""
    digest = hashlib.sha256()
    for path in sorted(files):
        content = path.read_bytes()
        for part in (
            path.relative_to(root).as_posix().encode(),
            form(content) if form else content,
        ):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def loop_files(root: Path = PACKAGE) -> list[Path]:
    """The files that hold compiled loops, or say how loops are compiled.

    Invariant (tests/unit/test_compiled.py): compiled code uses functions and constants of these
    files only, so no change elsewhere can change it.
    """
    files = root.rglob("*.py")
    return [path for path in files if any(mark in path.read_bytes() for mark in _MARKS)]


class Loops(NamedTuple):
    """The source of all compiled loops at one time."""

    digest: str  # "" if there are no source files: in a zip archive, for instance
    stamps: dict[Path, tuple[int, int, int]]


@cache
def loops() -> Loops:
    """The source of all compiled loops when this process first asked."""
    files = loop_files()
    stamps = {path: _stamp(path) for path in files}  # before reading, so that no change is missed
    return Loops(digest_of(files, PACKAGE) if files else "", stamps)


def loops_changed() -> bool:
    """Whether the source of a loop is no longer what it was when this process first asked."""
    known = loops()
    try:
        if all(_stamp(path) == stamp for path, stamp in known.stamps.items()):
            return False
        return digest_of(known.stamps, PACKAGE) != known.digest
    except OSError:  # a file is gone
        return True


def _stamp(path: Path) -> tuple[int, int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino
