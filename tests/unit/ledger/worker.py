"""Another process that uses a ledger, and may be told to kill itself on the way.

worker.py LOCATION ARTIFACTS advance POINT           declare a generation, SIGKILL at POINT
worker.py LOCATION ARTIFACTS release QUESTION POINT  charge, store all, SIGKILL at POINT
worker.py LOCATION ARTIFACTS race NAME TRIES         charge until refused; print how often it worked
worker.py LOCATION ARTIFACTS overlap SEED            ask for overlapping rows; print their values
worker.py LOCATION ARTIFACTS stream NAME             release one thing after another, for ever
"""

import hashlib
import json
import os
import random
import signal
import sys
from pathlib import Path

from edgeveil.errors import BudgetError
from edgeveil.ledger import Batch, Campaign, Ledger, artifacts, campaigns
from edgeveil.ledger.transactions import Transaction
from edgeveil.privacy.guarantee import Guarantee

# In the order in which a release passes them: what all rows share is stored first, then the rows.
POINTS = {
    "before the charge commits": (Transaction, "commit", {"before": 1}),
    "after the charge commits": (Transaction, "commit", {"after": 1}),
    "writer half way": (os, "replace", {}),
    "shared file on disk": (artifacts, "sha256_of", {"before": 1}),
    "before shared rename": (os, "replace", {"before": 1}),
    "after shared rename": (os, "replace", {"after": 1}),
    "before shared commits": (Transaction, "commit", {"before": 2}),
    "after shared commits": (Transaction, "commit", {"after": 2}),
    "file on disk": (artifacts, "sha256_of", {"before": 3}),  # 2: the shared one is read
    "before rename": (os, "replace", {"before": 2}),
    "after rename": (os, "replace", {"after": 2}),
    "folder on disk": (campaigns, "move", {"after": 2}),
    "before store commits": (Transaction, "commit", {"before": 3}),
    "after store commits": (Transaction, "commit", {"after": 3}),
    "drafts cleared": (artifacts, "clear_drafts", {"after": 3}),
}
ONE_COMMIT = {
    "before it commits": (Transaction, "commit", {"before": 1}),
    "after it commits": (Transaction, "commit", {"after": 1}),
}


def guarantee(n: int) -> Guarantee:
    return Guarantee(epsilon=0.01, shared_epsilon=0.002, model="joint", n_members=n, theorem="test")


def campaign(question: str) -> Campaign:
    return Campaign(identity=question, guarantee=guarantee)


def content_of(batch: Batch) -> bytes:
    """Stand for the noisy values: they depend on the secret and the members alone."""
    rows = {
        name: hashlib.sha256(batch.secret + name.encode()).hexdigest() * 8
        for name in batch.members or ("shared",)
    }
    return json.dumps(rows, sort_keys=True).encode()


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
    """Arrange the death."""
    if crash_point := (POINTS | ONE_COMMIT).get(point):
        owner, name, when = crash_point
        die_around(owner, name, **when)


def stored(batch: Batch, point: str = "") -> Batch:
    def writer(path: Path) -> None:
        content = content_of(batch)
        with path.open("wb") as handle:
            handle.write(content[: len(content) // 2])
            handle.flush()
            if point == "writer half way" and batch.members:
                die()
            handle.write(content[len(content) // 2 :])

    return batch.store(writer)


def rows_of(ledger: Ledger, question: str, names: list[str], point: str = "") -> dict[str, str]:
    """Do what the engine does: charge, store what is shared, then every open batch."""
    charged = ledger.charge(campaign(question), names)
    stored(charged.shared, point).artifact  # noqa: B018  (looked at, as the engine does)
    rows: dict[str, str] = {}
    for batch in charged.batches:
        rows |= json.loads(stored(batch, point).artifact.read_bytes())
    return {name: rows[name] for name in names}


def race(ledger: Ledger, name: str, tries: int) -> int:
    """Count accepted charges."""
    accepted = 0
    for attempt in range(tries):
        try:
            ledger.charge(campaign(f"{name} {attempt}"), ["alice", "bob"])
            accepted += 1
        except BudgetError:
            pass
    return accepted


def main() -> None:
    location, folder, task, *arguments = sys.argv[1:]
    ledger = Ledger.open(location, artifacts=folder)
    if task == "advance":
        arm(arguments[0])
        ledger.advance()
    elif task == "release":
        arm(arguments[1])
        print(json.dumps(rows_of(ledger, arguments[0], ["alice", "bob"], arguments[1])))
    elif task == "race":
        print("ready", flush=True)
        print(race(ledger, arguments[0], int(arguments[1])))
    elif task == "overlap":
        print("ready", flush=True)
        chosen, seen = random.Random(int(arguments[0])), {}
        for _ in range(4):
            names = [f"member {i}" for i in chosen.sample(range(60), 20)]
            seen |= rows_of(ledger, "lists", names)
        print(json.dumps(seen))
    elif task == "stream":
        print("ready", flush=True)
        for number in range(10**6):
            rows_of(ledger, f"{arguments[0]} {number}", ["alice", "bob"])
            print(number, flush=True)


if __name__ == "__main__":
    main()
