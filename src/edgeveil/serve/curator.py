"""For the curator only, on its own socket: snapshots, charges, counts, a refresh."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgeveil._internal.files import flush
from edgeveil.errors import EdgeveilError, InputError
from edgeveil.ledger.accounts import is_window
from edgeveil.ledger.generations import plain_label
from edgeveil.series import highest_epsilon
from edgeveil.serve.application import Metrics, application, error
from edgeveil.serve.served_series import SeriesLists
from edgeveil.serve.tokens import TokenChecker
from edgeveil.serve.watched_files import read_own

_PAGES = ("curator.html", "curator.js", "service.css", "icon.svg")
_MIN_KEY = 32  # characters


def curator_key(path: Path) -> str:
    """The curator's key from a file, which is created (mode 0600) if it does not exist.

    InputError if the file holds less than a key (an empty key would let everybody in), or if it
    belongs to another user or others can read it.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        key = read_own(path).strip()
        if len(key) < _MIN_KEY:
            raise InputError(f"{path} holds no key; remove it, and a new one is made") from None
        return key
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(f"{key}\n")
        flush(handle)
    return key


def curator_app(lists: SeriesLists, tokens: TokenChecker, metrics: Metrics, key: str) -> Starlette:
    """The curator's side of the service; every path but /health and the page needs the key."""
    expected = f"Bearer {key}".encode()

    def route(path: str, work: Callable[[], Any]) -> Route:
        async def answer(request: Request) -> Any:
            return await asyncio.to_thread(work)

        return Route(path, _for_the_curator(expected, answer))

    def charging(path: str, price: Callable[[], Any], work: Callable[[object], Any]) -> list[Route]:
        """GET returns the price; a POST must send it back as a confirmation."""

        async def charge(request: Request) -> Any:
            return await asyncio.to_thread(work, _json_in(await request.body()))

        return [
            route(path, price),
            Route(path, _for_the_curator(expected, charge), methods=["POST"]),
        ]

    def counts() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": not lists.last_error}, 503 if lists.last_error else 200)

    routes = [
        Route("/health", health),
        route("/status", lambda: _status(lists, tokens)),
        route("/metrics", counts),
        route("/charges", lambda: _charges(lists)),
        route("/plan", lambda: _renewals(lists)),
        *charging("/refresh", lists.price, lambda shown: asdict(lists.refresh(shown))),
    ]
    return application(routes, _PAGES, Metrics())


def _for_the_curator(
    expected: bytes, answer: Callable[[Request], Awaitable[Any]]
) -> Callable[[Request], Awaitable[Response]]:
    """Answer as JSON, only with the curator's key; errors are reported in full."""

    async def endpoint(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, expected):
            return error(401, "this needs the curator's key")
        try:
            content = await answer(request)
        except (EdgeveilError, OSError) as problem:
            return error(409, str(problem))
        return content if isinstance(content, Response) else JSONResponse(content)

    return endpoint


def _json_in(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _status(lists: SeriesLists, tokens: TokenChecker) -> dict[str, Any]:
    published = lists.published
    return {
        "label": lists.label,
        "snapshot": published.snapshot if published else None,
        "members": int(published.present.sum()) if published else None,
        "k": lists.k,
        "epsilon": lists.mechanism.epsilon,
        "cap": lists.ledger.epsilon,
        "least_left": lists.ledger.account().left,
        "copies_left": lists.left,
        "refresh": asdict(lists.refreshing),
        "last_error": lists.last_error,
        "error_of_keys": tokens.last_error,
    }


def _renewals(lists: SeriesLists) -> list[dict[str, Any]]:
    """The highest epsilon at which everybody's budget allows one more series, or two."""
    account, published = lists.ledger.account(), lists.published
    n_members = len(published.nodes) if published else 1
    highest = partial(highest_epsilon, account, lists.mechanism, n_members)
    return [{"renewals": count, "epsilon": highest(count)} for count in (1, 2)]


def _charges(lists: SeriesLists) -> dict[str, Any]:
    """The series of the label, each as one charge, and the windows of each snapshot.

    How many windows there are depends on edges.
    """
    same = plain_label(lists.label)
    of_label = [charge for charge in lists.ledger.charges() if plain_label(charge.label) == same]
    series, windows = dict[str, dict[str, Any]](), dict[tuple[str, int], dict[str, Any]]()
    for charge in of_label:
        if is_window(charge):
            until = int(charge.note["until"])
            summary = {"snapshot": until, "time": charge.created, "windows": 0}
            windows.setdefault((charge.note["of"], until), summary)["windows"] += charge.n_rows
        elif "series" in charge.note:
            epsilon = charge.epsilon_nano / 1e9
            summary = {"since": charge.created, "epsilon": epsilon, "members": 0}
            series.setdefault(charge.campaign, summary)["members"] += charge.n_rows
    return {
        "series": list(series.values()),
        "windows": list(windows.values()),
        "warning": "the numbers of windows are exact counts: do not publish",
    }
