"""The table of charges within one transaction: read with a check, and appended to."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from edgeveil.ledger import tables as sql
from edgeveil.ledger.chain import chained, expect, first_hash, members_digest, now
from edgeveil.ledger.prices import BatchPrice
from edgeveil.ledger.tables import ChargeRow, Transaction

SECRET_BYTES = 32


class Charges:
    """What was charged so far.

    Nothing is believed that does not continue the hash chain: neither the running totals of the
    last charge nor the charges that a member's total is added up from. The rest of the chain is
    for `chain.audit`, so the work does not grow with the ledger.

    Attributes
    ----------
    count, head : int, str
        Number of charges, and the hash of the last one.
    public_total, pooled_total, greatest_total : int
        Charged so far to everybody, to all members together, and to any one member for rows of
        its own, in nano-epsilons.
    totals : dict
        What the members that were looked up were charged for rows of their own.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._start = first_hash(transaction.header, "charges")
        self._known: dict[int, ChargeRow] = {}
        self.count, self.head, self.totals = 0, self._start, dict[str, int]()
        self.public_total = self.pooled_total = self.greatest_total = 0
        last = [ChargeRow(*row) for row in transaction.run(sql.LAST_CHARGES)]
        self._check(last)
        for row in last[:1]:
            expect(row.seq in self._known, "a charge is missing")
            self._end_with(row)

    def look_up(self, members: Sequence[str], campaign: str = "") -> dict[str, ChargeRow]:
        """Set the totals of these members; gives who has a row in the campaign, and its charge.

        All charges of a member are read. Each has taken from the member's cap, unless its price
        was 0, so there are not many.
        """
        rows: dict[str, ChargeRow] = {}
        self.totals.update(dict.fromkeys(members, 0))
        for start in range(0, len(members), 500):
            some = members[start : start + 500]
            entries = list(self._transaction.among(sql.ENTRIES_OF, some))
            self._read(seq for _, seq in entries)
            for member, seq in entries:
                charge = self._known[seq]
                if charge.model == "joint":
                    self.totals[member] += charge.epsilon_nano
                if charge.campaign == campaign:
                    rows[member] = charge
        greatest = max(self.totals.values(), default=0)
        expect(greatest <= self.greatest_total, "a member's total does not fit")
        return rows

    def append(
        self,
        *,
        key: str,
        members: Sequence[str],
        price: BatchPrice,
        campaign: str,
        campaign_rows: int,
        label: str,
        snapshot: int,
        fingerprint: str,
        code: str,
        note: str,
    ) -> ChargeRow:
        """Add a charge for members that were looked up, and make its secret. The price may be 0."""
        each, public = (
            (price.epsilon_nano, 0) if price.model == "joint" else (0, price.epsilon_nano)
        )
        self.totals.update({member: self.totals[member] + each for member in members})
        greatest = max((self.totals[member] for member in members), default=0)
        row = ChargeRow(
            seq=self.count + 1,
            key=key,
            campaign=campaign,
            label=label,
            snapshot=snapshot,
            fingerprint=fingerprint,
            model=price.model,
            epsilon_nano=price.epsilon_nano,
            pooled_nano=price.pooled_nano,
            n_rows=len(members),
            campaign_rows=campaign_rows,
            members=members_digest(members),
            code=code,
            note=note,
            created=now(),
            public_total=self.public_total + public,
            pooled_total=self.pooled_total + price.pooled_nano,
            greatest_total=max(self.greatest_total, greatest),
        )
        row = chained(row, self.head)
        self._transaction.fill("charges", [row])
        self._transaction.fill("charge_members", ((row.seq, member) for member in members))
        self._transaction.fill("secrets", [(key, secrets.token_hex(SECRET_BYTES))])
        self._end_with(row)
        return row

    def _end_with(self, row: ChargeRow) -> None:
        self._known[row.seq] = row
        self.count, self.head = row.seq, row.hash
        self.public_total, self.pooled_total = row.public_total, row.pooled_total
        self.greatest_total = row.greatest_total

    def _read(self, numbers: Iterable[int]) -> None:
        """Read the charges with these numbers that are not known yet."""
        wanted = set(numbers) - self._known.keys()
        around = sorted(wanted | {number - 1 for number in wanted})
        self._check([ChargeRow(*row) for row in self._transaction.among(sql.CHARGES_AT, around)])
        expect(wanted <= self._known.keys(), "a charge is missing")

    def _check(self, rows: list[ChargeRow]) -> None:
        """Know those of the rows that come after another one of them, or first, and fit."""
        hashes = {row.seq: row.hash for row in rows} | {0: self._start}
        for row in rows:
            if row.seq - 1 in hashes:
                fits = row == chained(row, hashes[row.seq - 1])
                expect(fits, f"charge {row.seq} was changed")
                self._known[row.seq] = row
