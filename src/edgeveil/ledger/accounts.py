"""What was charged and what is left, for people.

Every function works inside a transaction that the caller holds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import expect
from edgeveil.ledger.charges import Charges
from edgeveil.ledger.costs import NANO, in_words
from edgeveil.ledger.snapshots import all_snapshots, plain_label
from edgeveil.ledger.tables import Transaction


@dataclass(frozen=True)
class Spend:
    """One line of the ledger, for people."""

    seq: int
    created: str
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int
    pooled_nano: int
    note: dict[str, str]
    released: bool
    campaign: str
    label: str
    snapshot: int
    n_rows: int
    most_nano: int  # what the one who had learnt the most had learnt after it


@dataclass(frozen=True)
class Account:
    """What is spent and left, in nano-epsilons; the properties say it in epsilon."""

    recipient: str | None  # None: whoever has the least left
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


def account(transaction: Transaction, recipient: str | None) -> Account:
    """Read the account of a recipient, or (None) of the one with the least left."""
    charges = Charges(transaction)
    if recipient is None:
        return _account(transaction, charges, None, charges.greatest_total)
    charges.look_up([recipient])
    return _account(transaction, charges, recipient, charges.totals.get(recipient, 0))


def accounts(transaction: Transaction) -> tuple[list[Account], Charges]:
    """Read the accounts of all who got a row of their own, those with the least left first."""
    charges = Charges(transaction)
    totals = sorted(transaction.run(sql.TOTALS), key=lambda row: (-row[1], row[0]))
    expect(
        (totals[0][1] if totals else 0) == charges.greatest_total, "a member's total does not fit"
    )
    return [_account(transaction, charges, name, own) for name, own in totals], charges


def _account(transaction: Transaction, charges: Charges, name: str | None, own: int) -> Account:
    public, pooled, header = charges.public_total, charges.pooled_total, transaction.header
    return Account(name, header.epsilon_nano, public + own, public, header.pooled_nano, pooled)


def spends(transaction: Transaction, recipient: str | None, latest: int | None) -> list[Spend]:
    """List all spends, the latest ones, or those by which one recipient got a row, oldest first."""
    if recipient is not None:
        rows = transaction.run(sql.CHARGES_OF_MEMBER, recipient)
    elif latest is not None:
        rows = transaction.run(sql.LATEST_CHARGES, latest)[::-1]
    else:
        rows = transaction.run(sql.SHOWN_CHARGES)
    return [Spend(*(*row[:7], json.loads(row[7]), bool(row[8]), *row[9:])) for row in rows]


def show(transaction: Transaction, most: int = 20) -> list[str]:
    """Say in a few lines what is spent and left, naming at most so many recipients."""
    header, (everyone, charges) = transaction.header, accounts(transaction)
    cap, public, together = header.epsilon_nano, charges.public_total, charges.pooled_total
    lines = [f"public: {in_words(public)} spent; each recipient may learn {in_words(cap)} in all"]
    for one in everyone[:most]:
        spent = one.spent_nano
        lines.append(f"  {one.recipient!r}: {in_words(spent)} spent, {in_words(cap - spent)} left")
    if len(everyone) > most:
        lines.append(f"  {len(everyone) - most} more, who have at least as much left")
    lines.append(f"  anybody else: {in_words(public)} spent, {in_words(cap - public)} left")
    pooled = f"all recipients together: {in_words(together)} spent"
    if header.pooled_nano is not None:
        left = header.pooled_nano - together
        pooled += f", {in_words(left)} left of {in_words(header.pooled_nano)}"
    lines.append(pooled)
    for row in {plain_label(row.label): row for row in all_snapshots(transaction)}.values():
        since = "declared" if row.fingerprint is None else "in use since"
        lines.append(f"{row.label or 'the graph'}: snapshot {row.number}, {since} {row.created}")
    count = len(spends(transaction, None, None))
    numbered = "1 spend" if count == 1 else f"{count} spends"
    lines.append(f"{numbered}, head {charges.head}" if count else "no spends yet")
    return lines
