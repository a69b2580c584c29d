"""Released files in the artifacts' folder of a ledger: there wholly or not at all."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from edgeveil._files import flush, sync_folder

# An artifact is named by its key; so is, behind a dot, the folder that its drafts are written in.
_NAME = re.compile(r"\.?([0-9a-f]{64})(\..*)?", re.DOTALL)


def write_draft(folder: Path, key: str, suffix: str, writer: Callable[[Path], None]) -> Path | None:
    """Let `writer` write an artifact beside its place, and make it durable there.

    Returns
    -------
    Path or None
        The draft, not yet visible under its name. None if there is no file: the writer wrote
        none, or another process that released the same key has cleared it away.
    """
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
    desk = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=folder))
    draft = desk / f"{key}{suffix}"
    try:
        writer(draft)
    except BaseException:
        shutil.rmtree(desk, ignore_errors=True)
        raise
    try:
        with draft.open("r+b") as handle:
            flush(handle)
        draft.chmod(0o600)
    except FileNotFoundError:
        return None
    return draft


def clear_drafts(folder: Path, key: str) -> None:
    """Remove what crashed or second writers of a released key left behind."""
    for desk in folder.glob(f".{key}.*"):
        shutil.rmtree(desk, ignore_errors=True)


def keys_in(folder: Path) -> set[str]:
    """The keys of all artifacts and drafts in the folder."""
    try:
        with os.scandir(folder) as entries:
            return {found[1] for entry in entries if (found := _NAME.fullmatch(entry.name))}
    except FileNotFoundError:
        return set()
