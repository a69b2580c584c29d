"""The book of a ledger: what is in it, what may be added, and adding it.

Every function works inside a transaction that the caller holds; for those that add something it
must be a writing one, so that nothing changes between the check and the entry.
"""

from __future__ import annotations

import json
import math
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import Header, NodeSetRow, ReleaseRow, SpendRow, expect, seal_of, sealed
from edgeveil.ledger.charge import MOST_NANO, NANO, Charge, in_words
from edgeveil.ledger.tables import Transaction

SECRET_BYTES = 32
State = Literal["new", "reserved", "released"]
KeyState = tuple[tuple[str, str] | None, bytes]  # name and digest of the artifact, or the secret


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

    state: State
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


class Standing(NamedTuple):
    """What was spent before a charge, checked against the chain."""

    seq: int
    hash: str
    public: int
    pooled: int
    greatest: int  # the largest total of any recipient
    who: str | None  # whose that is
    totals: dict[str, int]  # of the recipients asked for


def standing(transaction: Transaction, header: Header, recipients: Iterable[str] = ()) -> Standing:
    """Read the running totals that a charge of `recipients` goes by.

    They are not believed: the last spend must continue the chain, and the latest total of every
    one of the recipients must carry the seal that it got from its spend. What a spend before
    says is for `chain.audit`; so the work is that of the charge, however long the ledger is.
    """
    last = [SpendRow(*row) for row in transaction.run(sql.LAST_SPENDS)]
    previous = last[1].hash if len(last) > 1 else header.hash("spends")
    if last:
        expect(last[0] == sealed(last[0], previous), f"spend {last[0].seq} was changed")
    totals = {}
    for name, nano, total, seal, spend_hash in transaction.among(sql.LATEST_OF, recipients):
        fits = seal == seal_of(spend_hash, name, nano, total)
        expect(fits, "the running total of a recipient was changed")
        totals[name] = total
    rows = transaction.run(sql.GREATEST_TOTAL)
    who, greatest = rows[0] if rows else (None, 0)
    if last and last[0].greatest_total is not None:
        expect(greatest == last[0].greatest_total, "the running total of a recipient was changed")
    if not last:
        return Standing(0, previous, 0, 0, greatest, who, totals)
    seq, public, pooled = last[0].seq, last[0].public_total, last[0].pooled_total
    return Standing(seq, last[0].hash, public, pooled, greatest, who, totals)


def account(transaction: Transaction, header: Header, recipient: str | None) -> Account:
    """Read the account of a recipient, or (None) of the one with the least left."""
    current = standing(transaction, header, [] if recipient is None else [recipient])
    own = current.greatest if recipient is None else current.totals.get(recipient, 0)
    return _account(header, current, current.who if recipient is None else recipient, own)


def accounts(transaction: Transaction, header: Header) -> list[Account]:
    """Read the accounts of all who got a row, those with the least left first."""
    current = standing(transaction, header)
    totals = sorted(transaction.run(sql.ALL_TOTALS), key=lambda row: (-row[1], row[0]))
    return [_account(header, current, name, own) for name, own in totals]


def _account(header: Header, current: Standing, name: str | None, own: int) -> Account:
    spent = current.public + own
    return Account(
        name, header.epsilon_nano, spent, current.public, header.pooled_nano, current.pooled
    )


def spends(transaction: Transaction) -> list[Spend]:
    """List all spends, oldest first."""
    rows = transaction.run(sql.SHOWN_SPENDS)
    return [Spend(*(*row[:7], json.loads(row[7]), bool(row[8]))) for row in rows]


def show(transaction: Transaction, header: Header, most: int = 20) -> list[str]:
    """Say in a few lines what is spent and left, naming at most so many recipients."""
    everyone, current = accounts(transaction, header), standing(transaction, header)
    cap, public = header.epsilon_nano, current.public
    lines = [f"public: {in_words(public)} spent; each recipient may learn {in_words(cap)} in all"]
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
    spends = "1 spend" if current.seq == 1 else f"{current.seq} spends"
    lines.append(f"{spends}, head {current.hash}" if current.seq else "no spends yet")
    return lines


def add_spend(
    transaction: Transaction,
    header: Header,
    key: str,
    charge: Charge,
    note: str,
    fingerprint: str,
) -> SpendRow:
    """Add a spend, its recipients and its secret; BudgetError if a cap forbids it."""
    before = standing(transaction, header, charge.per_recipient)
    if short := _price(header, charge, before, "new").short:
        raise BudgetError(short)
    after = {name: before.totals.get(name, 0) + n for name, n in charge.per_recipient.items()}
    spend = sealed(
        SpendRow(
            seq=before.seq + 1,
            key=key,
            fingerprint=fingerprint,
            model=charge.model,
            epsilon_nano=charge.epsilon_nano,
            pooled_nano=charge.pooled_nano,
            charge=charge.digest,
            note=note,
            created=now(),
            public_total=before.public + (charge.epsilon_nano if charge.model == "public" else 0),
            pooled_total=before.pooled + charge.pooled_nano,
            greatest_total=max(before.greatest, max(after.values(), default=0)),
        ),
        before.hash,
    )
    transaction.run(sql.ADD_SPEND, *spend)
    if after:
        transaction.many(
            sql.ADD_RECIPIENT_SPEND,
            (
                (spend.seq, name, nano, after[name], seal_of(spend.hash, name, nano, after[name]))
                for name, nano in charge.per_recipient.items()
            ),
        )
    transaction.run(sql.ADD_SECRET, key, secrets.token_hex(SECRET_BYTES))
    return spend


