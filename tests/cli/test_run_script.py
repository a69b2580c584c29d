"""``./run``: what a person sees who presses Ctrl-C, which a terminal sends to a whole group."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no process groups")

# Calls a function of the script `run` as it would, with this interpreter for its environment's.
IN_RUN = f"""
import runpy, sys
from pathlib import Path
run = runpy.run_path({str(ROOT / "run")!r})
sys.exit(run[sys.argv[1]](*sys.argv[2:], python=Path(sys.executable)))
"""
TAKES_ITS_TIME = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)  # longer than an impatient parent waits
    print("all is said", flush=True)
    sys.exit(130)
"""


def start(*words, **options):
    """A process group of its own, as a terminal makes one for every command line."""
    return subprocess.Popen(
        [sys.executable, "-c", IN_RUN, *words], start_new_session=True, text=True, **options
    )


@pytest.mark.parametrize("function", ["call", "become"])
def test_ctrl_c_waits_for_what_the_command_has_to_say(function):
    process = start(function, "-c", TAKES_ITS_TIME, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "all is said\n")


def test_a_signal_for_the_script_alone_reaches_the_command():
    process = start("become", "-c", TAKES_ITS_TIME, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "all is said\n")


def test_the_help_names_every_command():
    said = subprocess.run(
        [sys.executable, ROOT / "run", "--help"], capture_output=True, text=True
    ).stdout
    words = ["demo", "test", "check", "bench", "reproduce", "docs", "edgeveil", "python"]
    assert [w for w in words if f"./run {w}" not in said] == []
    wrong = subprocess.run([sys.executable, ROOT / "run", "nothing"], capture_output=True)
    assert wrong.returncode == 2


def test_arguments_of_the_tests_are_pytest_s():
    tests = runpy.run_path(str(ROOT / "run"))["tests"]
    assert tests([])[:3] == ["-q", "-n", "auto"]
    assert tests(["--fast", "--cov"])[:2] == ["--cov", "tests/unit"]
    assert tests(["tests/cli", "-x"]) == ["tests/cli", "-x"]  # xdist's options need -n
    assert "loadfile" in tests(["-n", "2", "tests/cli"])
