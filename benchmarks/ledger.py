"""The ledger: members charged in one campaign, what it weighs, a balance; and a loop of kills.

    ./run bench ledger --json benchmarks/results/ledger.json

With ``EDGEVEIL_POSTGRES`` (the URL of a server that may be written to) PostgreSQL is measured as
well. Goals: a million members in at most 60 s, a file below 300 MB, a balance in milliseconds.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measure import summary
from benchmarks.settings import Settings
from edgeveil.ledger import Campaign, Ledger
from edgeveil.privacy.guarantee import Guarantee

__all__ = ["run"]

SIZES = (10_000, 100_000, 1_000_000)
BATCH = 8192  # as the engine charges lists
WORKER = Path(__file__).resolve().parents[1] / "tests" / "unit" / "ledger" / "worker.py"


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print, draw and return."""
    with settings.empty_folder("ledger") as folder:
        stores: dict[str, Callable[[], str]] = {
            "SQLite": lambda: str(folder / secrets.token_hex(4))
        }
        if url := os.environ.get("EDGEVEIL_POSTGRES"):
            stores["PostgreSQL"] = lambda: f"{url}#b{secrets.token_hex(4)}"
        sizes = (1_000, 2_000) if settings.tiny else SIZES
        print("\nledger: wall and CPU seconds for all members of a campaign")
        measured: dict[str, Any] = {
            name: [
                _measured(name, location(), folder / "artifacts", n)
                for n in sizes[: 3 if name == "SQLite" else 2]  # a server's time is its disk's
            ]
            for name, location in stores.items()
        }
        return {"stores": measured, "kills": _kills(folder, 2 if settings.tiny else 40)}


def _guarantee(n: int) -> Guarantee:
    return Guarantee(
        epsilon=0.5, shared_epsilon=0.05, model="joint", n_members=n, theorem="docs/theory/time.md"
    )


def _measured(store: str, location: str, artifacts: Path, n: int) -> dict[str, Any]:
    """Two campaigns for n members: in the second one everybody has an account already."""
    ledger = Ledger.create(location, epsilon=4, artifacts=artifacts)
    names = [str(i) for i in range(n)]
    row: dict[str, Any] = {"members": n}
    for what in ("first", "second"):
        campaign = Campaign(identity=what, guarantee=_guarantee)
        wall, cpu = time.perf_counter(), time.process_time()
        ledger.price(campaign, names)
        waiting = iter(names)
        while some := list(islice(waiting, BATCH)):
            ledger.charge(campaign, some)
        row[what] = {
            "wall_seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
        }
        if store == "SQLite":
            row[what]["bytes"] = Path(location).stat().st_size
    row["balance_seconds"] = summary([_timed(lambda: ledger.account(names[7])) for _ in range(20)])
    row["stored_row_seconds"] = summary(
        [_timed(lambda: ledger.charge(campaign, [names[7]])) for _ in range(20)]
    )
    size = f", {row['first']['bytes'] / 1e6:.0f} MB" if store == "SQLite" else ""
    wall, cpu = row["first"]["wall_seconds"], row["first"]["cpu_seconds"]
    print(
        f"  {store:<11} {n:>9,}  {wall:6.1f} {cpu:6.1f}{size}; a second campaign "
        f"{row['second']['wall_seconds']:.1f} s; a balance "
        f"{row['balance_seconds']['median'] * 1e3:.1f} ms"
    )
    return row


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _kills(place: Path, rounds: int) -> dict[str, Any]:
    """Kill a process that charges and stores, at random moments; the ledger must verify."""
    location, chosen = str(place / "killed"), random.Random(0)
    Ledger.create(location, epsilon=10**6)
    for number in range(rounds):
        command = [sys.executable, str(WORKER), location, f"{location}.artifacts", "stream"]
        with subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chosen.uniform(0, 0.5))
            process.kill()
        Ledger.open(location).verify()
    spends = Ledger.open(location).charges()
    print(f"  {rounds} kills: {len(spends):,} spends, each with its artifact or its secret")
    return {"rounds": rounds, "spends": len(spends), "open": sum(not s.released for s in spends)}
