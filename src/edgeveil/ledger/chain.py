"""The hash chains over a ledger's records, and the audit that recomputes everything from them.

Each row of ``charges``, ``releases`` and ``snapshots`` holds a hash of itself and of the hash of
the row before; the first one continues a hash of the caps. The chain detects accidents and edited
rows. It has no key: somebody who can write to the ledger can compute a whole new chain. That is
detected only by comparison with a head (the hash of the last charge) that was noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from edgeveil.errors import LedgerError
from edgeveil.ledger import schema as sql
from edgeveil.ledger.schema import ChargeRow, Header, ReleaseRow, SnapshotRow, Transaction

Row = TypeVar("Row", ChargeRow, ReleaseRow, SnapshotRow)


def first_hash(header: Header, table: str) -> str:
    """Where the chain of `table` begins."""
    return digest("edgeveil", table, *header)


def chained(row: Row, previous: str) -> Row:
    """The same row with the hash that continues the chain."""
    return row._replace(hash=digest(previous, *row[:-1]))


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


class Audit(NamedTuple):
    """What a ledger holds that passed the audit."""

    hashes: list[str]
    keys: set[str]
    releases: list[ReleaseRow]


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


def audit(transaction: Transaction) -> Audit:
    """Recompute hashes, totals, caps and secrets; LedgerError at the first mismatch."""
    header = transaction.header
    hashes, keys = [first_hash(header, "charges")], set()
    public = pooled = greatest = 0
    totals: Counter[str] = Counter()
    rows_of: Counter[str] = Counter()
    used = set()
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
        found = (charge.public_total, charge.pooled_total, charge.greatest_total)
        expect(found == (public, pooled, greatest), f"{what}: its totals do not fit")
        hashes.append(charge.hash)
        keys.add(charge.key)
        used.add((charge.label, charge.snapshot, charge.fingerprint))
    fits = header.pooled_nano is None or pooled <= header.pooled_nano
    expect(fits and public + greatest <= header.epsilon_nano, "more is charged than the cap allows")
    expect(not transaction.run(sql.ENTRIES_WITHOUT_CHARGE), "a charge is missing")
    rows = (ReleaseRow(*row) for row in transaction.run(sql.GET_RELEASES))
    releases = list(_walk(rows, first_hash(header, "releases"), "release"))
    released = {release.key for release in releases}
    expect(released <= keys, "a release has no charge")
    secret = {key for (key,) in transaction.run(sql.KEYS_WITH_SECRET)}
    expect(secret == keys - released, "secrets and open batches do not match")
    snapshots = (SnapshotRow(*row) for row in transaction.run(sql.GET_SNAPSHOTS))
    walked = list(_walk(snapshots, first_hash(header, "snapshots"), "snapshot"))
    declared = {(row.label, row.number, row.fingerprint) for row in walked}
    expect(used <= declared, "a snapshot is missing")
    return Audit(hashes, keys, releases)


def _walk(rows: Iterable[Row], previous: str, what: str) -> Iterator[Row]:
    """Yield the rows of a chain; LedgerError at the first that does not continue it."""
    for number, row in enumerate(rows, start=1):
        expect(row.seq == number, f"{what} {number} is missing")
        expect(row == chained(row, previous), f"{what} {number} was changed")
        previous = row.hash
        yield row
