"""Prices in words: of a release and of a refresh, before they run, when asked, and afterwards.

The numbers are those of `job.price`; what was charged is what the ledger says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from edgeveil._internal.words import counted, some_of
from edgeveil.cli.output import Format, print_table, say
from edgeveil.errors import BudgetError

if TYPE_CHECKING:
    from edgeveil.jobs import ReleaseJob
    from edgeveil.ledger import Price
    from edgeveil.series import RefreshJob, RefreshPrice

NOTHING = "nothing was charged"
_AGAIN = "the same command again"


# -- of a release ----------------------------------------------------------------------------------


def print_price(job: ReleaseJob, style: Format) -> None:
    """Print the price of a release, and what is left; BudgetError if that is too little."""
    claim, price, request = job.price.guarantee, job.price.in_ledger, job.request
    together, n_rows = "all members together", len(request.indices)
    due: list[tuple[str, float, float | None]]
    if price is None:
        whom = {"joint": "each member", "public": "everybody"}.get(claim.model, "nobody")
        due = [(whom, claim.epsilon, None)]
        if claim.model == "joint" and n_rows > 1:
            due.append((together, claim.pooled_epsilon, None))
    else:
        due = [(_whose_budget(price), price.epsilon, price.left)]
        if price.pooled_left_nano is not None:
            nano = price.pooled_needs_nano, price.pooled_left_nano
            due.append((together, nano[0] / 10**9, nano[1] / 10**9))
    noun = "member" if request.mechanism.output == "lists" else "source"
    print_table(
        ["for_whom", "epsilon", "left_before", "left_after"],
        [(*row, _rest(*row[1:])) for row in due],
        style=style,
        metadata={"dry_run": True, "charged_before": price is not None and not price.n_new},
        title=f"price of {request.mechanism.name} for "
        + ("everybody" if request.for_everybody else counted(n_rows, noun)),
    )
    if price is None:
        say("Dry run: nothing was drawn. No --ledger given: no budget would be charged.")
        return
    say(f"Dry run: nothing was charged or drawn. {what_is_free(price)}".rstrip())
    if price.refusal:
        raise BudgetError(price.refusal)


def _whose_budget(price: Price) -> str:
    if price.whom is None or price.n_new <= 1:
        return price.whom or "everybody"
    return f"{price.whom}, who has the least left of {price.n_new:,} members"


def _rest(needs: float, left: float | None) -> float | None:
    """What is left after the charge, if it is enough; without binary rounding errors."""
    return None if left is None or needs > left else round(left - needs, 9)


def question(price: Price, ledger: str) -> str:
    """What is asked before a release is charged; nothing if nothing would be."""
    if not price.n_new or price.refusal or not price.epsilon:
        return ""
    return f"{ledger}: {charge(price)}"


def charge(price: Price, *, done: bool = False) -> str:
    """The charge and the remaining budget, in words: before the charge, or after it (`done`)."""
    verb = "Charged" if done else "Charges"
    left = f"{(price.left_nano - price.needs_nano * done) / 10**9:.15g}"
    whom = "everybody" if price.whom is None else f"member {price.whom!r}"
    remains = f"Remaining budget: {left}"
    if price.whom is not None and price.n_new > 1:
        remains = f"Lowest remaining budget: {left} ({whom})"
        whom = f"each of {price.n_new:,} members"
    words = f"{verb} {price.epsilon:.15g} to {whom}. {remains}"
    if done and price.repeats_left != math.inf:
        words += f", enough for {price.repeats_left:,} more like it"
    if price.pooled_left_nano is not None:
        needs, of = price.pooled_needs_nano, price.pooled_left_nano
        words += f". {verb} {needs / 10**9:.15g} to all members together. Remaining for them: "
        words += f"{(of - needs * done) / 10**9:.15g}"
    return f"{words}."


def what_is_free(price: Price) -> str:
    """What charges nothing, in words."""
    if price.n_new:
        paid = price.n_open + price.n_stored
        return f"{counted(paid, 'row', 'cost')} nothing: charged before." * bool(paid)
    if price.n_open:
        return "This release was charged before and not finished: going on costs nothing."
    return "This release is stored already: to get it again costs nothing."


def charged_since(before: Price, job: ReleaseJob) -> str:
    """What was charged since a release was priced, according to the ledger."""
    after = job.request.price()
    if not before.n_new or after.n_new == before.n_new:
        return NOTHING
    if after.n_new:
        rows = some_of(before.n_new - after.n_new, before.n_new, "row", "are")
        return f"{rows} charged: {_AGAIN} goes on with the others"
    if after.n_open:
        return f"the release is charged: {_AGAIN} costs nothing and goes on with the same noise"
    return f"the release is charged and stored: {_AGAIN} costs nothing and gives it"


# -- of a refresh ----------------------------------------------------------------------------------


def print_refresh_price(price: RefreshPrice, ledger: str, style: Format) -> None:
    """Print the price of a refresh; BudgetError if no member's budget allows it."""
    columns = ["members", "newcomers", "left_out", "epsilon_each", "least_left"]
    counts = (price.n_members, price.n_newcomers, price.n_left_out)
    title, row = f"price of a refresh, {ledger}", (*counts, price.epsilon, price.least_left)
    print_table(columns, [row], style=style, metadata={"dry_run": True}, title=title)
    would = "Nobody would be charged."
    if price.n_newcomers:
        would = f"{some_of(price.n_newcomers, price.n_members, 'member')} would be charged, once."
    say(f"Dry run: nothing was merged, charged or drawn. {would}")
    if price.n_left_out == price.n_members:
        raise BudgetError(f"no member's budget allows a series at epsilon = {price.epsilon:g}")


def refresh_question(price: RefreshPrice, ledger: str) -> str:
    """What is asked before newcomers are charged; nothing if there are none."""
    if not price.n_newcomers:
        return ""
    return (
        f"{ledger}: {some_of(price.n_newcomers, price.n_members, 'member')} would be charged "
        f"epsilon = {price.epsilon:g} each, once for all lists of the series; "
        f"{price.least_left:g} is left for whoever has the least."
    )


def newcomers_charged_since(job: RefreshJob) -> str:
    """Who was charged since a refresh was priced, according to the ledger."""
    before, after = job.price.n_newcomers, replace(job).price.n_newcomers
    if after == before:
        return f"{NOTHING}; {_AGAIN} goes on"
    some = some_of(before - after, before, "member", "are")
    return f"{some} charged: {_AGAIN} goes on, and charges nobody twice"
