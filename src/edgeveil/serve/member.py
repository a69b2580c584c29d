"""What a member sees: its own list, what protects everybody, and what was spent on it.

The member is the subject of the token. No path, query or body names one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from edgeveil.errors import EdgeveilError, UnknownNodeError
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.serve.guards import Guard, Metrics, RateLimit, error
from edgeveil.serve.making import Edition, Making, Unavailable, UsedUp
from edgeveil.serve.tokens import Refused, Tokens

__all__ = ["SHARED_PAGES", "add_pages", "member_app"]

SHARED_PAGES = {
    "/service.css": ("service.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_PAGES = {
    "/": ("member.html", "text/html; charset=utf-8"),
    "/member.js": ("member.js", "text/javascript; charset=utf-8"),
    **SHARED_PAGES,
}
_API = ("/me/suggestions", "/me/protection", "/me/spending", "/openapi.json")


class Suggestion(BaseModel):
    """One line of a list."""

    place: int = Field(description="1 for the best.")
    node: int | str = Field(description="Who is suggested.")
    first: int = Field(description="The noise leaves open the places from this one")
    last: int = Field(description="to this one.")
    why: str = Field(description="Common friends, as estimated, or popularity.")


class OwnList(BaseModel):
    """The list of the member who asks."""

    member: int | str
    snapshot: int = Field(description="Of which state of the network.")
    made: str = Field(description="The day on which it was made.")
    remark: str = Field(description="What the member should know about this list, or nothing.")
    suggestions: list[Suggestion]


class Answer(BaseModel):
    """A list, and whether it is the latest there can be."""

    current: bool = Field(description="False: the budget is used up, and this is an older list.")
    list: OwnList


class Protection(BaseModel):
    """What is protected, from whom, how strongly."""

    epsilon: float
    in_short: str
    in_full: str


class Spending(BaseModel):
    """What the member may have learnt so far, and how much more it may learn, as epsilon."""

    spent: float
    left: float
    whole: float


class Failure(BaseModel):
    """What is wrong, in words that are the same for every graph."""

    error: str


_REFUSED = "this needs a valid token of a member"
_FAILURES: dict[int | str, dict[str, Any]] = {
    401: {"model": Failure, "description": "No valid token."},
    429: {"model": Failure, "description": "Too many requests."},
    503: {"model": Failure, "description": "Not now; try again later."},
}


def member_app(making: Making, tokens: Tokens, metrics: Metrics, *, pad: float, https: bool) -> Any:
    """The members' side of the service.

    Parameters
    ----------
    making : Making
        Where lists come from.
    tokens : Tokens
        Who asks.
    metrics : Metrics
        What is counted.
    pad : float
        A first list is given a multiple of so many seconds after it was asked for. How long it
        took to make depends on how many friends a member's friends have, which nobody is to read
        off a clock.
    https : bool
        Whether members come by HTTPS.
    """
    app = FastAPI(
        title="edgeveil",
        description="Suggestions for the member who asks, from a network that stays private.",
        docs_url=None,
        redoc_url=None,
    )
    door = _Door(making, tokens)

    @app.get("/me/suggestions", response_model=Answer, responses=_FAILURES)
    async def suggestions(request: Request) -> Response:
        """Your list: whom you may know."""
        began = asyncio.get_running_loop().time()
        who = door.who(request)
        if isinstance(who, Response):
            return who
        body, current = who.edition.lists.get(who.at), b"true"
        if body is None:
            try:
                body = await making.make(who.member)
            except UsedUp:
                body, current = making.earlier(who.member), b"false"
            except Unavailable:
                body = None
            await _wait_for_the_next(began, pad)
        if body is None:
            return error(503, "there is no list for you now; try again later")
        # Written by `lists.render`, and of one length for everybody.
        whole = b'{"current":%s,"list":%s}' % (current.ljust(5), body)
        return Response(whole, media_type="application/json")

    @app.get("/me/protection", response_model=Protection, responses=_FAILURES)
    async def protection(request: Request) -> Response:
        """What protects everybody's friendships from whoever sees your list."""
        who = door.who(request)
        if isinstance(who, Response):
            return who
        return JSONResponse(await asyncio.to_thread(_protection, making))

    @app.get("/me/spending", response_model=Spending, responses=_FAILURES)
    async def spending(request: Request) -> Response:
        """What you may have learnt so far about others' friendships, as epsilon."""
        who = door.who(request)
        if isinstance(who, Response):
            return who
        try:
            found = await asyncio.to_thread(making.ledger.account, str(who.member))
        except (EdgeveilError, OSError):
            return error(503, "the ledger cannot be read now; try again later")
        whole = found.spent + found.left
        return JSONResponse({"spent": found.spent, "left": found.left, "whole": whole})

    add_pages(app, _PAGES)
    return Guard(app, metrics, frozenset([*_PAGES, *_API]), https=https)


