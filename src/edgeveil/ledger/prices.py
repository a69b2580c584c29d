"""The price of rows, in whole nano-epsilons: rounded up, where caps are rounded down."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Literal, NamedTuple

from edgeveil._internal.checks import is_number
from edgeveil.errors import BudgetError, ParameterError
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee

NANO = 10**9
MOST_NANO = 2**63 - 1  # what both databases can hold


def to_nano(epsilon: float) -> int:
    """Whole nano-epsilons, rounded up from the number that epsilon prints as.

    >>> to_nano(0.5)
    500000000
    >>> to_nano(0.1)
    100000000
    """
    return math.ceil(exact_epsilon(epsilon) * NANO)


def cap_nano(name: str, epsilon: float) -> int:
    """Check a cap and give it in whole nano-epsilons, rounded down.

    >>> cap_nano("epsilon", 1.9999999999)
    1999999999
    """
    if not is_number(epsilon) or not 0 < epsilon <= MOST_NANO // NANO:
        raise ParameterError(f"{name} must be a positive number up to 9e9, got {epsilon!r}")
    nano = math.floor(exact_epsilon(epsilon) * NANO)
    if nano == 0:
        raise ParameterError(f"{name} must be at least 1e-9, got {epsilon}")
    return nano


def in_words(nano: int) -> str:
    """Nano-epsilons as a decimal number, exactly.

    >>> in_words(1_500_000_000)
    '1.5'
    """
    return f"{(Decimal(nano) / NANO).normalize():f}"


class BatchPrice(NamedTuple):
    """The price of a batch: for each member (joint) or everybody (public), and for all together."""

    model: Literal["joint", "public"]
    epsilon_nano: int
    pooled_nano: int


def price_of_growth(guarantee: Callable[[int], Guarantee], before: int, after: int) -> BatchPrice:
    """The price for a campaign of `before` rows to become one of `after` rows.

    All its rows together are one release (docs/theory/time.md, Theorem 1), of which the price of
    `before` rows was charged already.
    """
    late, early = _price(guarantee(after)), _price(guarantee(before)) if before else None
    if early is None:
        return late
    epsilon = late.epsilon_nano if late.model == "joint" else late.epsilon_nano - early.epsilon_nano
    pooled = late.pooled_nano - early.pooled_nano
    same = late.model == early.model and (late.model == "public" or epsilon == early.epsilon_nano)
    if not same or epsilon < 0 or pooled < 0:
        raise ParameterError("the guarantee of a row must not depend on how many rows there are")
    return BatchPrice(late.model, epsilon, pooled)


def _price(guarantee: Guarantee) -> BatchPrice:
    if not guarantee.protects or guarantee.model == "none":
        raise BudgetError(
            "this release is not private (exact values or seeded noise), so no budget covers it"
        )
    if guarantee.delta:
        raise ParameterError(
            f"the ledger counts pure epsilon, it cannot charge delta = {guarantee.delta:g}"
        )
    pooled = math.ceil(guarantee.pooled(guarantee.n_members) * NANO)
    return BatchPrice(guarantee.model, to_nano(guarantee.epsilon), pooled)


def check_text(what: str, text: object) -> str:
    """Raise ParameterError unless both databases can hold `text` as it is."""
    try:
        if isinstance(text, str) and b"\0" not in text.encode():
            return text
    except UnicodeEncodeError:  # half of a surrogate pair
        pass
    raise ParameterError(f"{what} must be text without NUL characters")
