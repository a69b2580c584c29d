"""A ledger in a SQLite file, on a local disk and under one name only."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edgeveil._internal.files import sync_folder
from edgeveil.errors import LedgerError
from edgeveil.ledger import transactions
from edgeveil.ledger.transactions import BUSY_SECONDS, Transaction, UnusableError

_APPLICATION_ID = 0x45_64_4C_67  # "EdLg", in the header of the file
MOUNTINFO = Path("/proc/self/mountinfo")

# File systems shared between machines, or passed through from a host: SQLite's locks do not reach
# from one machine to the other there, so the same budget could be used twice.
NETWORK_FILE_SYSTEMS = re.compile(
    r"9p|acfs|afs|beegfs|ceph|cifs|coda|drvfs|gfs2?|glusterfs|gpfs|lustre|moosefs|ncpfs|nfs\d?|"
    r"ocfs2|orangefs|panfs|prl_fs|pvfs2|smb\d?|smbfs|vboxsf|virtiofs|vmhgfs|wekafs|"
    r"fuse\.(beegfs|blobfuse2?|ceph(-fuse)?|davfs2?|gcsfuse|glusterfs|goofys|juicefs|mfs|"
    r"moosefs|nfs|rclone|s3fs|smbnetfs|sshfs|vmhgfs-fuse)"
)


class SqliteStore:
    """A ledger in a SQLite file, for one machine.

    With a rollback journal, not a write-ahead log. So what is committed is in the file itself, and
    no copy of the file lacks the latest charges; and writers lock the file (its inode), not a
    second file beside the name under which it was opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.shown = str(self.path)
        self.artifacts: Path | None = self.path.with_name(self.path.name + ".artifacts")

    def create(self, header: tuple[Any, ...]) -> None:
        """Make the file and fill it in one transaction."""
        with self._new_file(self.path), _connected(self.path) as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            with _begun(connection, write=True) as transaction:
                transactions.create(transaction, header)

    def session(self) -> AbstractContextManager[None]:
        """One connection for all transactions of this thread within the block."""
        return transactions.session(self._file())

    def _file(self) -> tuple[int, int]:
        """Which file it is, whatever its name: another file there is another connection."""
        try:
            status = self.path.stat()
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other.

        LedgerError unless a ledger is there.
        """
        refuse_unsafe_place(self.path)
        if not self.path.is_file():
            raise LedgerError(
                f"there is no ledger at {self.path}; edgeveil ledger create makes one"
            )
        with (
            _explained(self.path),
            transactions.connection(self._file(), lambda: _connect(self.path)) as connection,
        ):
            if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                raise LedgerError(f"{self.path} is not an edgeveil ledger")
            # A write-ahead log that somebody has switched on is written back and removed.
            if connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
                raise LedgerError(f"the ledger {self.path} cannot have a rollback journal")
            with _begun(connection, write=write) as transaction:
                yield transaction

    def check_pages(self, transaction: Transaction) -> None:
        """LedgerError if SQLite finds damage, such as an index that lacks rows of its table."""
        if transaction.run("PRAGMA integrity_check(1)") != [("ok",)]:
            raise LedgerError(f"the ledger {self.path} is damaged: SQLite's own check fails")

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a new file, with SQLite's own means."""
        refuse_unsafe_place(self.path)
        target = target.expanduser().resolve()
        with (
            self._new_file(target),
            _connected(self.path) as source,
            _connected(target) as copy,
        ):
            source.backup(copy)

    @contextmanager
    def _new_file(self, path: Path) -> Iterator[None]:
        """Make an empty file to be filled within the block; it goes if that fails."""
        refuse_unsafe_place(path)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists already; open it, or choose another name") from None
        except OSError as error:
            raise LedgerError(f"cannot create {path}: {error.strerror}") from error
        try:
            yield
            sync_folder(path.parent)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UnusableError(f"cannot use the ledger {path}: {error}") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path} is not an edgeveil ledger or is damaged: {error}") from error


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for this block alone."""
    with _explained(path), closing(_connect(path)) as connection:
        yield connection


def _connect(path: Path) -> sqlite3.Connection:
    # mode=rw: a file that has gone is an error, never an empty new ledger.
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are begun and committed by us alone
    )
    try:
        # A commit returns only when the file is on disk and the journal's name is gone from it,
        # even if the power fails.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache too
        connection.execute("PRAGMA secure_delete = ON")  # erased secrets become zeros
        connection.execute("PRAGMA temp_store = MEMORY")  # no page of ours in other files
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -65536")  # KiB; for very many members
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _begun(connection: sqlite3.Connection, *, write: bool) -> Iterator[Transaction]:
    """A transaction; closing the connection undoes one that is not committed."""
    transaction = Transaction(connection, mark="?")
    transaction.run("BEGIN IMMEDIATE" if write else "BEGIN")
    yield transaction
    transaction.commit()


def mount_of(path: Path, mountinfo: str) -> tuple[Path, str]:
    """The longest mount point that contains `path`, and the type of its file system.

    `mountinfo` is the text of ``/proc/self/mountinfo`` (see proc(5)). Of two mounts at the same
    place the later one hides the earlier one. Gives the root and "" if nothing fits.
    """
    text, best, best_kind = str(path), "/", ""
    for line in mountinfo.splitlines():
        mount, separator, kind = line.partition(" - ")
        fields = mount.split(" ")
        if not separator or len(fields) < 5:
            continue
        # Blanks and the like stand there as octal numbers.
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        inside = text == point or text.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, best_kind = point, kind.split(" ")[0]
    return Path(best), best_kind


def refuse_unsafe_place(path: Path, mountinfo: str | None = None) -> None:
    """Raise LedgerError where two users of one ledger might not see each other's charges.

    That is a network file system, whose locks may not work between machines, and a file with a
    second name (a hard link, or a mount of this file alone): SQLite finds the journal of an
    interrupted transaction, and the ledger its artifacts, by the file's name.
    """
    if mountinfo is None:
        mountinfo = MOUNTINFO.read_text(errors="replace") if MOUNTINFO.exists() else ""
    point, kind = mount_of(path, mountinfo)
    if str(path).startswith("\\\\"):  # \\server\share on Windows
        kind = "smb"
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise LedgerError(
            f"{path} lies on a network file system ({kind}), where two machines could use the "
            "same budget; keep the ledger on a local disk, or in PostgreSQL "
            "(postgresql://host/database)"
        )
    if not path.is_file():
        return
    if point == path:
        raise LedgerError(
            f"{path} is mounted as a single file, so it has another name elsewhere, and the same "
            "budget could be used under both; mount the folder that it lies in"
        )
    if path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path} has a second name (a hard link), and the same budget could be used under "
            "both; remove one of them (find -samefile lists them)"
        )
