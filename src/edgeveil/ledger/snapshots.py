"""Snapshots of a label: declared by the curator, never detected."""

from __future__ import annotations

import unicodedata

from edgeveil.errors import LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import Header, SnapshotRow, now, sealed
from edgeveil.ledger.tables import Transaction


def plain_label(label: str) -> str:
    """A label without what people overlook: case, blanks, ways to write a letter."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def snapshots(transaction: Transaction) -> list[SnapshotRow]:
    """All that was declared and used, oldest first."""
    return [SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS)]


def _current(transaction: Transaction, label: str) -> SnapshotRow | None:
    same = plain_label(label)  # "Friends " is no second graph
    of_label = [row for row in snapshots(transaction) if plain_label(row.label) == same]
    return of_label[-1] if of_label else None


def current_number(transaction: Transaction, label: str) -> int:
    """Number of a label's current snapshot; 1 before its first release."""
    current = _current(transaction, label)
    return 1 if current is None else current.number


def _add_snapshot(
    transaction: Transaction, header: Header, label: str, number: int, fingerprint: str | None
) -> None:
    rows = snapshots(transaction)
    previous = rows[-1].hash if rows else header.hash("snapshots")
    row = SnapshotRow(len(rows) + 1, label, number, fingerprint, now())
    transaction.run(sql.ADD_SNAPSHOT, *sealed(row, previous))


def advance(transaction: Transaction, header: Header, label: str) -> int:
    """Declare the next snapshot of a label; one that nothing was released from stays the next."""
    current = _current(transaction, label)
    if current is None:
        raise LedgerError(
            f"nothing was released under the label {label!r} so far, so its first snapshot is "
            "still to come; `edgeveil ledger show` lists the labels"
        )
    if current.fingerprint is not None:
        _add_snapshot(transaction, header, current.label, current.number + 1, None)
        return current.number + 1
    return current.number


def number_for(
    transaction: Transaction,
    header: Header,
    label: str,
    fingerprint: str,
    *,
    wanted: int | None = None,
    write: bool = False,
) -> int:
    """Number of the label's snapshot; its first use fixes which graph it is.

    That another graph is refused is for the curator's eyes: it depends on the graph.
    """
    current = _current(transaction, label)
    if current is None and header.window is not None and snapshots(transaction):
        raise LedgerError(
            "a ledger with a window is for one label: its window counts the snapshots of one "
            "graph, and those of another have another clock"
        )
    if current is not None and current.fingerprint not in (None, fingerprint):
        of_label = f" of {label!r}" if label else ""
        raise LedgerError(
            f"the graph is another one than snapshot {current.number}{of_label}; if it is the "
            "next state of the same graph, declare a new snapshot (edgeveil ledger advance, "
            "Ledger.advance), and do so by a public schedule, such as every Monday: a new one "
            "just when the graph has changed tells that it has. Whoever stayed must have kept "
            "their id: one person under two ids would have two budgets. (The same data read in "
            "another way, such as with directions, is another graph: give it another label)"
        )
    number = 1 if current is None else current.number
    if wanted not in (None, number):
        raise LedgerError(
            f"snapshot {number} was declared while rows of snapshot {wanted} were made; what is "
            "stored stays, but nothing more is drawn from a state that is over"
        )
    if write and (current is None or current.fingerprint is None):
        _add_snapshot(transaction, header, label, number, fingerprint)
    return number
