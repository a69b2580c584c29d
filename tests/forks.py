"""Processes without a new interpreter for each: one loads what they need, and forks.

    python forks.py SOCKET      is what forks; for every request on its socket one process

Each is a real process with its own memory, files, signals and connections, and dies by a real
SIGKILL. A program is a module with a function `main` that takes its words from `sys.argv`;
`LOADED` says what is imported before the first fork of it; its function `warm_up`, if it has one,
is called then, too.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib
import io
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import traceback
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKER = "tests.unit.ledger.worker"
EDGEVEIL = "edgeveil.cli.app"
SERVICE = "tests.serve.frequent"
HISTORIAN = "tests.unit.series.history_worker"
REFRESHER = "tests.unit.series.worker"
LOOPS = "tests.unit.loop_worker"
LOADED = {  # a package stands for all of its modules
    HISTORIAN: ["edgeveil.series.history", "polars"],
    REFRESHER: ["edgeveil.series", "edgeveil.privacy", "edgeveil.estimate", "polars", "psycopg"],
    WORKER: ["psycopg"],
    LOOPS: [],
    EDGEVEIL: [
        *(f"edgeveil.{part}" for part in ("cli", "serve", "privacy", "estimate", "ledger")),
        *("polars", "psycopg", "uvicorn.protocols", "uvloop", "httptools", "starlette.routing"),
    ],
}
LOADED[SERVICE] = LOADED[EDGEVEIL]


class Process:
    """As much of `subprocess.Popen` as the tests use."""

    def __init__(self, server: socket.socket, request: dict, stdin, stdout, stderr) -> None:
        self.stdout, self.stderr, ours = None, None, []

        def end_for(wanted):
            if wanted is None:
                return fallback
            if not isinstance(wanted, str):
                return wanted if isinstance(wanted, int) else wanted.fileno()
            read, write = os.pipe()
            ours.append(write)
            setattr(self, wanted, os.fdopen(read, encoding="utf-8"))
            return write

        fallback = os.open(os.devnull, os.O_RDWR)
        ours.append(fallback)
        self._line, theirs = socket.socketpair()
        ends = [end_for(stdin), end_for(stdout), end_for(stderr), theirs.fileno()]
        with theirs:
            socket.send_fds(server, [json.dumps(request).encode()], ends)
        for end in ours:
            os.close(end)
        self._said = self._line.makefile()
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """What it wrote. One pipe is read after the other: for words, not for much data."""
        printed = []
        for stream in (self.stdout, self.stderr):
            printed.append(stream.read() if stream else None)
            if stream:
                stream.close()
        self.wait(timeout)
        return printed[0], printed[1]

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError, BlockingIOError):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """TimeoutError, "timed out", if it goes on for longer."""
        if self.returncode is None:
            self._line.settimeout(timeout)
            try:
                first = self._line.recv(1)
            finally:
                self._line.settimeout(None)
            self.returncode = int(first.decode() + self._said.readline())
            self._said.close()
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Starts processes, as long as it lives."""

    def __init__(self) -> None:
        self._server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def start(
        self, program, *words, folder=None, environment=None, terminal=False,
        stdin=None, stdout=None, stderr=None,
    ) -> Process:  # fmt: skip
        """Start a program.

        `stdout="stdout"` and `stderr="stderr"` are pipes to read from, a file or a number is
        itself, None is nothing. With `terminal`, its standard input is the terminal of a session
        of its own, so that Ctrl-C typed there is a signal.
        """
        request = {
            "program": program,
            "words": [str(word) for word in words],
            "folder": str(folder or os.getcwd()),
            "environment": dict(os.environ) | (environment or {}),
            "terminal": terminal,
        }
        return Process(self._server, request, stdin, stdout, stderr)

    def run(self, line: str, words: list[str], **options) -> subprocess.CompletedProcess[str]:
        """Run an edgeveil command to its end."""
        process = self.start(EDGEVEIL, *words, stdout="stdout", stderr="stderr", **options)
        printed = process.communicate(timeout=120)
        return subprocess.CompletedProcess(line, process.returncode, *printed)

    def close(self) -> None:
        self._server.close()
        self._process.wait()


@cache
def shared() -> Forks:
    """The one of this test process."""
    forks = Forks()
    atexit.register(forks.close)
    return forks


def serve(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who watch
    while True:
        message, given, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            return
        request = json.loads(message)
        main = load(request["program"])
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(main, request, given[:3], given[3])
        for end in given:
            os.close(end)


@cache
def load(program: str):
    for name in LOADED[program]:
        with contextlib.suppress(ImportError):
            package = importlib.import_module(name)
            for _, inner, _ in pkgutil.iter_modules(getattr(package, "__path__", []), f"{name}."):
                if name.startswith("edgeveil"):
                    importlib.import_module(inner)
    module = importlib.import_module(program)
    before = threads()
    if program in (EDGEVEIL, SERVICE):
        warm_up()
    getattr(module, "warm_up", lambda: None)()  # what every process would do first
    assert threads() == before, "a fork would have none of them, but their locks"
    return module.main


def warm_up() -> None:
    """Load the machine code that commands need most."""
    import edgeveil as ev

    graph = ev.datasets.social_network(300, average_degree=8).graph
    options = {"epsilon": 1.0, "engine": ev.jobs.Local(threads=1)}
    ev.rank(graph, 0, **options)
    with tempfile.TemporaryDirectory() as folder:
        ledger = ev.Ledger.create(Path(folder, "ledger"), epsilon=1)
        ev.refresh(graph, ledger=ledger, **options)


def threads() -> int:
    """How many this process has; 0 where the system does not say."""
    return len(list(Path("/proc/self/task").glob("*")))


def watch(main, request: dict, ends: list[int], line: int) -> None:
    """Run it in a process of its own; say which one, and how it ended."""
    pid = os.fork()
    if pid == 0:
        os.close(line)
        code = 1
        try:
            become(request, ends)
            code = main() or 0
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  (as an interpreter would)
            traceback.print_exc()
        finally:
            os._exit(code)
    for end in ends:
        os.close(end)
    os.write(line, f"{pid}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(line, f"{status}\n".encode())
    os._exit(0)


def become(request: dict, ends: list[int]) -> None:
    """Be the process that was asked for: its files, folder, variables and words."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
    os.closerange(3, max(ends) + 1)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [request["program"], *request["words"]]
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    written = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(written, line_buffering=os.isatty(1))
    # As at a start of Python: no character that standard error could not take.
    written = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(written, errors="backslashreplace", line_buffering=True)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    serve(socket.socket(fileno=int(sys.argv[1])))
