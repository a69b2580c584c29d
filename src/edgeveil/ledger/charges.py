"""The table of charges within one transaction: read with a check, and appended to."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from edgeveil.ledger import schema as sql
from edgeveil.ledger.chain import chained, expect, first_hash, members_digest, now
from edgeveil.ledger.prices import BatchPrice
from edgeveil.ledger.schema import ChargeRow, Transaction

SECRET_BYTES = 32


class Charges:
    """What was charged so far.

    A row counts only if its hash continues that of the row before it. This is checked for the
    last charge, whose running totals are used, and for every charge that a member's total is
    added up from. `chain.audit` checks the rest, so the work here does not grow with the ledger.

    Attributes
    ----------
    count, head : int, str
        Number of charges, and the hash of the last one.
    public_total, pooled_total, greatest_total : int
        Charged so far to everybody, to all members together, and to any one member for rows of
        its own, in nano-epsilons.
    totals : dict
        What the members that were looked up were charged for rows of their own, in nano-epsilons.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._start = first_hash(transaction.header, "charges")
        self._checked: dict[int, ChargeRow] = {}  # by number
        self.count, self.head, self.totals = 0, self._start, dict[str, int]()
        self.public_total = self.pooled_total = self.greatest_total = 0
        newest = [ChargeRow(*row) for row in transaction.run(sql.LAST_CHARGES)]
        self._check(newest)
        for row in newest[:1]:
            expect(row.seq in self._checked, "a charge is missing")
            self._end_with(row)

    def look_up(self, members: Sequence[str], campaign: str = "") -> dict[str, ChargeRow]:
        """Set the totals of these members; return the charge of each who has a row in the campaign.

        All charges of a member are read. Each has taken from the member's cap, unless its price
        was 0, so there are not many.
        """
        rows: dict[str, ChargeRow] = {}
        self.totals.update(dict.fromkeys(members, 0))
        entries = list(self._transaction.among(sql.ENTRIES_OF, members))
        self._read(seq for _, seq in entries)
        for member, seq in entries:
            charge = self._checked[seq]
            if charge.model == "joint":
                self.totals[member] += charge.epsilon_nano
            if charge.campaign == campaign:
                rows[member] = charge
        highest = max(self.totals.values(), default=0)
        expect(highest <= self.greatest_total, "a member's total does not fit")
        return rows

    def append(self, members: Sequence[str], price: BatchPrice, **about: Any) -> ChargeRow:
        """Add a charge for members that were looked up, and make its secret. The price may be 0.

        `about` gives the columns from ``key`` to ``note`` that do not follow from the rest.
        """
        joint = price.model == "joint"
        for member in members:
            self.totals[member] += price.epsilon_nano if joint else 0
        highest = max((self.totals[member] for member in members), default=0)
        row = ChargeRow(
            seq=self.count + 1,
            model=price.model,
            epsilon_nano=price.epsilon_nano,
            pooled_nano=price.pooled_nano,
            n_rows=len(members),
            members=members_digest(members),
            created=now(),
            public_total=self.public_total + (0 if joint else price.epsilon_nano),
            pooled_total=self.pooled_total + price.pooled_nano,
            greatest_total=max(self.greatest_total, highest),
            **about,
        )
        row = chained(row, self.head)
        self._transaction.insert("charges", [row])
        self._transaction.insert("charge_members", ((row.seq, member) for member in members))
        self._transaction.insert("secrets", [(row.key, secrets.token_hex(SECRET_BYTES))])
        self._end_with(row)
        return row

    def _end_with(self, row: ChargeRow) -> None:
        """Take count, head and running totals from the last charge."""
        self._checked[row.seq] = row
        self.count, self.head = row.seq, row.hash
        self.public_total, self.pooled_total = row.public_total, row.pooled_total
        self.greatest_total = row.greatest_total

    def _read(self, numbers: Iterable[int]) -> None:
        """Read the charges with these numbers, unless they were read before."""
        wanted = set(numbers) - self._checked.keys()
        around = sorted(wanted | {number - 1 for number in wanted})
        self._check([ChargeRow(*row) for row in self._transaction.among(sql.CHARGES_AT, around)])
        expect(wanted <= self._checked.keys(), "a charge is missing")

    def _check(self, rows: list[ChargeRow]) -> None:
        """Check and keep the rows whose predecessor is among `rows`, or that are the first."""
        hashes = {row.seq: row.hash for row in rows} | {0: self._start}
        for row in rows:
            if row.seq - 1 in hashes:
                fits = row == chained(row, hashes[row.seq - 1])
                expect(fits, f"charge {row.seq} was changed")
                self._checked[row.seq] = row
