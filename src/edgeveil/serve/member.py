"""What a member sees: its own list, what protects everybody, and what was spent on it.

The member is the subject of the token. No path, query or body names one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from edgeveil.errors import EdgeveilError
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.serve.guards import Metrics, RateLimit, Work, error, guarded, network_of
from edgeveil.serve.making import Edition, Making, Unavailable, UsedUp
from edgeveil.serve.tokens import Refused, Tokens

_FILES = ("member.html", "member.js", "service.css", "icon.svg", "openapi.json")
_REFUSED = "this needs a valid token of a member"


def member_app(making: Making, tokens: Tokens, metrics: Metrics, *, pad: float, https: bool) -> Any:
    """The members' side of the service.

    A first list is given a multiple of `pad` seconds after it was asked for: how long it took to
    make depends on how many friends a member's friends have, which nobody is to read off a clock.
    """
    door = _Door(making, tokens)

    async def suggestions(who: _Who) -> Response:
        """Your list: whom you may know."""
        began = asyncio.get_running_loop().time()
        body, current = who.edition.lists.get(who.at), b"true"
        if body is None:
            try:
                body = await making.make(who.member)
            except UsedUp:
                body, current = await asyncio.to_thread(making.earlier, who.member), b"false"
            except Unavailable:
                body = None
            await _wait_for_the_next(began, pad)
        if body is None:
            return error(503, "there is no list for you now; try again later")
        # Written by `lists.render`, and of one length for everybody.
        whole = b'{"current":%s,"list":%s}' % (current.ljust(5), body)
        return Response(whole, media_type="application/json")

    async def protection(who: _Who) -> Response:
        """What protects everybody's friendships from whoever sees your list."""
        return JSONResponse(await asyncio.to_thread(_protection, making))

    async def spending(who: _Who) -> Response:
        """What you may have learnt so far about others' friendships, as epsilon."""
        try:
            found = await asyncio.to_thread(making.ledger.account, str(who.member))
        except (EdgeveilError, OSError):
            return error(503, "the ledger cannot be read now; try again later")
        whole = found.charged + found.left
        return JSONResponse({"spent": found.charged, "left": found.left, "whole": whole})

    def for_members(answer: Callable[[_Who], Awaitable[Response]]) -> Work:
        async def work(request: Request) -> Response:
            who = door.who(request)
            return who if isinstance(who, Response) else await answer(who)

        return work

    works = {
        ("GET", "/me/suggestions"): for_members(suggestions),
        ("GET", "/me/protection"): for_members(protection),
        ("GET", "/me/spending"): for_members(spending),
    }
    return guarded(works, _FILES, metrics, https=https)


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
            who = _Who(edition, *_member(subject, edition.graph.nodes))
        except Refused:
            if not self._fails.allows(network_of(request.client)):
                return error(429, "too many requests; wait a little", **{"Retry-After": "10"})
            return error(401, _REFUSED, **{"WWW-Authenticate": "Bearer"})
        if not self._asks.allows(subject):
            return error(429, "too many requests; wait a little", **{"Retry-After": "1"})
        return who


def _member(subject: str, nodes: NodeSet) -> tuple[NodeId, int]:
    """The id that a token's subject names, and its index. That there is such a node is public."""
    member: NodeId = subject
    if nodes.kind != "str":
        if not subject.isascii() or not subject.isdigit() or str(int(subject[:20])) != subject:
            raise Refused
        member = int(subject)
    at = nodes.find(member)  # not by `index`: it would look for similar names
    if at is None:
        raise Refused
    return member, at


async def _wait_for_the_next(began: float, pad: float) -> None:
    """Wait until a multiple of `pad` seconds has passed since `began`."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(began + math.ceil((now - began) / pad) * pad - now)


def _protection(making: Making) -> dict[str, Any]:
    from edgeveil.mechanisms.suggest import Suggest

    offer, directed = making.offer, making.edition.graph.directed
    mechanism = Suggest(
        epsilon=offer.epsilon,
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
        "in_full": str(mechanism.guarantee(1)),
    }
