"""Words for numbers in messages."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number and what there are of it.

    >>> counted(1, "ranking"), counted(2000, "ranking")
    ('1 ranking', '2,000 rankings')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some_of(number: int, total: int, what: str, verb: str = "") -> str:
    """So many of all, and what they do, where the verb has another form for one.

    >>> some_of(2, 1000, "member", "were"), some_of(1, 1000, "member", "were")
    ('2 of 1,000 members were', '1 of 1,000 members was')
    """
    one = {"were": "was", "are": "is", "have": "has"}.get(verb, verb)
    return f"{number:,} of {counted(total, what)} {one if number == 1 else verb}".rstrip()
