"""A process that writes to a history, and may be killed at any step, or have no room on its disk.

worker.py PATH add N       merge SECOND, SIGKILL at step N
worker.py PATH forget N    forget dan, SIGKILL at step N
worker.py PATH create N    make the history, SIGKILL at step N
worker.py PATH full BYTES  merge SECOND while no file may be longer
worker.py PATH wait        hold the lock until the standard input ends
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from edgeveil.errors import EdgeveilError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.series.history import History
from edgeveil.series.history_state import writing

FIRST = Graph.from_edges([0, 1, 2], [1, 2, 3], NodeSet.of(["ann", "bob", "cem", "dan"]))
SECOND = Graph.from_edges([0, 1, 1], [1, 2, 3], NodeSet.of(["eve", "cem", "bob", "ann"]))

# Steps after which the disk holds something else, or something is said to hold
STEPS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock"}


def kill_at(number: int) -> None:
    left = number

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sync = os.fsync

    def fsync(handle: int) -> None:
        step()
        sync(handle)

    os.fsync = fsync
    sys.addaudithook(lambda event, _: step() if event in STEPS else None)


def main() -> int:
    path, action, *number = sys.argv[1:]
    if action == "full":
        history = History.open(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(number[0]), int(number[0])))
        try:
            history.add(SECOND, "2026-11-09")
        except EdgeveilError as error:
            sys.stderr.write(f"{error}\n")
            return 7
    elif action == "wait":
        with writing(Path(path)):
            sys.stdout.write("locked\n")
            sys.stdout.flush()
            sys.stdin.read()
    elif action == "create":
        kill_at(int(number[0]))
        History.create(path)
    else:
        history = History.open(path)
        kill_at(int(number[0]))
        history.add(SECOND, "2026-11-09") if action == "add" else history.forget("dan")
    return 0
