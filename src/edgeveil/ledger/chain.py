"""The hash chains over a ledger's records, and the check that recomputes everything from them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from edgeveil.errors import LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.tables import Transaction


class Header(NamedTuple):
    """The one row of table ``ledger``."""

    schema_version: int
    ledger_id: str
    epsilon_nano: int
    pooled_nano: int | None
    created: str
    window: int | None = None

    def hash(self, table: str) -> str:
        """Where the chain of `table` begins: the same for all versions."""
        window = () if self.window is None else (self.window,)
        return digest("edgeveil", table, 1, *self[1:5], *window)


class SpendRow(NamedTuple):
    """A row of table ``spends``.

    A row of version 1 has no `greatest_total`, and one before version 3 nothing of what follows.
    `n_rows` are the rows of this batch, `campaign_rows` those of its campaign so far.
    """

    seq: int
    key: str
    fingerprint: str
    model: str
    epsilon_nano: int
    pooled_nano: int
    charge: str
    note: str
    created: str
    public_total: int
    pooled_total: int
    greatest_total: int | None
    campaign: str | None
    label: str | None
    snapshot: int | None
    n_rows: int | None
    campaign_rows: int | None
    code: str | None
    hash: str = ""


class ReleaseRow(NamedTuple):
    """A row of table ``releases``."""

    seq: int
    key: str
    name: str
    sha256: str
    created: str
    hash: str = ""


class SnapshotRow(NamedTuple):
    """A row of table ``snapshots``: declared, and later, with a fingerprint, used."""

    seq: int
    label: str
    number: int
    fingerprint: str | None
    created: str
    hash: str = ""


Row = TypeVar("Row", SpendRow, ReleaseRow, SnapshotRow)


def sealed(row: Row, previous: str) -> Row:
    """The same row with the hash that ties it to the row before."""
    return row._replace(hash=digest(previous, *[part for part in row[:-1] if part is not None]))


def digest(*parts: str | int | None) -> str:
    """Hex SHA-256 of plain values, without ambiguity between their borders."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def now() -> str:
    """Tell the time for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def charge_digest(
    model: str, epsilon_nano: int, pooled_nano: int, per_recipient: dict[str, int]
) -> str:
    """Tell charges apart without loading all their recipients."""
    flat = [item for pair in sorted(per_recipient.items()) for item in pair]
    return digest(model, epsilon_nano, pooled_nano, *flat)


def seal_of(spend_hash: str, recipient: str, nano: int, total: int) -> str:
    """Tie a recipient's running total to the spend it came with."""
    text = f"{spend_hash} {nano} {total} {recipient}"  # the name last: it may hold anything
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def expect(condition: bool, otherwise: str) -> None:
    """Raise LedgerError unless the ledger is as it was written."""
    if not condition:
        raise LedgerError(f"the ledger fails its check: {otherwise}")


class Checked(NamedTuple):
    """What a whole ledger holds, after the check."""

    hashes: list[str]
    keys: set[str]
    releases: list[ReleaseRow]


def read_header(transaction: Transaction) -> Header:
    """Read the caps, from a ledger of a version that is known."""
    rows = transaction.run(sql.GET_LEDGER)
    expect(len(rows) == 1, "it has no header")
    version = rows[0][0]
    if not 1 <= version <= sql.SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger has schema version {version}, this edgeveil knows "
            f"{sql.SCHEMA_VERSION}; use the edgeveil that made it"
        )
    return Header(*rows[0])


