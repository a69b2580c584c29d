"""Timing side by side: all tasks in turn, so that a busy moment hits each of them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def interleaved(
    tasks: dict[str, Callable[[], object]], seconds: float = 3.0, at_least: int = 5
) -> dict[str, list[float]]:
    """CPU seconds of every call, after one call to warm up."""
    for task in tasks.values():
        task()
    times: dict[str, list[float]] = {name: [] for name in tasks}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < at_least:
        for name, task in tasks.items():
            start = time.process_time()
            task()
            times[name].append(time.process_time() - start)
    return times


def quartiles(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"q1": low, "median": middle, "q3": high, "best": min(values), "runs": len(values)}


def ratios(base: list[float], other: list[float]) -> dict[str, float]:
    """How many times faster `other` is, run by run."""
    return quartiles([b / o for b, o in zip(base, other, strict=True)])


def machine_facts() -> dict[str, Any]:
    model = platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    packages = ("numpy", "scipy", "numba", "polars", "cryptography")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
