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

from edgeveil.errors import BudgetError, LedgerError
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import chained, expect, first_hash, now
from edgeveil.ledger.charges import Charges
from edgeveil.ledger.costs import MOST_NANO, NANO, Cost, cost_of_growth, in_words, note_text
from edgeveil.ledger.snapshots import plain_label, snapshot_for
from edgeveil.ledger.tables import ChargeRow, ReleaseRow, SnapshotRow, Transaction
from edgeveil.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from edgeveil.ledger.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One mechanism with its parameters, on the current snapshot of a label."""

    question: str  # all that makes the rows what they are, but for the graph
    guarantee: Callable[[int], Guarantee]  # what a release of so many rows protects
    label: str = ""  # the public name of the graph
    fingerprint: str = ""  # the graph's: a snapshot's first one is remembered, another one refused
    code: str = ""  # that makes the rows: a batch that was begun is finished by the same code only
    note: Mapping[str, str] = field(default_factory=dict)  # for people: mechanism, purpose
    snapshot: int | None = None  # refuse if the label's snapshot is another one by now


@dataclass(frozen=True)
class Price:
    """What rows would cost, and what is left before it, in nano-epsilons."""

    snapshot: int
    n_new: int  # rows that are to be charged,
    n_open: int  # were charged but not stored,
    n_stored: int  # and are stored
    whom: str | None  # the recipient who would have the least left; None: everybody
    needs_nano: int  # the price for `whom`,
    left_nano: int  # and what is left for them
    pooled_needs_nano: int  # the price for all recipients together,
    pooled_left_nano: int | None  # and what is left for them, if there is a cap
    short: str  # empty, or in words why it would be refused

    @property
    def epsilon(self) -> float:
        """The price in epsilon: 0 if all rows were charged before."""
        return self.needs_nano / NANO

    @property
    def left(self) -> float:
        """What is left before it, in epsilon."""
        return self.left_nano / NANO

    @property
    def more(self) -> float:
        """How many more like it fit afterwards, in other snapshots say; inf for what is free."""
        both = ((self.left_nano, self.needs_nano), (self.pooled_left_nano, self.pooled_needs_nano))
        counts = [left // needs - 1 for left, needs in both if left is not None and needs]
        return max(0, min(counts)) if counts else math.inf


@dataclass(frozen=True)
class Batch:
    """Rows of a campaign that were charged together, or (without recipients) what all rows share.

    `secret` are 32 random bytes from which all noise of this batch must be derived, and nothing
    else; the same for every retry. It and `recipients`, whose rows are to be made, are empty once
    the batch is stored.
    """

    key: str  # names the artifact
    number: int  # of its spend
    created: str
    secret: bytes = field(repr=False)
    recipients: tuple[str, ...] = field(repr=False)
    _file: tuple[str, str] | None = field(repr=False)
    _ledger: Ledger = field(repr=False, compare=False)

    @property
    def stored(self) -> bool:
        """Whether the artifact is written."""
        return self._file is not None

    @property
    def digest(self) -> str:
        """Of the artifact, as it was recorded; empty before."""
        return self._file[1] if self._file else ""

    @cached_property
    def artifact(self) -> Path:
        """Where the artifact is, with its digest checked; of a stored batch."""
        if self._file is None:
            raise LedgerError("the batch is not stored yet")
        found = files.find(self._ledger.folder, self.key, *self._file)
        files.clear_drafts(self._ledger.folder, self.key)
        return found

    def store(self, writer: Callable[[Path], None]) -> Batch:
        """Write the artifact, mark the batch stored and erase the secret; gives the stored one.

        `writer` writes the artifact to exactly the path it is given, and the same values whenever
        it is called for this batch. If another process was faster, its artifact stays as it is.
        """
        return self if self.stored else self._ledger._store_batch(self, writer)


class Charged(NamedTuple):
    """What all rows of a campaign share, and the batches with the rows that were asked for."""

    shared: Batch
    batches: tuple[Batch, ...]


class Asked(NamedTuple):
    """Rows that somebody asks for, of a campaign on its snapshot."""

    campaign: Campaign
    key: str  # of the campaign
    snapshot: SnapshotRow
    names: list[str]
    there: dict[str, ChargeRow]  # the charge of each row that was charged before
    new: list[str]  # who has no row yet
    n_rows: int  # that the campaign has so far
    charges: Charges


def asked_for(
    transaction: Transaction, ledger: Ledger, campaign: Campaign, names: list[str], *, write: bool
) -> Asked:
    """Look up which rows were charged before, stored or not, in the label's snapshot."""
    whose = campaign.label, campaign.fingerprint
    snapshot = snapshot_for(transaction, *whose, wanted=campaign.snapshot, write=write)
    question = [campaign.question, plain_label(campaign.label), snapshot.number]
    key = ledger.key_of(json.dumps(question))
    charges = Charges(transaction)
    there = charges.look_up(names, key)
    n_rows = sum(row[0] for row in transaction.run(sql.ROWS_SO_FAR, key))
    new = [name for name in names if name not in there]
    return Asked(campaign, key, snapshot, names, there, new, n_rows, charges)