def add_release(transaction: Transaction, header: Header, key: str, name: str, sha256: str) -> None:
    """Add a release and erase its secret."""
    last = transaction.run(sql.LAST_RELEASE)
    seq, previous = last[0] if last else (0, header.hash("releases"))
    row = sealed(ReleaseRow(seq + 1, key, name, sha256, now()), previous)
    transaction.run(sql.ADD_RELEASE, *row)
    transaction.run(sql.ERASE_SECRET, key)


def state_of(transaction: Transaction, key: str) -> KeyState:
    """Read the state of a key that has a spend."""
    released = transaction.run(sql.RELEASE_OF_KEY, key)
    if released:
        return (released[0][0], released[0][1]), b""
    stored = transaction.run(sql.SECRET_OF_KEY, key)
    expect(bool(stored), f"the secret of key {key[:12]}... is missing")
    return None, bytes.fromhex(stored[0][0])


def is_known(transaction: Transaction, key: str, charge: Charge, fingerprint: str | None) -> bool:
    """Whether the key has a spend; LedgerError if that was for another graph or price."""
    rows = transaction.run(sql.SPEND_OF_KEY, key)
    if not rows:
        return False
    spend = SpendRow(*rows[0])
    if fingerprint is not None and spend.fingerprint != fingerprint:
        raise LedgerError(
            "this was asked before, of another state of the graph; to ask again, give a nonce, "
            "and choose nonces by a public schedule such as the date: a new answer just when the "
            "graph has changed tells that it has"
        )
    if fingerprint is not None and spend.charge != charge.digest:
        raise LedgerError(
            f"key {key[:12]}... was reserved before with another charge; "
            "a key stands for one release"
        )
    return True


def plain_label(label: str) -> str:
    """A label without what people overlook: case, blanks, ways to write a letter."""
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def check_node_set(
    transaction: Transaction,
    header: Header,
    label: str,
    digest: str | None,
    *,
    new: bool,
    write: bool = False,
) -> None:
    """Refuse another node set than the label's, unless a new one was announced; remember it."""
    if digest is None:
        return
    rows = [NodeSetRow(*row) for row in transaction.run(sql.GET_NODE_SETS)]
    same = plain_label(label)  # "Friends " is no second graph
    known = [row.digest for row in rows if plain_label(row.label) == same][-1:]
    if known and known != [digest] and not new:
        raise LedgerError(
            "the graph has another node set than before: somebody who appears under a second id "
            "would get a second budget; if members have joined or left and everybody else kept "
            "their id, say that it is a new node set (new_node_set=True)"
        )
    if write and known != [digest]:
        row = NodeSetRow(len(rows) + 1, label, digest, now())
        previous = rows[-1].hash if rows else header.hash("node_sets")
        transaction.run(sql.ADD_NODE_SET, *sealed(row, previous))


def price(transaction: Transaction, header: Header, key: str, charge: Charge) -> Price:
    """What the charge would cost under this key; nothing is written."""
    state: State = "new"
    if transaction.run(sql.SPEND_OF_KEY, key):
        state = "released" if transaction.run(sql.RELEASE_OF_KEY, key) else "reserved"
    return _price(header, charge, standing(transaction, header, charge.per_recipient), state)


def _price(header: Header, charge: Charge, before: Standing, state: State) -> Price:
    """Hold the charge against the caps."""
    cap, pooled_cap = header.epsilon_nano, header.pooled_nano
    if charge.model == "public":
        name, spent, asked = None, before.public + before.greatest, charge.epsilon_nano
        least = "" if before.who is None else f" (recipient {before.who!r} has the least)"
        who = f"everybody{least}"
    else:
        name, asked = max(
            charge.per_recipient.items(), key=lambda item: before.totals.get(item[0], 0) + item[1]
        )
        spent, who = before.public + before.totals.get(name, 0), f"recipient {name!r}"
    short = ""
    for needs, used, limit, whom in (
        (asked, spent, cap, who),
        (charge.pooled_nano, before.pooled, pooled_cap, "all recipients together"),
    ):
        if not short and limit is not None and used + needs > limit:
            short = (
                f"the budget does not allow this: it needs epsilon {in_words(needs)}, "
                f"{in_words(limit - used)} of {in_words(limit)} is left for {whom}"
            )
    if not short and before.pooled + charge.pooled_nano > MOST_NANO:
        short = "the pooled total would be larger than a ledger can count"
    return Price(
        state=state,
        whom=name,
        n_recipients=len(charge.per_recipient),
        needs_nano=asked,
        left_nano=cap - spent,
        pooled_needs_nano=charge.pooled_nano,
        pooled_left_nano=None if pooled_cap is None else pooled_cap - before.pooled,
        short=short if state == "new" else "",
    )


def now() -> str:
    """Tell the time for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")
