"""What a release costs: shown before, asked for on a terminal, and accounted for on Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.output import Format, plain, print_table, say
from edgeveil.engine import release
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, PromiseError
from edgeveil.graph import Graph
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.ledger import Charge, Ledger, Price, Reservation

__all__ = ["print_price", "spending"]


class _Watched(Ledger):
    """A ledger that looks up the price first. It has its say before anything is charged."""

    ask = False
    only_price = False
    _charging: tuple[str, Charge] | None = None

    def reserve(
        self,
        key: str,
        charge: Charge,
        note: Mapping[str, str] | None = None,
        *,
        fingerprint: str = "",
    ) -> Reservation:
        """As `Ledger.reserve`, after the price was told and, if need be, agreed to."""
        price = self.price(key, charge, fingerprint)
        if self.only_price:
            raise _Priced(price)
        if price.state == "new" and not price.short and self.ask:
            _ask(price)
        self._charging = key, charge
        reservation = super().reserve(key, charge, note, fingerprint=fingerprint)
        say(_charged(price))
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
def spending(location: str | None, *, yes: bool) -> Iterator[Ledger | None]:
    """Open the ledger to charge, if one is named.

    Parameters
    ----------
    location : str or None
        The ledger.
    yes : bool
        Whether to go on without asking. Only where a person sits in front of it, at a terminal,
        is anything asked.
    """
    if location is None:
        yield None
        say("No ledger was named (--ledger): nobody keeps count of what was released.")
        return
    ledger = _Watched.open(location)
    ledger.ask = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        yield ledger
    except KeyboardInterrupt:
        try:
            words = ledger.after_interrupt()
        except LedgerError:
            words = "`edgeveil ledger show` says what was charged"
        raise KeyboardInterrupt(words) from None


def print_price(
    graph: Graph,
    mechanism: Mechanism,
    sources: list[NodeId] | NodeSet,
    location: str | None,
    style: Format,
    nonce: str = "",
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
    if location is not None:
        ledger = _Watched.open(location)
        ledger.only_price = True
        try:
            release(graph, mechanism, sources, ledger=ledger, nonce=nonce)
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
        ["for whom", "epsilon", "left before", "left after"],
        rows,
        style=style,
        about={"dry_run": True, "charged_before": price is not None and price.state != "new"},
        title=f"price of {mechanism.name} for {len(sources):,} source{'s' * (len(sources) > 1)}",
    )
    if price is None:
        say("Dry run: nothing was drawn. No ledger was named (--ledger): nobody keeps count.")
        return
    say("Dry run: nothing was charged or drawn." + _FREE.get(price.state, ""))
    if price.short:
        raise BudgetError(price.short)


_FREE = {
    "reserved": " This release was charged before and not finished: going on costs nothing.",
    "released": " This release is stored already: to get it again costs nothing.",
}


def _ask(price: Price) -> None:
    sys.stderr.write(f"{plain(_spends(price))} Go on? [y/N] ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed, nothing was spent")


def _spends(price: Price) -> str:
    epsilon, left = f"{price.epsilon:.15g}", f"{price.left:.15g}"
    if price.n_recipients > 1:
        words = (
            f"This spends epsilon = {epsilon} for each of {price.n_recipients:,} recipients; "
            f"{price.whom}, who has the least, has {left} left"
        )
    else:
        words = f"This spends epsilon = {epsilon} of the {left} left for {_whom(price)}"
    if price.pooled_left_nano is not None:
        words += (
            f", and {_nano(price.pooled_needs_nano):.15g} of the "
            f"{_nano(price.pooled_left_nano):.15g} left for all recipients together"
        )
    return f"{words}."


def _charged(price: Price) -> str:
    if price.state != "new":
        return _FREE[price.state].strip()
    left = _nano(price.left_nano - price.needs_nano)
    return f"Charged epsilon = {price.epsilon:.15g}; {left:.15g} left for {_whom(price)}."


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
