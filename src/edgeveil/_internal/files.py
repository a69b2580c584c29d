"""Atomic and durable writes, digests of files, and checks of who may write to a folder."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def write_atomically(target: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, flush it, then rename it to `target`.

    Only its owner can read it (mode 0600): it may hold rows of several members.
    """
    # The name cannot be guessed and the mode is set at creation: no link can have been planted
    # there, and no other process can open the file before its mode is set.
    part = target.with_name(f".{target.name[:150]}.{secrets.token_hex(16)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        error.filename = str(target)  # the name that the caller knows
        raise
    try:
        write(part)
        with part.open("r+b") as handle:
            flush(handle)
        move(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_note(target: Path, value: Any) -> None:
    """Write what JSON can hold as a file that appears whole."""
    write_atomically(target, lambda part: part.write_text(json.dumps(value), encoding="utf-8"))


def flush(handle: IO[Any]) -> None:
    """Return when all that was written to the file is on the disk."""
    handle.flush()
    os.fsync(handle.fileno())


def move(source: Path, target: Path) -> None:
    """Give a flushed file or folder its final name, at once and durably."""
    os.replace(source, target)
    sync_folder(target.parent)


@contextmanager
def new_folder(place: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A private folder to fill under another name; it appears at `place` when it is complete.

    What is there stays until then, and is only replaced if `overwrite` says so (OSError otherwise,
    unless it is empty). After an error nothing is left.
    """
    place = place.resolve()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # named before it is created, so that an interrupt at any time can remove it
    unfinished = place.with_name(f"{place.name}.unfinished-{secrets.token_hex(8)}")
    try:
        unfinished.mkdir(mode=0o700)
        yield unfinished
        if place.exists() and not overwrite:
            place.rmdir()  # fails unless it is empty
        replace_folder(unfinished, place)
    finally:
        remove_folder(unfinished)


@contextmanager
def filled_folder(place: Path) -> Iterator[Path]:
    """A folder to fill; its files appear at `place` when all are complete.

    If there is a folder already, files of the same names are replaced in it, and others stay.
    """
    if not place.exists():
        with new_folder(place) as unfinished:
            yield unfinished
            sync_all(unfinished)
        return
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=place) as beside:
        yield Path(beside)
        sync_all(Path(beside))
        for path in Path(beside).iterdir():
            os.replace(path, place / path.name)
    sync_folder(place)


def replace_folder(new: Path, place: Path) -> None:
    """Move a finished folder to its place, durably; what is there comes back after an error."""
    old = new.with_name(f"{new.name}.old")
    try:
        if place.exists():
            place.rename(old)
        move(new, place)
    except BaseException:
        if not place.exists() and old.exists():
            old.rename(place)
        raise
    finally:
        if place.exists():
            remove_folder(old)


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it is there, also if Ctrl-C is pressed meanwhile, once."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name == "nt":  # folders cannot be opened there; NTFS journals renames
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that one may write to but not list
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not on this file system
            raise
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    """Return when all files in a folder are on the disk: one sync, however many there are."""
    if hasattr(os, "sync"):
        os.sync()
    else:  # Windows
        for path in folder.iterdir():
            with path.open("r+b") as handle:
                os.fsync(handle.fileno())
    sync_folder(folder)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def user_cache() -> Path | None:
    """The cache folder of edgeveil for this user; None if the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "edgeveil"
    except RuntimeError:
        return None


def is_own_folder(folder: Path) -> bool:
    """Whether this is a folder (no link) of the user that runs this process, root or not.

    And whether only that user may write to it.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (
        status.st_uid == os.geteuid() and not status.st_mode & 0o022
    )


def why_replaceable(folder: Path) -> str:
    """Why a user other than root could replace the folder by another one; "" if none could."""
    if not hasattr(os, "geteuid"):
        return ""
    for above in folder.resolve().parents:
        status = above.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{above} belongs to another user"
        # In a sticky folder (/tmp) users can only rename what they own.
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            return f"others can write to {above}"
    return ""
