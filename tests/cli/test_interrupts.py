"""A Ctrl-C that a library swallowed is raised at the next step of the work."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading

import pytest

from edgeveil.cli.interrupts import raise_if_interrupted, wait_for_input, watching
from edgeveil.cli.output import counting


class Swallows:
    """Python cannot raise out of a finaliser: it hands the error to sys.unraisablehook."""

    def __init__(self, error):
        self.error = error

    def __del__(self):
        raise self.error


def test_lost_interrupt_is_raised_at_the_next_step():
    with watching(), counting("rows") as progress:
        progress(1, 3)
        Swallows(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            progress(2, 3)
        progress(3, 3)  # once


def test_other_lost_errors_are_reported_unchanged(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda lost: told.append(lost.exc_value))
    with watching():
        Swallows(ValueError("a"))
        raise_if_interrupted()
    assert [str(error) for error in told] == ["a"]


# Presses Ctrl-C when a module is about to be loaded; the rest is what the installed command does.
INTERRUPTED_LOADING = """
import os, signal, sys

module = sys.argv.pop(1)

class Interrupts:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

class HalfMade:
    def __del__(self):
        raise AttributeError  # as LLVM's objects do that were interrupted while they were made

left = HalfMade()
sys.meta_path.insert(0, Interrupts())
from edgeveil.cli.app import main
code = main()
del left
sys.exit(code)
"""


@pytest.mark.parametrize(
    "module",
    ["edgeveil.cli.interrupts", "cyclopts", "edgeveil.errors", "edgeveil.cli.rank", "numpy"],
)
def test_ctrl_c_while_loading_is_one_line_and_130(folder, module):
    line = ["rank", "follows.csv", "--source", "alice", "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_LOADING, module, *line], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "edgeveil: interrupted\n"


def test_no_library_is_loaded_before_interrupts_are_handled():
    code = "import sys, edgeveil.cli.app; print(*{name.split('.')[0] for name in sys.modules})"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert {"edgeveil"} <= set(names.split())
    assert not {"cyclopts", "numpy", "rich"} & set(names.split())


def test_question_waits_on_after_another_signal(monkeypatch):
    reader, writer = os.pipe()
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    later = threading.Timer(0.6, os.write, (writer, b"y\n"))
    try:
        with os.fdopen(reader) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            later.start()
            wait_for_input()
            assert select.select([stdin], [], [], 0)[0], "there is an answer to read"
            assert heard == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        later.join()
        os.close(writer)
