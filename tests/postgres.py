"""A PostgreSQL server for tests, that can be restarted under whoever uses it."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["PostgresServer", "postgres_server"]


def server_programs() -> Path | None:
    """Folder of initdb and pg_ctl, if a PostgreSQL server is installed."""
    initdb = shutil.which("initdb")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    folders += [str(Path(initdb).resolve().parent)] if initdb else []
    for folder in map(Path, folders):
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


class PostgresServer:
    """A server on a Unix socket in a folder of its own."""

    def __init__(self, programs: Path, user: str | None) -> None:
        self._programs, self._user = programs, user
        root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        # A folder with a short name: a socket's path is limited
        self.home = Path(tempfile.mkdtemp(prefix="edgeveil-pg-", dir=root))
        if user:
            shutil.chown(self.home, user)
        self.url = f"postgresql://edgeveil@/postgres?host={self.home}"
        self._call("initdb", "-U", "edgeveil", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.home}"
        options += " -c max_connections=60"
        self._call("pg_ctl", "start", "-w", "-l", str(self.home / "server.log"), "-o", options)

    def stop(self) -> None:
        """Kill the server: what it had only in its memory is lost."""
        self._call("pg_ctl", "stop", "-m", "immediate")

    def _call(self, program: str, *arguments: str) -> None:
        with (self.home / "calls.log").open("a+") as log:
            done = subprocess.run(
                [str(self._programs / program), "-D", str(self.home / "data"), *arguments],
                stdout=log,
                stderr=log,
                cwd=self.home,
                user=self._user,
                extra_groups=[] if self._user else None,
                check=False,
            )
            log.seek(0)
            assert done.returncode == 0, log.read()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server that lives as long as the test session."""
    programs, user = server_programs(), None
    if programs is None:
        pytest.skip("no PostgreSQL server (initdb, pg_ctl) is installed")
    if os.geteuid() == 0:  # the server refuses to run as root
        import pwd  # not on Windows, where there is no such server

        names = [entry.pw_name for entry in pwd.getpwall()]
        user = next((name for name in ("postgres", "nobody") if name in names), None)
        if user is None:
            pytest.skip("the tests run as root and there is no other user to run PostgreSQL")
    server = PostgresServer(programs, user)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.home)
