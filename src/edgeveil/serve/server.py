"""Both sides of the service in one process: sockets, signals, and the order of starting up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from edgeveil.errors import EdgeveilError, ParameterError


@dataclass(frozen=True)
class Address:
    """Where to listen: a host and port, or a Unix socket; with a certificate by HTTPS.

    A Unix socket is for the service's user alone, or if `shared` also for its group, where a proxy
    runs as another user.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    path: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    shared: bool = False

    @classmethod
    def of(cls, text: str, **more: Any) -> Address:
        """Read ``host:port``, ``port`` or ``unix:path``."""
        if text.startswith("unix:"):
            return cls(path=text.removeprefix("unix:"), **more)
        host, _, port = text.rpartition(":")
        if not port.isdigit() or int(port) > 65_535:
            raise ParameterError(f"expected host:port, a port or unix:path, got {text!r}")
        return cls(host.strip("[]") or "127.0.0.1", int(port), **more)

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}"

    def bind(self) -> socket.socket:
        """The open socket."""
        try:
            if self.path is None:
                family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
                return socket.create_server((self.host, self.port), family=family, backlog=2_048)
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISSOCK(os.stat(self.path).st_mode):  # of a run before
                    os.unlink(self.path)
            listening = socket.socket(socket.AF_UNIX)
            before = os.umask(0o117 if self.shared else 0o177)
            try:
                listening.bind(self.path)
            finally:
                os.umask(before)
            return listening
        except OSError as problem:
            raise EdgeveilError(f"cannot listen at {self}: {problem.strerror or problem}") from None

    def config(self, app: Any) -> uvicorn.Config:
        """Settings of uvicorn. No access log: it would hold who asked when."""
        return uvicorn.Config(
            app,
            ssl_certfile=self.certificate,
            ssl_keyfile=self.key,
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="critical",  # nothing about single requests
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,  # longer than a proxy keeps an idle connection (nginx: 60 s)
            timeout_graceful_shutdown=10,
        )


class _Server(uvicorn.Server):
    """One of two in this process: `_serve` handles signals for both."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(apps: list[tuple[Address, Any]], started: Callable[[], None]) -> None:
    """Serve until a signal says to stop; `started` is called once all sockets are open."""
    sys.setswitchinterval(0.0005)  # answers wait at most this long for the thread that makes lists
    gc.freeze()  # a garbage collection of all modules would stop answers for 30 ms
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(place.bind()) for place, _ in apps]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(apps, sockets, started))


async def _serve(
    apps: list[tuple[Address, Any]], sockets: list[socket.socket], started: Callable[[], None]
) -> None:
    servers = [_Server(address.config(app)) for address, app in apps]
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    running = [
        asyncio.ensure_future(server.serve(sockets=[listening]))
        for server, listening in zip(servers, sockets, strict=True)
    ]
    while not all(server.started for server in servers):
        if any(task.done() for task in running):
            stop()
            break
        await asyncio.sleep(0.005)
    else:
        started()
    await asyncio.gather(*running)
