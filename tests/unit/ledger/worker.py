"""Another process that uses a ledger, and may be told to kill itself on the way.

worker.py LOCATION ARTIFACTS race NAME TRIES     spend until refused; print how often it worked
worker.py LOCATION ARTIFACTS release KEY POINT   reserve and release, SIGKILL at POINT
worker.py LOCATION ARTIFACTS stream NAME         release one key after another, for ever
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

from edgeveil.errors import BudgetError
from edgeveil.ledger import Charge, Ledger, artifacts
from edgeveil.ledger import ledger as ledger_module
from edgeveil.ledger.tables import Transaction

# In the order in which a release passes them.
POINTS = (
    "before reserve commits",
    "after reserve commits",
    "writer begins",
    "writer half way",
    "writer done",
    "file on disk",
    "before rename",
    "after rename",
    "folder on disk",
    "before release commits",
    "after release commits",
    "drafts cleared",
)

CHARGE = Charge(10**7, "joint", ("alice", "bob"), 2 * 10**7)


def artifact_of(secret: bytes) -> bytes:
    """Stand for the noisy values: they depend on the secret alone."""
    return hashlib.sha256(secret).digest() * 1000


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_around(owner: object, name: str, *, before: int = 0, after: int = 0) -> None:
    """Kill this process before the n-th, or after the n-th, call of a function."""
    original, calls = getattr(owner, name), 0

    def wrapped(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == before:
            die()
        result = original(*arguments, **options)
        if calls == after:
            die()
        return result

    setattr(owner, name, wrapped)


def arm(point: str) -> None:
    """Arrange the death; the ledger is open already."""
    match point:
        case "before reserve commits":
            die_around(Transaction, "commit", before=1)
        case "after reserve commits":
            die_around(Transaction, "commit", after=1)
        case "file on disk":
            die_around(ledger_module, "sha256_of", before=1)
        case "before rename":
            die_around(os, "replace", before=1)
        case "after rename":
            die_around(os, "replace", after=1)
        case "folder on disk":
            die_around(ledger_module, "move", after=1)
        case "before release commits":
            die_around(Transaction, "commit", before=2)
        case "after release commits":
            die_around(Transaction, "commit", after=2)
        case "drafts cleared":
            die_around(artifacts, "clear_drafts", after=1)


def release(ledger: Ledger, key: str, point: str) -> None:
    arm(point)
    reservation = ledger.reserve(key, CHARGE)

    def writer(path: Path) -> None:
        content = artifact_of(reservation.secret)
        if point == "writer begins":
            die()
        with path.open("wb") as handle:
            handle.write(content[: len(content) // 2])
            handle.flush()
            if point == "writer half way":
                die()
            handle.write(content[len(content) // 2 :])
        if point == "writer done":
            die()

    done = reservation.release(writer, suffix=".bin")
    print(hashlib.sha256(done.artifact.read_bytes()).hexdigest())


def race(ledger: Ledger, name: str, tries: int) -> int:
    """Count accepted spends."""
    accepted = 0
    for attempt in range(tries):
        key = hashlib.sha256(f"{name} {attempt}".encode()).hexdigest()
        try:
            ledger.reserve(key, CHARGE)
            accepted += 1
        except BudgetError:
            pass
    return accepted


def main(location: str, artifacts: str, task: str, *arguments: str) -> None:
    ledger = Ledger.open(location, artifacts=artifacts)
    if task == "race":
        print("ready", flush=True)
        print(race(ledger, arguments[0], int(arguments[1])))
    elif task == "release":
        release(ledger, *arguments)
    elif task == "stream":
        print("ready", flush=True)
        for number in range(10**6):
            key = hashlib.sha256(f"{arguments[0]} {number}".encode()).hexdigest()
            reservation = ledger.reserve(key, CHARGE)
            content = artifact_of(reservation.secret)
            reservation.release(lambda path, content=content: path.write_bytes(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
