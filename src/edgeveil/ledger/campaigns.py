"""Campaigns: rows of one mechanism in one generation, each charged once, before it is drawn.

All work is done inside a transaction that the caller holds. What adds something needs a writing
one, so that nothing changes between the check of the budget and the charge.
"""

from __future__ import annotations

import json
import math
import secrets
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgeveil._internal.files import move
from edgeveil._internal.words import counted, some_of
from edgeveil.errors import BudgetError, LedgerError, ParameterError
from edgeveil.ledger import artifacts as files
from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import Charges, append, expect, now
from edgeveil.ledger.generations import generation_for, plain_label
from edgeveil.ledger.prices import (
    MOST_NANO,
    NANO,
    BatchPrice,
    check_text,
    in_words,
    price_of_growth,
)
from edgeveil.ledger.schema import ChargeRow, ReleaseRow
from edgeveil.ledger.transactions import Transaction
from edgeveil.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from edgeveil.ledger.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One mechanism with its parameters, in the current generation of a label."""

    identity: str  # of mechanism and parameters: all that rows depend on but the graph
    guarantee: Callable[[int], Guarantee]  # by the number of rows
    label: str = ""  # public name of the graph
    fingerprint: str = ""  # of the graph; must be the current generation's
    code: str = ""  # digest of the code that makes the rows; only the same may finish a batch
    note: Mapping[str, str] = field(default_factory=dict)  # for people: mechanism, purpose
    generation: int | None = None  # if given, it must be the label's current one

    def __post_init__(self) -> None:
        check_text("fingerprint", self.fingerprint)
        check_text("label", self.label)
        self.note_text  # noqa: B018  (it is checked too)

    @cached_property
    def note_text(self) -> str:
        """The note as JSON; ParameterError unless it is little, and text."""
        if not all(isinstance(part, str) for pair in self.note.items() for part in pair):
            raise ParameterError("purpose, operator and the rest of a note must be text")
        text = json.dumps(dict(self.note), sort_keys=True)
        if len(text) > 10_000:
            raise ParameterError(f"a note must be small (10 000 characters), got {len(text)}")
        return text


@dataclass(frozen=True)
class Price:
    """The price of rows, and what is left before they are charged, in nano-epsilons."""

    generation: int
    n_new: int  # rows that would be charged
    n_open: int  # rows that were charged and are not stored
    n_stored: int  # rows that are stored
    whom: str | None  # the member with the least left; None: everybody
    needs_nano: int  # price for `whom`
    left_nano: int  # left for `whom`
    pooled_needs_nano: int  # price for all members together
    pooled_left_nano: int | None  # left for all members together, if there is a cap
    refusal: str  # why it would be refused, in words; empty if it would not

    @property
    def epsilon(self) -> float:
        """The price in epsilon: 0 if all rows were charged before."""
        return self.needs_nano / NANO

    @property
    def left(self) -> float:
        """What is left for `whom` before it, in epsilon."""
        return self.left_nano / NANO

    @property
    def repeats_left(self) -> float:
        """How many more at this price fit afterwards (in later generations); inf at price 0."""
        both = ((self.left_nano, self.needs_nano), (self.pooled_left_nano, self.pooled_needs_nano))
        counts = [left // needs - 1 for left, needs in both if left is not None and needs]
        return max(0, min(counts)) if counts else math.inf


@dataclass(frozen=True)
class Batch:
    """Rows of a campaign that were charged together, or its shared statistics (no members).

    All noise of the batch, and nothing else, is derived from `secret` (32 random bytes, the same
    for every retry). `secret` and `members` are empty once the batch is stored.
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
        """The path of a stored batch's artifact, after checking its digest."""
        if not self.stored:
            raise LedgerError("the batch is not stored yet")
        path = files.find(self._ledger.folder, self.key, self.digest)
        files.clear_drafts(self._ledger.folder, self.key)
        return path

    def store(self, writer: Callable[[Path], None]) -> Batch:
        """Write the artifact, record it and erase the secret; return the stored batch.

        `writer` writes the artifact to the path it is given, always with the same values for the
        same batch. If another process was faster, its artifact is kept.
        """
        if self.stored:
            return self
        folder, key = self._ledger.folder, self.key
        written = files.write_draft(folder, key, writer)
        with self._ledger._transaction(write=True) as transaction:
            # Under the lock: of two processes with the same batch, only one renames and records.
            stored = transaction.run(sql.DIGEST_OF_KEY, key)
            if stored:
                digest = stored[0][0]
            elif written is None:
                raise LedgerError("the writer wrote no file at the path it was given")
            else:
                draft, digest = written
                move(draft, folder / key)
                append(transaction, "releases", ReleaseRow(0, key, digest, now()))
                transaction.run(sql.ERASE_SECRET, key)
        files.clear_drafts(folder, key)
        return replace(self, secret=b"", members=(), digest=digest)


