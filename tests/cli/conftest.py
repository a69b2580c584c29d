"""A folder with a small graph, and two ways to give a command in it."""

from __future__ import annotations

import shlex
import subprocess
from functools import partial

import pytest

from edgeveil.cli.app import main
from tests.cli import terminal

FOLLOWS = "follower,followed\nalice,bob\nbob,carol\ncarol,alice\ndave,alice\ndave,bob\nerin,dave\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "follows.csv").write_text(FOLLOWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEVEIL_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def run(folder, capfd, monkeypatch):
    """Give a command in this process: the same code, without the second for its start.

    What it says of compiling depends on the tests that ran before (test_compiling.py has it).
    """
    monkeypatch.setattr("edgeveil.cli.compiling.say", lambda text: None)

    def command(line: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(shlex.split(line))
        return subprocess.CompletedProcess(line, code, *capfd.readouterr())

    return command


@pytest.fixture
def run_process(folder, forks):
    """Give a command in a process of its own."""

    def command(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return forks.run(line, shlex.split(line), environment=variables)

    return command


@pytest.fixture
def on_a_terminal(folder, forks):
    """Give a command on a terminal of its own, and type at a cue: exit code, and what it said."""
    return partial(terminal.on_a_terminal, forks, folder)
