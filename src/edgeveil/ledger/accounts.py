"""What was charged and what is left, for people.

Every function works inside a transaction that the caller holds.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from edgeveil._internal.words import counted
from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import Charges, expect
from edgeveil.ledger.generations import all_generations, plain_label
from edgeveil.ledger.prices import NANO, in_words, to_nano
from edgeveil.ledger.transactions import Transaction


@dataclass(frozen=True)
class Charge:
    """One batch of rows that was charged."""

    seq: int
    created: str
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int  # charged to each member (joint), or to everybody (public)
    pooled_nano: int  # charged to all members together
    note: dict[str, str]
    released: bool  # whether its rows are stored
    campaign: str
    label: str
    generation: int
    n_rows: int
    highest_nano: int  # charged to any one member by then, public releases included


def is_window(charge: Charge) -> bool:
    """Whether this records windows of a series, which the charge for the series covers.

    Whether a window opens depends on the member's edges: for the curator only.
    """
    return "until" in charge.note and not charge.epsilon_nano


@dataclass(frozen=True)
class Account:
    """What was charged and what is left, in nano-epsilons; the properties give epsilon."""

    member: str | None  # None: the one with the least left
    cap_nano: int  # for each member
    charged_nano: int  # to this one, public releases included
    public_nano: int  # charged to everybody
    pooled_cap_nano: int | None  # for all members together, if there is such a cap
    pooled_charged_nano: int  # to all members together

    @property
    def charged(self) -> float:
        """Epsilon charged to the member, public releases included."""
        return self.charged_nano / NANO

    @property
    def left(self) -> float:
        """Epsilon that is left for the member."""
        return (self.cap_nano - self.charged_nano) / NANO

    @property
    def public(self) -> float:
        """Epsilon charged to everybody."""
        return self.public_nano / NANO

    @property
    def pooled_charged(self) -> float:
        """Epsilon charged to all members together."""
        return self.pooled_charged_nano / NANO

    @property
    def pooled_left(self) -> float:
        """Epsilon that is left for all members together; inf without such a cap."""
        if self.pooled_cap_nano is None:
            return math.inf
        return (self.pooled_cap_nano - self.pooled_charged_nano) / NANO

    def highest_price(self, count: int, *, pooled: Callable[[float], float] | None = None) -> float:
        """The highest price that allows `count` charges of this member from what is left.

        `pooled` gives what all members together learn from one charge at an epsilon; it is needed
        if the ledger has a cap for that. Whole nano-epsilons: the charges never add up to more than
        is left.
        """
        nano = (self.cap_nano - self.charged_nano) // count
        if pooled is not None and self.pooled_cap_nano is not None:
            left = (self.pooled_cap_nano - self.pooled_charged_nano) // count
            # The largest epsilon, up to 10, at which the cap for all members allows one charge.
            epsilons = range(1, 10 * NANO)
            fitting = bisect_right(epsilons, left, key=lambda e: to_nano(pooled(e / NANO)))
            nano = min(nano, fitting)
        return nano / NANO


def account(transaction: Transaction, member: str | None) -> Account:
    """Read the account of a member, or (None) of the one with the least left."""
    charges = Charges(transaction)
    if member is None:
        return _account(transaction, charges, None, charges.greatest_total)
    charges.look_up([member])
    return _account(transaction, charges, member, charges.totals[member])


def accounts(transaction: Transaction) -> list[Account]:
    """Read the accounts of all members who were charged for rows, the least left first."""
    charges = Charges(transaction)
    totals = sorted(transaction.run(sql.TOTALS), key=lambda row: (-row[1], row[0]))
    greatest = totals[0][1] if totals else 0
    expect(greatest == charges.greatest_total, "a member's total does not fit")
    return [_account(transaction, charges, member, total) for member, total in totals]


def _account(transaction: Transaction, charges: Charges, member: str | None, own: int) -> Account:
    public, pooled, header = charges.public_total, charges.pooled_total, transaction.header
    return Account(member, header.epsilon_nano, public + own, public, header.pooled_nano, pooled)


def list_charges(transaction: Transaction, member: str | None, latest: int | None) -> list[Charge]:
    """List all charges, the latest ones, or those that count for one member, oldest first."""
    if member is not None:
        rows = transaction.run(sql.CHARGES_OF_MEMBER, member)
    elif latest is not None:
        rows = transaction.run(sql.LATEST_CHARGES, latest)[::-1]
    else:
        rows = transaction.run(sql.SHOWN_CHARGES)
    return [Charge(*(*row[:7], json.loads(row[7]), bool(row[8]), *row[9:])) for row in rows]


def show(transaction: Transaction, most: int = 20) -> list[str]:
    """What was charged and what is left, as lines of text, for at most `most` members."""
    listed, charges = accounts(transaction), Charges(transaction)
    anybody = _account(transaction, charges, None, 0)
    cap, pooled_cap = anybody.cap_nano, anybody.pooled_cap_nano

    def balance(charged: int) -> str:
        return f"{in_words(charged)} charged, {in_words(cap - charged)} left"

    lines = [f"each member may be charged {in_words(cap)} in all"]
    lines += [f"  {row.member!r}: {balance(row.charged_nano)}" for row in listed[:most]]
    if len(listed) > most:
        lines.append(f"  {counted(len(listed) - most, 'more member')}, with at least as much left")
    lines.append(f"  anybody else: {balance(anybody.public_nano)} (public releases)")
    pooled = f"all members together: {in_words(anybody.pooled_charged_nano)} charged"
    if pooled_cap is not None:
        left = in_words(pooled_cap - anybody.pooled_charged_nano)
        pooled += f", {left} left of {in_words(pooled_cap)}"
    lines.append(pooled)
    current = {plain_label(row.label): row for row in all_generations(transaction)}
    for row in current.values():
        since = "declared" if row.fingerprint is None else "in use since"
        lines.append(f"{row.label or 'the graph'}: generation {row.number}, {since} {row.created}")
    count = sum(not is_window(charge) for charge in list_charges(transaction, None, None))
    lines.append(f"{counted(count, 'charge')}, head {charges.head}" if count else "no charges yet")
    return lines