class Charged(NamedTuple):
    """The shared statistics of a campaign, and the batches with the rows that were asked for."""

    shared: Batch
    batches: tuple[Batch, ...]


class Newcomers(NamedTuple):
    """Members who have no row in a campaign."""

    able: list[str]  # whose budget allows one
    unable: list[str]


class CurrentCampaign:
    """A campaign in the current generation of its label, within a transaction.

    Attributes
    ----------
    key : str
        Of the campaign in that generation.
    """

    def __init__(
        self,
        transaction: Transaction,
        ledger: Ledger,
        campaign: Campaign,
        *,
        n_members: int = 0,
        write: bool = False,
    ) -> None:
        self._transaction, self._ledger, self._campaign = transaction, ledger, campaign
        self._generation = generation_for(transaction, campaign, n_members, write=write)
        identity = [campaign.identity, plain_label(campaign.label), self._generation.number]
        self.key = ledger.key_of(json.dumps(identity))

    def shared(self) -> Batch | None:
        """The statistics that all rows of the campaign share, if it has a row."""
        for row in self._transaction.run(sql.CHARGE_OF_KEY, self.key):
            return self._batch(ChargeRow(*row))
        return None

    def open_batches(self) -> list[Batch]:
        """All batches of rows of the campaign that are not stored, of any code.

        To see them, or to erase their secrets: what draws from a secret calls `charge`.
        """
        numbers = [seq for (seq,) in self._transaction.run(sql.OPEN_OF_CAMPAIGN, self.key)]
        charges = [ChargeRow(*row) for row in self._transaction.among(sql.CHARGES_AT, numbers)]
        return [self._batch(charge, any_code=True) for charge in charges if charge.n_rows]

    def _batch(self, charge: ChargeRow, *, any_code: bool = False) -> Batch:
        fields, run = (charge.key, charge.seq, charge.created), self._transaction.run
        for (digest,) in run(sql.DIGEST_OF_KEY, charge.key):
            return Batch(*fields, b"", (), digest, self._ledger)
        # Under one secret, other code could draw other values
        if not any_code and charge.code != self._campaign.code:
            made_by = json.loads(charge.note).get("version", "another version")
            raise LedgerError(
                f"some of these rows were charged on {charge.created} by other code (edgeveil "
                f"{made_by}) and never finished. To finish them without a charge, install that "
                "version, give the same command once more, and update again. Or leave them out; or "
                "declare a new generation (edgeveil ledger advance; of a series: renew), in which "
                "all are charged anew"
            )
        stored = run(sql.SECRET_OF_KEY, charge.key)
        expect(bool(stored), f"the secret of key {charge.key[:12]}... is missing")
        names = tuple(member for (member,) in run(sql.MEMBERS_OF, charge.seq))
        return Batch(*fields, bytes.fromhex(stored[0][0]), names, "", self._ledger)


