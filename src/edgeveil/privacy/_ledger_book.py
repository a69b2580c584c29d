"""The book of a ledger: what is in it, what may be added, and adding it.

Every function works inside a transaction that the caller holds; for those that add something it
must be a writing one, so that nothing changes between the check and the entry.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from edgeveil.errors import BudgetError
from edgeveil.privacy import _ledger_sql as sql
from edgeveil.privacy._ledger_chain import Header, ReleaseRow, SpendRow
from edgeveil.privacy._ledger_charge import MOST_NANO, NANO, Charge, in_words
from edgeveil.privacy._ledger_store import Transaction

SECRET_BYTES = 32
LOOKED_UP_AT_ONCE = 500  # below every database's limit of parameters


@dataclass(frozen=True)
class Account:
    """What is spent and left, in nano-epsilons; the properties say it in epsilon.

    Attributes
    ----------
    recipient : str or None
        Whose account; None if nobody got a row so far and only public releases count.
    cap_nano, spent_nano : int
        The cap for each recipient, and what this one has learned (public releases included).
    public_nano : int
        What everybody has learned.
    pooled_cap_nano, pooled_spent_nano : int or None, int
        The cap for all recipients together, if there is one, and what they have learned.
    """

    recipient: str | None
    cap_nano: int
    spent_nano: int
    public_nano: int
    pooled_cap_nano: int | None
    pooled_spent_nano: int

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


@dataclass(frozen=True)
class Price:
    """What a release would cost, and what is left before it, in nano-epsilons.

    Attributes
    ----------
    state : {"new", "reserved", "released"}
        Whether the release was charged before, or is stored already: then it costs nothing.
    whom : str or None
        The recipient who would have the least left; None: everybody, a public release.
    n_recipients : int
        How many recipients pay; 0 for a public release.
    needs_nano, left_nano : int
        The price for `whom`, and what is left for them.
    pooled_needs_nano, pooled_left_nano : int, int or None
        The price for all recipients together, and what is left for them, if there is a cap.
    short : str
        Empty, or in words why it would be refused.
    """

    state: Literal["new", "reserved", "released"]
    whom: str | None
    n_recipients: int
    needs_nano: int
    left_nano: int
    pooled_needs_nano: int
    pooled_left_nano: int | None
    short: str

    @property
    def epsilon(self) -> float:
        """The price in epsilon: 0 for what was charged before."""
        return 0.0 if self.state != "new" else self.needs_nano / NANO

    @property
    def left(self) -> float:
        """What is left before the release, in epsilon."""
        return self.left_nano / NANO


def account(transaction: Transaction, header: Header, recipient: str | None) -> Account:
    """Read the account of a recipient, or (None) of the one with the least left."""
    last = last_spend(transaction)
    public, pooled = (last.public_total, last.pooled_total) if last else (0, 0)
    if recipient is None:
        rows = transaction.run(sql.GREATEST_TOTAL)
        recipient, own = rows[0] if rows else (None, 0)
    else:
        own = totals_of(transaction, [recipient]).get(recipient, 0)
    return Account(recipient, header.epsilon_nano, public + own, public, header.pooled_nano, pooled)


def accounts(transaction: Transaction, header: Header) -> list[Account]:
    """Read the accounts of all who got a row, those with the least left first."""
    last = last_spend(transaction)
    public, pooled = (last.public_total, last.pooled_total) if last else (0, 0)
    return [
        Account(name, header.epsilon_nano, public + own, public, header.pooled_nano, pooled)
        for own, name in sorted(
            ((total, name) for name, total in transaction.run(sql.ALL_TOTALS)),
            key=lambda pair: (-pair[0], pair[1]),
        )
    ]


def show(transaction: Transaction, header: Header, most: int) -> list[str]:
    """Say in a few lines what is spent and left, naming at most so many recipients."""
    everyone, worst = accounts(transaction, header), account(transaction, header, None)
    head = last_spend(transaction)
    cap, public = worst.cap_nano, worst.public_nano
    lines = [f"public: {in_words(public)} spent; each recipient may learn {in_words(cap)} in all"]
    for one in everyone[:most]:
        spent = one.spent_nano
        lines.append(f"  {one.recipient!r}: {in_words(spent)} spent, {in_words(cap - spent)} left")
    if len(everyone) > most:
        lines.append(f"  {len(everyone) - most} more, who have at least as much left")
    lines.append(f"  anybody else: {in_words(public)} spent, {in_words(cap - public)} left")
    pooled = f"all recipients together: {in_words(worst.pooled_spent_nano)} spent"
    if worst.pooled_cap_nano is not None:
        left = worst.pooled_cap_nano - worst.pooled_spent_nano
        pooled += f", {in_words(left)} left of {in_words(worst.pooled_cap_nano)}"
    lines.append(pooled)
    if head is None:
        lines.append("no spends yet")
    else:
        spends = "1 spend" if head.seq == 1 else f"{head.seq} spends"
        lines.append(f"{spends}, head {head.hash}")
    return lines


def price(transaction: Transaction, header: Header, key: str, charge: Charge) -> Price:
    """What the charge would cost under this key; nothing is written."""
    last = last_spend(transaction)
    public, pooled = (last.public_total, last.pooled_total) if last else (0, 0)
    totals = totals_of(transaction, list(charge.per_recipient))
    state: Literal["new", "reserved", "released"] = "new"
    if transaction.run(sql.SPEND_OF_KEY, key):
        state = "released" if transaction.run(sql.RELEASE_OF_KEY, key) else "reserved"
    return _price(transaction, header, charge, public, pooled, totals, state)


def last_spend(transaction: Transaction) -> SpendRow | None:
    """Read the latest spend, if there is one."""
    rows = transaction.run(sql.LAST_SPEND)
    return SpendRow(*rows[0]) if rows else None


def totals_of(transaction: Transaction, names: list[str]) -> dict[str, int]:
    """Read the running totals of those among `names` who got something before."""
    found: dict[str, int] = {}
    for start in range(0, len(names), LOOKED_UP_AT_ONCE):
        some = names[start : start + LOOKED_UP_AT_ONCE]
        found |= dict(transaction.run(sql.totals_of(len(some)), *some))
    return found


def add_spend(
    transaction: Transaction,
    header: Header,
    key: str,
    charge: Charge,
    note: str,
    fingerprint: str,
) -> None:
    """Add a spend, its recipients and its secret; BudgetError if a cap forbids it."""
    before = last_spend(transaction)
    public, pooled = (before.public_total, before.pooled_total) if before else (0, 0)
    totals = totals_of(transaction, list(charge.per_recipient))
    if short := _price(transaction, header, charge, public, pooled, totals).short:
        raise BudgetError(short)
    spend = SpendRow(
        seq=before.seq + 1 if before else 1,
        key=key,
        fingerprint=fingerprint,
        model=charge.model,
        epsilon_nano=charge.epsilon_nano,
        pooled_nano=charge.pooled_nano,
        charge=charge.digest,
        note=note,
        created=now(),
        public_total=public + (charge.epsilon_nano if charge.model == "public" else 0),
        pooled_total=pooled + charge.pooled_nano,
    ).sealed(before.hash if before else header.hash("spends"))
    transaction.run(sql.ADD_SPEND, *spend)
    if charge.per_recipient:
        costs = charge.per_recipient.items()
        transaction.many(
            sql.ADD_RECIPIENT_SPEND,
            [(spend.seq, name, nano, totals.get(name, 0) + nano) for name, nano in costs],
        )
    transaction.run(sql.ADD_SECRET, key, secrets.token_hex(SECRET_BYTES))


def add_release(transaction: Transaction, header: Header, key: str, name: str, sha256: str) -> None:
    """Add a release and erase its secret."""
    last = transaction.run(sql.LAST_RELEASE)
    seq, previous = last[0] if last else (0, header.hash("releases"))
    row = ReleaseRow(seq + 1, key, name, sha256, now()).sealed(previous)
    transaction.run(sql.ADD_RELEASE, *row)
    transaction.run(sql.ERASE_SECRET, key)


def _price(
    transaction: Transaction,
    header: Header,
    charge: Charge,
    public: int,
    pooled: int,
    totals: dict[str, int],
    state: Literal["new", "reserved", "released"] = "new",
) -> Price:
    """Hold the charge against the caps."""
    cap, pooled_cap = header.epsilon_nano, header.pooled_nano
    if charge.model == "public":
        name = None
        worst = transaction.run(sql.GREATEST_TOTAL)
        spent, asked = public + (worst[0][1] if worst else 0), charge.epsilon_nano
        who = f"everybody (recipient {worst[0][0]!r} has the least)" if worst else "everybody"
    else:
        name, asked = max(
            charge.per_recipient.items(), key=lambda item: totals.get(item[0], 0) + item[1]
        )
        spent, who = public + totals.get(name, 0), f"recipient {name!r}"
    short = ""
    for needs, used, limit, whom in (
        (asked, spent, cap, who),
        (charge.pooled_nano, pooled, pooled_cap, "all recipients together"),
    ):
        if not short and limit is not None and used + needs > limit:
            short = (
                f"the budget does not allow this: it needs epsilon {in_words(needs)}, "
                f"{in_words(limit - used)} of {in_words(limit)} is left for {whom}"
            )
    if not short and pooled + charge.pooled_nano > MOST_NANO:
        short = "the pooled total would be larger than a ledger can count"
    return Price(
        state=state,
        whom=name,
        n_recipients=len(charge.per_recipient),
        needs_nano=asked,
        left_nano=cap - spent,
        pooled_needs_nano=charge.pooled_nano,
        pooled_left_nano=None if pooled_cap is None else pooled_cap - pooled,
        short=short if state == "new" else "",
    )


def now() -> str:
    """Tell the time for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")
