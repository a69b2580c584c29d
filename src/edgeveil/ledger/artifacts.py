"""Released files in the artifacts' folder of a ledger: there wholly or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from edgeveil._files import flush, sha256_of, sync_folder
from edgeveil.errors import LedgerError

# An artifact is named by its key; so is, behind a dot, the folder that its drafts are written in.
_NAME = re.compile(r"\.?([0-9a-f]{64})(\..*)?", re.DOTALL)


def write_draft(folder: Path, key: str, writer: Callable[[Path], None]) -> Path | None:
    """Let `writer` write an artifact beside its place, and make it durable there.

    None if there is no file: the writer wrote none, or another process that stored the same key
    has cleared it away.
    """
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(folder.parent)
    desk = _desks(folder, key) / secrets.token_hex(8)
    draft = desk / key
    try:
        desk.mkdir(mode=0o700, parents=True)
        writer(draft)
    except BaseException as error:
        cleared = isinstance(error, FileNotFoundError) and not desk.exists()
        shutil.rmtree(desk, ignore_errors=True)
        if cleared:
            return None
        raise
    try:
        with draft.open("r+b") as handle:
            flush(handle)
        draft.chmod(0o600)
    except FileNotFoundError:
        return None
    return draft


def find(folder: Path, key: str, name: str, sha256: str) -> Path:
    """The artifact of a released key, as it was written."""
    artifact = folder / name
    if not artifact.is_file():
        raise LedgerError(
            f"key {key[:12]}... is released but {artifact} is gone; its noise cannot be "
            "drawn again, so fetch the file from a backup or from the machine that wrote it"
        )
    if sha256_of(artifact) != sha256:
        raise LedgerError(f"{artifact} was changed since it was released")
    return artifact


def clear_drafts(folder: Path, key: str) -> None:
    """Remove what crashed or second writers of a released key left behind."""
    shutil.rmtree(_desks(folder, key), ignore_errors=True)


def _desks(folder: Path, key: str) -> Path:
    """Where the drafts of a key are written, each in a folder of its own."""
    return folder / f".{key}"


def keys_in(folder: Path | None) -> set[str]:
    """The keys of all artifacts and drafts in the folder."""
    if folder is None or not folder.is_dir():
        return set()
    with os.scandir(folder) as entries:
        return {found[1] for entry in entries if (found := _NAME.fullmatch(entry.name))}


def refuse_unknown(keys: set[str]) -> None:
    """Raise LedgerError if there are artifacts without a charge."""
    if keys:
        raise LedgerError(
            f"the artifacts' folder holds {len(keys)} that the ledger knows nothing of, such as "
            f"{min(keys)[:12]}...: the ledger was put back to an older copy and lacks charges, or "
            "the folder belongs to another ledger; see docs/ledger.md, Backup"
        )
