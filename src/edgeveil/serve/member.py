"""For members: the member's own list, what is protected, and the member's budget.

The member is the subject of the token. No path, query or body names one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgeveil.errors import EdgeveilError
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.serve.app import Metrics, application, error
from edgeveil.serve.making import Edition, Making, Unavailable, UsedUp
from edgeveil.serve.tokens import Refused, Tokens

_PAGES = ("member.html", "member.js", "service.css", "icon.svg", "openapi.json")


class _Asking(NamedTuple):
    """A member who asks, and its index (`at`) in the edition that is current at that moment."""

    edition: Edition
    member: NodeId
    at: int


_Answer = Callable[[_Asking], Awaitable[Response]]


def member_app(
    making: Making, tokens: Tokens, metrics: Metrics, *, pad: float, https: bool
) -> Starlette:
    """The members' side of the service.

    New lists are delayed to a multiple of `pad` seconds: computing time depends on how many
    friends a member's friends have, and must not be visible.
    """

    async def suggestions(asking: _Asking) -> Response:
        began = asyncio.get_running_loop().time()
        body, current = asking.edition.lists.get(asking.at), b"true"
        if body is None:
            try:
                body = await making.make(asking.member)
            except UsedUp:
                body, current = await asyncio.to_thread(making.earlier, asking.member), b"false"
            except Unavailable:
                body = None
            await _delay(began, pad)
        if body is None:
            return error(503, "there is no list for you now; try again later")
        # The list is JSON from `lists.render`, padded: all answers have one length.
        whole = b'{"current":%s,"list":%s}' % (current.ljust(5), body)
        return Response(whole, media_type="application/json")

    async def protection(asking: _Asking) -> Response:
        return JSONResponse(await asyncio.to_thread(_protection, making))

    async def budget(asking: _Asking) -> Response:
        try:
            found = await asyncio.to_thread(making.ledger.account, str(asking.member))
        except (EdgeveilError, OSError):
            return error(503, "the ledger cannot be read now; try again later")
        cap = found.charged + found.left
        return JSONResponse({"charged": found.charged, "left": found.left, "cap": cap})

    def route(path: str, answer: _Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            edition = making.edition
            try:
                scheme, _, token = request.headers.get("authorization", "").partition(" ")
                if scheme.lower() != "bearer":
                    raise Refused
                found = _member(tokens.subject(token.strip()), edition.graph.nodes)
            except Refused:
                challenge = {"WWW-Authenticate": "Bearer"}
                return error(401, "this needs a valid token of a member", **challenge)
            return await answer(_Asking(edition, *found))

        return Route(path, endpoint)

    routes = [
        route("/me/suggestions", suggestions),
        route("/me/protection", protection),
        route("/me/budget", budget),
    ]
    return application(routes, _PAGES, metrics, https=https)


def _member(subject: str, nodes: NodeSet) -> tuple[NodeId, int]:
    """The id that a token's subject names, and its index. That there is such a node is public."""
    member: NodeId = subject
    if nodes.kind != "str":
        if not subject.isascii() or not subject.isdigit() or str(int(subject[:20])) != subject:
            raise Refused
        member = int(subject)
    index = nodes.find(member)  # `index` would look for similar names, which takes long
    if index is None:
        raise Refused
    return member, index


async def _delay(began: float, pad: float) -> None:
    """Wait until a multiple of `pad` seconds has passed since `began`."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(began + math.ceil((now - began) / pad) * pad - now)


def _protection(making: Making) -> dict[str, Any]:
    from edgeveil.mechanisms.suggest import Suggest

    offer, directed = making.offer, making.edition.graph.directed
    mechanism = Suggest(
        epsilon=offer.epsilon, directed=directed, knows_followers=offer.knows_followers
    )
    if directed:
        hidden = "whom any other member follows"
    else:
        hidden = "whether two other members are friends"
    return {
        "in_short": (
            f"Random noise was added to your list, so that it does not show {hidden}. Seeing the "
            "list can make somebody more or less sure of such a connection, but not certain."
        ),
        "odds": math.ceil(100 * math.exp(offer.epsilon)) / 100,  # a bound: rounded up
        "epsilon": offer.epsilon,
        "in_full": str(mechanism.guarantee(1)),
    }
