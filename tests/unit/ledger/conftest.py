"""Places for ledgers: a SQLite file, and a schema on a real PostgreSQL server."""

import glob
import itertools
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from edgeveil.ledger import Batch, Campaign, Charged, Ledger
from edgeveil.privacy.guarantee import Guarantee

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Place:
    """Where a test keeps its ledger, and ways to reach it behind the ledger's back."""

    location: str
    artifacts: Path

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

    def drop_triggers(self, table: str) -> None:
        if self.is_sqlite:
            names = self.raw(
                f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
            )
            self.raw(*[f"DROP TRIGGER {name}" for (name,) in names])
        else:
            self.raw(f"ALTER TABLE {table} DISABLE TRIGGER USER")

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start worker.py on this place."""
        return subprocess.Popen(
            [sys.executable, str(WORKER), self.location, str(self.artifacts), *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )


class Asked(NamedTuple):
    """Rows at a price: what the guarantee of so many is, and whose they are."""

    guarantee: Callable[[int], Guarantee]
    recipients: tuple[str, ...]


def public(epsilon: float) -> Asked:
    """One row for everybody to see."""
    claim = Guarantee(epsilon=epsilon, model="public", theorem="test")
    return Asked(lambda n: replace(claim, n_sources=n), ("anything",))


def joint(epsilon: float, *recipients: str, **claim: object) -> Asked:
    """A row for each recipient."""
    one = Guarantee(epsilon=epsilon, model="joint", theorem="test", **claim)
    return Asked(lambda n: replace(one, n_sources=n), recipients)


def charge(ledger: Ledger, question: str, asked: Asked, **about: object) -> Charged:
    """Charge rows of the campaign that answers this question."""
    campaign = Campaign(question=question, guarantee=asked.guarantee, **about)
    return ledger.charge(campaign, asked.recipients)


def reserve(ledger: Ledger, question: str, asked: Asked, **about: object) -> Batch:
    """The same, with all rows in one batch, and nothing that they share."""
    charged = charge(ledger, question, asked, **about)
    charged.shared.store(lambda path: path.write_text("shared"))
    (batch,) = charged.batches
    return batch


for helper in (public, joint, charge, reserve):
    globals()[f"{helper.__name__}_fixture"] = pytest.fixture(name=helper.__name__)(
        lambda helper=helper: helper
    )


def server_programs() -> Path | None:
    """Folder of initdb and pg_ctl, if a PostgreSQL server is installed."""
    found = shutil.which("initdb")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    folders += [str(Path(found).resolve().parent)] if found else []
    for folder in map(Path, folders):
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server that lives as long as the test session."""
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server (initdb, pg_ctl) is installed")
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        names = [entry.pw_name for entry in pwd.getpwall()]
        user = next((name for name in ("postgres", "nobody") if name in names), None)
        if user is None:
            pytest.skip("the tests run as root and there is no other user to run PostgreSQL")
    home = Path(tempfile.mkdtemp(prefix="edgeveil-pg-"))  # short: a socket's path is limited
    data = home / "data"
    if user:
        shutil.chown(home, user)

    def call(program: str, *arguments: str) -> None:
        with (home / "calls.log").open("a+") as log:
            done = subprocess.run(
                [str(programs / program), "-D", str(data), *arguments],
                stdout=log,
                stderr=log,
                cwd=home,
                user=user,
                extra_groups=[] if user else None,
                check=False,
            )
            log.seek(0)
            assert done.returncode == 0, log.read()

    call("initdb", "-U", "edgeveil", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories={home} -c max_connections=60"
    call("pg_ctl", "start", "-w", "-l", str(home / "server.log"), "-o", options)
    try:
        yield f"postgresql://edgeveil@/postgres?host={home}"
    finally:
        call("pg_ctl", "stop", "-m", "immediate")
        shutil.rmtree(home)


SCHEMAS = itertools.count()


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "budget.db"), tmp_path / "budget.db.artifacts")


@pytest.fixture
def postgres_place(postgres_url: str, tmp_path: Path) -> Place:
    return Place(f"{postgres_url}#t{next(SCHEMAS)}", tmp_path / "artifacts")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(f"{request.param}_place")


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path):
    """A function that gives another place at each call, for tests with many ledgers."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None

    def another() -> Place:
        name = f"t{next(SCHEMAS)}"
        location = f"{url}#{name}" if url else str(tmp_path / name)
        return Place(location, tmp_path / f"{name}.artifacts")

    return another
