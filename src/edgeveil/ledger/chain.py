"""The hash chains over a ledger's records, and the check that recomputes everything from them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from edgeveil.errors import LedgerError
from edgeveil.ledger import tables as sql
from edgeveil.ledger.tables import Header, ReleaseRow, SnapshotRow, SpendRow, Transaction

Row = TypeVar("Row", SpendRow, ReleaseRow, SnapshotRow)


def first_hash(header: Header, table: str) -> str:
    """Where the chain of `table` begins: the same for all versions."""
    window = () if header.window is None else (header.window,)
    return digest("edgeveil", table, 1, *header[1:5], *window)


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


class _Spent(NamedTuple):
    """What the spends of one snapshot (without a window: all) cost everybody and all who pool."""

    own: Counter[str]  # of recipients
    shared: Counter[str]  # "public" and "pooled"


def _check_caps(header: Header, spent: dict[int, _Spent]) -> None:
    """Expect that no cap is exceeded, by any so many snapshots one after the other."""
    within = _Spent(Counter(), Counter())
    for last in sorted(spent):
        for sums, more in zip(within, spent[last], strict=True):
            sums.update(more)
        for gone in [n for n in spent if header.window and 0 < n <= last - header.window]:
            for sums, less in zip(within, spent.pop(gone), strict=True):
                sums.subtract(less)
        most, pooled_cap = max(within.own.values(), default=0), header.pooled_nano
        fits = pooled_cap is None or within.shared["pooled"] <= pooled_cap
        fits = fits and within.shared["public"] + most <= header.epsilon_nano
        expect(fits, "more is spent than the cap allows")


def audit(transaction: Transaction) -> Checked:
    """Recompute hashes, totals, caps and secrets; LedgerError at the first that does not fit."""
    header = transaction.header
    first = header.schema_version == 1
    hashes, keys = [first_hash(header, "spends")], set()
    public = pooled = greatest = 0
    totals: dict[str, int] = {}
    rows_of: Counter[str] = Counter()
    spent: dict[int, _Spent] = defaultdict(lambda: _Spent(Counter(), Counter()))
    for spend in _walk(_spends(transaction), hashes[0], "spend"):
        what = f"spend {spend.seq} was changed"
        costs = transaction.run(sql.RECIPIENTS_OF, spend.seq)
        per_recipient = {recipient: nano for recipient, nano, _, _ in costs}
        expected = charge_digest(spend.model, spend.epsilon_nano, spend.pooled_nano, per_recipient)
        expect(spend.charge == expected, f"{what}: its recipients do not fit")
        to_all = spend.epsilon_nano if spend.model == "public" else 0
        public, pooled = public + to_all, pooled + spend.pooled_nano
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
        here = spent[(spend.snapshot or 0) if header.window else 0]
        here.own.update(per_recipient)
        here.shared.update(public=to_all, pooled=spend.pooled_nano)
        hashes.append(spend.hash)
        keys.add(spend.key)
    _check_caps(header, spent)
    expect(not transaction.run(sql.ORPHAN_RECIPIENT_SPENDS), "a spend is missing")
    rows = (ReleaseRow(*row) for row in transaction.run(sql.GET_RELEASES))
    releases = list(_walk(rows, first_hash(header, "releases"), "release"))
    released = {release.key for release in releases}
    expect(released <= keys, "a release has no spend")
    secret = {key for (key,) in transaction.run(sql.KEYS_WITH_SECRET)}
    expect(secret == keys - released, "secrets and open reservations do not match")
    snapshots = (SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS))
    list(_walk(snapshots, first_hash(header, "snapshots"), "snapshot"))
    return Checked(hashes, keys, releases)


def upgrade(transaction: Transaction) -> None:
    """Complete an older ledger; if anything fails the check, all is undone."""
    transaction.header = read_header(transaction)
    version = transaction.header.schema_version
    if version == sql.SCHEMA_VERSION:  # another process was faster
        return
    with sql.completing(transaction, version):
        audit(transaction)
        for spend in _spends(transaction) if version == 1 else ():
            costs = transaction.run(sql.RECIPIENTS_OF, spend.seq)
            seals = [(seal_of(spend.hash, *cost[:3]), spend.seq, cost[0]) for cost in costs]
            transaction.many(sql.SET_SEAL, seals)


def _spends(transaction: Transaction) -> list[SpendRow]:
    return [SpendRow(*row) for row in transaction.run(sql.GET_SPENDS)]


def _walk(rows: Iterable[Row], previous: str, what: str) -> Iterator[Row]:
    """Give the rows of a chain as long as each continues it."""
    for number, row in enumerate(rows, start=1):
        expect(row.seq == number, f"{what} {number} is missing")
        expect(row == sealed(row, previous), f"{what} {number} was changed")
        previous = row.hash
        yield row
