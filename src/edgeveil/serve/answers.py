"""What the service says when there is no list, and when a price is confirmed."""

from __future__ import annotations

from typing import Any

from edgeveil.errors import EdgeveilError


class UsedUp(Exception):  # noqa: N818  (an answer)
    """The member has no budget left for another list."""


class NotYet(Exception):  # noqa: N818  (an answer)
    """The member is not in the series."""


class Unavailable(Exception):  # noqa: N818  (an answer)
    """There is no list now. Asking again charges nothing that was charged before."""


class PriceChanged(EdgeveilError):  # noqa: N818  (an answer)
    """The price is another one than was shown."""


def check_price(shown: object, now: dict[str, Any]) -> None:
    """PriceChanged unless the curator confirms the price that a GET of the same path answered."""
    # What is left falls whenever somebody gets a list, which changes no price.
    left = {name: now[name] for name in ("least_left", "lists_left") if name in now}
    if not isinstance(shown, dict) or {**shown, **left} != now:
        raise PriceChanged(
            "this is not the price now: GET the same path for it, and send it back as the body"
        )


def words_of(error: Exception) -> str:
    """An error for the curator. Our messages name files, never edges or members."""
    ours = isinstance(error, EdgeveilError | OSError)
    return type(error).__name__ + (f": {error}" if ours else "")
