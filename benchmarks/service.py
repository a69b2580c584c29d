"""The service under load, beside a bare endpoint of the same framework, in one run.

    ./run bench service --json benchmarks/results/service.json

A million members (--members) with five million edges: every list is charged, made by the engine
and stored by the service itself (`POST /ahead`), then served. Memory is the most that the process
ever had (VmHWM), while it made the lists and, after a restart, while it served them. Needs the
load generator wrk (Debian: apt install wrk), 8 GB of disk and about ten minutes on two quiet cores.
All traffic is on loopback.
"""

from __future__ import annotations

import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.graphs import draw_edges
from benchmarks.settings import Settings
from edgeveil.datasets import social_network
from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet
from tests.serve.running import Service, free_port, peak_bytes, request
from tests.serve.test_faults import check, killed_again_and_again

__all__ = ["run"]

BARE = """
import sys
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from edgeveil.serve.server import Place, serve
async def bare(request):
    return JSONResponse({"ok": True})
serve([(Place.of(sys.argv[1]), Starlette(routes=[Route("/bare", bare)]))], lambda: None)
"""
LUA = """
local tokens = {{}}
for line in io.lines("{tokens}") do tokens[#tokens + 1] = "Bearer " .. line end
local at = math.random(#tokens)
request = function()
  at = at % #tokens + 1
  return wrk.format("GET", "/me/suggestions", {{["Authorization"] = tokens[at]}})
end
delay = function() return {delay} end
"""
CONNECTIONS, SECONDS = 32, 8
BUSY = 4_000  # members who are asked for while the lists of all others are made
EDGES_EACH = 5


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("this needs the load generator wrk: apt install wrk")
    n = 6_000 if settings.tiny else settings.members
    rounds = 1 if settings.tiny else 5
    settings.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        u, v = draw_edges(n, EDGES_EACH * n, seed=1)
        graph = Graph.from_edges(u, v, NodeSet.range(n))
        service = Service(Path(folder), graph, epsilon=1.0, cap=1.0, top=20, as_command=True)
        del u, v, graph
        return _measured(wrk, service, n, rounds, Path(folder))


def _measured(wrk: str, service: Service, n: int, rounds: int, folder: Path) -> dict[str, Any]:
    kills = _killed(2 if rounds == 1 else 50, folder / "killed")
    service.start()
    first = _first_lists(wrk, service, n, folder)
    began = time.perf_counter()
    service.curator("/ahead", "POST")
    _wait_for_all(service, but=n - BUSY)
    meanwhile = _asked(wrk, service, range(BUSY), folder, delay=100)
    _wait_for_all(service)
    ahead, making_bytes = time.perf_counter() - began, peak_bytes(service.process.pid)
    port = free_port()
    bare = subprocess.Popen([sys.executable, "-c", BARE, f"127.0.0.1:{port}"])
    try:
        _wait(port)
        service.stop(9)
        began = time.perf_counter()
        service.start("--ahead")  # it looks at every list, finds all, and makes none
        started = time.perf_counter() - began
        _wait_for_all(service)
        whom, stored, plain = range(0, n, max(1, n // 50_000)), [], []
        for _ in range(rounds):  # one after the other: both have the machine to themselves
            plain.append(_load(wrk, port, "/bare", None)["per_second"])
            stored.append(_asked(wrk, service, whom, folder)["per_second"])
        # Each connection waits so long between two requests that half of the load remains.
        delay = round(2_000 * CONNECTIONS / statistics.median(stored))
        half = _asked(wrk, service, whom, folder, delay)
        serving_bytes = peak_bytes(service.process.pid)
    finally:
        bare.terminate()
        service.stop()
    found = {
        "members": n,
        "first_lists_per_second": first,
        "ahead_seconds": ahead,
        "stored_per_second": stored,
        "bare_per_second": plain,
        "share_of_bare": statistics.median(s / b for s, b in zip(stored, plain, strict=True)),
        "at_half_load": half,
        "while_lists_are_made": meanwhile,
        "start_seconds": started,
        "peak_bytes_making": making_bytes,
        "peak_bytes_serving": serving_bytes,
        "killed": kills,
    }
    print("\nservice:", {name: value for name, value in found.items() if name != "killed"})
    return found


def _killed(times: int, folder: Path) -> dict[str, Any]:
    """Kill a small service under load again and again; every list is charged and drawn once."""
    folder.mkdir()
    graph = social_network(2_000).graph
    service, members = Service(folder, graph, as_command=True), list(graph.nodes)
    try:
        seen, starts = killed_again_and_again(service, members, times, random.Random(1))
    finally:
        service.stop()
    lists = check(service, members, seen)
    print(f"\nkilled {times} times: {len(lists)} lists in {len(seen)} answers, each charged once")
    print(f"  started again in {statistics.median(starts):.2f} s, {max(starts):.2f} at most")
    return {"times": times, "lists": len(lists), "answers": len(seen), "start_seconds": starts}


def _first_lists(wrk: str, service: Service, n: int, folder: Path) -> float:
    """First lists a second with the charge on disk: many members ask at once, once each."""
    service.get(member=1)
    whom = range(BUSY, n, max(1, n // 20_000))
    return float(_asked(wrk, service, whom, folder, connections=512)["per_second"])


def _wait_for_all(service: Service, but: int = 0) -> None:
    """Wait until no more lists than that are left to be made ahead."""
    while service.curator("/status").json["ahead_left"] > but:
        time.sleep(0.5)


def _asked(
    wrk: str,
    service: Service,
    members: range,
    folder: Path,
    delay: int = 0,
    connections: int = CONNECTIONS,
) -> dict[str, Any]:
    """Ask for the lists of these members, each connection after so many milliseconds."""
    # The tokens of a group are made once: whoever asks again shows the same one.
    tokens, script = folder / f"tokens-{members.start}-{members.stop}", folder / "ask.lua"
    if not tokens.exists():
        tokens.write_text("\n".join(service.token(member) for member in members))
    script.write_text(LUA.format(tokens=tokens, delay=delay))
    return _load(wrk, service.port, "/me/suggestions", script, connections)


def _load(
    wrk: str, port: int, path: str, script: Path | None, connections: int = CONNECTIONS
) -> dict[str, Any]:
    words = [wrk, "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "--timeout", "20s"]
    words += ["-s", str(script)] if script else []
    said = subprocess.run(
        [*words, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True
    ).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    assert rate is not None, said
    assert late is not None, said
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[late[2]]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return {
        "per_second": float(rate[1]),
        "p99_seconds": float(late[1]) * scale,
        "not_ok": int(bad[1]) if bad else 0,
    }


def _wait(port: int) -> None:
    for _ in range(500):
        try:
            request(port, "/bare")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the bare endpoint did not start")
