"""The book of a ledger: what is spent and left, and which snapshots of which graphs there were.

Every function works inside a transaction that the caller holds. Snapshots of a label are declared
by the curator, never detected.
"""

from __future__ import annotations

import json
import math
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from edgeveil.errors import LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import expect, first_hash, now, seal_of, sealed
from edgeveil.ledger.costs import NANO, in_words
from edgeveil.ledger.tables import SnapshotRow, SpendRow, Transaction


@dataclass(frozen=True)
class Spend:
    """One line of the ledger, for people. Before version 3 there was nothing after `released`."""

    seq: int
    created: str
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int
    pooled_nano: int
    note: dict[str, str]
    released: bool
    campaign: str | None
    label: str | None
    snapshot: int | None
    n_rows: int | None
    most_nano: int | None  # what the one who had learnt the most had learnt after it


@dataclass(frozen=True)
class Account:
    """What is spent and left, in nano-epsilons; the properties say it in epsilon.

    In a ledger with a window all of it is about the last snapshots.
    """

    recipient: str | None  # None: nobody got a row so far, and only public releases count
    cap_nano: int  # for each recipient,
    spent_nano: int  # and what this one has learned, public releases included
    public_nano: int  # what everybody has learned
    pooled_cap_nano: int | None  # for all recipients together, if there is such a cap,
    pooled_spent_nano: int  # and what they have learned

    @property
    def spent(self) -> float:
        """What the recipient has learned, in epsilon."""
        return self.spent_nano / NANO

    @property
    def left(self) -> float:
        """What the recipient may still learn, in epsilon."""
        return (self.cap_nano - self.spent_nano) / NANO

    @property
    def public(self) -> float:
        """What everybody has learned, in epsilon."""
        return self.public_nano / NANO

    @property
    def pooled_spent(self) -> float:
        """What all recipients together have learned, in epsilon."""
        return self.pooled_spent_nano / NANO

    @property
    def pooled_left(self) -> float:
        """What all recipients together may still learn, in epsilon; inf without such a cap."""
        if self.pooled_cap_nano is None:
            return math.inf
        return (self.pooled_cap_nano - self.pooled_spent_nano) / NANO


class Standing(NamedTuple):
    """What was spent before a charge, checked against the chain."""

    last: SpendRow | None
    hash: str
    greatest: int  # the largest total of any recipient
    totals: dict[str, int]  # of the recipients asked for
    past: dict[str, int]  # of that, what has left the window
    public: int  # what everybody has learned within the window
    pooled: int

    @property
    def pooled_ever(self) -> int:
        """What all recipients together have learned, window or not."""
        return self.last.pooled_total if self.last else 0

    def of(self, name: str) -> int:
        """What a recipient's own rows have cost within the window."""
        return self.totals.get(name, 0) - self.past.get(name, 0)


def standing(transaction: Transaction, names: list[str], left_window: int) -> Standing:
    """Read the running totals that a charge of these recipients goes by.

    They are not believed: the last spend must continue the chain, and the latest total of every
    one of the recipients must carry the seal that it got from its spend. What a spend before
    says is for `chain.audit`; so the work is that of the charge, however long the ledger is.
    Running totals make the sum over a window a difference: spends up to `left_window` are out.
    """
    rows = [SpendRow(*row) for row in transaction.run(sql.LAST_SPENDS)]
    last, previous = rows[0] if rows else None, first_hash(transaction.header, "spends")
    if last:
        previous = rows[1].hash if len(rows) > 1 else previous
        expect(last == sealed(last, previous), f"spend {last.seq} was changed")
    totals = _totals(transaction, names, last.seq if last else 0)
    past = _totals(transaction, names, left_window) if left_window else {}
    greatest = max((row[1] for row in transaction.run(sql.GREATEST_TOTAL)), default=0)
    if last and last.greatest_total is not None:
        expect(greatest == last.greatest_total, "the running total of a recipient was changed")
    gone = _totals_at(transaction, left_window) if left_window else (0, 0)
    public, pooled = (last.public_total, last.pooled_total) if last else (0, 0)
    head = last.hash if last else previous
    return Standing(last, head, greatest, totals, past, public - gone[0], pooled - gone[1])


def _totals_at(transaction: Transaction, seq: int) -> tuple[int, int]:
    """The running totals for everybody and for the pool after a spend that continues the chain."""
    rows = transaction.among(sql.SPENDS_AT, [seq - 1, seq])
    *before, spend = sorted(SpendRow(*row) for row in rows)
    previous = before[0].hash if before else first_hash(transaction.header, "spends")
    expect(spend == sealed(spend, previous), f"spend {seq} was changed")
    return spend.public_total, spend.pooled_total


def _totals(transaction: Transaction, names: list[str], up_to: int) -> dict[str, int]:
    """The running totals of some recipients after a spend, each with its seal."""
    totals = {}
    for name, nano, total, seal, spend_hash in transaction.among(sql.LATEST_OF, names, up_to):
        fits = seal == seal_of(spend_hash, name, nano, total)
        expect(fits, "the running total of a recipient was changed")
        totals[name] = total
    return totals


