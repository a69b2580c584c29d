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
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.serve import making
from edgeveil.serve import served_series as series
from edgeveil.serve.answers import NotYet, Unavailable, UsedUp
from edgeveil.serve.application import Metrics, application, error
from edgeveil.serve.list_files import is_list_of
from edgeveil.serve.tokens import Refused, Tokens

_PAGES = ("member.html", "member.js", "service.css", "icon.svg", "openapi.json")
_NOT_YET = (
    "you have no list yet: whoever has joined since the last refresh gets the first one with the "
    "next refresh, if the budget allows"
)

Source = making.Making | series.SeriesLists


class _Asking(NamedTuple):
    """A member who asks, and its stored list, if there is one."""

    member: NodeId
    stored: bytes | None


_Answer = Callable[[_Asking], Awaitable[Response]]


def member_app(
    source: Source, tokens: Tokens, metrics: Metrics, *, pad: float, https: bool
) -> Starlette:
    """The members' side of the service.

    New lists are delayed to a multiple of `pad` seconds: computing time depends on how many
    friends a member's friends have, and must not be visible.
    """

    async def suggestions(asking: _Asking) -> Response:
        began = asyncio.get_running_loop().time()
        body, current = asking.stored, b"true"
        if body is None:
            try:
                body = await source.make(asking.member)
            except NotYet:
                return error(404, _NOT_YET)
            except UsedUp:
                assert isinstance(source, making.Making)
                body, current = await asyncio.to_thread(source.earlier, asking.member), b"false"
            except Unavailable:
                body = None
            await _delay(began, pad)
        if body is None:
            return error(503, "there is no list for you now; try again later")
        # The list is JSON from `lists.render`, padded: all answers have one length.
        whole = b'{"current":%s,"list":%s}' % (current.ljust(5), body)
        return Response(whole, media_type="application/json")

    def answer_from_ledger(work: Callable[[Source, str], dict[str, Any]]) -> _Answer:
        async def answer(asking: _Asking) -> Response:
            try:
                return JSONResponse(await asyncio.to_thread(work, source, str(asking.member)))
            except (EdgeveilError, OSError):
                return error(503, "the ledger cannot be read now; try again later")

        return answer

    def route(path: str, answer: _Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                scheme, _, token = request.headers.get("authorization", "").partition(" ")
                if scheme.lower() != "bearer":
                    raise Refused
                asking = _asking(source, tokens.subject(token.strip()))
            except Refused:
                challenge = {"WWW-Authenticate": "Bearer"}
                return error(401, "this needs a valid token of a member", **challenge)
            return await answer(asking)

        return Route(path, endpoint)

    routes = [
        route("/me/suggestions", suggestions),
        route("/me/protection", answer_from_ledger(_protection)),
        route("/me/budget", answer_from_ledger(_budget)),
    ]
    return application(routes, _PAGES, metrics, https=https)


def _asking(source: Source, subject: str) -> _Asking:
    """The member who asks, in the current edition; Refused if unknown and only members may ask."""
    edition = source.edition
    found = None if edition is None else _member(subject, edition.nodes)
    if edition is None or found is None:
        if not source.everybody:
            raise Refused
        return _Asking(subject, None)
    member, at = found
    stored = edition.get(at)
    return _Asking(member, stored if stored is not None and is_list_of(member, stored) else None)


def _member(subject: str, nodes: NodeSet) -> tuple[NodeId, int] | None:
    """The id that a token's subject names, and its index. The node set is public."""
    member = nodes.named(subject)
    index = nodes.find(member)  # `index` would look for similar names, which takes long
    return None if index is None else (member, index)


async def _delay(began: float, pad: float) -> None:
    """Wait until a multiple of `pad` seconds has passed since `began`."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(began + math.ceil((now - began) / pad) * pad - now)


def _protection(source: Source, member: str) -> dict[str, Any]:
    """What is protected: by one list, or by all lists of a series together."""
    mechanism = source.mechanism
    hidden, pair = "whether two other members are friends", "such a friendship"
    if mechanism.directed:
        hidden, pair = "whom any other member follows", "such a connection"
    if isinstance(source, series.SeriesLists):
        # Everything that the member was charged counts: a series that was renewed counts twice.
        epsilon = max(source.ledger.account(member).charged, mechanism.epsilon)
        lists, them = "your lists, so that they do", "all of them"
        in_numbers = (
            f"Whatever somebody believed about {pair} before, all your lists together change the "
            f"odds by a factor of at most {_factor(epsilon):,} (epsilon {epsilon:g}), however many "
            f"lists this series gives you. Since when there is {pair} is protected half as "
            f"strongly: there the factor is at most {_factor(2 * epsilon):,}."
        )
        in_full = (
            f"All lists of the series together: {source.guarantee} A connection of somebody who "
            "was forgotten and has come back counts as a new one."
        )
    else:
        epsilon = mechanism.epsilon
        lists, them = "your list, so that it does", "the list"
        in_numbers = (
            f"Whatever somebody believed about {pair} before, one list changes the odds by a "
            f"factor of at most {_factor(epsilon):,} (epsilon {epsilon:g}). For several lists the "
            "factors multiply."
        )
        in_full = str(source.guarantee)
    return {
        "in_short": (
            f"Random noise was added to {lists} not show {hidden}. Seeing {them} can make "
            f"somebody more or less sure of {pair}, but not certain."
        ),
        "in_numbers": in_numbers,
        "odds": _factor(epsilon),
        "epsilon": epsilon,
        "in_full": in_full,
    }


def _factor(epsilon: float) -> float:
    """E to the power of epsilon, rounded up, so that it stays a bound."""
    return math.ceil(100 * math.exp(epsilon)) / 100


def _budget(source: Source, member: str) -> dict[str, Any]:
    account = source.ledger.account(member)
    charged, cap = account.charged, account.charged + account.left
    if isinstance(source, series.SeriesLists):
        what = "Lists reveal a little about others"
        more = "New lists of this series use nothing more: it is charged once, when you join."
    else:
        what = "Every new list reveals a little about others"
        more = "Looking at the same list again uses nothing."
    in_words = (
        f"{what}, so there is a limit for each member. You have used {100 * charged / cap:.0f} % "
        f"of yours. {more}"
    )
    return {"charged": charged, "left": account.left, "cap": cap, "in_words": in_words}
