"""Campaigns: rows of one mechanism on one snapshot, each charged once, before it is drawn.

Every function works inside a transaction that the caller holds; for those that add something it
must be a writing one, so that nothing changes between the check and the entry.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgeveil._words import counted, some_of
from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import chained, expect, first_hash, now
from edgeveil.ledger.charges import Charges
from edgeveil.ledger.prices import MOST_NANO, NANO, BatchPrice, in_words, note_text, price_of_growth
from edgeveil.ledger.snapshots import plain_label, snapshot_for
from edgeveil.ledger.tables import ChargeRow, ReleaseRow, SnapshotRow, Transaction
from edgeveil.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from edgeveil.ledger.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One mechanism with its parameters, on the current snapshot of a label."""

    question: str  # mechanism and parameters: all that rows depend on, except the graph
    guarantee: Callable[[int], Guarantee]  # of a release of so many rows
    label: str = ""  # public name of the graph
    fingerprint: str = ""  # of the graph; must be the current snapshot's
    code: str = ""  # digest of the code that makes the rows; only the same may finish a batch
    note: Mapping[str, str] = field(default_factory=dict)  # for people: mechanism, purpose
    snapshot: int | None = None  # if given, it must be the label's current one


@dataclass(frozen=True)
class Price:
    """The price of rows, and what is left before they are charged, in nano-epsilons."""

    snapshot: int
    n_new: int  # rows that would be charged
    n_open: int  # rows that were charged and are not stored
    n_stored: int  # rows that are stored
    whom: str | None  # the member with the least left; None: everybody
    needs_nano: int  # price for `whom`
    left_nano: int  # left for `whom`
    pooled_needs_nano: int  # price for all members together
    pooled_left_nano: int | None  # left for all members together, if there is a cap
    short: str  # why it would be refused, in words; empty if it would not

    @property
    def epsilon(self) -> float:
        """The price in epsilon: 0 if all rows were charged before."""
        return self.needs_nano / NANO

    @property
    def left(self) -> float:
        """What is left for `whom` before it, in epsilon."""
        return self.left_nano / NANO

    @property
    def more(self) -> float:
        """How many more at this price fit afterwards (in later snapshots); inf at price 0."""
        both = ((self.left_nano, self.needs_nano), (self.pooled_left_nano, self.pooled_needs_nano))
        counts = [left // needs - 1 for left, needs in both if left is not None and needs]
        return max(0, min(counts)) if counts else math.inf


@dataclass(frozen=True)
class Batch:
    """Rows of a campaign that were charged together, or its shared statistics (no members).

    All noise of the batch must be derived from `secret` (32 random bytes, the same for every
    retry), and nothing else may be. `secret` and `members` are empty once the batch is stored.
    """

    key: str  # names the artifact
    number: int  # of its charge
    created: str
    secret: bytes = field(repr=False)
    members: tuple[str, ...] = field(repr=False)
    digest: str  # of the stored artifact; empty before
    _ledger: Ledger = field(repr=False, compare=False)

    @property
    def stored(self) -> bool:
        """Whether the artifact is written."""
        return bool(self.digest)

    @cached_property
    def artifact(self) -> Path:
        """Where the artifact is, with its digest checked; of a stored batch."""
        if not self.stored:
            raise LedgerError("the batch is not stored yet")
        found = files.find(self._ledger.folder, self.key, self.digest)
        files.clear_drafts(self._ledger.folder, self.key)
        return found

    def store(self, writer: Callable[[Path], None]) -> Batch:
        """Write the artifact, mark the batch stored and erase the secret; gives the stored one.

        `writer` writes the artifact to exactly the path it is given, and the same values whenever
        it is called for this batch. If another process was faster, its artifact stays as it is.
        """
        return self if self.stored else self._ledger._store_batch(self, writer)


class Charged(NamedTuple):
    """The shared statistics of a campaign, and the batches with the rows that were asked for."""

    shared: Batch
    batches: tuple[Batch, ...]


class Newcomers(NamedTuple):
    """Members who have no row in a campaign."""

    able: list[str]  # whose budget allows one
    unable: list[str]


class Asked(NamedTuple):
    """Rows of a campaign that somebody asks for, and what the ledger knows of them."""

    campaign: Campaign
    key: str  # of the campaign
    snapshot: SnapshotRow
    members: list[str]
    there: dict[str, ChargeRow]  # the charge of each row that was charged before
    new: list[str]  # members who have no row yet
    n_rows: int  # that the campaign has so far
    charges: Charges


def asked_for(
    transaction: Transaction, ledger: Ledger, campaign: Campaign, members: list[str], *, write: bool
) -> Asked:
    """Look up which rows were charged before, stored or not, in the label's snapshot."""
    snapshot = snapshot_for(
        transaction,
        campaign.label,
        campaign.fingerprint,
        wanted=campaign.snapshot,
        write=write,
        nodes=campaign.note.get("nodes", ""),
        price=_in_a_new_snapshot(campaign, len(members)),
    )
    question = [campaign.question, plain_label(campaign.label), snapshot.number]
    key = ledger.key_of(json.dumps(question))
    charges = Charges(transaction)
    there = charges.look_up(members, key)
    n_rows = sum(row[0] for row in transaction.run(sql.ROWS_SO_FAR, key))
    new = [member for member in members if member not in there]
    return Asked(campaign, key, snapshot, members, there, new, n_rows, charges)


def _in_a_new_snapshot(campaign: Campaign, n_members: int) -> str:
    """What rows would be charged if the next snapshot were declared, in words."""
    if not n_members:
        return ""
    guarantee = campaign.guarantee(n_members)
    whom = "everybody" if guarantee.model == "public" else "the member"
    if guarantee.model == "joint" and n_members > 1:
        whom = f"each of {n_members:,} members"
    return f"epsilon = {guarantee.epsilon:g} to {whom}"


def price(transaction: Transaction, asked: Asked) -> Price:
    """The price of the rows; nothing is written."""
    unfinished = {row[0] for row in transaction.run(sql.OPEN_OF_CAMPAIGN, asked.key)}
    n_open = sum(charge.seq in unfinished for charge in asked.there.values())
    return _priced(transaction, asked, n_open)[1]


def newcomers(transaction: Transaction, asked: Asked) -> Newcomers:
    """Who has no row yet: whom the caps allow to be charged together, and the others."""
    charges, header, rows = asked.charges, transaction.header, asked.n_rows
    guarantee = asked.campaign.guarantee
    each = price_of_growth(guarantee, rows, rows + 1)
    left = header.epsilon_nano - charges.public_total - each.epsilon_nano
    able = [name for name in asked.new if charges.totals[name] <= left]
    pooled_left = MOST_NANO if header.pooled_nano is None else header.pooled_nano
    pooled_left -= charges.pooled_total
    low, high = 0, len(able)
    while low < high:  # how many: the price of more rows is not lower
        middle = (low + high + 1) // 2
        fits = price_of_growth(guarantee, rows, rows + middle).pooled_nano <= pooled_left
        low, high = (middle, high) if fits else (low, middle - 1)
    allowed = set(able[:low])
    return Newcomers(able[:low], [name for name in asked.new if name not in allowed])


def _priced(transaction: Transaction, asked: Asked, n_open: int = 0) -> tuple[BatchPrice, Price]:
    """The price of the new rows, alone and beside what the caps leave."""
    rows, charges = asked.n_rows, asked.charges
    due = price_of_growth(asked.campaign.guarantee, rows, rows + max(len(asked.new), 1))
    if not asked.new:
        due = BatchPrice(due.model, 0, 0)
    cap, pooled_cap = transaction.header.epsilon_nano, transaction.header.pooled_nano
    if due.model == "public":
        whom, own, in_full = None, charges.greatest_total, "everybody"
        if own:
            in_full += " (for the member with the least left)"
    else:
        whom = max(asked.new or asked.members, key=charges.totals.__getitem__)
        own, in_full = charges.totals[whom], f"member {whom!r}"
    charged, pooled, short = charges.public_total + own, charges.pooled_total, ""
    for needs, before, limit, for_whom in (
        (due.epsilon_nano, charged, cap, in_full),
        (due.pooled_nano, pooled, pooled_cap, "all members together"),
        (due.pooled_nano, pooled, MOST_NANO, "a ledger to count"),
    ):
        if asked.new and not short and limit is not None and before + needs > limit:
            short = (
                f"the budget does not allow this: it needs epsilon {in_words(needs)}, "
                f"{in_words(limit - before)} of {in_words(limit)} is left for {for_whom}"
            )
    if short:
        short += _what_is_left(asked, cap - charges.public_total, due)
    return due, Price(
        snapshot=asked.snapshot.number,
        n_new=len(asked.new),
        n_open=n_open,
        n_stored=len(asked.there) - n_open,
        whom=whom,
        needs_nano=due.epsilon_nano,
        left_nano=cap - charged,
        pooled_needs_nano=due.pooled_nano,
        pooled_left_nano=None if pooled_cap is None else pooled_cap - pooled,
        short=short,
    )


def _what_is_left(asked: Asked, left: int, due: BatchPrice) -> str:
    """Who of several can be served nevertheless; `left` is for whoever has no rows yet."""
    totals, members = asked.charges.totals, len(asked.members)
    lacking = [name for name in asked.new if totals[name] > left - due.epsilon_nano]
    if due.model == "joint" and members > 1 and lacking:
        others = len(lacking) < members
        amount = "nothing" if all(totals[name] >= left for name in lacking) else "too little"
        return (
            f". {some_of(len(lacking), members, 'member', 'have')} {amount} left; their stored "
            "lists stay readable"
            + ". Leave them out with --skip-exhausted (skip_exhausted=True)"
            * others
        )
    if asked.there:
        return (
            f"; {counted(len(asked.there), 'row')} of the {members:,} cost nothing, because they "
            "were charged before: ask for these alone"
        )
    return ""


def add_batch(transaction: Transaction, asked: Asked) -> list[ChargeRow]:
    """Charge the rows that were not charged yet, as one batch; BudgetError beyond a cap.

    Each campaign starts with a zero-price entry, whose secret is for the statistics that all its
    rows share.
    """
    if not asked.new:
        return []
    due, priced = _priced(transaction, asked)
    if priced.short:
        raise BudgetError(priced.short)
    if not asked.n_rows:
        _append(asked, asked.key, [], BatchPrice(due.model, 0, 0))
    # Not a derived key: a ledger restored from an older copy must not name two batches alike.
    return [_append(asked, secrets.token_hex(32), asked.new, due)]


def _append(asked: Asked, key: str, members: list[str], due: BatchPrice) -> ChargeRow:
    return asked.charges.append(
        members,
        due,
        key=key,
        campaign=asked.key,
        campaign_rows=asked.n_rows + len(members),
        label=asked.snapshot.label,
        snapshot=asked.snapshot.number,
        fingerprint=asked.campaign.fingerprint,
        code=asked.campaign.code,
        note=note_text(asked.campaign.note),
    )


def note_of(transaction: Transaction, key: str) -> dict[str, str] | None:
    """The note of the charge with this key."""
    for row in transaction.run(sql.CHARGE_OF_KEY, key):
        noted: dict[str, str] = json.loads(ChargeRow(*row).note)
        return noted
    return None


def shared_of(transaction: Transaction, asked: Asked, ledger: Ledger) -> Batch | None:
    """The campaign's shared statistics, if it was charged for anybody."""
    for row in transaction.run(sql.CHARGE_OF_KEY, asked.key):
        return _batch(transaction, ChargeRow(*row), asked, ledger)
    return None


def batches_of(
    transaction: Transaction, asked: Asked, added: list[ChargeRow], ledger: Ledger
) -> Charged:
    """The campaign's shared statistics, and the batches that hold the rows asked for."""
    opening = [ChargeRow(*row) for row in transaction.run(sql.CHARGE_OF_KEY, asked.key)]
    rows = sorted({charge.seq: charge for charge in (*asked.there.values(), *added)}.items())
    shared, *batches = [
        _batch(transaction, charge, asked, ledger)
        for charge in (*opening, *(charge for _, charge in rows))
    ]
    return Charged(shared, tuple(batches))


def _batch(transaction: Transaction, charge: ChargeRow, asked: Asked, ledger: Ledger) -> Batch:
    known = charge.key, charge.seq, charge.created
    for (digest,) in transaction.run(sql.DIGEST_OF_KEY, charge.key):
        return Batch(*known, b"", (), digest, ledger)
    if charge.code != asked.campaign.code:  # under one secret it could draw other values
        made_by = json.loads(charge.note).get("version", "another version")
        raise LedgerError(
            f"some of these rows were charged on {charge.created} by other code (edgeveil "
            f"{made_by}) and never finished: let that code finish them, leave them out, or declare "
            "a new snapshot (edgeveil ledger advance), where all are charged anew"
        )
    stored = transaction.run(sql.SECRET_OF_KEY, charge.key)
    expect(bool(stored), f"the secret of key {charge.key[:12]}... is missing")
    names = tuple(row[0] for row in transaction.run(sql.MEMBERS_OF, charge.seq))
    return Batch(*known, bytes.fromhex(stored[0][0]), names, "", ledger)


def add_release(transaction: Transaction, key: str, sha256: str) -> None:
    """Record that the artifact of a charge is written, and erase the charge's secret."""
    last = transaction.run(sql.LAST_RELEASE)
    seq, previous = last[0] if last else (0, first_hash(transaction.header, "releases"))
    row = chained(ReleaseRow(seq + 1, key, sha256, now()), previous)
    transaction.insert("releases", [row])
    transaction.run(sql.ERASE_SECRET, key)
