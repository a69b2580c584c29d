"""Places for ledgers: a SQLite file, and a schema on a real PostgreSQL server."""

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from edgeveil.ledger import Batch, Campaign, Charged, Ledger
from edgeveil.privacy.guarantee import Guarantee
from tests.forks import WORKER, Forks, Process
from tests.postgres import PostgresServer


@dataclass(frozen=True)
class Place:
    """Where a test keeps its ledger, and ways to reach it behind the ledger's back."""

    location: str
    artifacts: Path
    forks: Forks

    @property
    def is_sqlite(self) -> bool:
        return "://" not in self.location

    def create(self, epsilon: float, **caps: float | None) -> Ledger:
        return Ledger.create(self.location, epsilon=epsilon, artifacts=self.artifacts, **caps)

    def open(self) -> Ledger:
        return Ledger.open(self.location, artifacts=self.artifacts)

    def raw(self, *statements: str) -> list[tuple]:
        """Run SQL with no ledger in between; returns the rows of the last statement."""
        if self.is_sqlite:
            connection = sqlite3.connect(self.location, isolation_level=None, timeout=30)
        else:
            import psycopg

            url, _, schema = self.location.partition("#")
            connection = psycopg.connect(url, autocommit=True)
            connection.execute(f"SET search_path TO {schema}")
        try:
            for statement in statements:
                cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def start(self, *arguments: str) -> Process:
        """Start worker.py on this place."""
        words = (self.location, str(self.artifacts), *arguments)
        return self.forks.start(WORKER, *words, stdout="stdout", stderr=2)


class Asked(NamedTuple):
    """Rows at a price: what the guarantee of so many is, and whose they are."""

    guarantee: Callable[[int], Guarantee]
    members: tuple[str, ...]


def public(epsilon: float) -> Asked:
    """One row for everybody to see."""
    claim = Guarantee(epsilon=epsilon, model="public", theorem="test")
    return Asked(lambda n: replace(claim, n_members=n), ("anything",))


def joint(epsilon: float, *members: str, **claim: object) -> Asked:
    """A row for each member."""
    guarantee = Guarantee(epsilon=epsilon, model="joint", theorem="test", **claim)
    return Asked(lambda n: replace(guarantee, n_members=n), members)


def charge(ledger: Ledger, question: str, asked: Asked, **options: object) -> Charged:
    """Charge rows of the campaign that answers this question."""
    campaign = Campaign(identity=question, guarantee=asked.guarantee, **options)
    return ledger.charge(campaign, asked.members)


def reserve(ledger: Ledger, question: str, asked: Asked, **options: object) -> Batch:
    """The same, with all rows in one batch, and nothing that they share."""
    charged = charge(ledger, question, asked, **options)
    charged.shared.store(lambda path: path.write_text("shared"))
    (batch,) = charged.batches
    return batch


for helper in (public, joint, charge, reserve):
    globals()[f"{helper.__name__}_fixture"] = pytest.fixture(name=helper.__name__)(
        lambda helper=helper: helper
    )


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """URL of a PostgreSQL server that lives as long as the test session."""
    return postgres_server.url


SCHEMAS = itertools.count()


@pytest.fixture
def sqlite_place(tmp_path: Path, forks: Forks) -> Place:
    return Place(str(tmp_path / "budget.db"), tmp_path / "budget.db.artifacts", forks)


@pytest.fixture
def postgres_place(postgres_url: str, tmp_path: Path, forks: Forks) -> Place:
    return Place(f"{postgres_url}#t{next(SCHEMAS)}", tmp_path / "artifacts", forks)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(f"{request.param}_place")


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path, forks: Forks):
    """A function that gives another place at each call, for tests with many ledgers."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None

    def another() -> Place:
        name = f"t{next(SCHEMAS)}"
        location = f"{url}#{name}" if url else str(tmp_path / name)
        return Place(location, tmp_path / f"{name}.artifacts", forks)

    return another
