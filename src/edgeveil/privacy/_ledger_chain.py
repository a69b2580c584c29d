"""The hash chain over a ledger's records, and the audit that recomputes everything from it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from edgeveil.errors import LedgerError
from edgeveil.privacy import _ledger_sql as sql
from edgeveil.privacy._ledger_files import sha256_of
from edgeveil.privacy._ledger_store import Transaction


class Header(NamedTuple):
    """The one row of table ``ledger``."""

    schema_version: int
    ledger_id: str
    epsilon_nano: int
    pooled_nano: int | None
    created: str

    def hash(self, table: str) -> str:
        """Where the chain of `table` begins."""
        return digest("edgeveil", table, *self)


class SpendRow(NamedTuple):
    """A row of table ``spends``."""

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
    hash: str = ""

    def sealed(self, previous: str) -> SpendRow:
        """The same row with the hash that ties it to the row before."""
        return self._replace(hash=digest(previous, *self[:-1]))


class ReleaseRow(NamedTuple):
    """A row of table ``releases``."""

    seq: int
    key: str
    name: str
    sha256: str
    created: str
    hash: str = ""

    def sealed(self, previous: str) -> ReleaseRow:
        """The same row with the hash that ties it to the row before."""
        return self._replace(hash=digest(previous, *self[:-1]))


def digest(*parts: str | int | None) -> str:
    """Hex SHA-256 of plain values, without ambiguity between their borders."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def charge_digest(
    model: str, epsilon_nano: int, pooled_nano: int, per_recipient: dict[str, int]
) -> str:
    """Tell charges apart without loading all their recipients."""
    flat = [item for pair in sorted(per_recipient.items()) for item in pair]
    return digest(model, epsilon_nano, pooled_nano, *flat)


def read_header(transaction: Transaction) -> Header:
    """Read the caps."""
    rows = transaction.run(sql.GET_LEDGER)
    if len(rows) != 1:
        raise LedgerError("the ledger is damaged: it has no header")
    return Header(*rows[0])


def audit(transaction: Transaction, known_head: str | None, artifacts: Path | None) -> str:
    """Recompute hashes, totals, caps and secrets; return the hash of the last spend.

    Raises
    ------
    LedgerError
        At the first thing that does not fit.
    """
    header = read_header(transaction)
    hashes = [header.hash("spends")]
    keys = set()
    public = pooled = 0
    totals: dict[str, int] = {}
    for row in transaction.run(sql.GET_SPENDS):
        spend = SpendRow(*row)
        _expect(spend.seq == len(hashes), f"spend {len(hashes)} is missing")
        what = f"spend {spend.seq} was changed"
        _expect(spend == spend.sealed(hashes[-1]), what)
        costs = transaction.run(sql.GET_RECIPIENT_SPENDS, spend.seq)
        per_recipient = {recipient: nano for recipient, nano, _ in costs}
        expected = charge_digest(spend.model, spend.epsilon_nano, spend.pooled_nano, per_recipient)
        _expect(spend.charge == expected, f"{what}: its recipients do not fit")
        public += spend.epsilon_nano if spend.model == "public" else 0
        pooled += spend.pooled_nano
        _expect((public, pooled) == (spend.public_total, spend.pooled_total), what)
        for recipient, nano, total in costs:
            totals[recipient] = totals.get(recipient, 0) + nano
            _expect(totals[recipient] == total, f"{what}: a recipient's total does not fit")
        hashes.append(spend.hash)
        keys.add(spend.key)
    _expect(not transaction.run(sql.ORPHAN_RECIPIENT_SPENDS), "a spend is missing")
    _expect(
        public + max(totals.values(), default=0) <= header.epsilon_nano
        and (header.pooled_nano is None or pooled <= header.pooled_nano),
        "more is spent than the cap allows",
    )
    if known_head is not None and known_head not in hashes:
        raise LedgerError(
            "the ledger does not contain the head you noted: records were removed or rewritten"
        )
    released = _audit_releases(transaction, header, keys, artifacts)
    secret = {key for (key,) in transaction.run(sql.KEYS_WITH_SECRET)}
    _expect(secret == keys - released, "secrets and open reservations do not match")
    return hashes[-1]


def _audit_releases(
    transaction: Transaction, header: Header, keys: set[str], artifacts: Path | None
) -> set[str]:
    """Check the chain of releases and, given a folder, the artifacts; return the keys."""
    previous = header.hash("releases")
    released = set()
    for number, row in enumerate(transaction.run(sql.GET_RELEASES), start=1):
        release = ReleaseRow(*row)
        _expect(release.seq == number, f"release {number} is missing")
        _expect(release == release.sealed(previous), f"release {number} was changed")
        _expect(release.key in keys, f"release {number} has no spend")
        if artifacts is not None:
            path = artifacts / release.name
            _expect(path.is_file(), f"the artifact of release {number} is gone")
            _expect(sha256_of(path) == release.sha256, f"the artifact of release {number} changed")
        previous = release.hash
        released.add(release.key)
    return released


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise LedgerError(f"the ledger fails its check: {otherwise}")
