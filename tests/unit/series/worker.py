"""A process that refreshes a series, and may be killed at any step, or have no room on its disk.

worker.py FOLDER kill N [URL]   the second week, SIGKILL at step N
worker.py FOLDER full BYTES     the second week while no file may be longer
worker.py FOLDER race DATE      a week, at the same time as somebody else
"""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path

from edgeveil.errors import EdgeveilError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import Local
from edgeveil.ledger import Ledger
from edgeveil.series import Refreshed, WindowRule, refresh
from edgeveil.series.state import SeriesFolder, Shard

EAGER = WindowRule(first=1, patience=1, least=1, share=0.0, latest=1)  # a window every time
RING = [(i, (i + 1) % 8) for i in range(8)]
CHORDS = [(i, (i + 3) % 8) for i in range(8)]
WEEKS = {  # in the second one somebody joins
    "2026-01-01": ([e for e in RING if 7 not in e], "abcdefg"),
    "2026-01-08": (RING + CHORDS, "abcdefgh"),
    "2026-01-15": (RING + CHORDS + [(0, 2)], "abcdefgh"),
}
# Steps after which the disk holds something else, or something is said to hold
STEPS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "fcntl.flock", "sqlite3.connect"}


def weekly(ledger: Ledger, date: str, folder: Path) -> Refreshed:
    edges, members = WEEKS[date]
    graph = Graph.from_edges(*zip(*edges, strict=True), NodeSet.of(list(members)))
    options = {"rule": EAGER, "engine": Local(threads=1), "folder": folder / "series"}
    return refresh(graph, ledger=ledger, epsilon=1.0, label="friends", date=date, **options)


def opened(folder: Path, url: str = "") -> Ledger:
    return Ledger.open(url or folder / "ledger", artifacts=folder / "artifacts")


def stored(place: Path) -> Shard:
    """The state of a series."""
    folder = SeriesFolder(place)
    manifest = folder.manifest()
    assert manifest is not None
    (shard,) = folder.shards(manifest.n_nodes, manifest)
    return shard


def kill_at(number: int, folder: Path) -> None:
    """SIGKILL before the n-th step that concerns the folder, or a commit of the ledger."""
    left, mine = number, str(folder)

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(handle: int) -> None:
        step()  # what was written outlives a process that is killed, on the disk or not

    def watch(event: str, given: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(given[2], int) and given[2] & os.O_ACCMODE
        here = bool(given) and str(given[0]).startswith(mine)
        if (writes and here) or (event in STEPS and (here or event == "sqlite3.connect")):
            step()

    os.fsync = fsync
    sys.addaudithook(watch)
    connect = sqlite3.connect

    def traced(*words: object, **more: object) -> sqlite3.Connection:
        connection = connect(*words, **more)  # type: ignore[call-overload]
        connection.set_trace_callback(lambda words: step() if "COMMIT" in words else None)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]


def warm_up() -> None:
    """Load the machine code of a refresh: most of the time of one with eight members."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder, "ledger"), epsilon=1)
        for date in WEEKS:
            weekly(ledger, date, Path(folder))


def main() -> int:
    folder, action, *more = Path(sys.argv[1]), *sys.argv[2:]
    if action == "kill":
        ledger = opened(folder, *more[1:])
        kill_at(int(more[0]), folder)
        weekly(ledger, "2026-01-08", folder)
        return 0
    ledger = opened(folder)
    try:
        if action == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(more[0]), int(more[0])))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            weekly(ledger, "2026-01-08", folder)
        else:
            weekly(ledger, more[0], folder)
    except (EdgeveilError, OSError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 7
    return 0
