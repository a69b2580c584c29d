"""Processes that run worker.py, without a new interpreter for each: one loads it, and forks.

    python forks.py SOCKET      is what forks; for every request on its socket one process

Each is a real process with its own connections, and dies by a real SIGKILL.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path


class Process:
    """A worker: as much of `subprocess.Popen` as the tests use."""

    def __init__(self, server: socket.socket, arguments: list[str]) -> None:
        read, write = os.pipe()
        self._line, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(server, [json.dumps(arguments).encode()], [write, theirs.fileno()])
        os.close(write)
        self.stdout = os.fdopen(read)
        self._said = self._line.makefile()
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        with self.stdout:
            printed = self.stdout.read()
        self.wait(timeout)
        return printed, None

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

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Forks:
    """Starts processes, as long as it lives."""

    def __init__(self) -> None:
        self._server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def start(self, *arguments: str) -> Process:
        return Process(self._server, list(arguments))

    def close(self) -> None:
        self._server.close()
        self._process.wait()


def serve(requests: socket.socket) -> None:
    import worker

    with contextlib.suppress(ImportError):
        import psycopg  # noqa: F401  (loaded once)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who watch
    while True:
        message, given, _, _ = socket.recv_fds(requests, 1 << 16, 2)
        if not message:
            return
        stdout, line = given
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(partial(worker.main, *json.loads(message)), stdout, line)
        os.close(stdout)
        os.close(line)


def watch(work, stdout: int, line: int) -> None:
    """Run it in a process of its own; say which one, and how it ended."""
    pid = os.fork()
    if pid == 0:
        os.close(line)
        os.dup2(stdout, 1)
        os.close(stdout)
        code = 1
        try:
            work()
            sys.stdout.flush()
            code = 0
        except Exception:  # noqa: BLE001  (as an interpreter would)
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(stdout)
    os.write(line, f"{pid}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(line, f"{status}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    serve(socket.socket(fileno=int(sys.argv[1])))
