"""A terminal of its own for a command."""

from __future__ import annotations

import os
import pty
import select
import time

from tests.forks import EDGEVEIL


def on_a_terminal(
    forks, folder, line: str, answer: str, columns: int = 200, cue: bytes = b"[y/N]"
) -> tuple[int, str]:
    """Run a command on a terminal of its own and type at a cue; gives code and words."""
    ours, theirs = pty.openpty()
    process = forks.start(
        EDGEVEIL,
        *line.split(),
        folder=folder,
        terminal=True,
        stdin=theirs,
        stderr=theirs,
        environment={"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"},
    )
    os.close(theirs)
    said, answered = b"", False
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        said += part
        if cue in said and not answered:
            os.write(ours, answer.encode())
            answered = True
    else:
        process.kill()
    os.close(ours)
    return process.wait(timeout=60), said.decode()
