"""For members: the member's own list, what is protected, its budget, and its choices.

The member is the subject of the token. No path, query or body names it.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgeveil.errors import EdgeveilError
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.results.nouns import FRIENDS, Nouns
from edgeveil.serve.application import Metrics, application, error
from edgeveil.serve.choices import Choices, TooMany
from edgeveil.serve.list_files import is_list_of
from edgeveil.serve.served_series import PublishedLists, SeriesLists
from edgeveil.serve.tokens import Refused, TokenChecker

_PAGES = ("member.html", "member.js", "service.css", "icon.svg", "openapi.json")
_MOST_BYTES = 4096  # of the body of a request
_NOT_YET = (
    "you have no list yet: whoever has joined since the last refresh gets the first one with the "
    "next refresh, if the budget allows"
)


class _Asking(NamedTuple):
    """A member who asks, whether the published lists know it, and its slot, if any."""

    member: NodeId
    published: PublishedLists | None
    is_known: bool
    stored: bytes | None
    body: bytes  # of the request, if it has one


_Answer = Callable[[_Asking], Awaitable[Response]]


def member_app(
    lists: SeriesLists, tokens: TokenChecker, metrics: Metrics, *, https: bool
) -> Starlette:
    """The members' side of the service."""
    answers, node, truth = _MemberAnswers(lists), (str, int), (bool,)

    def route(path: str, answer: _Answer, method: str = "GET") -> Route:
        return Route(path, _for_members(lists, tokens, answer), methods=[method])

    routes = [
        route("/me/suggestions", answers.suggestions),
        route("/me/protection", answers.from_ledger(_protection)),
        route("/me/budget", answers.from_ledger(_budget)),
        route("/me/choices", answers.choices),
        route("/me/not-interested", answers.choose(_dismiss, "node", node), "POST"),
        route("/me/interested", answers.choose(_undo_dismiss, "node", node), "POST"),
        route("/me/suggest-me", answers.choose(_suggest, "suggest_me", truth), "POST"),
    ]
    return application(routes, _PAGES, metrics, https=https)


@dataclass(frozen=True)
class _MemberAnswers:
    """What a member gets who asks."""

    lists: SeriesLists

    async def suggestions(self, asking: _Asking) -> Response:
        """The member's own list."""
        if asking.published is None:
            return error(503, "there is no list for you now; try again later")
        if asking.stored is None:
            return error(404, _NOT_YET)
        # All answers have one length.
        body = self.lists.answer(asking.published.lists, asking.member, asking.stored)
        return Response(b'{"list":%s}' % body, media_type="application/json")

    def from_ledger(self, work: Callable[[SeriesLists, str], dict[str, Any]]) -> _Answer:
        """What the ledger says of the member."""

        async def answer(asking: _Asking) -> Response:
            try:
                return JSONResponse(await asyncio.to_thread(work, self.lists, str(asking.member)))
            except (EdgeveilError, OSError):
                return error(503, "the ledger cannot be read now; try again later")

        return answer

    async def choices(self, asking: _Asking) -> Response:
        """All of the member's choices."""
        if asking.published is None:
            return error(503, "your choices cannot be shown now; try again later")
        if not asking.is_known:
            return error(404, _NOT_YET)
        return JSONResponse(_choices(self.lists.choices, asking))

    def choose(
        self, work: Callable[[Choices, _Asking, Any], None], entry: str, kinds: tuple[type, ...]
    ) -> _Answer:
        """A choice, by the one entry of the body; the answer is all of the member's choices."""

        async def answer(asking: _Asking) -> Response:
            if not asking.is_known:
                return await self.choices(asking)
            try:
                said = json.loads(asking.body)
            except (ValueError, RecursionError):
                said = None
            if not isinstance(said, dict) or set(said) != {entry} or type(said[entry]) not in kinds:
                return error(400, f'this needs a JSON object with one entry, "{entry}"')
            try:
                await asyncio.to_thread(work, self.lists.choices, asking, said[entry])
            except _Unknown:
                return error(404, "nobody has this id")
            except TooMany as refusal:
                return error(409, str(refusal))
            except (EdgeveilError, OSError):
                return error(503, "your choice cannot be stored now; try again later")
            self.lists.make_again(asking.member)
            return await self.choices(asking)

        return answer


