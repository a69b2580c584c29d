"""Labels and their snapshots: declared by the curator, never detected.

Every function works inside a transaction that the caller holds.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import append, now
from edgeveil.ledger.schema import SnapshotRow
from edgeveil.ledger.transactions import Transaction

if TYPE_CHECKING:
    from edgeveil.ledger.campaigns import Campaign

SERIES = "history "  # begins the fingerprint of a label whose lists are a series


def plain_label(label: str) -> str:
    """A label without differences that people overlook: case, blanks, Unicode forms."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def all_snapshots(transaction: Transaction) -> list[SnapshotRow]:
    """All snapshots that were declared or used, oldest first."""
    return [SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS)]


def _snapshots_of(transaction: Transaction, label: str) -> list[SnapshotRow]:
    same = plain_label(label)  # "Friends " is not a second graph
    return [row for row in all_snapshots(transaction) if plain_label(row.label) == same]


def current_snapshot(transaction: Transaction, label: str) -> SnapshotRow:
    """A label's current snapshot; before the first release number 1, of no graph (and no `seq`)."""
    rows = _snapshots_of(transaction, label)
    return rows[-1] if rows else SnapshotRow(0, label, 1, None, "")


def last_fingerprint(transaction: Transaction, label: str) -> str | None:
    """The fingerprint that a label was last used with; None before its first release."""
    rows = _snapshots_of(transaction, label)
    used = [row.fingerprint for row in rows if row.fingerprint is not None]
    return used[-1] if used else None


def advance(transaction: Transaction, label: str) -> int:
    """Declare the next snapshot of a label; a snapshot without a release stays the current one."""
    current = current_snapshot(transaction, label)
    if not current.seq:
        raise LedgerError(
            f"nothing was released under the label {label!r} so far, so its first snapshot is "
            "still to come; `edgeveil ledger show` lists the labels"
        )
    if current.fingerprint is not None:
        current = current._replace(number=current.number + 1, fingerprint=None, created=now())
        append(transaction, "snapshots", current)
    return current.number


def snapshot_for(
    transaction: Transaction, campaign: Campaign, n_members: int, *, write: bool
) -> SnapshotRow:
    """The current snapshot of a campaign's label, of its graph; the first use fixes which it is.

    Another graph is refused with an error that depends on edges: for the curator only.
    """
    label, fingerprint = campaign.label, campaign.fingerprint
    current = current_snapshot(transaction, label)
    if fingerprint != current.fingerprint:
        # A renewed series has no fingerprint yet, and stays a series
        begins = current.fingerprint is None and fingerprint.startswith(SERIES)
        if not begins and (last_fingerprint(transaction, label) or "").startswith(SERIES):
            raise LedgerError(
                f"the lists{f' of {label!r}' if label else ''} are a series, which edgeveil "
                "refresh and edgeveil suggest know; anything else needs another label"
            )
        if current.fingerprint is not None:
            raise _another_graph(transaction, current, campaign, n_members)
    if campaign.snapshot not in (None, current.number):
        raise LedgerError(
            f"snapshot {current.number} was declared while rows of snapshot {campaign.snapshot} "
            "were made; what is stored stays, but nothing more is drawn from an earlier snapshot"
        )
    if write and current.fingerprint is None:
        used = current._replace(fingerprint=fingerprint, created=now())
        return append(transaction, "snapshots", used)
    return current


def _another_graph(
    transaction: Transaction, current: SnapshotRow, campaign: Campaign, n_members: int
) -> LedgerError:
    """The refusal of a graph that is not the current snapshot's.

    It says whether the public node set differs as well, by the notes of charges, and what this
    many rows would be charged in a new snapshot.
    """
    of_label = f" of {campaign.label!r}" if campaign.label else ""
    nodes, noted, differs = campaign.note.get("nodes", ""), _nodes_of(transaction, current), "."
    if nodes and noted and nodes != noted:
        here, there = (text.partition(" ")[0] for text in (nodes, noted))
        differs = (
            f": the node set differs ({here} nodes here, {there} there). Did you forget "
            "--nodes (nodes=)?"
        )
    price = ""
    if n_members:
        guarantee = campaign.guarantee(n_members)
        whom = "everybody" if guarantee.model == "public" else "the member"
        if guarantee.model == "joint" and n_members > 1:
            whom = f"each of {n_members:,} members"
        price = f" (this release: epsilon = {guarantee.epsilon:g} to {whom})"
    return LedgerError(
        f"this is not the graph of snapshot {current.number}{of_label}{differs} If "
        "it is the next state of the same graph, declare a new snapshot (edgeveil ledger "
        f"advance, Ledger.advance), from which everything is charged anew{price}. Do so by a "
        "public schedule, such as every Monday: a new one whenever the graph has changed would "
        "reveal the change. Members who stayed must have kept their id: one person under two ids "
        "would have two budgets. (The same data read in another way, such as with directions, is "
        "another graph: give it another label)"
    )


def _nodes_of(transaction: Transaction, snapshot: SnapshotRow) -> str:
    """The node set of a snapshot, from the notes of its charges; "" if they do not have it."""
    for (note,) in transaction.run(sql.NOTES_OF_SNAPSHOT, snapshot.label, snapshot.number):
        return str(json.loads(note).get("nodes", ""))
    return ""
