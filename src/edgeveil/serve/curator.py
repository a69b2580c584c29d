"""For the curator only, on a socket of its own: snapshots, charges, counts, lists made ahead."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgeveil._files import flush
from edgeveil.errors import EdgeveilError, InputError
from edgeveil.ledger.plan import plan
from edgeveil.serve.app import Metrics, application, error
from edgeveil.serve.files import read_own
from edgeveil.serve.making import Making, Price, PriceChanged
from edgeveil.serve.tokens import Tokens

_PAGES = ("curator.html", "curator.js", "service.css", "icon.svg")
_MIN_KEY = 32  # characters
_LATEST = 500  # charges on the page; `edgeveil ledger report` has all


def curator_key(path: Path) -> str:
    """The curator's key from a file, which is created (mode 0600) if there is none.

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


def curator_app(making: Making, tokens: Tokens, metrics: Metrics, key: str) -> Starlette:
    """The curator's side of the service; every path but /health and the page needs the key."""
    expected = f"Bearer {key}".encode()

    def route(
        path: str, work: Callable[..., Any], method: str = "GET", *, charges: bool = False
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            given = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, expected):
                return error(401, "this needs the curator's key")
            try:
                shown = [_price_in(await request.body())] if charges else []
                found = await asyncio.to_thread(work, *shown)
            except (EdgeveilError, OSError) as problem:
                return error(409, str(problem))
            return found if isinstance(found, Response) else JSONResponse(found)

        return Route(path, endpoint, methods=[method])

    def ahead(shown: Price) -> dict[str, int]:
        making.make_ahead(shown)
        return {"left": making.ahead_left}

    def advance(shown: Price) -> dict[str, int]:
        return {"snapshot": making.advance(shown)}

    def counts() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": not making.trouble}, 503 if making.trouble else 200)

    routes = [
        Route("/health", health),
        route("/status", lambda: _status(making, tokens)),
        route("/charges", lambda: _charges(making)),
        route("/plan", lambda: _plan(making)),
        route("/metrics", counts),
        route("/advance", lambda: asdict(making.price_of_next())),
        route("/advance", advance, "POST", charges=True),
        route("/ahead", lambda: asdict(making.price())),
        route("/ahead", ahead, "POST", charges=True),
    ]
    return application(routes, _PAGES, Metrics())


def _price_in(body: bytes) -> Price:
    """The price that the curator confirms: what a GET of the same path has answered."""
    try:
        return Price(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        raise PriceChanged(
            "this charges members: GET the same path for the price, and send it back as the body"
        ) from None


def _status(making: Making, tokens: Tokens) -> dict[str, Any]:
    edition, offer, price = making.edition, making.offer, making.price()
    return {
        "label": offer.label,
        "snapshot": edition.snapshot,
        "members": edition.graph.n_nodes,
        "k": offer.k,
        "epsilon": offer.epsilon,
        "cap": making.ledger.epsilon,
        "least_left": price.least_left,
        "lists_left": price.lists_left,
        "ahead_left": making.ahead_left,
        "trouble": making.trouble,
        "trouble_with_keys": tokens.trouble,
    }


def _plan(making: Making) -> list[dict[str, Any]]:
    """The highest price of a list at which the remaining budget lasts for a year."""
    from edgeveil.mechanisms.suggest import Suggest

    def pooled(epsilon: float) -> float:
        members = making.edition.graph.n_nodes
        return Suggest(epsilon=epsilon).guarantee(members).pooled_epsilon if epsilon else 0.0

    ledger = making.ledger
    found = plan(ledger.account(), "week", "1y", pooled=pooled)
    return [{"every": p.every, "releases": p.releases, "epsilon": p.epsilon} for p in found]


def _charges(making: Making) -> list[dict[str, Any]]:
    return [
        {
            "number": charge.seq,
            "time": charge.created,
            "epsilon": charge.epsilon_nano / 1e9,
            "lists": charge.n_rows,
            "snapshot": charge.snapshot,
            "released": charge.released,
        }
        for charge in making.ledger.charges(latest=_LATEST)
    ]
