"""A folder with a small graph, and two ways to give a command in it."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from edgeveil.cli.app import main

FOLLOWS = "follower,followed\nalice,bob\nbob,carol\ncarol,alice\ndave,alice\ndave,bob\nerin,dave\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "follows.csv").write_text(FOLLOWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEVEIL_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    """Give a command in this process: the same code, without the second for its start."""

    def command(line: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(shlex.split(line))
        return subprocess.CompletedProcess(line, code, *capfd.readouterr())

    return command


@pytest.fixture
def run_process(folder):
    """Give a command as a person does."""

    def command(line: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "edgeveil", *shlex.split(line)]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    return command
