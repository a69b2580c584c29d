"""``edgeveil ledger create | advance | show | verify | backup``; plan and report elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App

from edgeveil.cli.options import LedgerAt, default
from edgeveil.cli.output import Format, print_table, say

ledger = App(
    name="ledger",
    help="The privacy budget: a file (or PostgreSQL database) that refuses to be overspent.\n\n"
    "Example: edgeveil ledger create follows.ledger --epsilon 4",
    help_format="plaintext",
)
ledger.command("edgeveil.cli.spending:plan", name="plan")
ledger.command("edgeveil.cli.spending:report", name="report")


@ledger.command
def create(
    location: LedgerAt,
    /,
    *,
    epsilon: float,
    pooled_epsilon: float | None = None,
    window: Annotated[int | None, default("all snapshots")] = None,
) -> None:
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
    window
        Count the last so many snapshots only. This protects what happens to an edge within them,
        not an edge that stays for ever.
    """
    from edgeveil.ledger import Ledger

    made = Ledger.create(location, epsilon=epsilon, pooled_epsilon=pooled_epsilon, window=window)
    over = "in all" if window is None else f"within any {window} snapshots"
    say(f"{made.location}: each recipient may learn epsilon = {epsilon:g} {over}")


@ledger.command
def advance(location: LedgerAt, label: str = "", /) -> None:
    """Declare that the graph of a label has a new state: its next snapshot.

    Members may have joined or left; whoever stayed must have kept their id. Do it by a public
    schedule: a new snapshot just when the graph has changed tells that it has.
    Example: edgeveil ledger advance follows.ledger friends

    Parameters
    ----------
    location
        The ledger's file, or its postgresql:// address.
    label
        The public name of the graph, if it was released under one.
    """
    from edgeveil.ledger import Ledger

    number = Ledger.open(location).advance(label)
    sys.stdout.write(f"{number}\n")
    say(f"the next release under the label {label!r} is from snapshot {number} of its graph")


@ledger.command
def show(location: LedgerAt, /, *, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """Show what was spent and what is left.

    Example: edgeveil ledger show follows.ledger

    Parameters
    ----------
    location
        The ledger's file, or its postgresql:// address.
    format
        table, json or csv; the last two list every recipient.
    """
    from edgeveil.ledger import Ledger

    opened = Ledger.open(location)
    if format == "table":
        sys.stdout.write(opened.show() + "\n")
        return
    nobody = opened.account("")  # what anybody has learnt who got no row of their own
    pooled = opened.pooled_epsilon
    print_table(
        ["recipient", "spent", "left"],
        [(one.recipient, one.spent, one.left) for one in opened.accounts()]
        + [("(anybody else)", nobody.public, (nobody.cap_nano - nobody.public_nano) / 10**9)],
        style=format,
        about={
            "ledger": opened.location,
            "epsilon": opened.epsilon,
            "public_spent": nobody.public,
            "pooled_spent": nobody.pooled_spent,
            "pooled_epsilon": pooled,
            "pooled_left": None if pooled is None else nobody.pooled_left,
        },
    )


@ledger.command
def verify(location: LedgerAt, /, *, known_head: str | None = None) -> None:
    """Check that no entry of the ledger was changed; print its head.

    Example: edgeveil ledger verify follows.ledger

    Parameters
    ----------
    location
        The ledger's file, or its postgresql:// address.
    known_head
        A head noted earlier, somewhere else: it must still be part of the ledger. Only this
        finds every ledger that was put back to an older copy.
    """
    from edgeveil.ledger import Ledger

    head = Ledger.open(location).verify(known_head)
    sys.stdout.write(f"{head}\n")
    say("every entry is as it was written")


@ledger.command
def backup(location: LedgerAt, copy: Path, /) -> None:
    """Copy a ledger's file, whoever uses it meanwhile; print the head of the copy, to be noted.

    Example: edgeveil ledger backup follows.ledger backups/follows-2026-11-16.ledger

    Parameters
    ----------
    location
        The ledger's file.
    copy
        A new file. It is for the case that the ledger is lost: never use both.
    """
    from edgeveil.ledger import Ledger

    head = Ledger.open(location).backup(copy)
    sys.stdout.write(f"{head}\n")
    say(f"{copy} is a whole copy; the released files are not in it: copy their folder, too")
