"""Campaigns: rows of one mechanism on one snapshot, each charged once, before it is drawn.

Every function works inside a transaction that the caller holds; for those that add something it
must be a writing one, so that nothing changes between the check and the entry.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from edgeveil.errors import BudgetError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.book import Standing, least_left, left_window_of, standing
from edgeveil.ledger.chain import (
    Header,
    ReleaseRow,
    SpendRow,
    charge_digest,
    expect,
    now,
    seal_of,
    sealed,
)
from edgeveil.ledger.costs import MOST_NANO, NANO, Cost, cost_of_growth, in_words, note_text
from edgeveil.ledger.tables import Transaction
from edgeveil.privacy.guarantee import Guarantee

SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One mechanism with its parameters, on the current snapshot of a label.

    Attributes
    ----------
    question : str
        All that makes the rows what they are, but for the graph.
    guarantee : callable
        What a release of so many rows protects.
    label : str
        The public name of the graph.
    fingerprint : str
        The graph's. A snapshot's first one is remembered, and another one refused.
    code : str
        Which code makes the rows: a batch that was begun is finished by the same code only.
    note : mapping of str to str
        A few words for people: mechanism, purpose, operator.
    snapshot : int, optional
        Refuse if the label's snapshot is another one by now.
    """

    question: str
    guarantee: Callable[[int], Guarantee]
    label: str = ""
    fingerprint: str = ""
    code: str = ""
    note: Mapping[str, str] = field(default_factory=dict)
    snapshot: int | None = None


@dataclass(frozen=True)
class Price:
    """What rows would cost, and what is left before it, in nano-epsilons.

    Attributes
    ----------
    snapshot : int
        Of which snapshot of the graph.
    n_new, n_open, n_stored : int
        How many of the rows are to be charged, were charged but not stored, and are stored.
    whom : str or None
        The recipient who would have the least left; None: everybody, a public release.
    needs_nano, left_nano : int
        The price for `whom`, and what is left for them.
    pooled_needs_nano, pooled_left_nano : int, int or None
        The price for all recipients together, and what is left for them, if there is a cap.
    short : str
        Empty, or in words why it would be refused.
    """

    snapshot: int
    n_new: int
    n_open: int
    n_stored: int
    whom: str | None
    needs_nano: int
    left_nano: int
    pooled_needs_nano: int
    pooled_left_nano: int | None
    short: str

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


class Asked(NamedTuple):
    """Rows that somebody asks for, of a campaign on its snapshot."""

    campaign: Campaign
    key: str
    snapshot: int
    names: list[str]
    there: dict[str, int]  # the spend of each row that was charged before
    new: list[str]  # who has no row yet
    rows: int  # that the campaign has so far


def asked_for(
    transaction: Transaction, campaign: Campaign, key: str, snapshot: int, names: list[str]
) -> Asked:
    """Look up which rows were charged before, stored or not."""
    there = dict(transaction.among(sql.ROWS_OF_CAMPAIGN, names, key))
    rows = sum(row[0] for row in transaction.run(sql.ROWS_SO_FAR, key))
    new = [name for name in names if name not in there]
    return Asked(campaign, key, snapshot, names, there, new, rows)


def price(transaction: Transaction, header: Header, asked: Asked) -> Price:
    """What the rows would cost; nothing is written."""
    unfinished = {row[0] for row in transaction.run(sql.OPEN_OF_CAMPAIGN, asked.key)}
    n_open = sum(seq in unfinished for seq in asked.there.values())
    return _priced(transaction, header, asked, n_open)[2]


def _priced(
    transaction: Transaction, header: Header, asked: Asked, n_open: int = 0
) -> tuple[Cost, Standing, Price]:
    """What the new rows cost, what was spent before, and both held against the caps."""
    bound, names = left_window_of(transaction, header, asked.snapshot), asked.new or asked.names
    before = standing(transaction, header, names, bound)
    cost = cost_of_growth(asked.campaign.guarantee, asked.rows, asked.rows + max(len(asked.new), 1))
    if not asked.new:
        cost = Cost(cost.model, 0, 0)
    cap, pooled_cap = header.epsilon_nano, header.pooled_nano
    if cost.model == "public":
        poorest, own = least_left(transaction, header, bound)
        least = "" if poorest is None else f" (recipient {poorest!r} has the least)"
        name, who = None, f"everybody{least}"
    else:
        name = max(names, key=before.of)
        own, who = before.of(name), f"recipient {name!r}"
    spent, short = before.public + own, ""
    for needs, used, limit, whom in (
        (cost.epsilon_nano, spent, cap, who),
        (cost.pooled_nano, before.pooled, pooled_cap, "all recipients together"),
        (cost.pooled_nano, before.pooled_ever, MOST_NANO, "a ledger to count"),
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
        snapshot=asked.snapshot,
        n_new=len(asked.new),
        n_open=n_open,
        n_stored=len(asked.there) - n_open,
        whom=name,
        needs_nano=cost.epsilon_nano,
        left_nano=cap - spent,
        pooled_needs_nano=cost.pooled_nano,
        pooled_left_nano=None if pooled_cap is None else pooled_cap - before.pooled,
        short=short,
    )
    return cost, before, price


