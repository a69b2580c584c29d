"""Timing side by side: all tasks in turn, so that a busy moment hits each of them."""

from __future__ import annotations

import os
import platform
import statistics
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["interleaved", "load_average", "machine_facts", "ratios", "show", "summary"]

Summary = dict[str, float]

_PACKAGES = (
    *("numpy", "scipy", "numba", "polars", "cryptography"),
    *("torch", "torch-geometric", "mkl", "sparse_dot_mkl", "igraph", "networkx"),
    *("scikit-network", "python-graphblas", "suitesparse-graphblas", "opendp"),
)


def interleaved(
    tasks: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 7,
    seconds: float = 60.0,
    warm: bool = False,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of every call, round by round: CPU seconds of all threads unless told otherwise.

    Every task is called once to warm up, unless they are `warm`, and then once a round. A task
    that has used up its `seconds` sits out the later rounds, but for two; so entry i of every
    list was measured in round i.
    """
    if not warm:
        for task in tasks.values():
            task()
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            if len(times[name]) >= 2 and sum(times[name]) > seconds:
                continue
            start = clock()
            task()
            times[name].append(clock() - start)
    return times


def summary(values: Iterable[float]) -> Summary:
    """Median, quartiles, extremes and number of runs."""
    listed = list(values)
    low, middle, high = listed * 3 if len(listed) == 1 else _quartiles(listed)
    extremes = {"min": min(listed), "max": max(listed), "runs": len(listed)}
    return {"median": middle, "q1": low, "q3": high, **extremes}


def _quartiles(values: list[float]) -> list[float]:
    return statistics.quantiles(values, n=4, method="inclusive")


def ratios(other: list[float], ours: list[float]) -> Summary:
    """How many times longer `other` took, over the rounds in which both ran."""
    return summary(a / b for a, b in zip(other, ours, strict=False))


def show(ratio: Summary) -> str:
    """A ratio with its spread, for the terminal."""
    return f"{ratio['median']:.3g} ({ratio['min']:.3g} ... {ratio['max']:.3g})"


def load_average() -> float | None:
    """Load of the last minute, rounded; None where the system does not tell."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def machine_facts() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    # The checkout that runs, not what an environment says was installed into it some time ago
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    versions = {"edgeveil": project["project"]["version"]}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_gb": _memory(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.machine()


def _caches() -> dict[str, str]:
    """Size of every cache that the first core sees."""
    caches = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (folder / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            caches[f"L{level}"] = size
    return caches


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