class _Caps:
    """What is spent in the last snapshots (without a window: in all), held against the caps."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._sums: Counter[str | None] = Counter()  # of recipients; of everybody under None
        self._pooled = 0
        self._snapshots: deque[tuple[int, list[tuple[int, dict[str | None, int]]]]] = deque()

    def add(self, spend: SpendRow, own: dict[str, int]) -> None:
        """Count a spend, and forget those that have left the window."""
        public = spend.epsilon_nano if spend.model == "public" else 0
        costs = dict[str | None, int]({None: public}) | own
        window = self._header.window
        if window is not None and spend.snapshot is not None:
            if not self._snapshots or self._snapshots[-1][0] != spend.snapshot:
                self.check()  # sums only rise within a snapshot: at its end is early enough
                self._snapshots.append((spend.snapshot, []))
            self._snapshots[-1][1].append((spend.pooled_nano, costs))
            while self._snapshots[0][0] <= spend.snapshot - window:
                for pooled, gone in self._snapshots.popleft()[1]:
                    self._pooled -= pooled
                    self._sums.subtract(gone)
        self._pooled += spend.pooled_nano
        self._sums.update(costs)

    def check(self) -> None:
        """Expect that no cap is exceeded."""
        most = max((n for name, n in self._sums.items() if name is not None), default=0)
        cap, pooled_cap = self._header.epsilon_nano, self._header.pooled_nano
        fits = pooled_cap is None or self._pooled <= pooled_cap
        expect(fits and self._sums[None] + most <= cap, "more is spent than the cap allows")


def audit(transaction: Transaction, header: Header) -> Checked:
    """Recompute hashes, totals, caps and secrets; LedgerError at the first that does not fit."""
    first = header.schema_version == 1
    hashes, keys = [header.hash("spends")], set()
    public = pooled = greatest = 0
    totals: dict[str, int] = {}
    rows_of: Counter[str] = Counter()
    caps = _Caps(header)
    for spend in _walk(_spends(transaction), hashes[0], "spend"):
        what = f"spend {spend.seq} was changed"
        costs = transaction.run(sql.RECIPIENTS_OF, spend.seq)
        per_recipient = {recipient: nano for recipient, nano, _, _ in costs}
        expected = charge_digest(spend.model, spend.epsilon_nano, spend.pooled_nano, per_recipient)
        expect(spend.charge == expected, f"{what}: its recipients do not fit")
        public += spend.epsilon_nano if spend.model == "public" else 0
        pooled += spend.pooled_nano
        for recipient, nano, total, seal in costs:
            totals[recipient] = totals.get(recipient, 0) + nano
            fits = first or seal == seal_of(spend.hash, recipient, nano, total)
            expect(fits and totals[recipient] == total, f"{what}: a recipient's total does not fit")
            greatest = max(greatest, total)
        sums = (public, pooled, greatest)
        found = (spend.public_total, spend.pooled_total, spend.greatest_total)
        expect(found in (sums, (*sums[:2], None)), what)
        if spend.campaign is not None:
            rows_of[spend.campaign] += len(costs)
            counts = (len(costs), rows_of[spend.campaign])
            expect((spend.n_rows, spend.campaign_rows) == counts, f"{what}: its rows do not fit")
        caps.add(spend, per_recipient)
        hashes.append(spend.hash)
        keys.add(spend.key)
    caps.check()
    expect(not transaction.run(sql.ORPHAN_RECIPIENT_SPENDS), "a spend is missing")
    rows = (ReleaseRow(*row) for row in transaction.run(sql.GET_RELEASES))
    releases = list(_walk(rows, header.hash("releases"), "release"))
    released = {release.key for release in releases}
    expect(released <= keys, "a release has no spend")
    secret = {key for (key,) in transaction.run(sql.KEYS_WITH_SECRET)}
    expect(secret == keys - released, "secrets and open reservations do not match")
    snapshots = (SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS))
    list(_walk(snapshots, header.hash("snapshots"), "snapshot"))
    return Checked(hashes, keys, releases)


def upgrade(transaction: Transaction) -> None:
    """Complete an older ledger; if anything fails the check, all is undone."""
    header = read_header(transaction)
    version = header.schema_version

    def seals() -> list[tuple[str, int, str]]:
        audit(transaction, header)
        if version > 1:
            return []
        return [
            (seal_of(spend.hash, recipient, nano, total), spend.seq, recipient)
            for spend in _spends(transaction)
            for recipient, nano, total, _ in transaction.run(sql.RECIPIENTS_OF, spend.seq)
        ]

    if version < sql.SCHEMA_VERSION:  # unless another process was faster
        sql.complete(transaction, version, seals)


def _spends(transaction: Transaction) -> list[SpendRow]:
    return [SpendRow(*row) for row in transaction.run(sql.GET_SPENDS)]


def _walk(rows: Iterable[Row], previous: str, what: str) -> Iterator[Row]:
    """Give the rows of a chain as long as each continues it."""
    for number, row in enumerate(rows, start=1):
        expect(row.seq == number, f"{what} {number} is missing")
        expect(row == sealed(row, previous), f"{what} {number} was changed")
        previous = row.hash
        yield row
