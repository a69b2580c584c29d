"""All SQL of the ledger, for SQLite and PostgreSQL, in one place.

The statements are the same text for both (placeholders are written ``?``).

- ``ledger``: one row, the caps.
- ``charges``: one row for each batch, chained by hashes, with running totals. Each campaign starts
  with a zero-price entry whose artifact is its shared noisy statistics.
- ``charge_members``: who has a row in which batch. It holds no amounts: in the joint model every
  member of a batch is charged the batch's epsilon, in the public model nothing.
- ``releases``: one row for each charge whose artifact is written, chained by hashes.
- ``snapshots``: the generations of each label: declared (no fingerprint yet), and which graph it
  turned out to be, chained by hashes.
- ``secrets``: the secret of each charge that is not released yet. The only rows that are deleted.

The tables say ``snapshot`` for what all else calls a generation; their format has kept the name.
"""

from __future__ import annotations

from typing import NamedTuple

FORMAT = 4


class Header(NamedTuple):
    """The one row of table ``ledger``."""

    format: int
    ledger_id: str
    epsilon_nano: int
    pooled_nano: int | None
    created: str


class ChargeRow(NamedTuple):
    """A row of table ``charges``."""

    seq: int
    key: str  # names the artifact
    campaign: str  # the key of the campaign's first entry
    label: str
    generation: int  # column ``snapshot``
    fingerprint: str
    model: str
    epsilon_nano: int  # charged to each member (joint), or to everybody (public)
    pooled_nano: int  # charged to all members together
    n_rows: int  # of this batch,
    campaign_rows: int  # and of its campaign so far
    members: str  # digest of the batch's members
    code: str
    note: str
    created: str
    public_total: int  # charged to everybody so far
    pooled_total: int  # charged to all members together so far
    greatest_total: int  # charged to any one member so far, by rows of its own
    hash: str = ""


class ReleaseRow(NamedTuple):
    """A row of table ``releases``."""

    seq: int
    key: str
    sha256: str  # of the artifact
    created: str
    hash: str = ""


class GenerationRow(NamedTuple):
    """A row of table ``snapshots``: declared, and later, with a fingerprint, used."""

    seq: int
    label: str
    number: int
    fingerprint: str | None
    created: str
    hash: str = ""


TABLES = """
CREATE TABLE ledger (
    format BIGINT NOT NULL,
    ledger_id TEXT NOT NULL,
    epsilon_nano BIGINT NOT NULL,
    pooled_nano BIGINT,
    created TEXT NOT NULL
);
CREATE TABLE charges (
    seq BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    campaign TEXT NOT NULL,
    label TEXT NOT NULL,
    snapshot BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    model TEXT NOT NULL CHECK (model IN ('joint', 'public')),
    epsilon_nano BIGINT NOT NULL CHECK (epsilon_nano >= 0),
    pooled_nano BIGINT NOT NULL CHECK (pooled_nano >= 0),
    n_rows BIGINT NOT NULL,
    campaign_rows BIGINT NOT NULL,
    members TEXT NOT NULL,
    code TEXT NOT NULL,
    note TEXT NOT NULL,
    created TEXT NOT NULL,
    public_total BIGINT NOT NULL,
    pooled_total BIGINT NOT NULL,
    greatest_total BIGINT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX charges_by_campaign ON charges (campaign, seq);
CREATE TABLE charge_members (
    seq BIGINT NOT NULL REFERENCES charges (seq),
    member TEXT NOT NULL,
    PRIMARY KEY (member, seq)
);
CREATE INDEX charge_members_by_seq ON charge_members (seq);
CREATE TABLE releases (
    seq BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE REFERENCES charges (key),
    sha256 TEXT NOT NULL,
    created TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE snapshots (
    seq BIGINT PRIMARY KEY,
    label TEXT NOT NULL,
    number BIGINT NOT NULL,
    fingerprint TEXT,
    created TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE secrets (
    key TEXT PRIMARY KEY REFERENCES charges (key),
    secret TEXT NOT NULL
)
"""


GET_LEDGER = "SELECT * FROM ledger"  # in the order of `Header`; its first column is the format

_CHARGE = ", ".join(ChargeRow._fields).replace("generation", "snapshot")
GET_CHARGES = f"SELECT {_CHARGE} FROM charges ORDER BY seq"
CHARGES_AT = f"SELECT {_CHARGE} FROM charges WHERE seq IN ({{}})"
LAST_CHARGES = f"SELECT {_CHARGE} FROM charges ORDER BY seq DESC LIMIT 2"
CHARGE_OF_KEY = f"SELECT {_CHARGE} FROM charges WHERE key = ?"
NOTE_OF_KEY = "SELECT note FROM charges WHERE key = ?"
ROWS_SO_FAR = "SELECT campaign_rows FROM charges WHERE campaign = ? ORDER BY seq DESC LIMIT 1"
NOTES_OF_GENERATION = (
    "SELECT note FROM charges WHERE label = ? AND snapshot = ? ORDER BY seq LIMIT 1"
)
OPEN_OF_CAMPAIGN = (
    "SELECT seq FROM charges JOIN secrets ON secrets.key = charges.key WHERE campaign = ?"
)
_SHOWN_CHARGE = (
    "SELECT charges.seq, charges.created, charges.key, fingerprint, model, epsilon_nano, "
    "pooled_nano, note, releases.key IS NOT NULL, campaign, label, snapshot, n_rows, "
    "public_total + greatest_total FROM charges LEFT JOIN releases ON releases.key = charges.key "
)
SHOWN_CHARGES = f"{_SHOWN_CHARGE} WHERE n_rows > 0 ORDER BY charges.seq"
LATEST_CHARGES = f"{SHOWN_CHARGES} DESC LIMIT ?"
CHARGES_OF_MEMBER = (
    f"{_SHOWN_CHARGE} WHERE n_rows > 0 AND (model = 'public' OR charges.seq IN "
    "(SELECT seq FROM charge_members WHERE member = ?)) ORDER BY charges.seq"
)
LAST_OF = "SELECT seq, hash FROM {} ORDER BY seq DESC LIMIT 1"
HEAD = LAST_OF.format("charges")
HASH_AT = "SELECT hash FROM charges WHERE seq = ?"
CHARGED_KEYS = "SELECT key FROM charges WHERE key IN ({})"

MEMBERS_OF = "SELECT member FROM charge_members WHERE seq = ?"
ROWS_AT = "SELECT seq, member FROM charge_members WHERE seq IN ({})"
ENTRIES_OF = "SELECT member, seq FROM charge_members WHERE member IN ({})"
ENTRIES_WITHOUT_CHARGE = "SELECT seq FROM charge_members WHERE seq NOT IN (SELECT seq FROM charges)"
TOTALS = (
    "SELECT member, CAST(sum(epsilon_nano) AS BIGINT) FROM charge_members "
    "JOIN charges ON charges.seq = charge_members.seq "
    "WHERE model = 'joint' AND epsilon_nano > 0 GROUP BY member"
)

GET_RELEASES = "SELECT seq, key, sha256, created, hash FROM releases ORDER BY seq"
DIGEST_OF_KEY = "SELECT sha256 FROM releases WHERE key = ?"

GET_GENERATIONS = (
    "SELECT seq, label, number, fingerprint, created, hash FROM snapshots ORDER BY seq"
)

SECRET_OF_KEY = "SELECT secret FROM secrets WHERE key = ?"
KEYS_WITH_SECRET = "SELECT key FROM secrets"
ERASE_SECRET = "DELETE FROM secrets WHERE key = ?"
