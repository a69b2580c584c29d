"""Compiled loops: their source, where they are kept between processes, who is told of compiling.

The folder is named by a digest of the source of all loops: after a change in any of them, older
machine code is never loaded, and is removed. Later processes run what is in the folder. So it must
belong to the user that runs this process (also if that is root), and nobody else may be able to
write to it or to replace it.

This module does not load numba.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from edgeveil._internal.files import is_own_folder, user_cache, why_replaceable

PACKAGE = Path(__file__).parents[1]
# Files with compiled loops, or with rules for them, have one of these lines.
_MARK = re.compile(rb"\nfrom (edgeveil\._internal\.compiled import|numba|llvmlite)")
VARIABLE = "NUMBA_CACHE_DIR"  # numba's own, for a folder of the user's choice

log = logging.getLogger("edgeveil")
log.addHandler(logging.NullHandler())

# Called with a loop's module, its name, and whether it is ready or only begins to be compiled.
Watcher = Callable[[str, str, bool], None]
watchers: list[Watcher] = []

_told: set[str] = set()


# -- the source --------------------------------------------------------------------------------


def digest_of_files(
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
    return [path for path in root.rglob("*.py") if _MARK.search(path.read_bytes())]


class LoopSource(NamedTuple):
    """The source of all compiled loops at one time."""

    digest: str  # "" if there are no source files: in a zip archive, for instance
    stamps: dict[Path, tuple[int, int, int]]


@cache
def loop_source() -> LoopSource:
    """The source of all compiled loops when this process first asked."""
    files = loop_files()
    stamps = {path: _stamp(path) for path in files}  # before reading, so that no change is missed
    return LoopSource(digest_of_files(files, PACKAGE) if files else "", stamps)


def loops_changed() -> bool:
    """Whether the source of a loop is no longer what it was when this process first asked."""
    before = loop_source()
    try:
        if all(_stamp(path) == stamp for path, stamp in before.stamps.items()):
            return False
        return digest_of_files(before.stamps, PACKAGE) != before.digest
    except OSError:  # a file is gone
        return True


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


# -- the cache ---------------------------------------------------------------------------------


class LoopFolder(NamedTuple):
    """The folder of compiled loops, if there is one, and why none can be added, if that is so."""

    folder: Path | None
    problem: str = ""


@cache
def loop_folder() -> LoopFolder:
    """Where this process keeps compiled loops.

    In the folder that NUMBA_CACHE_DIR names, if it is set; else in the package, or if that is not
    possible in the user's cache.
    """
    digest = loop_source().digest
    if not digest:
        return LoopFolder(None, "edgeveil's source is not in files")
    # By installation: two that share a parent folder must not remove each other's.
    place = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]
    prefix = f"edgeveil-loops-{place}-"
    if chosen := os.environ.get(VARIABLE):
        return _in(Path(chosen), prefix, digest)
    inside = _in(PACKAGE / "__pycache__", prefix, digest, inside=True)
    if inside.folder is not None:
        return inside
    own = user_cache()
    other = LoopFolder(None, "this user has no home") if own is None else _in(own, prefix, digest)
    return other if other.folder else LoopFolder(None, f"{inside.problem}, and {other.problem}")


def _in(parent: Path, prefix: str, digest: str, *, inside: bool = False) -> LoopFolder:
    """The folder in `parent`, made if need be.

    `inside` the package the folders above are not checked: who can write there can change the code.
    """
    folder = parent / f"{prefix}{digest[:32]}"
    try:
        if not inside:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not folder.is_dir():
            parent.mkdir(exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            _remove_others(folder, prefix)
        if not is_own_folder(folder):
            return LoopFolder(None, f"{folder} belongs to another user, or others can write to it")
        if not inside and (problem := why_replaceable(folder)):
            return LoopFolder(None, problem)
    except OSError as error:
        return LoopFolder(None, f"{parent} cannot be written to ({error.strerror})")
    if not os.access(folder, os.W_OK):  # for instance in a container image
        return LoopFolder(folder, f"{folder} cannot be written to")
    return LoopFolder(folder)


def _remove_others(folder: Path, prefix: str) -> None:
    """Remove this installation's folders of older source, and nothing else."""
    for other in folder.parent.glob(f"{prefix}{'[0-9a-f]' * 32}"):
        if other != folder and is_own_folder(other):
            shutil.rmtree(other, ignore_errors=True)


def tell(module: str, loop: str, *, ready: bool) -> None:
    """Tell the watchers that a loop begins to be compiled, or is ready."""
    if module not in _told:
        _told.add(module)
        log.info("compiling loops of %s for this machine", module)
        if loop_folder().problem and len(_told) == 1:
            log.warning("compiled loops are not kept: %s", why_not_kept())
    for watcher in watchers:
        watcher(module, loop, ready)


def why_not_kept() -> str:
    """Why loops are not kept, and what to do."""
    advice = f"Set {VARIABLE} to a folder of yours that nobody else can write to"
    return f"{loop_folder().problem}. {advice}"
