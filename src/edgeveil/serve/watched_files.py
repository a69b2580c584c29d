"""Files and folders that only the service's user can change, or, if secret, read.

Owner and mode are checked for every user, root included: another user could replace a file that
belongs to it, whoever reads it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from edgeveil.errors import EdgeveilError

_OTHERS_WRITE, _OTHERS_USE = 0o022, 0o077


def own_folder(path: Path) -> Path:
    """Make a folder (mode 0700), or check that nobody else can put anything into it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    _check_owner(path, status)
    if status.st_mode & _OTHERS_WRITE:
        raise EdgeveilError(f"others can write to {path}: chmod 700 {path}")
    return path


def read_own(path: Path) -> str:
    """The text of a secret file: it must belong to this user, and nobody else may read or write."""
    text, status = _read(path)
    check_secret(path, status)
    return text


def read_unchanged(path: Path) -> tuple[str, os.stat_result]:
    """The text of a file that others cannot write to, and its owner and mode."""
    text, status = _read(path)
    if status.st_mode & _OTHERS_WRITE:
        raise EdgeveilError(f"others can write to {path}: chmod go-w {path}")
    return text, status


def check_secret(path: Path, status: os.stat_result) -> None:
    """Refuse a file that another user owns or can use."""
    _check_owner(path, status)
    if status.st_mode & _OTHERS_USE:
        mode = stat.S_IMODE(status.st_mode)
        raise EdgeveilError(
            f"others can read or write {path} (mode {mode:04o}), so its key may be known: make a "
            "new one, with mode 0600"
        )


def check_own(path: Path) -> None:
    """Refuse a file that another user owns, or that others can read or write."""
    status = path.stat()
    _check_owner(path, status)
    if status.st_mode & _OTHERS_USE:
        raise EdgeveilError(f"others can read or write {path}: chmod 600 {path}")


def file_state(path: Path) -> tuple[int, int, int] | None:
    """What changes whenever a file is replaced or written to; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _read(path: Path) -> tuple[str, os.stat_result]:
    """Owner and mode of the very file that was read."""
    with path.open(encoding="utf-8") as handle:
        return handle.read(), os.fstat(handle.fileno())


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise EdgeveilError(
            f"{path} belongs to the user with number {status.st_uid}, and this process runs as "
            f"{os.geteuid()}: start it as the owner, or give the file to this user (chown)"
        )