def add_batch(transaction: Transaction, header: Header, asked: Asked) -> SpendRow | None:
    """Charge the rows that nobody paid for yet, as one spend with a secret of its own.

    Before the first one of a campaign a spend for nothing: its secret is for what all rows share.

    Raises
    ------
    BudgetError
        If a cap forbids it.
    """
    if not asked.new:
        return None
    cost, before, price = _priced(transaction, header, asked)
    if price.short:
        raise BudgetError(price.short)
    if not asked.rows:
        nothing = Cost(cost.model, 0, 0)
        opening = _add_spend(transaction, asked, before, asked.key, nothing, [])
        before = before._replace(last=opening, hash=opening.hash)
    key = secrets.token_hex(32)  # not derived: a ledger put back must not name two batches alike
    return _add_spend(transaction, asked, before, key, cost, asked.new)


def _add_spend(
    transaction: Transaction,
    asked: Asked,
    before: Standing,
    key: str,
    cost: Cost,
    names: list[str],
) -> SpendRow:
    each, last = cost.epsilon_nano if cost.model == "joint" else 0, before.last
    costs = dict.fromkeys(names, each)
    after = {name: before.totals.get(name, 0) + each for name in costs}
    public = cost.epsilon_nano if cost.model == "public" else 0
    row = SpendRow(
        seq=(last.seq if last else 0) + 1,
        key=key,
        fingerprint=asked.campaign.fingerprint,
        model=cost.model,
        epsilon_nano=cost.epsilon_nano,
        pooled_nano=cost.pooled_nano,
        charge=charge_digest(cost.model, cost.epsilon_nano, cost.pooled_nano, costs),
        note=note_text(asked.campaign.note),
        created=now(),
        public_total=(last.public_total if last else 0) + public,
        pooled_total=(last.pooled_total if last else 0) + cost.pooled_nano,
        greatest_total=max(before.greatest, max(after.values(), default=0)),
        campaign=asked.key,
        label=asked.campaign.label,
        snapshot=asked.snapshot,
        n_rows=len(costs),
        campaign_rows=asked.rows + len(names),
        code=asked.campaign.code,
    )
    spend = sealed(row, before.hash)
    transaction.run(sql.ADD_SPEND, *spend)
    entries = (
        (spend.seq, name, each, total, seal_of(spend.hash, name, each, total))
        for name, total in after.items()
    )
    transaction.fill("recipient_spends", entries)
    transaction.run(sql.ADD_SECRET, key, secrets.token_hex(SECRET_BYTES))
    return spend


class Entry(NamedTuple):
    """A spend of a campaign: where its artifact is, or what is needed to make it."""

    spend: SpendRow
    artifact: tuple[str, str] | None  # name and digest
    secret: bytes
    recipients: tuple[str, ...]  # of an open one


def entries_of(transaction: Transaction, asked: Asked, added: SpendRow | None) -> list[Entry]:
    """What all rows share, then the batches that hold the rows asked for."""
    seqs = {*asked.there.values(), *([added.seq] if added else [])}
    rows = transaction.run(sql.SPEND_OF_KEY, asked.key)
    rows += transaction.among(sql.SPENDS_AT, sorted(seqs))
    return [entry_of(transaction, SpendRow(*row)) for row in rows]


def entry_of(transaction: Transaction, spend: SpendRow) -> Entry:
    """Read the state of a spend."""
    for released in transaction.run(sql.RELEASE_OF_KEY, spend.key):
        return Entry(spend, released, b"", ())
    stored = transaction.run(sql.SECRET_OF_KEY, spend.key)
    expect(bool(stored), f"the secret of key {spend.key[:12]}... is missing")
    names = tuple(row[0] for row in transaction.run(sql.RECIPIENTS_OF, spend.seq))
    return Entry(spend, None, bytes.fromhex(stored[0][0]), names)


def add_release(transaction: Transaction, header: Header, key: str, name: str, sha256: str) -> None:
    """Add a release and erase its secret."""
    last = transaction.run(sql.LAST_RELEASE)
    seq, previous = last[0] if last else (0, header.hash("releases"))
    row = sealed(ReleaseRow(seq + 1, key, name, sha256, now()), previous)
    transaction.run(sql.ADD_RELEASE, *row)
    transaction.run(sql.ERASE_SECRET, key)