class _Who(NamedTuple):
    """A member who asks, and its place in the edition that is current at that moment."""

    edition: Edition
    member: NodeId
    at: int


class _Door:
    """Lets in whoever has a valid token, not too often."""

    def __init__(self, making: Making, tokens: Tokens) -> None:
        self._making, self._tokens = making, tokens
        self._asks, self._fails = RateLimit(10, 40), RateLimit(1, 60)

    def who(self, request: Request) -> _Who | Response:
        """Who asks, or why not."""
        edition = self._making.edition
        try:
            kind, _, token = request.headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer":
                raise Refused
            subject = self._tokens.subject(token.strip())
            member = _member(subject, edition.graph.nodes)
            index = edition.graph.nodes.index(member)
        except (Refused, UnknownNodeError):
            if not self._fails.allows(request.client.host if request.client else ""):
                return error(429, "too many requests; wait a little", **{"Retry-After": "10"})
            return error(401, _REFUSED, **{"WWW-Authenticate": "Bearer"})
        if not self._asks.allows(subject):
            return error(429, "too many requests; wait a little", **{"Retry-After": "1"})
        return _Who(edition, member, index)


def _member(subject: str, nodes: NodeSet) -> NodeId:
    """The id that a token's subject names. Whether there is such a node is public."""
    if nodes.kind == "str":
        return subject
    if not subject.isascii() or not subject.isdigit() or str(int(subject[:20])) != subject:
        raise Refused
    return int(subject)


async def _wait_for_the_next(began: float, pad: float) -> None:
    """Wait until a multiple of `pad` seconds has passed since `began`."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(began + math.ceil((now - began) / pad) * pad - now)


def _protection(making: Making) -> dict[str, Any]:
    from edgeveil.mechanisms.suggest import Suggest

    offer, directed = making.offer, making.edition.graph.directed
    mechanism = Suggest(
        epsilon=offer.epsilon,
        top=offer.places,
        directed=directed,
        knows_followers=offer.knows_followers,
    )
    whom = "whom any other member follows" if directed else "whether two other members are friends"
    return {
        "epsilon": offer.epsilon,
        "in_short": (
            "Your list was made from everybody's connections with random numbers mixed in, so "
            f"that it does not show {whom}. Whatever somebody believed about such a connection, "
            f"your list can change the odds by a factor of at most {math.exp(offer.epsilon):.3g}."
        ),
        "in_full": str(replace(mechanism.guarantee(1), window=making.ledger.window)),
    }


def add_pages(app: FastAPI, pages: Mapping[str, tuple[str, str]]) -> None:
    """Serve files of this package, and say the same short words about everything else."""
    for path, (name, kind) in pages.items():
        _serve_file(app, path, name, kind)
    for status, words in ((404, "there is nothing here"), (405, "that cannot be done here")):
        app.add_exception_handler(status, _always(error(status, words)))
    app.add_exception_handler(Exception, _always(error(500, "something went wrong here")))


def _serve_file(app: FastAPI, path: str, name: str, kind: str) -> None:
    content = files(__package__).joinpath("pages", name).read_bytes()

    @app.get(path, include_in_schema=False)
    async def page() -> Response:
        return Response(content, media_type=kind)


def _always(answer: Response) -> Any:
    async def handler(request: Request, problem: Exception) -> Response:
        return Response(answer.body, answer.status_code, media_type="application/json")

    return handler
