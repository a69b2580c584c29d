"""A terminal of its own for a command."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

# Makes its standard input the terminal of its session, so that Ctrl-C typed there is a signal.
# (Not pty.fork: the process of the tests has threads, of Ray and of polars among them.)
TAKES_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "edgeveil", *sys.argv[1:]])
"""


def on_a_terminal(
    folder, line: str, answer: str, columns: int = 200, cue: bytes = b"[y/N]"
) -> tuple[int, str]:
    """Run a command on a terminal of its own and type at a cue; gives code and words."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TAKES_THE_TERMINAL, *line.split()],
        cwd=folder,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"},
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