def _for_members(
    lists: SeriesLists, tokens: TokenChecker, answer: _Answer
) -> Callable[[Request], Awaitable[Response]]:
    """Answer only the member whom a valid token names."""

    async def endpoint(request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise Refused
            subject = tokens.subject(token.strip())
        except Refused:
            challenge = {"WWW-Authenticate": "Bearer"}
            return error(401, "this needs a valid token of a member", **challenge)
        body = await _body(request) if request.method == "POST" else b""
        if isinstance(body, Response):
            return body
        return await answer(_asking(lists, subject, body))

    return endpoint


async def _body(request: Request) -> bytes | Response:
    """The body of a choice; a refusal if a page of another site has made a browser send it.

    Such a page has no token, and browsers add none by themselves. A proxy may add one, from a
    cookie: then this is what protects members.
    """
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return error(403, "this must come from the member's own page")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return error(415, "this needs Content-Type: application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return error(413, "this is too long")
    return body


def _asking(lists: SeriesLists, subject: str, body: bytes = b"") -> _Asking:
    """The member who asks. Anyone with a token may: a newcomer is in no snapshot yet."""
    published = lists.published
    node = None if published is None else _member(subject, published.nodes)
    if published is None or node is None:
        return _Asking(subject, published, False, None, body)
    member, index = node
    stored = published.get(index)
    own = stored if stored is not None and is_list_of(member, stored) else None
    return _Asking(member, published, True, own, body)


def _member(name: str, nodes: NodeSet) -> tuple[NodeId, int] | None:
    """The id that a token or a request names, and its index. The node set is public."""
    member = nodes.named(name)
    index = nodes.find(member)  # `index` would look for similar names, which takes long
    return None if index is None else (member, index)


class _Unknown(Exception):  # noqa: N818  (an answer)
    """No node has this id."""


def _other(asking: _Asking, node: str | int) -> str:
    """The name of somebody whom a member names; the node set is public."""
    assert asking.published is not None
    other = _member(str(node), asking.published.nodes)
    if other is None:
        raise _Unknown
    return str(other[0])


def _dismiss(choices: Choices, asking: _Asking, node: str | int) -> None:
    choices.dismiss(str(asking.member), _other(asking, node))


def _undo_dismiss(choices: Choices, asking: _Asking, node: str | int) -> None:
    choices.undo_dismiss(str(asking.member), _other(asking, node))


def _suggest(choices: Choices, asking: _Asking, wanted: bool) -> None:
    choices.suggest(str(asking.member), wanted)


def _choices(choices: Choices, asking: _Asking) -> dict[str, Any]:
    """Whom a member is not interested in, and whether it is suggested to others."""
    assert asking.published is not None
    name, named = str(asking.member), asking.published.nodes.named
    return {
        "not_interested": [named(other) for other in choices.dismissed(name)],
        "suggest_me": choices.is_suggested(name),
    }


def _protection(lists: SeriesLists, member: str) -> dict[str, Any]:
    """What is protected by all lists of a member together."""
    mechanism, nouns = lists.mechanism, lists.nouns
    hidden, pair = "whether two other members are friends", "such a friendship"
    if mechanism.directed:
        hidden, pair = "whom any other member follows", "such a connection"
    if nouns != FRIENDS:
        between = "of any other" if mechanism.directed else "between other"
        whom = nouns.member if mechanism.directed else nouns.members
        hidden, pair = f"{nouns.edges} {between} {whom}", "such a connection"
    # Everything that the member was charged counts: a series that was renewed counts twice.
    epsilon = max(lists.ledger.account(member).charged, mechanism.epsilon)
    return {
        "in_short": (
            f"Random noise was added to your lists, so that they do not show {hidden}. Seeing all "
            f"of them can make somebody more or less sure of {pair}, but not certain."
        ),
        "in_numbers": (
            f"Whatever somebody believed about {pair} before, all your lists together change the "
            f"odds by a factor of at most {_factor(epsilon):,} (epsilon {epsilon:g}), however many "
            f"lists this series gives you. Since when there is {pair} is protected half as "
            f"strongly: there the factor is at most {_factor(2 * epsilon):,}."
        ),
        "odds": _factor(epsilon),
        "epsilon": epsilon,
        "words": _words_of_page(nouns),
        "in_full": (
            f"All lists of the series together: {lists.guarantee} The same holds for connections "
            "of somebody who was forgotten and has come back: they do not count for you again."
        ),
    }


def _words_of_page(nouns: Nouns) -> dict[str, str]:
    """What the member's page says for people, friends and being popular."""
    if nouns == FRIENDS:
        return {
            "title": "People you may know",
            "common": "friends",
            "yours": "friends",
            "popular": "many people know them",
        }
    return {
        "title": f"{nouns.members[0].upper()}{nouns.members[1:]} suggested to you",
        "common": nouns.neighbours,
        "yours": nouns.edges,
        "popular": f"many {nouns.members} have {nouns.edges} with it",
    }


def _factor(epsilon: float) -> float:
    """E to the power of epsilon, rounded up, so that it stays a bound."""
    return math.ceil(100 * math.exp(epsilon)) / 100


def _budget(lists: SeriesLists, member: str) -> dict[str, Any]:
    account = lists.ledger.account(member)
    charged, cap = account.charged, account.charged + account.left
    in_words = (
        f"Lists reveal a little about others, so there is a limit for each {lists.nouns.member}. "
        f"You have used {100 * charged / cap:.0f} % of yours. New lists of this series use nothing "
        "more: it is charged once, when you join."
    )
    return {"charged": charged, "left": account.left, "cap": cap, "in_words": in_words}
