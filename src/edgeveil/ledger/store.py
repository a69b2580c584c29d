"""What a ledger needs from its storage; the two ways to store it are `sqlite` and `postgres`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from edgeveil.ledger.tables import Transaction

BUSY_SECONDS = 60


class Store(Protocol):
    """A place for one ledger.

    A store opens a connection for each transaction and closes it afterwards. So there is nothing
    that a fork, a thread or a pickle could share by mistake.
    """

    @property
    def shown(self) -> str:
        """The location for people and pickles: no password."""

    @property
    def artifacts(self) -> Path | None:
        """Folder of the artifacts, if the location implies one."""

    def create(self, header: tuple[Any, ...]) -> None:
        """Make an empty ledger with this header; LedgerError if something is there."""

    def check(self, *, deep: bool = False) -> None:
        """Raise LedgerError unless a ledger is there that can be relied on, undamaged if deep."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Committed on leaving the block, undone by an exception. Writers exclude each other."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a new file."""
