"""``edgeveil ledger create | show | verify``."""

from __future__ import annotations

import sys

from cyclopts import App

from edgeveil.cli.output import say

__all__ = ["ledger"]

ledger = App(
    name="ledger",
    help="The privacy budget: a file (or PostgreSQL database) that cannot be overspent.",
    help_format="plaintext",
)


@ledger.command
def create(location: str, /, *, epsilon: float, pooled_epsilon: float | None = None) -> None:
    """Make a new ledger with a cap.

    Example: edgeveil ledger create follows.ledger --epsilon 4

    Parameters
    ----------
    location
        A new file, or a postgresql:// address.
    epsilon
        What any one recipient may learn about an edge in all, public releases included.
    pooled_epsilon
        What all recipients together may learn, if they pool what they got.
    """
    from edgeveil.privacy.ledger import Ledger

    made = Ledger.create(location, epsilon=epsilon, pooled_epsilon=pooled_epsilon)
    say(f"{made.location}: each recipient may learn epsilon = {epsilon:g} in all")


@ledger.command
def show(location: str, /) -> None:
    """Show what was spent and what is left.

    Example: edgeveil ledger show follows.ledger
    """
    from edgeveil.privacy.ledger import Ledger

    sys.stdout.write(Ledger.open(location).show() + "\n")


@ledger.command
def verify(location: str, /) -> None:
    """Check that no entry of the ledger was changed.

    Example: edgeveil ledger verify follows.ledger
    """
    from edgeveil.privacy.ledger import Ledger

    head = Ledger.open(location).verify()
    sys.stdout.write(f"{head}\n")
    say("every entry is as it was written")
