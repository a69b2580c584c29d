"""`edgeveil doctor`."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from edgeveil._internal import loops as _loops
from edgeveil.cli import doctor

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def states(run):
    def ask() -> dict[str, str]:
        rows = csv.DictReader(io.StringIO(run("doctor --format csv").stdout))
        return {f"{row['part']} {row['name']}": row["state"] for row in rows}

    return ask


def test_versions_folders_and_extras_are_told(run, states, tmp_path, monkeypatch):
    monkeypatch.setattr(_loops, "loop_folder", lambda: _loops.LoopFolder(tmp_path))
    told = states()
    assert told["kept compiled loops"] == f"{tmp_path} (can be written to): 0 loops"
    project = tomllib.loads(PROJECT.read_text())["project"]
    for extra in project["optional-dependencies"]:
        assert told[f"extra {extra}"] == "ready"  # the tests need them all
    for needed in project["dependencies"]:
        assert told[f"version {needed.partition('>')[0]}"][0].isdigit()
    assert json.loads(run("doctor --format json").stdout)["rows"]
    assert "edgeveil on this machine" in run("doctor").stdout


def test_what_is_missing_is_named_with_what_installs_it(states, monkeypatch):
    def version(name: str) -> str:
        if name in ("matplotlib", "uvicorn"):
            raise PackageNotFoundError
        return "99"

    monkeypatch.setattr(doctor, "version", version)
    told = states()
    assert told["extra plot"] == "matplotlib is missing: pip install 'edgeveil[plot]'"
    assert told["extra serve"] == "uvicorn is missing: pip install 'edgeveil[serve]'"
    assert told["extra sklearn"] == "ready"


def test_what_cannot_be_kept_is_told_with_what_to_do(states, monkeypatch):
    monkeypatch.setattr(
        _loops, "loop_folder", lambda: _loops.LoopFolder(None, "others can write to /x")
    )
    told = states()["kept compiled loops"]
    assert "others can write to /x" in told
    assert _loops.VARIABLE in told


def test_a_source_that_is_not_installed_is_no_fault(states, monkeypatch):
    def missing(name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setattr(doctor, "requires", missing)
    assert states()["version edgeveil"].startswith("not installed")
