"""Released files in a ledger's folder of artifacts, each written atomically."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from edgeveil._internal.files import flush, sha256_of, sync_folder
from edgeveil.errors import LedgerError

# An artifact is named by its key, and its drafts are in a folder named by the key, behind a dot.
_NAME = re.compile(r"\.?([0-9a-f]{64})(\..*)?", re.DOTALL)


def write_draft(folder: Path, key: str, writer: Callable[[Path], None]) -> tuple[Path, str] | None:
    """Let `writer` write an artifact to a draft file, and flush it; gives its path and digest.

    None if there is no file: the writer wrote none, or another process has stored the same key
    meanwhile and removed all drafts of it.
    """
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
    own = _drafts(folder, key) / secrets.token_hex(8)
    draft = own / key
    try:
        own.mkdir(mode=0o700, parents=True)
        writer(draft)
    except BaseException as error:
        removed = isinstance(error, FileNotFoundError) and not own.exists()
        shutil.rmtree(own, ignore_errors=True)
        if removed:
            return None
        raise
    try:
        with draft.open("r+b") as handle:
            flush(handle)
        draft.chmod(0o600)
        return draft, sha256_of(draft)
    except FileNotFoundError:
        return None


def find(folder: Path, key: str, sha256: str) -> Path:
    """The artifact of a released key; LedgerError if it is gone or was changed."""
    artifact = folder / key
    if not artifact.is_file():
        raise LedgerError(
            f"key {key[:12]}... is released but {artifact} is gone; its noise cannot be "
            "drawn again, so fetch the file from a backup or from the machine that wrote it"
        )
    if sha256_of(artifact) != sha256:
        raise LedgerError(f"{artifact} was changed since it was released")
    return artifact


def clear_drafts(folder: Path, key: str) -> None:
    """Remove drafts of a released key, which crashed or slower writers left."""
    shutil.rmtree(_drafts(folder, key), ignore_errors=True)


def _drafts(folder: Path, key: str) -> Path:
    """The folder for the drafts of a key; each writer has a folder of its own in it."""
    return folder / f".{key}"


def keys_in(folder: Path | None) -> set[str]:
    """The keys of all artifacts and drafts in the folder."""
    if folder is None or not folder.is_dir():
        return set()
    with os.scandir(folder) as entries:
        return {match[1] for entry in entries if (match := _NAME.fullmatch(entry.name))}


def refuse_uncharged(keys: set[str]) -> None:
    """Raise LedgerError if there are artifacts without a charge."""
    if keys:
        raise LedgerError(
            f"the artifacts' folder holds {len(keys)} that the ledger knows nothing of, such as "
            f"{min(keys)[:12]}...: the ledger was restored from an older copy and lacks charges, "
            "or the folder belongs to another ledger; see docs/over-time.md, Backup"
        )
