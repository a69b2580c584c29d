"""Labels and the generations of their graphs: declared by the curator, never detected.

A generation is the graph of a label from one declaration to the next. Everything is charged anew
in each.

Every function works inside a transaction that the caller holds.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import append, now
from edgeveil.ledger.schema import GenerationRow
from edgeveil.ledger.transactions import Transaction

if TYPE_CHECKING:
    from edgeveil.ledger.campaigns import Campaign

SERIES = "history "  # begins the fingerprint of a label whose lists are a series


def plain_label(label: str) -> str:
    """A label without differences that people overlook: case, blanks, Unicode forms."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def all_generations(transaction: Transaction) -> list[GenerationRow]:
    """All generations that were declared or used, oldest first."""
    return [GenerationRow(*row) for row in transaction.run(sql.GET_GENERATIONS)]


def _generations_of(transaction: Transaction, label: str) -> list[GenerationRow]:
    same = plain_label(label)  # "Friends " is not a second graph
    return [row for row in all_generations(transaction) if plain_label(row.label) == same]


def current_generation(transaction: Transaction, label: str) -> GenerationRow:
    """The current generation; before a label's first release number 1, of no graph (nor `seq`)."""
    rows = _generations_of(transaction, label)
    return rows[-1] if rows else GenerationRow(0, label, 1, None, "")


def last_fingerprint(transaction: Transaction, label: str) -> str | None:
    """The fingerprint that a label was last used with; None before its first release."""
    rows = _generations_of(transaction, label)
    used = [row.fingerprint for row in rows if row.fingerprint is not None]
    return used[-1] if used else None


def advance(transaction: Transaction, label: str) -> int:
    """Declare the next generation of a label; one without a release stays the current one."""
    current = current_generation(transaction, label)
    if not current.seq:
        raise LedgerError(
            f"nothing was released under the label {label!r} so far, so its first generation is "
            "still to come; `edgeveil ledger show` lists the labels"
        )
    if current.fingerprint is not None:
        current = current._replace(number=current.number + 1, fingerprint=None, created=now())
        append(transaction, "snapshots", current)
    return current.number


def generation_for(
    transaction: Transaction, campaign: Campaign, n_members: int, *, write: bool
) -> GenerationRow:
    """The current generation of a campaign's label, of its graph; the first use fixes which it is.

    Another graph is refused with an error that depends on edges: for the curator only.
    """
    label, fingerprint = campaign.label, campaign.fingerprint
    current = current_generation(transaction, label)
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
    if campaign.generation not in (None, current.number):
        raise LedgerError(
            f"these rows are of generation {campaign.generation!r}, and generation "
            f"{current.number} is the current one: nothing more is drawn in another, and "
            "what is stored stays"
        )
    if write and current.fingerprint is None:
        used = current._replace(fingerprint=fingerprint, created=now())
        return append(transaction, "snapshots", used)
    return current


def _another_graph(
    transaction: Transaction, current: GenerationRow, campaign: Campaign, n_members: int
) -> LedgerError:
    """The refusal of a graph that is not the current generation's.

    It says whether the public node set differs as well, by the notes of charges, and what this
    many rows would be charged in a new generation.
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
        f"this is not the graph of generation {current.number}{of_label}{differs} If "
        "it is the next state of the same graph, declare a new generation (edgeveil ledger "
        f"advance, Ledger.advance), in which everything is charged anew{price}. Do so by a "
        "public schedule, such as every Monday: a new one whenever the graph has changed would "
        "reveal the change. Members who stayed must have kept their id: one person under two ids "
        "would have two budgets. (The same data read in another way, such as with directions, is "
        "another graph: give it another label)"
    )


def _nodes_of(transaction: Transaction, generation: GenerationRow) -> str:
    """The node set of a generation, from the notes of its charges; "" if they do not have it."""
    for (note,) in transaction.run(sql.NOTES_OF_GENERATION, generation.label, generation.number):
        return str(json.loads(note).get("nodes", ""))
    return ""
