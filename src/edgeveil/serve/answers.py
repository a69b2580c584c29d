"""Confirming a price, and the text of errors for the curator."""

from __future__ import annotations

from typing import Any

from edgeveil.errors import EdgeveilError


class PriceChanged(EdgeveilError):  # noqa: N818  (an answer)
    """The price has changed since it was shown."""


def check_price(shown: object, now: dict[str, Any]) -> None:
    """Raise PriceChanged unless the curator confirms the price that a GET of this path returned."""
    # The remaining budget falls whenever another label is charged; that does not change the price.
    if not isinstance(shown, dict) or {**shown, "least_left": now["least_left"]} != now:
        raise PriceChanged(
            "the price has changed: GET the same path for the new one, and send it as the body"
        )


def error_text(error: Exception) -> str:
    """The text of an error for the curator. Our messages name files, never edges or members."""
    ours = isinstance(error, EdgeveilError | OSError)
    return type(error).__name__ + (f": {error}" if ours else "")
