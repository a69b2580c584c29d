"""A service as a curator runs it: the command, a process of its own, real sockets."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

from edgeveil.graph.saved import save_graph
from edgeveil.ledger import Ledger
from edgeveil.series import refresh
from edgeveil.serve.tokens import new_key, sign
from tests.forks import SERVICE, shared

# Below the ports that a system gives to whoever does not name one, and other ones for each process
# of pytest-xdist: nobody takes a port between `free_port` and the start of what listens there, or
# while a service is down. At random within them, for other runs on the same machine.
_PORTS_EACH = 400
_number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 30
_ports = range(20_000 + _PORTS_EACH * _number, 20_000 + _PORTS_EACH * (_number + 1))
_next_ports = itertools.islice(itertools.cycle(_ports), random.randrange(_PORTS_EACH), None)


def free_port():
    """A port that nobody listens at, and that no other test is given."""
    for port in itertools.islice(_next_ports, _PORTS_EACH):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Service:
    """One folder with graph, series and keys; the process can be stopped and started again.

    `as_command` starts it by a new interpreter, as a curator does; otherwise one is forked, which
    looks for new lists more often.
    """

    def __init__(
        self, folder, graph, *, epsilon=1.0, cap=2.0, top=10, options=(), curator=True, url=None,
        as_command=False,
    ):  # fmt: skip
        self.folder = Path(folder)
        self.graph, self.ledger = self.folder / "graph", url or self.folder / "ledger"
        self.artifacts, self.state = self.folder / "ledger.artifacts", self.folder / "state"
        self.epsilon = epsilon
        if not self.graph.exists():
            save_graph(graph, self.graph)
            Ledger.create(self.ledger, epsilon=cap, artifacts=self.artifacts)
            self.secret = new_key(self.folder / "keys.json")
            self.refresh(graph, "2026-01-01")
        self.port, self.curator_port = free_port(), free_port()
        place = ("--curator", f"127.0.0.1:{self.curator_port}") if curator else ()
        self.top, self.options = top, (*place, *options)
        self.process, self.as_command = None, as_command

    def another(self, graph):
        """A second instance: the same ledger and keys, and a place of its own for copies."""
        service = Service(self.folder, graph, url=self.ledger)
        service.secret, service.state = self.secret, self.folder / "second"
        return service

    def open_ledger(self):
        return Ledger.open(self.ledger, artifacts=self.artifacts)

    def refresh(self, graph, date, **more):
        """Bring the series up to a graph, as the weekly command does."""
        options = {"label": "friends", "epsilon": self.epsilon, "date": date, **more}
        return refresh(graph, ledger=self.open_ledger(), **options)

    def start(self, *options, wait=True):
        command = ["serve", str(self.graph)]
        command += ["--ledger", str(self.ledger), "--label", "friends"]
        command += ["--artifacts", str(self.artifacts), "--state", str(self.state)]
        command += ["--top", str(self.top)]
        command += ["--keys", str(self.folder / "keys.json")]
        if "--at" not in self.options:
            command += ["--at", f"127.0.0.1:{self.port}"]
        self.log = (self.folder / "log").open("ab")
        command = [*command, *self.options, *options]
        where = {"stdout": self.log, "stderr": self.log}
        if self.as_command:
            words = [sys.executable, "-m", "edgeveil", *command]
            self.process = subprocess.Popen(words, **where)
        else:
            self.process = shared().start(SERVICE, *command, **where)
        if wait:
            self.wait()
        return self

    def wait(self, seconds=60):
        """Until both sides answer: they do not begin to listen at the same moment."""
        self.until(lambda: self.curator("/health", key=None), seconds)
        if not {"--at", "--certificate"} & {*self.options}:
            self.wait_for_members(seconds)

    def wait_for_members(self, seconds=60, **more):
        return self.until(lambda: self.get("/", **more), seconds)

    def wait_for_list(self, member, snapshot=1, seconds=60, **more):
        """Wait until a member is given its list of a snapshot of the series."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = self.get(member=member, **more)
            if answer.status == 200 and answer.json["list"]["snapshot"] == snapshot:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"no list of snapshot {snapshot}: {answer.status}")

    def until(self, ask, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                return ask()
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the service did not start")

    def stop(self, number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(number)
            code = self.process.wait(timeout=120)
            self.log.close()
            self.process = None
            return code
        return None

    @property
    def key(self):
        return (self.state / "curator.key").read_text().strip()

    def token(self, member, **changed):
        return sign(str(member), self.secret, "edgeveil", **changed)

    def get(self, path="/me/suggestions", member=None, *, token=None, headers=(), **more):
        given = dict(headers)
        if member is not None or token is not None:
            given["Authorization"] = f"Bearer {token or self.token(member)}"
        return request(self.port, path, headers=given, **more)

    def tell(self, path, member, body, **headers):
        """POST a member's choice."""
        given = {"Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.get(path, member, method="POST", headers=given, body=json.dumps(body))

    def curator(self, path, method="GET", key="", body=None):
        given = {} if key is None else {"Authorization": f"Bearer {key or self.key}"}
        return request(self.curator_port, path, method, given, body)

    def confirm_refresh(self):
        """Ask for the price of a refresh, and send it back."""
        price = self.curator("/refresh")
        return price if price.status != 200 else self.curator("/refresh", "POST", body=price.body)


class Got:
    def __init__(self, status, headers, body, seconds):
        self.status, self.headers, self.body, self.seconds = status, headers, body, seconds

    @property
    def json(self):
        return json.loads(self.body)


def request(port, path, method="GET", headers=(), body=None, certificate=None):
    began = time.perf_counter()
    if certificate is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    else:
        trusted = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("localhost", port, timeout=120, context=trusted)
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return Got(answer.status, answer.headers, answer.read(), time.perf_counter() - began)
    finally:
        connection.close()


def peak_bytes(pid):
    """The most memory that a process ever had."""
    (line,) = (
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) << 10
