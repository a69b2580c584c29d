"""Results of an experiment as a tidy table, and the facts of the machine that made them."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edgeveil.evaluation.intervals import Estimate

__all__ = ["Result", "machine_facts", "read_results", "write_machine_facts", "write_results"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number of an experiment. None of them is private: the curator's analysis.

    Attributes
    ----------
    experiment, dataset, mechanism : str
        What was measured.
    epsilon : float or None
        Privacy loss; ``inf`` without protection, None where it has no meaning.
    metric, scope : str
        The number's name, and over what it was taken; see `edgeveil.evaluation.ranking`.
    mean, low, high : float
        The number and its 95 % interval.
    n_sources, repeats : int
        How many sources (or nodes) and how many independent repeats.
    paper_value : float or None
        What the paper says, where it says a number.
    """

    experiment: str
    dataset: str
    mechanism: str
    epsilon: float | None
    metric: str
    scope: str
    mean: float
    low: float
    high: float
    n_sources: int
    repeats: int
    paper_value: float | None = None

    @classmethod
    def of(cls, value: Estimate | float, **rest: Any) -> Result:
        """Fill mean, low and high from an estimate, or from a number that has no spread."""
        if not isinstance(value, Estimate):
            value = Estimate(value, value, value)
        return cls(mean=value.mean, low=value.low, high=value.high, **rest)


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


def machine_facts(seconds: float, settings: dict[str, Any]) -> dict[str, Any]:
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
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_machine_facts(path: Path, seconds: float, settings: dict[str, Any]) -> None:
    """Write `machine_facts` as JSON."""
    path.write_text(json.dumps(machine_facts(seconds, settings), indent=2) + "\n")
