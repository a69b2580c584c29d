"""Words of messages: "1 list is", "2 lists are", "did you mean --epsilon?"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ONE = {"are": "is", "were": "was", "have": "has", "do": "does"}


def counted(number: int, what: str, verb: str = "") -> str:
    """A number, what there are of it, and what they do.

    >>> counted(1, "ranking"), counted(2000, "ranking")
    ('1 ranking', '2,000 rankings')
    >>> counted(1, "name", "stand out"), counted(2, "name", "stand out")
    ('1 name stands out', '2 names stand out')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'} {_agreeing(number, verb)}".rstrip()


def some_of(number: int, total: int, what: str, verb: str = "") -> str:
    """So many of all, and what they do.

    >>> some_of(2, 1000, "member", "were"), some_of(1, 1000, "member", "were")
    ('2 of 1,000 members were', '1 of 1,000 members was')
    """
    return f"{number:,} of {counted(total, what)} {_agreeing(number, verb)}".rstrip()


def date_in_words(text: str) -> str:
    """A date as it is; a time to the minute.

    >>> date_in_words("2026-11-16"), date_in_words("2026-11-16T08:30:59+00:00")
    ('2026-11-16', '2026-11-16 08:30 UTC')
    """
    return text if "T" not in text else f"{text[:10]} {text[11:16]} UTC"


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """The nearest of these words to a wrong one, as the end of a sentence; "" if none is near.

    >>> did_you_mean("twohop", ["two-hop", "degree-prior"])
    '; did you mean two-hop?'
    """
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def _agreeing(number: int, verb: str) -> str:
    first, blank, rest = verb.partition(" ")
    if number != 1 or not first:
        return verb
    return f"{_ONE.get(first, f'{first}s')}{blank}{rest}"
