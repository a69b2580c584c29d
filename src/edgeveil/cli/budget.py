"""What a release costs: shown before, asked for on a terminal, and accounted for on Ctrl-C."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Budget, LedgerAt
from edgeveil.cli.output import Format, counted, print_table, say, wrapped
from edgeveil.engine import price
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger, Price
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.noise import NoiseSource


@contextmanager
def spending(
    graph: Graph, mechanism: Mechanism, sources: list[NodeId] | NodeSet, budget: Budget
) -> Iterator[dict[str, Any]]:
    """Give the arguments of `release` that say who pays and with which noise.

    Only where a person sits in front of it, at a terminal, is anything asked. Afterwards it says
    what was charged, also where the work ended early.
    """
    seed = budget.insecure_seed
    noise = None if seed is None else NoiseSource.insecure(seed)
    if budget.ledger is None:
        yield {"noise": noise}
        say("No ledger was named (--ledger): nobody keeps count of what was released.")
        return
    if noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave --insecure-seed out")
    ledger = Ledger.open(budget.ledger)
    paying: dict[str, Any] = {"ledger": ledger, "label": budget.label}

    def looked_up() -> Price:
        asked = price(graph, mechanism, sources, **paying)
        assert asked.in_ledger is not None  # there is a ledger
        return asked.in_ledger

    before = looked_up()
    try:
        if before.n_new and not before.short:
            if not budget.yes and sys.stdin.isatty() and sys.stderr.isatty():
                _ask(before, _name(budget.ledger, ledger))
        elif before.n_open:
            say(_free(before))
        yield {**paying, "purpose": budget.purpose, "operator": budget.operator}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_after_interrupt(before, looked_up)) from None
    except Exception:
        # Whoever is told what went wrong (a disk is full) must hear what was charged as well.
        words = _after_interrupt(before, looked_up)
        if words != _NOTHING:
            say(f"{_name(budget.ledger, ledger)}: {words}.")
        raise
    if before.n_new:
        say(f"{_name(budget.ledger, ledger)}: {_charged(before)}.")
    elif not before.n_open:
        say(_free(before))


def _charged(price: Price) -> str:
    """What was charged, what is left, and how far that goes."""
    of_all = price.n_new + price.n_open + price.n_stored
    some = f" for {price.n_new:,} of {of_all:,} rows" if price.n_new < of_all else ""
    left = _nano(price.left_nano - price.needs_nano)
    more = "" if price.more == math.inf else f", enough for {price.more:,} more like it"
    return (
        f"charged epsilon = {price.epsilon:.15g}{some}; {left:.15g} left for {_whom(price)}{more}"
    )


def _after_interrupt(before: Price, looked_up: Callable[[], Price]) -> str:
    """What became of the budget, as the ledger has it."""
    try:
        after = looked_up()
    except LedgerError:
        return "`edgeveil ledger show` says what was charged"
    again = "the same command again"
    if not before.n_new or after.n_new == before.n_new:
        return _NOTHING
    if after.n_new:
        rows = f"{before.n_new - after.n_new:,} of {before.n_new:,} rows are charged"
        return f"{rows}: {again} goes on with the others"
    if after.n_open:
        return f"the release is charged: {again} costs nothing and goes on with the same noise"
    return f"the release is charged and stored: {again} costs nothing and gives it"


def _name(location: LedgerAt, ledger: Ledger) -> str:
    """The ledger as the person called it, but for an address, which may hold a password."""
    return ledger.location if "://" in str(location) else str(location)


def print_price(
    graph: Graph,
    mechanism: Mechanism,
    sources: list[NodeId] | NodeSet,
    budget: Budget,
    style: Format,
) -> None:
    """Print what a release would cost and what is left; BudgetError if that is too little."""
    ledger = None if budget.ledger is None else Ledger.open(budget.ledger)
    asked = price(graph, mechanism, sources, ledger=ledger, label=budget.label)
    guarantee, found = asked.guarantee, asked.in_ledger
    rows: list[tuple[str, float, float | None, float | None]] = []
    if found is None:
        whom = {"joint": "each recipient", "public": "everybody"}.get(guarantee.model, "nobody")
        rows.append((whom, guarantee.epsilon, None, None))
        if guarantee.model == "joint" and len(sources) > 1:
            rows.append(("all recipients together", guarantee.pooled_epsilon, None, None))
    else:
        rows.append(_row(_whom(found), found.needs_nano, found.left_nano))
        if found.pooled_left_nano is not None:
            due = found.pooled_needs_nano
            rows.append(_row("all recipients together", due, found.pooled_left_nano))
    print_table(
        ["for_whom", "epsilon", "left_before", "left_after"],
        rows,
        style=style,
        about={"dry_run": True, "charged_before": found is not None and not found.n_new},
        title=f"price of {mechanism.name} for {counted(len(sources), 'source')}",
    )
    if found is None:
        say("Dry run: nothing was drawn. No ledger was named (--ledger): nobody keeps count.")
        return
    say(f"Dry run: nothing was charged or drawn. {_free(found)}".rstrip())
    if found.short:
        raise BudgetError(found.short)


_NOTHING = "nothing was charged"


def _free(price: Price) -> str:
    """What of it costs nothing, in words."""
    if price.n_new:
        paid = price.n_open + price.n_stored
        return f"{counted(paid, 'row')} of it cost nothing: charged before." * bool(paid)
    if price.n_open:
        return "This release was charged before and not finished: going on costs nothing."
    return "This release is stored already: to get it again costs nothing."


def _ask(price: Price, ledger: str) -> None:
    sys.stderr.write(wrapped(f"{ledger}: {_spends(price)} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed, nothing was spent")


def _spends(price: Price) -> str:
    epsilon, left = f"{price.epsilon:.15g}", f"{price.left:.15g}"
    if price.n_new > 1:
        words = (
            f"this spends epsilon = {epsilon} for each of {price.n_new:,} recipients; "
            f"{price.whom}, who has the least, has {left} left"
        )
    else:
        words = f"this spends epsilon = {epsilon} of the {left} left for {_whom(price)}"
    if price.pooled_left_nano is not None:
        words += (
            f", and {_nano(price.pooled_needs_nano):.15g} of the "
            f"{_nano(price.pooled_left_nano):.15g} left for all recipients together"
        )
    return f"{words}."


def _whom(price: Price) -> str:
    if price.whom is None:
        return "everybody"
    if price.n_new > 1:
        return f"{price.whom}, who has the least left of {price.n_new:,} recipients"
    return price.whom


def _row(whom: str, due: int, left: int) -> tuple[str, float, float, float | None]:
    return whom, _nano(due), _nano(left), None if due > left else _nano(left - due)


def _nano(nano: int) -> float:
    return nano / 10**9
