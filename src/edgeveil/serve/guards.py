"""What stands before every endpoint: limits, headers, counts; and connections that are too slow.

Nothing here knows who asks but for the rate limit, which forgets it within a minute. Neither logs
nor counts hold ids.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from importlib import resources
from ipaddress import ip_address
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Work = Callable[[Request], Awaitable[Response]]

_MOST_BODY = 1024  # bytes; no endpoint needs more
_MOST_HEAD = 16_384  # bytes of a request's head
_SECONDS_FOR_HEAD = 5.0
_MOST_OPEN = 2_500  # connections; from 2,000 on (`server.Place.config`) they are answered with 503
_MOST_OPEN_FROM_ONE = 200  # of them from one network
_PROXIES = ("", "127.0.0.1", "::1")  # a Unix socket or this machine: a proxy, for everybody
_SECONDS_FOR_ANSWER = 5.0  # that a client may leave an answer unread
_TABLES, _NAMES = 256, 400  # of a rate limit: tables, and names in each
_log = logging.getLogger("edgeveil.serve")
_KINDS = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "json": "application/json",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def error(status: int, words: str, **headers: str) -> Response:
    """An answer that says what is wrong: the same for every graph."""
    return JSONResponse({"error": words}, status, headers)


class Metrics:
    """Counts for Prometheus: requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "edgeveil_requests", "Requests.", ["route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "edgeveil_request_seconds",
            "Time to answer.",
            ["route"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Add one request."""
        found = self._children.get((route, status))
        if found is None:
            found = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._children[route, status] = found
        found[0].inc()
        found[1].observe(seconds)


def network_of(client: Any) -> str:
    """Where a client comes from: its address, or of IPv6 the half that a network has for itself."""
    host = str(client[0]) if client else ""
    return ip_address(host).exploded[:19] if ":" in host and host not in _PROXIES else host


class RateLimit:
    """So many requests a second for each name, with a reserve of so many at once."""

    def __init__(self, per_second: float, at_once: int) -> None:
        self._rate, self._most = per_second, float(at_once)
        # Small tables: nobody waits while one is cleared; together for 100,000 names.
        self._left: list[dict[str, tuple[float, float]]] = [{} for _ in range(_TABLES)]

    def allows(self, name: str) -> bool:
        """Whether one more is allowed now; it then counts."""
        now, at = time.monotonic(), hash(name) % _TABLES
        known = self._left[at]
        left, since = known.get(name, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if len(known) >= _NAMES:
            known = self._left[at] = self._recent(known, now)
        known[name] = (left - 1 if left >= 1 else left), now
        return left >= 1

    def _recent(
        self, known: dict[str, tuple[float, float]], now: float
    ) -> dict[str, tuple[float, float]]:
        """Whoever has not a full reserve again; nobody, if they are many: it must not grow."""
        full = self._most / self._rate
        found = {k: v for k, v in known.items() if now - v[1] < full}
        return found if len(found) < _NAMES else {}


def guarded(
    works: Mapping[tuple[str, str], Work],
    files: Sequence[str],
    metrics: Metrics,
    *,
    https: bool = False,
) -> App:
    """An application of these works, by method and path, and of files in `pages`; HTML is at /."""
    pages = {("GET", "/" if ".html" in name else f"/{name}"): _page(name) for name in files}
    return _Guard({**works, **pages}, metrics, https=https)


def _page(name: str) -> Work:
    content = resources.files(__package__).joinpath("pages", name).read_bytes()
    kind = _KINDS[name.rpartition(".")[2]]

    async def page(request: Request) -> Response:
        return Response(content, media_type=kind)

    return page


class _Guard:
    """The ASGI application: refuses large bodies, finds the work, adds headers, counts.

    Starlette's router, with what it wraps around every answer, takes longer than all of this.
    """

    def __init__(
        self, works: Mapping[tuple[str, str], Work], metrics: Metrics, *, https: bool
    ) -> None:
        self._works, self._metrics = works, metrics
        self._paths = frozenset(path for _, path in works)
        more = {"Strict-Transport-Security": "max-age=31536000"} if https else {}
        self._headers = [
            (name.lower().encode(), value.encode()) for name, value in {**_HEADERS, **more}.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began, path, status = time.monotonic(), scope["path"], 500
        try:
            try:
                answer = await self._answer(scope, receive)
            except Exception as problem:  # noqa: BLE001  (its words may name a member)
                _log.error("an answer failed: %s", type(problem).__name__)
                answer = error(500, "something went wrong here")
            answer.raw_headers += self._headers
            status = answer.status_code
            await answer(scope, receive, send)
        finally:
            # Unknown paths are one route: nobody can fill the counts with names.
            route = path if path in self._paths else "other"
            self._metrics.count(route, status, time.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if _has_large_body(scope):
            return error(413, "no request here has a body of that size", Connection="close")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]  # sent without its body
        work = self._works.get((method, scope["path"]))
        if work is not None:
            return await work(Request(scope, receive))
        if scope["path"] in self._paths:
            return error(405, "that cannot be done here")
        return error(404, "there is nothing here")


def _has_large_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or not length.isdigit() or int(length) > _MOST_BODY


class GuardedProtocol(HttpToolsProtocol):
    """A connection with heads of a few KB that arrive, and answers that are read, in seconds.

    Nobody can have all of them: one network has a share.
    """

    _open_from: ClassVar[dict[str, int]] = {}  # connections, by network
    _network = ""
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._network = network_of(self.client)
        number = self._open_from[self._network] = self._open_from.get(self._network, 0) + 1
        share = _MOST_OPEN if self._network in _PROXIES else _MOST_OPEN_FROM_ONE
        if len(self.connections) > _MOST_OPEN or number > share:
            transport.abort()
            return
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop it."""
        left = self._open_from.pop(self._network) - 1
        if left:
            self._open_from[self._network] = left
        self._relax()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count a head's bytes until it is complete."""
        # Uvicorn's clock for idle connections ends with any byte, and a line end, or what is left
        # of a body, begins no request that would start ours.
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        if self._deadline is not None:
            self._head += len(data)
            if self._head > _MOST_HEAD:
                self.transport.abort()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Another request on the same connection."""
        super().on_message_begin()
        if self._deadline is None:
            self._expect()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._relax()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client does not read what it asked for."""
        super().pause_writing()
        self._unread = self.loop.call_later(_SECONDS_FOR_ANSWER, self.transport.abort)

    def resume_writing(self) -> None:
        """It does."""
        if self._unread is not None:
            self._unread.cancel()
        super().resume_writing()

    def _expect(self) -> None:
        self._head = 0
        self._deadline = self.loop.call_later(_SECONDS_FOR_HEAD, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
