"""Results of an experiment as a tidy CSV file, and the facts of the machine that made them."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edgeveil.evaluation.measurements import Result

__all__ = ["read_results", "write_machine_facts", "write_results"]

_COLUMNS = [field.name for field in fields(Result)]
_NUMBERS = {"epsilon", "mean", "low", "high", "paper_value"}
_COUNTS = {"n_sources", "repeats"}


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Write a CSV file, one line per result; an empty cell stands for None."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for result in results:
            cells = [getattr(result, name) for name in _COLUMNS]
            writer.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in cells])


def read_results(path: Path) -> list[Result]:
    """Read what `write_results` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Result(**{name: _parsed(name, text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]


def _parsed(name: str, text: str) -> Any:
    if name in _NUMBERS:
        return float(text) if text else None
    return int(text) if name in _COUNTS else text


def _machine_facts(seconds: float, settings: dict[str, Any]) -> dict[str, Any]:
    """What a timing depends on; neither names nor paths of the machine."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(("edgeveil", "numpy", "scipy", "numba", "scikit-learn")),
        "seconds": round(seconds, 1),
        "settings": settings,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def write_machine_facts(path: Path, seconds: float, settings: dict[str, Any]) -> None:
    """Write as JSON what the timing depends on."""
    path.write_text(json.dumps(_machine_facts(seconds, settings), indent=2) + "\n")