def price(transaction: Transaction, asked: Asked) -> Price:
    """What the rows would cost; nothing is written."""
    unfinished = {row[0] for row in transaction.run(sql.OPEN_OF_CAMPAIGN, asked.key)}
    n_open = sum(charge.seq in unfinished for charge in asked.there.values())
    return _priced(transaction, asked, n_open)[1]


def _priced(transaction: Transaction, asked: Asked, n_open: int = 0) -> tuple[Cost, Price]:
    """What the new rows cost, and that held against the caps."""
    rows, charges = asked.n_rows, asked.charges
    cost = cost_of_growth(asked.campaign.guarantee, rows, rows + max(len(asked.new), 1))
    if not asked.new:
        cost = Cost(cost.model, 0, 0)
    cap, pooled_cap = transaction.header.epsilon_nano, transaction.header.pooled_nano
    if cost.model == "public":
        name, own, who = None, charges.greatest_total, "everybody"
        if own:
            who += " (for the recipient who has the least)"
    else:
        name = max(asked.new or asked.names, key=lambda one: charges.totals.get(one, 0))
        own, who = charges.totals.get(name, 0), f"recipient {name!r}"
    spent, short = charges.public_total + own, ""
    for needs, used, limit, whom in (
        (cost.epsilon_nano, spent, cap, who),
        (cost.pooled_nano, charges.pooled_total, pooled_cap, "all recipients together"),
        (cost.pooled_nano, charges.pooled_total, MOST_NANO, "a ledger to count"),
    ):
        if asked.new and not short and limit is not None and used + needs > limit:
            short = (
                f"the budget does not allow this: it needs epsilon {in_words(needs)}, "
                f"{in_words(limit - used)} of {in_words(limit)} is left for {whom}"
            )
    if short and asked.there:
        short += (
            f"; the rows of {len(asked.there):,} of the {len(asked.names):,} were charged before "
            "and cost nothing: ask for these alone"
        )
    price = Price(
        snapshot=asked.snapshot.number,
        n_new=len(asked.new),
        n_open=n_open,
        n_stored=len(asked.there) - n_open,
        whom=name,
        needs_nano=cost.epsilon_nano,
        left_nano=cap - spent,
        pooled_needs_nano=cost.pooled_nano,
        pooled_left_nano=None if pooled_cap is None else pooled_cap - charges.pooled_total,
        short=short,
    )
    return cost, price


def add_batch(transaction: Transaction, asked: Asked) -> list[ChargeRow]:
    """Charge the rows that nobody paid for yet, as one batch with a secret of its own.

    Before the first batch of a campaign comes a zero-price entry, whose secret is for the
    statistics that all its rows share.
    """
    if not asked.new:
        return []
    cost, price = _priced(transaction, asked)
    if price.short:
        raise BudgetError(price.short)
    if not asked.n_rows:
        _append(asked, asked.key, [], Cost(cost.model, 0, 0))
    # Not a derived key: a ledger put back to an older copy must not name two batches alike.
    return [_append(asked, secrets.token_hex(32), asked.new, cost)]


def _append(asked: Asked, key: str, members: list[str], cost: Cost) -> ChargeRow:
    return asked.charges.append(
        key=key,
        members=members,
        cost=cost,
        campaign=asked.key,
        campaign_rows=asked.n_rows + len(members),
        label=asked.snapshot.label,
        snapshot=asked.snapshot.number,
        fingerprint=asked.campaign.fingerprint,
        code=asked.campaign.code,
        note=note_text(asked.campaign.note),
    )


def batches_of(
    transaction: Transaction, asked: Asked, added: list[ChargeRow], ledger: Ledger
) -> Charged:
    """What all rows share, and the batches that hold the rows asked for."""
    opening = [ChargeRow(*row) for row in transaction.run(sql.CHARGE_OF_KEY, asked.key)]
    rows = sorted({charge.seq: charge for charge in (*asked.there.values(), *added)}.items())
    shared, *batches = [
        _batch(transaction, charge, asked, ledger)
        for charge in (*opening, *(charge for _, charge in rows))
    ]
    return Charged(shared, tuple(batches))


def _batch(transaction: Transaction, charge: ChargeRow, asked: Asked, ledger: Ledger) -> Batch:
    known = charge.key, charge.seq, charge.created
    for file in transaction.run(sql.RELEASE_OF_KEY, charge.key):
        return Batch(*known, b"", (), file, ledger)
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
    return Batch(*known, bytes.fromhex(stored[0][0]), names, None, ledger)


def add_release(transaction: Transaction, key: str, name: str, sha256: str) -> None:
    """Add a release and erase its secret."""
    last = transaction.run(sql.LAST_RELEASE)
    seq, previous = last[0] if last else (0, first_hash(transaction.header, "releases"))
    row = chained(ReleaseRow(seq + 1, key, name, sha256, now()), previous)
    transaction.fill("releases", [row])
    transaction.run(sql.ERASE_SECRET, key)
