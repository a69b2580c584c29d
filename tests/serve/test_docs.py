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
    ports = {port: str(free_port()) for port in ("8080", "8081")}
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
        curator = int(re.search(r"--curator 127.0.0.1:(\d+)", block)[1])
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                return request(curator, "/health")
            except OSError:
                assert serving[-1].poll() is None
                time.sleep(0.05)
        raise AssertionError("the service did not start")

    run.folder = tmp_path / "home"
    yield run
    for process in serving:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_documented_commands_set_up_and_refresh_a_service(shell):
    *before, asking = blocks("Set it up")
    for block in before:
        shell(block)
    answer, end = json.JSONDecoder().raw_decode(said := shell(asking))
    assert answer["list"]["member"] == "ann"
    assert json.loads(said[end:])["snapshot"] == 1
    (choosing,) = blocks("Choices, blocks, opt-outs")
    assert shell(choosing).count('{"not_interested":["eve"],"suggest_me":true}') == 2
    assert (shell.folder / "keys.json").stat().st_mode & 0o077 == 0
    assert (shell.folder / "key.header").stat().st_mode & 0o077 == 0
    next_week, by_the_curator = blocks("New lists every week")
    answer, end = json.JSONDecoder().raw_decode(said := shell(next_week))
    assert "gets the first one with the next refresh" in answer["error"]
    first = json.loads(said[end:])["list"]
    assert (first["member"], first["snapshot"]) == ("gil", 2)
    assert '"running":true' in shell(by_the_curator)
    price = json.loads((shell.folder / "price.json").read_text())
    assert (price["epsilon"], price["n_members"], price["n_newcomers"]) == (1.0, 7, 0)
