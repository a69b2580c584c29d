"""What the service says when there is no list, and when a price is confirmed."""

from __future__ import annotations

from typing import Any

from edgeveil.errors import EdgeveilError


class UsedUp(Exception):  # noqa: N818  (an answer)
    """The member has no budget left for another list."""


class NotYet(Exception):  # noqa: N818  (an answer)
    """The member is not in the series."""


class Unavailable(Exception):  # noqa: N818  (an answer)
    """There is no list now. Asking again does not charge anything twice."""


class PriceChanged(EdgeveilError):  # noqa: N818  (an answer)
    """The price has changed since it was shown."""


def check_price(shown: object, now: dict[str, Any]) -> None:
    """Raise PriceChanged unless the curator confirms the price that a GET of this path returned."""
    # The remaining budget falls whenever a member gets a list; that does not change the price.
    left = {name: now[name] for name in ("least_left", "lists_left") if name in now}
    if not isinstance(shown, dict) or {**shown, **left} != now:
        raise PriceChanged(
            "the price has changed: GET the same path for the new one, and send it as the body"
        )


def words_of(error: Exception) -> str:
    """The text of an error for the curator. Our messages name files, never edges or members."""
    ours = isinstance(error, EdgeveilError | OSError)
    return type(error).__name__ + (f": {error}" if ours else "")
