"""The commands of docs/service.md work as they stand there, in order, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.serve.running import free_port, request

PAGE = Path(__file__).parents[2] / "docs" / "service.md"


def blocks(section):
    text = PAGE.read_text(encoding="utf-8").split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def shell(tmp_path):
    """Run a block of the page as a person would; one that serves is left running."""
    ports = {"8080": str(free_port()), "8081": str(free_port())}
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "edgeveil"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m edgeveil "$@"\n')
    command.chmod(0o755)
    (tmp_path / "home").mkdir()
    environment = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    serving = []

    def run(block):
        for port, free in ports.items():
            block = block.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        words = ["bash", "-euo", "pipefail", "-c", block]
        where = {"cwd": tmp_path / "home", "env": environment}
        if "edgeveil serve" not in block:
            done = subprocess.run(words, **where, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return done.stdout
        serving.append(subprocess.Popen(words, **where, start_new_session=True))
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                return request(int(ports["8081"]), "/health")
            except OSError:
                assert serving[0].poll() is None
                time.sleep(0.05)
        raise AssertionError("the service did not start")

    run.folder = tmp_path / "home"
    yield run
    for process in serving:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_from_nothing_to_running_and_to_the_next_snapshot(shell):
    *before, asking = blocks("Set it up")
    for block in before:
        shell(block)
    said = shell(asking)
    answer, end = json.JSONDecoder().raw_decode(said)
    assert answer["list"]["member"] == "ann"
    assert json.loads(said[end:])["snapshot"] == 1
    assert (shell.folder / "keys.json").stat().st_mode & 0o077 == 0
    assert (shell.folder / "key.header").stat().st_mode & 0o077 == 0
    (advancing,) = blocks("New lists")
    assert shell(advancing).endswith('{"snapshot":2}')
    price = json.loads((shell.folder / "price.json").read_text())
    assert (price["epsilon"], price["members"], price["same_graph"]) == (0.5, 6, False)
