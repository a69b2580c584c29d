"""Fresh processes: the help text, the import, and the first private ranking."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.measure import summary
from benchmarks.settings import Settings
from edgeveil import save_graph
from edgeveil.graph.datasets import social_network

__all__ = ["run"]

_RANKING = (
    "import sys, edgeveil as ev; "
    "graph = ev.open_graph(sys.argv[1]); "
    "ev.release(graph, ev.mechanisms.DPPushFlowCap(epsilon=1.0), sources=[7]).top(5)"
)


def run(settings: Settings) -> dict[str, Any]:
    """Best and median of several turns, wall and CPU; one turn before warms all caches."""
    folder = settings.work / "startup"
    if not folder.exists():
        settings.work.mkdir(parents=True, exist_ok=True)
        save_graph(social_network(5000).graph, folder)
    commands = {
        "python -c pass": ["-c", "pass"],
        "edgeveil --help": ["-m", "edgeveil", "--help"],
        "import edgeveil": ["-c", "import edgeveil"],
        "first private ranking, 5,000 nodes": ["-c", _RANKING, str(folder)],
    }
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for i in range(1 if settings.tiny else 11):
        for name, command in commands.items():
            seconds = _timed(command)
            if i > 0 or settings.tiny:
                wall[name].append(seconds[0])
                cpu[name].append(seconds[1])
    print("\nstart of a fresh process: wall and CPU seconds, best of several")
    result = {}
    for name in commands:
        result[name] = {"wall": summary(wall[name]), "cpu": summary(cpu[name])}
        print(f"  {name:<36} {min(wall[name]):.3f}   {min(cpu[name]):.3f}")
    return {"commands": result}


def _timed(command: list[str]) -> tuple[float, float]:
    left_out = {"PYTHONDONTWRITEBYTECODE"} | {n for n in os.environ if n.endswith("_NUM_THREADS")}
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a command to be timed failed: {command[:2]}")
    return seconds, usage.ru_utime + usage.ru_stime
