"""One built site for all tests, made by the command that people use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Folder of the built site."""
    work = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "docs.site", "--out", str(work)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip()).parent
