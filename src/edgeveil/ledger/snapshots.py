"""Labels and their snapshots: declared by the curator, never detected.

Every function works inside a transaction that the caller holds.
"""

from __future__ import annotations

import json
import unicodedata

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import chained, first_hash, now
from edgeveil.ledger.schema import SnapshotRow, Transaction

SERIES = "history "  # begins the fingerprint of a label whose lists are a series


def plain_label(label: str) -> str:
    """A label without differences that people overlook: case, blanks, Unicode forms."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def all_snapshots(transaction: Transaction) -> list[SnapshotRow]:
    """All snapshots that were declared or used, oldest first."""
    return [SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS)]


def current_snapshot(transaction: Transaction, label: str) -> SnapshotRow | None:
    """A label's current snapshot; None before its first release."""
    same = plain_label(label)  # "Friends " is not a second graph
    of_label = [row for row in all_snapshots(transaction) if plain_label(row.label) == same]
    return of_label[-1] if of_label else None


def last_fingerprint(transaction: Transaction, label: str) -> str | None:
    """The fingerprint that a label was last used with; None before its first release."""
    same = plain_label(label)
    of_label = [row for row in all_snapshots(transaction) if plain_label(row.label) == same]
    used = [row.fingerprint for row in of_label if row.fingerprint is not None]
    return used[-1] if used else None


def _add_snapshot(transaction: Transaction, row: SnapshotRow) -> None:
    rows = all_snapshots(transaction)
    previous = rows[-1].hash if rows else first_hash(transaction.header, "snapshots")
    row = row._replace(seq=len(rows) + 1, created=now())
    transaction.insert("snapshots", [chained(row, previous)])


def advance(transaction: Transaction, label: str) -> int:
    """Declare the next snapshot of a label; a snapshot without a release stays the current one."""
    current = current_snapshot(transaction, label)
    if current is None:
        raise LedgerError(
            f"nothing was released under the label {label!r} so far, so its first snapshot is "
            "still to come; `edgeveil ledger show` lists the labels"
        )
    if current.fingerprint is not None:
        current = current._replace(number=current.number + 1, fingerprint=None)
        _add_snapshot(transaction, current)
    return current.number


def snapshot_for(
    transaction: Transaction,
    label: str,
    fingerprint: str,
    *,
    wanted: int | None = None,
    write: bool = False,
    nodes: str = "",
    price: str = "",
) -> SnapshotRow:
    """The label's current snapshot, of this graph; its first use fixes which graph it is.

    Another graph is refused with an error that depends on edges: for the curator only. The error
    says whether the public node set (`nodes`, as in notes of charges) differs as well, and the
    price of a new snapshot (`price`), where these are known.
    """
    found = current_snapshot(transaction, label) or SnapshotRow(0, label, 1, None, "")
    of_label = f" of {label!r}" if label else ""
    last = last_fingerprint(transaction, label) or ""
    # A renewed series has no fingerprint yet, and stays a series
    begins = found.fingerprint is None and fingerprint.startswith(SERIES)
    if last.startswith(SERIES) and fingerprint != found.fingerprint and not begins:
        raise LedgerError(
            f"the lists{of_label} are a series, which edgeveil refresh and edgeveil suggest know; "
            "anything else needs another label"
        )
    if found.fingerprint not in (None, fingerprint):
        known = _nodes_of(transaction, found)
        differs = ""
        if nodes and known and nodes != known:
            here, there = (text.partition(" ")[0] for text in (nodes, known))
            differs = (
                f": the node set differs ({here} nodes here, {there} there). Did you forget "
                "--nodes (nodes=)?"
            )
        raise LedgerError(
            f"this is not the graph of snapshot {found.number}{of_label}{differs or '.'} If "
            "it is the next state of the same graph, declare a new snapshot (edgeveil ledger "
            "advance, Ledger.advance), from which everything is charged anew"
            f"{price and f' (this release: {price})'}. Do so by a public schedule, such as every "
            "Monday: a new one whenever the graph has changed would reveal the change. Members who "
            "stayed must have kept their id: one person under two ids would have two budgets. (The "
            "same data read in another way, such as with directions, is another graph: give it "
            "another label)"
        )
    if wanted not in (None, found.number):
        raise LedgerError(
            f"snapshot {found.number} was declared while rows of snapshot {wanted} were made; what "
            "is stored stays, but nothing more is drawn from an earlier snapshot"
        )
    used = found._replace(fingerprint=fingerprint)
    if write and found.fingerprint is None:
        _add_snapshot(transaction, used)
    return used


def _nodes_of(transaction: Transaction, snapshot: SnapshotRow) -> str:
    """The node set of a snapshot, from the notes of its charges; "" if they do not have it."""
    for (note,) in transaction.run(sql.NOTES_OF_SNAPSHOT, snapshot.label, snapshot.number):
        return str(json.loads(note).get("nodes", ""))
    return ""