def left_window_of(transaction: Transaction, snapshot: int | None = None) -> int:
    """The last spend that no longer counts; 0 without a window. There is one label then."""
    window = transaction.header.window
    if window is None:
        return 0
    if snapshot is None:
        snapshot = max((row.number for row in snapshots(transaction)), default=1)
    found = transaction.run(sql.LAST_UP_TO_SNAPSHOT, snapshot - window)
    return int(found[0][0] or 0)


def least_left(transaction: Transaction, left_window: int) -> tuple[str | None, int]:
    """Who has learned the most by rows of their own, and how much."""
    if transaction.header.window is None:
        rows = transaction.run(sql.GREATEST_TOTAL)
    else:
        rows = sorted(transaction.run(sql.TOTALS_SINCE, left_window), key=lambda row: -row[1])
    return rows[0] if rows and rows[0][1] else (None, 0)


def account(transaction: Transaction, recipient: str | None) -> Account:
    """Read the account of a recipient, or (None) of the one with the least left."""
    bound = left_window_of(transaction)
    current = standing(transaction, [] if recipient is None else [recipient], bound)
    if recipient is None:
        return _account(transaction, current, *least_left(transaction, bound))
    return _account(transaction, current, recipient, current.of(recipient))


def accounts(transaction: Transaction) -> tuple[list[Account], Standing]:
    """Read the accounts of all who got a row of their own, those with the least left first."""
    bound = left_window_of(transaction)
    current = standing(transaction, [], bound)
    totals = sorted(transaction.run(sql.TOTALS_SINCE, bound), key=lambda row: (-row[1], row[0]))
    return [_account(transaction, current, name, own) for name, own in totals], current


def _account(transaction: Transaction, current: Standing, name: str | None, own: int) -> Account:
    spent, public, header = current.public + own, current.public, transaction.header
    return Account(name, header.epsilon_nano, spent, public, header.pooled_nano, current.pooled)


def spends(transaction: Transaction, recipient: str | None, latest: int | None) -> list[Spend]:
    """List all spends, the latest ones, or those by which one recipient got a row, oldest first."""
    if recipient is not None:
        rows = transaction.run(sql.SPENDS_OF_RECIPIENT, recipient)
    elif latest is not None:
        rows = transaction.run(sql.LATEST_SPENDS, latest)[::-1]
    else:
        rows = transaction.run(sql.SHOWN_SPENDS)
    return [Spend(*(*row[:7], json.loads(row[7]), bool(row[8]), *row[9:])) for row in rows]


def show(transaction: Transaction, most: int = 20) -> list[str]:
    """Say in a few lines what is spent and left, naming at most so many recipients."""
    header, (everyone, current) = transaction.header, accounts(transaction)
    cap, public = header.epsilon_nano, current.public
    lines = [f"public: {in_words(public)} spent; each recipient may learn {in_words(cap)} in all"]
    if header.window is not None:
        lines[0] = lines[0].replace("in all", f"within any {header.window} snapshots")
        lines.append(
            "what happens to an edge within these is protected, not one that stays for ever"
        )
    for one in everyone[:most]:
        spent = one.spent_nano
        lines.append(f"  {one.recipient!r}: {in_words(spent)} spent, {in_words(cap - spent)} left")
    if len(everyone) > most:
        lines.append(f"  {len(everyone) - most} more, who have at least as much left")
    lines.append(f"  anybody else: {in_words(public)} spent, {in_words(cap - public)} left")
    pooled = f"all recipients together: {in_words(current.pooled)} spent"
    if header.pooled_nano is not None:
        left = header.pooled_nano - current.pooled
        pooled += f", {in_words(left)} left of {in_words(header.pooled_nano)}"
    lines.append(pooled)
    for row in {plain_label(row.label): row for row in snapshots(transaction)}.values():
        since = "declared" if row.fingerprint is None else "in use since"
        lines.append(f"{row.label or 'the graph'}: snapshot {row.number}, {since} {row.created}")
    count = len(spends(transaction, None, None))
    numbered = "1 spend" if count == 1 else f"{count} spends"
    lines.append(f"{numbered}, head {current.hash}" if count else "no spends yet")
    return lines


# -- snapshots ----------------------------------------------------------------------------


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
    transaction: Transaction, label: str, number: int, fingerprint: str | None
) -> None:
    rows = snapshots(transaction)
    previous = rows[-1].hash if rows else first_hash(transaction.header, "snapshots")
    row = SnapshotRow(len(rows) + 1, label, number, fingerprint, now())
    transaction.fill("snapshots", [sealed(row, previous)])


def advance(transaction: Transaction, label: str) -> int:
    """Declare the next snapshot of a label; one that nothing was released from stays the next."""
    current = _current(transaction, label)
    if current is None:
        raise LedgerError(
            f"nothing was released under the label {label!r} so far, so its first snapshot is "
            "still to come; `edgeveil ledger show` lists the labels"
        )
    if current.fingerprint is not None:
        _add_snapshot(transaction, current.label, current.number + 1, None)
        return current.number + 1
    return current.number


def number_for(
    transaction: Transaction, label: str, fingerprint: str, *, wanted: int | None, write: bool
) -> int:
    """Number of the label's snapshot; its first use fixes which graph it is.

    That another graph is refused is for the curator's eyes: it depends on the graph.
    """
    current = _current(transaction, label)
    if current is None and transaction.header.window is not None and snapshots(transaction):
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
        _add_snapshot(transaction, label, number, fingerprint)
    return number
