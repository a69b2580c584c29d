"""How to divide a budget over time: the price that each release may have so that it lasts."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from edgeveil.errors import BudgetError, ParameterError
from edgeveil.ledger.accounts import Account
from edgeveil.ledger.prices import NANO

_DAYS = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "quarter": 365.25 / 4, "year": 365.25}
_LETTERS = {"d": "day", "w": "week", "m": "month", "q": "quarter", "y": "year"}


@dataclass(frozen=True)
class Plan:
    """One way to divide a budget."""

    every: str  # how often there is a release
    releases: int  # until the end
    epsilon: float  # of each, cut to whole nano-epsilons: they never add up to more than is left


def days_of(text: str) -> float:
    """A length of time in days: ``week``, ``2 weeks``, ``90d``, ``6m``, ``1y``.

    >>> days_of("2 weeks"), days_of("1y")
    (14.0, 365.25)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)?\s*([a-z]+?)s?\s*", text.lower())
    unit = found and _LETTERS.get(found[2], found[2])
    if not found or unit not in _DAYS or float(found[1] or 1) <= 0:
        raise ParameterError(f"expected a time such as week, 2 weeks, 90d, 6m or 1y, got {text!r}")
    return float(found[1] or 1) * _DAYS[str(unit)]


def plan(
    account: Account,
    every: str,
    lasting: str,
    *,
    pooled: Callable[[float], float] | None = None,
) -> list[Plan]:
    """The price of each release if there is one every so often, and then the alternatives.

    `account` is that of the member with the least left. `pooled` gives what all members together
    learn from one release at an epsilon; it is needed if the ledger has a cap for that.
    """
    days, whole = days_of(every), days_of(lasting)
    if days > whole:
        raise ParameterError(f"a budget for {lasting} has no room for a release every {every}")
    if account.charged_nano >= account.cap_nano:
        raise BudgetError(
            "nothing is left for the member who was charged the most: there is nothing to plan"
        )
    others = [unit for unit, length in _DAYS.items() if length <= whole and length != days]

    def one(unit: str) -> Plan:
        # The first release is at once, the last one before the end.
        count = math.ceil(whole / days_of(unit) - 1e-9)
        return Plan(unit, count, share_of(account, count, pooled=pooled))

    return [one(every), *map(one, others)]


def share_of(
    account: Account, count: int, *, pooled: Callable[[float], float] | None = None
) -> float:
    """The highest price that allows `count` charges from what is left; `pooled` as in `plan`."""
    nano = (account.cap_nano - account.charged_nano) // count
    if account.pooled_cap_nano is not None and pooled is not None:
        left = (account.pooled_cap_nano - account.pooled_charged_nano) / count / NANO
        # The largest epsilon, up to 10, at which the cap for all members allows one release.
        fitting = bisect_right(range(1, 10 * NANO), left, key=lambda one: pooled(one / NANO))
        nano = min(nano, fitting)
    return nano / NANO
