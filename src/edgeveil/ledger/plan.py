"""What is left of a budget, as the price of further series."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from edgeveil.ledger.accounts import Account
from edgeveil.ledger.prices import NANO


def share_of(
    account: Account, count: int, *, pooled: Callable[[float], float] | None = None
) -> float:
    """The highest price that allows `count` charges from what is left.

    `account` is that of the member with the least left. `pooled` gives what all members together
    learn from one charge at an epsilon; it is needed if the ledger has a cap for that. Whole
    nano-epsilons: the charges never add up to more than is left.
    """
    nano = (account.cap_nano - account.charged_nano) // count
    if account.pooled_cap_nano is not None and pooled is not None:
        left = (account.pooled_cap_nano - account.pooled_charged_nano) / count / NANO
        # The largest epsilon, up to 10, at which the cap for all members allows one charge.
        fitting = bisect_right(range(1, 10 * NANO), left, key=lambda one: pooled(one / NANO))
        nano = min(nano, fitting)
    return nano / NANO
