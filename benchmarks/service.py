"""The service under load, beside a bare endpoint of the same framework, in one run.

    ./run bench service --json benchmarks/results/service.json

A million members (--members) with five million edges: one refresh makes a series of lists, the
service copies them, and then a second snapshot while members ask, and serves them. Memory is the
most that the process ever had (VmHWM), while it copied lists and, after a restart, while it served
them. Lists are asked for with tokens that the service has never seen, by HS256 and by EdDSA, and
with tokens that it has. The bare endpoint is asked at half of the load, too: by how much it is late
is up to the machine and the load generator. The server's processor time for a request depends least
on what else runs. Needs the load generator wrk (Debian: apt install wrk), 8 GB of disk
and about a quarter of an hour on two quiet cores. All traffic is on loopback.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from benchmarks.graphs import draw_edges
from benchmarks.settings import Settings
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from tests.serve.running import Service, free_port, peak_bytes, request
from tests.serve.test_faults import check, killed_again_and_again

__all__ = ["run"]

BARE = """
import sys
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from edgeveil.serve.server import Address, serve
async def bare(request):
    return JSONResponse({"ok": True})
serve([(Address.of(sys.argv[1]), Starlette(routes=[Route("/bare", bare)]))], lambda: None)
"""
LUA = """
local tokens, at = {{}}, 0
for line in io.lines("{tokens}") do tokens[#tokens + 1] = "Bearer " .. line end
request = function()
  at = at % #tokens + 1
  return wrk.format("GET", "{path}", {{["Authorization"] = tokens[at]}})
end
"""
# With one and the same pause, all connections would go on asking at the same moment.
PAUSES = """
delay = function() return math.random(0, {twice}) end
"""
CONNECTIONS, SECONDS = 32, 8
NEW = 80_000  # tokens of one round, more than can be shown in it
KNOWN = 10_000  # tokens that are shown again and again
BUSY = 4_000  # members who are asked for while the lists of the next snapshot are copied
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
        began = time.perf_counter()
        service = Service(Path(folder), graph, cap=1.0, top=20, as_command=True)
        refreshing = time.perf_counter() - began
        del u, v
        figures = _measured(wrk, service, graph, rounds, Path(folder))
        return {**figures, "refresh_seconds": refreshing}


def _measured(
    wrk: str, service: Service, graph: Graph, rounds: int, folder: Path
) -> dict[str, Any]:
    n = graph.n_nodes
    kills = _killed(2 if rounds == 1 else 50, folder / "killed")
    asking = _Asking(wrk, service, range(0, n, max(1, n // 50_000)), folder)
    began = time.perf_counter()
    service.start()
    _wait_for_copies(service, 1)
    copying = time.perf_counter() - began
    service.refresh(graph, "2026-01-08")
    meanwhile = asking.these(_tokens(service, range(BUSY)), pause=100)
    _wait_for_copies(service, 2)
    copying_bytes = peak_bytes(service.process.pid)
    port = free_port()
    bare = subprocess.Popen([sys.executable, "-c", BARE, f"127.0.0.1:{port}"])
    try:
        _wait(port)
        service.stop(9)
        began = time.perf_counter()
        service.start()
        started = time.perf_counter() - began
        kinds: dict[str, list[Any]] = {"bare": [], "new": [], "known": [], "new_eddsa": []}
        for _ in range(rounds):  # one after the other: each has the machine to itself
            kinds["bare"].append(_load(wrk, port, "/bare", bare.pid))
            kinds["new"].append(asking.new())
            kinds["known"].append(asking.again())
            kinds["new_eddsa"].append(asking.new(eddsa=True))
        # Each connection waits so long between two requests that half of the load remains.
        pause = round(2_000 * CONNECTIONS / _median(kinds["new"], "per_second"))
        script = folder / "pauses.lua"
        script.write_text(PAUSES.format(twice=2 * pause))
        half = [
            {"bare": _load(wrk, port, "/bare", bare.pid, script), "new": asking.new(pause)}
            for _ in range(rounds)
        ]
        serving_bytes = peak_bytes(service.process.pid)
    finally:
        bare.terminate()
        service.stop()
    late = sorted(half, key=lambda both: both["new"]["p99_seconds"])[len(half) // 2]
    figures = {
        "members": n,
        "copying_seconds": copying,
        "stored_per_second": [load["per_second"] for load in kinds["known"]],
        "stored_new_per_second": [load["per_second"] for load in kinds["new"]],
        "stored_new_eddsa_per_second": [load["per_second"] for load in kinds["new_eddsa"]],
        "bare_per_second": [load["per_second"] for load in kinds["bare"]],
        "share_of_bare": _share(kinds["known"], kinds["bare"]),
        "share_of_bare_new": _share(kinds["new"], kinds["bare"]),
        "share_of_bare_new_eddsa": _share(kinds["new_eddsa"], kinds["bare"]),
        "cpu_microseconds": {
            kind: _median(each, "cpu_microseconds") for kind, each in kinds.items()
        },
        "at_half_load": late["new"],
        "bare_at_half_load": late["bare"],
        "half_load_rounds": half,
        "while_lists_are_copied": meanwhile,
        "start_seconds": started,
        "peak_bytes_copying": copying_bytes,
        "peak_bytes_serving": serving_bytes,
        "killed": kills,
    }
    print("\nservice:", {name: value for name, value in figures.items() if name != "killed"})
    return figures


def _killed(times: int, folder: Path) -> dict[str, Any]:
    """Kill a small service under load again and again; every list is charged and drawn once."""
    folder.mkdir()
    graph = social_network(2_000).graph
    service, members = Service(folder, graph, as_command=True), list(graph.nodes)
    graphs = [graph.with_edge_flipped(0, number) for number in range(1, times + 1)]
    try:
        seen, starts = killed_again_and_again(service, graphs, members, random.Random(1))
    finally:
        service.stop()
    lists = check(service, members, seen)
    print(f"\nkilled {times} times: {len(lists)} lists in {len(seen)} answers, each charged once")
    print(f"  started again in {statistics.median(starts):.2f} s, {max(starts):.2f} at most")
    return {"times": times, "lists": len(lists), "answers": len(seen), "start_seconds": starts}


def _wait_for_copies(service: Service, snapshot: int) -> None:
    """Wait until the lists of a snapshot are served."""
    while service.curator("/status").json["snapshot"] != snapshot:
        time.sleep(0.1)


def _tokens(service: Service, members: Iterable[int], eddsa: Any = None) -> Iterable[str]:
    """A token for each of these members."""
    for number, member in enumerate(members):
        seconds = 86_400 + number  # a member who comes twice has two tokens
        if eddsa is None:
            yield service.token(member, seconds=seconds)
        else:
            said = {"sub": str(member), "aud": "edgeveil", "exp": int(time.time() + seconds)}
            yield jwt.encode(said, eddsa, "EdDSA", {"kid": "eddsa"})


class _Asking:
    """Asks for the lists of members, with new tokens or with known ones."""

    def __init__(self, wrk: str, service: Service, members: range, folder: Path) -> None:
        self._wrk, self._service, self._members, self._folder = wrk, service, members, folder
        self._shown: list[str] = []
        self._eddsa = Ed25519PrivateKey.generate()
        keys = service.folder / "keys.json"
        public = OKPAlgorithm.to_jwk(self._eddsa.public_key(), as_dict=True)
        listed = json.loads(keys.read_text())["keys"]
        keys.write_text(json.dumps({"keys": [*listed, {**public, "kid": "eddsa"}]}))

    def new(self, pause: int = 0, *, eddsa: bool = False) -> dict[str, Any]:
        """With tokens that nobody has shown before."""
        members, key = islice(cycle(self._members), NEW), self._eddsa if eddsa else None
        tokens = list(_tokens(self._service, members, key))
        load = self.these(tokens, pause)
        if load["requests"] + CONNECTIONS > NEW:
            raise SystemExit("tokens were shown twice: make more of them")
        self._shown = tokens[: load["requests"]]
        return load

    def again(self) -> dict[str, Any]:
        """With the latest tokens that were shown before, again and again."""
        return self.these(self._shown[-KNOWN:])

    def these(
        self, tokens: Iterable[str], pause: int = 0, connections: int = CONNECTIONS
    ) -> dict[str, Any]:
        """Show these tokens, on each connection after so many milliseconds (mean)."""
        shown, script = self._folder / "tokens", self._folder / "ask.lua"
        shown.write_text("\n".join(tokens))
        pauses = PAUSES.format(twice=2 * pause) if pause else ""
        script.write_text(LUA.format(tokens=shown, path="/me/suggestions") + pauses)
        running = self._service
        place = running.port, "/me/suggestions", running.process.pid
        return _load(self._wrk, *place, script, connections)


def _median(loads: list[dict[str, Any]], name: str) -> float:
    return float(statistics.median(load[name] for load in loads))


def _share(ours: list[dict[str, Any]], bare: list[dict[str, Any]]) -> float:
    pairs = zip(ours, bare, strict=True)
    return statistics.median(own["per_second"] / other["per_second"] for own, other in pairs)


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, in user and in system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _load(
    wrk: str,
    port: int,
    path: str,
    pid: int,
    script: Path | None = None,
    connections: int = CONNECTIONS,
) -> dict[str, Any]:
    words = [wrk, "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "--timeout", "20s"]
    words += ["-s", str(script)] if script else []
    before = _cpu_seconds(pid)
    said = subprocess.run(
        [*words, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True
    ).stdout
    used = _cpu_seconds(pid) - before
    number = re.search(r"(\d+) requests in", said)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    assert number is not None, said
    assert rate is not None, said
    assert late is not None, said
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[late[2]]
    if bad := re.search(r"Non-2xx or 3xx responses: (\d+)", said):
        raise SystemExit(f"{bad[1]} answers of {path} were errors: there is nothing to measure")
    return {
        "requests": int(number[1]),
        "per_second": float(rate[1]),
        "p99_seconds": float(late[1]) * scale,
        "cpu_microseconds": used / int(number[1]) * 1e6,
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
