"""The hash chains over a ledger's records: continued, checked, and audited as a whole.

Each row of ``charges``, ``releases`` and ``snapshots`` holds a hash of itself and of the hash of
the row before; the first one continues a hash of the caps. The chain detects accidents and edited
rows. It has no key: somebody who can write to the ledger can compute a whole new chain. That is
detected only by comparison with a head (the hash of the last charge) that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql
from edgeveil.ledger.prices import BatchPrice
from edgeveil.ledger.schema import ChargeRow, GenerationRow, Header, ReleaseRow
from edgeveil.ledger.transactions import Transaction

SECRET_BYTES = 32
Row = TypeVar("Row", ChargeRow, ReleaseRow, GenerationRow)


def first_hash(header: Header, table: str) -> str:
    """Where the chain of `table` begins."""
    return digest("edgeveil", table, *header)


def chained(row: Row, previous: str) -> Row:
    """The same row with the hash that continues the chain."""
    return row._replace(hash=digest(previous, *row[:-1]))


def append(transaction: Transaction, table: str, row: Row) -> Row:
    """Add a row to the end of a chained table; gives it with its number and hash."""
    last = transaction.run(sql.LAST_OF.format(table))
    seq, previous = last[0] if last else (0, first_hash(transaction.header, table))
    row = chained(row._replace(seq=seq + 1), previous)
    transaction.insert(table, [row])
    return row


def digest(*parts: str | int | None) -> str:
    """Hex SHA-256 of a list of plain values; JSON separates them unambiguously."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def members_digest(members: Iterable[str]) -> str:
    """The digest that represents the members of a batch in its charge, and so in the chain."""
    return digest(*sorted(members))


def now() -> str:
    """The time as text, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def expect(condition: bool, otherwise: str) -> None:
    """Raise LedgerError unless the ledger is as it was written."""
    if not condition:
        raise LedgerError(f"the ledger fails its check: {otherwise}")


def read_header(transaction: Transaction) -> Header:
    """The caps; LedgerError if the ledger has another format than this version's."""
    rows = transaction.run(sql.GET_LEDGER)
    expect(len(rows) == 1, "it has no header")
    if rows[0][0] != sql.FORMAT:
        raise LedgerError(
            f"the ledger has format {rows[0][0]}, and this version of edgeveil reads format "
            f"{sql.FORMAT} only; use the version that made it"
        )
    return Header(*rows[0])


class Charges:
    """What was charged so far.

    A row counts only if its hash continues that of the row before it. This is checked for the
    last charge, whose running totals are used, and for every charge that a member's total is
    added up from. `audit` checks the rest, so the work here does not grow with the ledger.

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
        unread = {seq for _, seq in entries} - self._checked.keys()
        around = sorted(unread | {number - 1 for number in unread})
        self._check([ChargeRow(*row) for row in self._transaction.among(sql.CHARGES_AT, around)])
        expect(unread <= self._checked.keys(), "a charge is missing")
        for member, seq in entries:
            charge = self._checked[seq]
            if charge.model == "joint":
                self.totals[member] += charge.epsilon_nano
            if charge.campaign == campaign:
                rows[member] = charge
        highest = max(self.totals.values(), default=0)
        expect(highest <= self.greatest_total, "a member's total does not fit")
        return rows

    def append(self, members: Sequence[str], price: BatchPrice, **columns: Any) -> ChargeRow:
        """Add a charge for members that were looked up, and make its secret. The price may be 0.

        `columns` gives those from ``key`` to ``note`` that do not follow from the rest.
        """
        joint = price.model == "joint"
        for member in members:
            self.totals[member] += price.epsilon_nano if joint else 0
        highest = max((self.totals[member] for member in members), default=0)
        row = ChargeRow(
            seq=0,
            model=price.model,
            epsilon_nano=price.epsilon_nano,
            pooled_nano=price.pooled_nano,
            n_rows=len(members),
            members=members_digest(members),
            created=now(),
            public_total=self.public_total + (0 if joint else price.epsilon_nano),
            pooled_total=self.pooled_total + price.pooled_nano,
            greatest_total=max(self.greatest_total, highest),
            **columns,
        )
        row = append(self._transaction, "charges", row)
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

    def _check(self, rows: list[ChargeRow]) -> None:
        """Check and keep the rows whose predecessor is among `rows`, or that are the first."""
        hashes = {row.seq: row.hash for row in rows} | {0: self._start}
        for row in rows:
            if row.seq - 1 in hashes:
                fits = row == chained(row, hashes[row.seq - 1])
                expect(fits, f"charge {row.seq} was changed")
                self._checked[row.seq] = row


class Audit(NamedTuple):
    """What a ledger holds that passed the audit."""

    hashes: list[str]
    keys: set[str]
    releases: list[ReleaseRow]


def audit(transaction: Transaction) -> Audit:
    """Recompute hashes, totals, caps and secrets; LedgerError at the first mismatch."""
    header = transaction.header
    hashes, keys = [first_hash(header, "charges")], set()
    public = pooled = greatest = 0
    totals: Counter[str] = Counter()
    rows_of: Counter[str] = Counter()
    used_generations = set()
    charges = (ChargeRow(*row) for row in transaction.run(sql.GET_CHARGES))
    for charge in _walk(charges, hashes[0], "charge"):
        what = f"charge {charge.seq} was changed"
        members = [member for (member,) in transaction.run(sql.MEMBERS_OF, charge.seq)]
        rows_of[charge.campaign] += len(members)
        expect(charge.members == members_digest(members), f"{what}: its members do not fit")
        counts = (charge.n_rows, charge.campaign_rows)
        expect(counts == (len(members), rows_of[charge.campaign]), f"{what}: its rows do not fit")
        pooled += charge.pooled_nano
        if charge.model == "public":
            public += charge.epsilon_nano
        else:
            totals.update(dict.fromkeys(members, charge.epsilon_nano))
            greatest = max(greatest, max((totals[member] for member in members), default=0))
        running = (charge.public_total, charge.pooled_total, charge.greatest_total)
        expect(running == (public, pooled, greatest), f"{what}: its totals do not fit")
        hashes.append(charge.hash)
        keys.add(charge.key)
        used_generations.add((charge.label, charge.generation, charge.fingerprint))
    fits = header.pooled_nano is None or pooled <= header.pooled_nano
    expect(fits and public + greatest <= header.epsilon_nano, "more is charged than the cap allows")
    expect(not transaction.run(sql.ENTRIES_WITHOUT_CHARGE), "a charge is missing")
    rows = (ReleaseRow(*row) for row in transaction.run(sql.GET_RELEASES))
    releases = list(_walk(rows, first_hash(header, "releases"), "release"))
    released = {release.key for release in releases}
    expect(released <= keys, "a release has no charge")
    open_keys = {key for (key,) in transaction.run(sql.KEYS_WITH_SECRET)}
    expect(open_keys == keys - released, "secrets and open batches do not match")
    generations = (GenerationRow(*row) for row in transaction.run(sql.GET_GENERATIONS))
    walked = list(_walk(generations, first_hash(header, "snapshots"), "generation"))
    declared = {(row.label, row.number, row.fingerprint) for row in walked}
    expect(used_generations <= declared, "a generation is missing")
    return Audit(hashes, keys, releases)


def _walk(rows: Iterable[Row], previous: str, what: str) -> Iterator[Row]:
    """Yield the rows of a chain; LedgerError at the first that does not continue it."""
    for number, row in enumerate(rows, start=1):
        expect(row.seq == number, f"{what} {number} is missing")
        expect(row == chained(row, previous), f"{what} {number} was changed")
        previous = row.hash
        yield row
