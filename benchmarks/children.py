"""Work in a fresh process: its peak memory and its settings are its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["in_child", "peak_memory"]


def in_child(
    function: str, arguments: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Call ``module:function`` of this package in a new process; its figures come back.

    Under `environment`, an empty value takes a variable away.
    """
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.children", function, json.dumps(arguments)],
        env={name: value for name, value in variables.items() if value},
        cwd=Path(__file__).resolve().parents[1],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes; mapped file pages count.

    Linux keeps in getrusage what the parent had at the fork; the status file starts anew.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    module, name = sys.argv[1].split(":")
    figures = getattr(import_module(f"benchmarks.{module}"), name)(**json.loads(sys.argv[2]))
    print(json.dumps(figures))
