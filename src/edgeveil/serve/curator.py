"""What the curator sees, on a socket of its own: snapshots, spending, counts, lists made ahead.

Whoever holds the key may see all of it. Nothing here is for members: numbers of lists and totals
of budgets tell what the service has done, and the accuracy is measured on the private graph.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from edgeveil._files import flush
from edgeveil.errors import EdgeveilError, InputError
from edgeveil.ledger.plan import plan
from edgeveil.serve.guards import Metrics, RateLimit, Work, error, guarded, network_of
from edgeveil.serve.making import Making
from edgeveil.serve.tokens import Tokens

_FILES = ("curator.html", "curator.js", "service.css", "icon.svg")
_LEAST_KEY = 32  # characters
_LATEST = 500  # spends that the page gets; the ledger's report has all


def curator_key(path: Path) -> str:
    """The curator's key: what the file holds, or a new one (mode 0600).

    InputError if it holds too little (an empty one would let everybody in) or others can read it.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        key = path.read_text(encoding="utf-8").strip()
        if len(key) < _LEAST_KEY:
            raise InputError(f"{path} holds no key; remove it, and a new one is made") from None
        if path.stat().st_mode & 0o077:
            raise InputError(f"others can read {path}; remove it, and a new one is made") from None
        return key
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(f"{key}\n")
        flush(handle)
    return key


class _Accuracy:
    """How good the lists are, measured on the private graph when the curator asks for it."""

    def __init__(self, making: Making) -> None:
        self._making, self._lock = making, threading.Lock()
        self.state: dict[str, Any] = {"state": "not measured"}

    def start(self) -> dict[str, Any]:
        """Begin to measure, unless that is going on."""
        if self._lock.acquire(blocking=False):
            self.state = {"state": "being measured"}
            threading.Thread(target=self._measure, name="accuracy", daemon=True).start()
        return self.state

    def _measure(self) -> None:
        from edgeveil.evaluation.own_graph import evaluate

        edition, offer = self._making.edition, self._making.offer
        try:
            found = evaluate(
                edition.graph, protocol="suggestions", epsilons=[offer.epsilon], k=offer.places
            )
            rows = [
                {"members": r.scope, "of": r.mechanism, "epsilon": r.epsilon, "hits": r.mean}
                for r in found.results
                if r.metric == f"hits@{offer.places}"
            ]
            self.state = {"state": "measured", "snapshot": edition.snapshot, "rows": rows}
        except (EdgeveilError, OSError, ImportError) as problem:
            self.state = {"state": "failed", "why": str(problem)}
        finally:
            self._lock.release()


def curator_app(making: Making, tokens: Tokens, metrics: Metrics, key: str) -> Any:
    """The curator's side of the service; every path but /health and the page needs the key."""
    fails, accuracy = RateLimit(1, 30), _Accuracy(making)
    wanted = f"Bearer {key}".encode()

    def for_the_curator(work: Callable[[], Any]) -> Work:
        async def answer(request: Request) -> Response:
            if not hmac.compare_digest(request.headers.get("authorization", "").encode(), wanted):
                if not fails.allows(network_of(request.client)):
                    return error(429, "too many requests; wait a little")
                return error(401, "this needs the curator's key")
            try:
                found = await asyncio.to_thread(work)
            except (EdgeveilError, OSError) as problem:
                return error(409, str(problem))
            return found if isinstance(found, Response) else JSONResponse(found)

        return answer

    def ahead() -> dict[str, int]:
        making.make_ahead()
        return {"left": making.ahead_left}

    def counts() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": not making.trouble}, 503 if making.trouble else 200)

    works = {
        ("GET", "/status"): lambda: _status(making, tokens),
        ("GET", "/spends"): lambda: _spends(making),
        ("GET", "/plan"): lambda: _plan(making),
        ("GET", "/metrics"): counts,
        ("POST", "/advance"): lambda: {"snapshot": making.advance()},
        ("POST", "/ahead"): ahead,
        ("GET", "/accuracy"): lambda: accuracy.state,
        ("POST", "/accuracy"): accuracy.start,
    }
    all_works = {place: for_the_curator(work) for place, work in works.items()}
    return guarded({**all_works, ("GET", "/health"): health}, _FILES, Metrics())


def _status(making: Making, tokens: Tokens) -> dict[str, Any]:
    edition, offer = making.edition, making.offer
    least = making.ledger.account()
    return {
        "label": offer.label,
        "snapshot": edition.snapshot,
        "members": edition.graph.n_nodes,
        "places": offer.places,
        "epsilon": offer.epsilon,
        "cap": making.ledger.epsilon,
        "least_left": least.left,
        "lists_left_for_everybody": int(least.left / offer.epsilon + 1e-9),
        "ahead_left": making.ahead_left,
        "trouble": making.trouble,
        "trouble_with_keys": tokens.trouble,
    }


def _plan(making: Making) -> list[dict[str, Any]]:
    """What each list may cost so that what is left lasts for a year."""
    from edgeveil.mechanisms.suggest import Suggest

    def pooled(epsilon: float) -> float:
        members = making.edition.graph.n_nodes
        return Suggest(epsilon=epsilon).guarantee(members).pooled_epsilon if epsilon else 0.0

    ledger = making.ledger
    found = plan(ledger.account(), "week", "1y", pooled=pooled)
    return [{"every": p.every, "releases": p.releases, "epsilon": p.epsilon} for p in found]


def _spends(making: Making) -> list[dict[str, Any]]:
    return [
        {
            "number": spend.seq,
            "time": spend.created,
            "epsilon": spend.epsilon_nano / 1e9,
            "lists": spend.n_rows,
            "snapshot": spend.snapshot,
            "released": spend.released,
        }
        for spend in making.ledger.charges(latest=_LATEST)
    ]
