"""Files of the ledger: where SQLite may lie, and artifacts that are there wholly or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from edgeveil.errors import LedgerError

MOUNTINFO = Path("/proc/self/mountinfo")

# File systems shared between machines, or passed through from a host: SQLite's locks and its
# shared memory do not reach from one machine to the other there, so two could spend the same
# budget.
NETWORK_FILE_SYSTEMS = re.compile(
    r"9p|acfs|afs|beegfs|ceph|cifs|coda|drvfs|gfs2?|glusterfs|gpfs|lustre|moosefs|ncpfs|nfs\d?|"
    r"ocfs2|orangefs|panfs|prl_fs|pvfs2|smb\d?|smbfs|vboxsf|virtiofs|vmhgfs|wekafs|"
    r"fuse\.(beegfs|blobfuse2?|ceph(-fuse)?|davfs2?|gcsfuse|glusterfs|goofys|juicefs|mfs|"
    r"moosefs|nfs|rclone|s3fs|smbnetfs|sshfs|vmhgfs-fuse)"
)


def file_system_of(path: Path, mountinfo: str) -> str:
    """Type of the file system `path` lies on, by the longest mount point that contains it.

    `mountinfo` is the text of ``/proc/self/mountinfo`` (see proc(5)). Of two mounts at the same
    place the later one hides the earlier one. Returns "" if nothing fits.
    """
    best, found = -1, ""
    for line in mountinfo.splitlines():
        mount, separator, kind = line.partition(" - ")
        fields = mount.split(" ")
        if not separator or len(fields) < 5:
            continue
        # Blanks and the like stand there as octal numbers.
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        if (path == point or point in path.parents) and len(point.parts) >= best:
            best, found = len(point.parts), kind.split(" ")[0]
    return found


def refuse_network_file_system(path: Path, mountinfo: str | None = None) -> None:
    """Raise LedgerError if `path` lies on a network file system, as far as that can be told."""
    if mountinfo is None:
        mountinfo = MOUNTINFO.read_text(errors="replace") if MOUNTINFO.exists() else ""
    kind = file_system_of(path, mountinfo)
    if str(path).startswith("\\\\"):  # \\server\share on Windows
        kind = "smb"
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise LedgerError(
            f"{path} lies on a network file system ({kind}), where two machines could spend the "
            "same budget; keep the ledger on a local disk, or in PostgreSQL "
            "(postgresql://host/database)"
        )


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    if os.name == "nt":  # no such thing there; NTFS journals renames
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


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
            os.fsync(handle.fileno())
        draft.chmod(0o600)
    except FileNotFoundError:
        return None
    return draft


def publish_draft(draft: Path, artifact: Path) -> None:
    """Move a draft to its place, at once and durably."""
    os.replace(draft, artifact)
    sync_folder(artifact.parent)


def clear_drafts(folder: Path, key: str) -> None:
    """Remove what crashed or second writers of a released key left behind."""
    for desk in folder.glob(f".{key}.*"):
        shutil.rmtree(desk, ignore_errors=True)
