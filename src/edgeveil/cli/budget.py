"""What a release costs: shown before, asked for on a terminal, and accounted for on Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Budget, LedgerAt
from edgeveil.cli.output import Format, counted, print_table, say, wrapped
from edgeveil.engine import release
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, PromiseError
from edgeveil.graph import Graph
from edgeveil.ledger import Charge, Ledger, Price, Reservation
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.noise import NoiseSource

__all__ = ["print_price", "spending"]


class _Watched(Ledger):
    """A ledger that looks up the price first. It has its say before anything is charged."""

    name = ""
    ask = False
    only_price = False
    in_the_end = ""
    _charging: tuple[str, Charge] | None = None

    def reserve(
        self,
        key: str,
        charge: Charge,
        note: Mapping[str, str] | None = None,
        *,
        fingerprint: str = "",
        label: str = "",
        node_set: str | None = None,
        new_node_set: bool = False,
    ) -> Reservation:
        """As `Ledger.reserve`, after the price was told and, if need be, agreed to."""
        price = self.price(
            key, charge, fingerprint, label=label, node_set=node_set, new_node_set=new_node_set
        )
        if self.only_price:
            raise _Priced(price)
        if price.state == "new" and not price.short and self.ask:
            _ask(price, self.name)
        self._charging = key, charge
        reservation = super().reserve(
            key,
            charge,
            note,
            fingerprint=fingerprint,
            label=label,
            node_set=node_set,
            new_node_set=new_node_set,
        )
        if price.state == "new":
            left = _nano(price.left_nano - price.needs_nano)
            spent = f"charged epsilon = {price.epsilon:.15g}"
            say(f"{self.name}: {spent}; {left:.15g} left for {_whom(price)}.")
        elif price.state == "reserved":
            say(_FREE[price.state])
        else:  # nothing is said of what is stored before it was found to be of use
            self.in_the_end = _FREE[price.state]
        return reservation

    def after_interrupt(self) -> str:
        """What became of the budget, as the ledger has it."""
        state = "new" if self._charging is None else self.price(*self._charging).state
        if state == "new":
            return "nothing was charged"
        again = "the same command again costs nothing"
        if state == "released":
            return f"the release is charged and stored: {again} and gives it"
        return f"the release is charged: {again} and goes on with the same noise"


class _Priced(Exception):  # noqa: N818  (no error: it carries the answer of a dry run)
    """The price was looked up and nothing else is wanted."""

    def __init__(self, price: Price) -> None:
        self.price = price


@contextmanager
def spending(budget: Budget) -> Iterator[dict[str, Any]]:
    """Give the arguments of `release` that say who pays and with which noise.

    Only where a person sits in front of it, at a terminal, is anything asked.
    """
    seed = budget.insecure_seed
    noise = None if seed is None else NoiseSource.insecure(seed)
    if budget.ledger is None:
        yield {"noise": noise}
        say("No ledger was named (--ledger): nobody keeps count of what was released.")
        return
    ledger = _open(budget.ledger)
    ledger.ask = not budget.yes and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        yield {"ledger": ledger, "nonce": budget.nonce, "noise": noise}
    except KeyboardInterrupt:
        try:
            words = ledger.after_interrupt()
        except LedgerError:
            words = "`edgeveil ledger show` says what was charged"
        raise KeyboardInterrupt(words) from None
    if ledger.in_the_end:
        say(ledger.in_the_end)


def _open(location: LedgerAt) -> _Watched:
    """The ledger, called as the person called it, but for an address, which may hold a password."""
    ledger = _Watched.open(location)
    ledger.name = ledger.location if "://" in str(location) else str(location)
    return ledger


def print_price(
    graph: Graph,
    mechanism: Mechanism,
    sources: list[NodeId] | NodeSet,
    budget: Budget,
    style: Format,
) -> None:
    """Print what a release would cost and what is left. Nothing is charged or drawn.

    The price depends on the mechanism and the number of sources, both public. Whether it was
    paid before is looked up in the ledger.

    Raises
    ------
    BudgetError
        After the price, if the ledger would refuse it.
    """
    guarantee = mechanism.guarantee(len(sources))
    price: Price | None = None
    if budget.ledger is not None:
        ledger = _open(budget.ledger)
        ledger.only_price = True
        try:
            release(graph, mechanism, sources, ledger=ledger, nonce=budget.nonce)
        except _Priced as priced:
            price = priced.price
        except PromiseError:
            # Whether a promise holds depends on the graph: the price must not tell.
            key = ledger.key_of("")
            charge = Charge.from_guarantee(guarantee, [str(source) for source in sources])
            price = ledger.price(key, charge)
    rows: list[tuple[str, float, float | None, float | None]] = []
    if price is None:
        whom = {"joint": "each recipient", "public": "everybody"}.get(guarantee.model, "nobody")
        rows.append((whom, guarantee.epsilon, None, None))
        if guarantee.model == "joint" and len(sources) > 1:
            rows.append(("all recipients together", guarantee.pooled_epsilon, None, None))
    else:
        new = price.state == "new"
        rows.append(_row(_whom(price), price.needs_nano * new, price.left_nano))
        if price.pooled_left_nano is not None:
            due = price.pooled_needs_nano * new
            rows.append(_row("all recipients together", due, price.pooled_left_nano))
    print_table(
        ["for_whom", "epsilon", "left_before", "left_after"],
        rows,
        style=style,
        about={"dry_run": True, "charged_before": price is not None and price.state != "new"},
        title=f"price of {mechanism.name} for {counted(len(sources), 'source')}",
    )
    if price is None:
        say("Dry run: nothing was drawn. No ledger was named (--ledger): nobody keeps count.")
        return
    say(" ".join(["Dry run: nothing was charged or drawn.", _FREE.get(price.state, "")]).rstrip())
    if price.short:
        raise BudgetError(price.short)


_FREE = {
    "reserved": "This release was charged before and not finished: going on costs nothing.",
    "released": "This release is stored already: to get it again costs nothing.",
}


def _ask(price: Price, ledger: str) -> None:
    sys.stderr.write(wrapped(f"{ledger}: {_spends(price)} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed, nothing was spent")


def _spends(price: Price) -> str:
    epsilon, left = f"{price.epsilon:.15g}", f"{price.left:.15g}"
    if price.n_recipients > 1:
        words = (
            f"this spends epsilon = {epsilon} for each of {price.n_recipients:,} recipients; "
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
    if price.n_recipients > 1:
        return f"{price.whom}, who has the least left of {price.n_recipients:,} recipients"
    return price.whom


def _row(whom: str, due: int, left: int) -> tuple[str, float, float, float | None]:
    return whom, _nano(due), _nano(left), None if due > left else _nano(left - due)


def _nano(nano: int) -> float:
    return nano / 10**9
