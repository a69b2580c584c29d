"""A web application from routes and pages: strict headers, errors as JSON, request counts.

Neither logs nor counts hold ids. Limits on connections, sizes and rates are set by the reverse
proxy: see docs/service.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from importlib import resources

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("edgeveil.serve")
_MEDIA_TYPES = {
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
_HTTPS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}


def error(status: int, message: str, **headers: str) -> Response:
    """An error as JSON. The message must not depend on edges."""
    return JSONResponse({"error": message}, status, headers)


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

    def count(self, route: str, status: int, seconds: float) -> None:
        """Add one request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


def application(
    routes: Sequence[Route], pages: Sequence[str], metrics: Metrics, *, https: bool = False
) -> Starlette:
    """An application of these routes and of files in `pages`; the HTML page is at /."""
    headers = _HEADERS | _HTTPS_HEADERS if https else _HEADERS
    app = Starlette(
        routes=[*routes, *map(_page, pages)],
        middleware=[Middleware(_EveryAnswer, metrics, headers)],
        exception_handlers={HTTPException: _http_error},
    )
    # A redirect would repeat the Host header, which the client chooses.
    app.router.redirect_slashes = False
    return app


def _page(name: str) -> Route:
    content = resources.files(__package__).joinpath("pages", name).read_bytes()
    media_type = _MEDIA_TYPES[name.rpartition(".")[2]]

    async def page(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route("/" if name.endswith(".html") else f"/{name}", page)


async def _http_error(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    return error(status, {404: "not found", 405: "method not allowed"}.get(status, "error"))


class _EveryAnswer:
    """ASGI middleware: adds headers to every answer, counts it, and hides unexpected errors."""

    def __init__(self, app: ASGIApp, metrics: Metrics, headers: dict[str, str]) -> None:
        self._app, self._metrics = app, metrics
        self._headers = [(name.lower().encode(), text.encode()) for name, text in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began, status = time.monotonic(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as problem:  # noqa: BLE001  (its message may name a member)
            _log.error("a request failed: %s", type(problem).__name__)
            answer = error(500, "internal error")
            await answer(scope, receive, send_with_headers)
        finally:
            # Unknown paths are one route, so that clients cannot add labels.
            route = scope["path"] if "endpoint" in scope else "other"
            self._metrics.count(route, status, time.monotonic() - began)