class Request(CurrentCampaign):
    """Rows of a campaign for some members: what is stored, open and new.

    Attributes
    ----------
    charged : dict
        The charge of each member whose row was charged before.
    new : list of str
        The other members.
    charges : Charges
        All charges of the ledger.
    """

    def __init__(
        self,
        transaction: Transaction,
        ledger: Ledger,
        campaign: Campaign,
        members: list[str],
        *,
        write: bool = False,
    ) -> None:
        super().__init__(transaction, ledger, campaign, n_members=len(members), write=write)
        self._members = members
        self.charges = Charges(transaction)
        self.charged = self.charges.look_up(members, self.key)
        self.new = [member for member in members if member not in self.charged]
        self._n_rows = sum(row[0] for row in transaction.run(sql.ROWS_SO_FAR, self.key))

    def _price_of(self, more: int) -> BatchPrice:
        """The price of this many more rows."""
        return price_of_growth(self._campaign.guarantee, self._n_rows, self._n_rows + more)

    @cached_property
    def _due(self) -> BatchPrice:
        """The price of the new rows; 0 if there are none."""
        due = self._price_of(max(len(self.new), 1))
        return due if self.new else BatchPrice(due.model, 0, 0)

    def newcomers(self) -> Newcomers:
        """Members without a row: those whom the caps allow to charge together, and the others."""
        header, totals = self._transaction.header, self.charges.totals
        left = header.epsilon_nano - self.charges.public_total - self._price_of(1).epsilon_nano
        able = [name for name in self.new if totals[name] <= left]
        pooled_cap = MOST_NANO if header.pooled_nano is None else header.pooled_nano
        most = bisect_right(  # the price of more rows is not lower
            range(1, len(able) + 1),
            pooled_cap - self.charges.pooled_total,
            key=lambda more: self._price_of(more).pooled_nano,
        )
        allowed = set(able[:most])
        return Newcomers(able[:most], [name for name in self.new if name not in allowed])

    def price(self) -> Price:
        """The price of the new rows, and what the caps leave."""
        charges, due, header = self.charges, self._due, self._transaction.header
        unfinished = {seq for (seq,) in self._transaction.run(sql.OPEN_OF_CAMPAIGN, self.key)}
        n_open = sum(charge.seq in unfinished for charge in self.charged.values())
        if due.model == "public":
            whom, own, in_full = None, charges.greatest_total, "everybody"
            if own:
                in_full += " (for the member with the least left)"
        else:
            whom = max(self.new or self._members, key=charges.totals.__getitem__)
            own, in_full = charges.totals[whom], f"member {whom!r}"
        charged, pooled, refusal = charges.public_total + own, charges.pooled_total, ""
        for needs, before, limit, for_whom in (
            (due.epsilon_nano, charged, header.epsilon_nano, in_full),
            (due.pooled_nano, pooled, header.pooled_nano, "all members together"),
            (due.pooled_nano, pooled, MOST_NANO, "a ledger to count"),
        ):
            if self.new and not refusal and limit is not None and before + needs > limit:
                refusal = (
                    f"the budget does not allow this: it needs epsilon {in_words(needs)}, "
                    f"{in_words(limit - before)} of {in_words(limit)} is left for {for_whom}"
                    f"{self._what_is_possible()}"
                )
        return Price(
            generation=self._generation.number,
            n_new=len(self.new),
            n_open=n_open,
            n_stored=len(self.charged) - n_open,
            whom=whom,
            needs_nano=due.epsilon_nano,
            left_nano=header.epsilon_nano - charged,
            pooled_needs_nano=due.pooled_nano,
            pooled_left_nano=None if header.pooled_nano is None else header.pooled_nano - pooled,
            refusal=refusal,
        )

    def _what_is_possible(self) -> str:
        """Which of several members can still get a row, in words."""
        totals, members = self.charges.totals, len(self._members)
        left = self._transaction.header.epsilon_nano - self.charges.public_total
        lacking = [name for name in self.new if totals[name] > left - self._due.epsilon_nano]
        if self._due.model == "joint" and members > 1 and lacking:
            amount = "nothing" if all(totals[name] >= left for name in lacking) else "too little"
            words = f". {some_of(len(lacking), members, 'member', 'have')} {amount} left; their "
            words += "stored lists stay readable"
            if len(lacking) < members:
                words += ". Leave them out with --skip-exhausted (skip_exhausted=True)"
            return words
        if self.charged:
            return (
                f"; {counted(len(self.charged), 'row')} of the {members:,} cost nothing, because "
                "they were charged before: ask for these alone"
            )
        return ""

    def charge(self) -> Charged:
        """Charge the new rows as one batch, and return all batches; BudgetError beyond a cap.

        Each campaign starts with a zero-price entry, whose secret is for the statistics that all
        its rows share.
        """
        rows = {charge.seq: charge for charge in self.charged.values()}
        if self.new and (refusal := self.price().refusal):
            raise BudgetError(refusal)
        first = self._first_entry()
        if self.new:
            # A random key: a ledger restored from an older copy must not give two batches one key.
            added = self._append(secrets.token_hex(32), self.new, self._due)
            rows[added.seq] = added
        batches = tuple(self._batch(rows[seq]) for seq in sorted(rows))
        return Charged(self._batch(first), batches)

    def begin(self) -> Batch:
        """The campaign's first entry, added if it is not there."""
        return self._batch(self._first_entry(), any_code=True)

    def _first_entry(self) -> ChargeRow:
        for row in self._transaction.run(sql.CHARGE_OF_KEY, self.key):
            return ChargeRow(*row)
        return self._append(self.key, [], BatchPrice(self._due.model, 0, 0))

    def _append(self, key: str, members: list[str], price: BatchPrice) -> ChargeRow:
        return self.charges.append(
            members,
            price,
            key=key,
            campaign=self.key,
            campaign_rows=self._n_rows + len(members),
            label=self._generation.label,
            generation=self._generation.number,
            fingerprint=self._campaign.fingerprint,
            code=self._campaign.code,
            note=self._campaign.note_text,
        )
