"""Where the file of a ledger may lie: on a local disk, under one name only."""

from __future__ import annotations

import os
import re
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


def mount_of(path: Path, mountinfo: str) -> tuple[Path, str]:
    """The longest mount point that contains `path`, and the type of its file system.

    `mountinfo` is the text of ``/proc/self/mountinfo`` (see proc(5)). Of two mounts at the same
    place the later one hides the earlier one. Gives the root and "" if nothing fits.
    """
    text, best, found = str(path), "/", ""
    for line in mountinfo.splitlines():
        mount, separator, kind = line.partition(" - ")
        fields = mount.split(" ")
        if not separator or len(fields) < 5:
            continue
        # Blanks and the like stand there as octal numbers.
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        inside = text == point or text.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, kind.split(" ")[0]
    return Path(best), found


def refuse_unsafe_place(path: Path, mountinfo: str | None = None) -> None:
    """Raise LedgerError where two users of one ledger might not see each other's spends.

    That is a network file system, whose locks may not reach from machine to machine, and a file
    that has a second name: a hard link, or a mount of this file alone. SQLite finds the journal
    of a transaction that was cut short, and the ledger its artifacts, by the file's name.
    """
    if mountinfo is None:
        mountinfo = MOUNTINFO.read_text(errors="replace") if MOUNTINFO.exists() else ""
    point, kind = mount_of(path, mountinfo)
    if str(path).startswith("\\\\"):  # \\server\share on Windows
        kind = "smb"
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise LedgerError(
            f"{path} lies on a network file system ({kind}), where two machines could spend the "
            "same budget; keep the ledger on a local disk, or in PostgreSQL "
            "(postgresql://host/database)"
        )
    if not os.path.lexists(path):
        return
    if point == path:
        raise LedgerError(
            f"{path} is mounted as a single file, so it has another name elsewhere, and the same "
            "budget could be spent under both; mount the folder that it lies in"
        )
    if path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path} has a second name (a hard link), and the same budget could be spent under "
            "both; remove one of them (find -samefile lists them)"
        )
