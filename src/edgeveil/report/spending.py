"""What a ledger has given out: the report for whoever is answerable for it, as a page or a table.

It holds names of labels, purposes and operators, and no ids of recipients unless one is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeveil.ledger import Ledger, Spend
from edgeveil.report.page import Spending

_NOTED = ("mechanism", "parameters", "purpose", "operator")
COLUMNS = (
    *("number", "time", "label", "snapshot", *_NOTED),
    *("recipients", "epsilon_each", "epsilon_pooled", "state"),
)


def spending_rows(spends: Sequence[Spend]) -> list[tuple[Any, ...]]:
    """One row per spend, as named by `COLUMNS`; what nobody wrote down is empty."""
    return [
        (
            spend.seq,
            spend.created,
            spend.label,
            spend.snapshot,
            *(spend.note.get(name, "") for name in _NOTED),
            "everybody" if spend.model == "public" else spend.n_rows,
            spend.epsilon_nano / 1e9,
            spend.pooled_nano / 1e9,
            "stored" if spend.released else "charged, not stored",
        )
        for spend in spends
    ]


def spending_of(ledger: Ledger, recipient: str | None = None) -> Spending:
    """What the report page shows of a ledger.

    Parameters
    ----------
    ledger : Ledger
        Whose spends.
    recipient : str, optional
        Only what this one got; the page then names them.
    """
    spends = ledger.spends(recipient)
    return Spending(
        ledger=ledger.location,
        words=_words(ledger, recipient),
        cap=ledger.epsilon,
        steps=_steps(spends, recipient),
        columns=COLUMNS,
        rows=spending_rows(spends),
    )


def _words(ledger: Ledger, recipient: str | None) -> list[str]:
    """Who may know how much, in sentences."""
    account = ledger.account(recipient)
    said = [
        f"Any one recipient may learn epsilon = {ledger.epsilon:g} in all about a connection "
        "between others: with or without it, what it is given is at most e to that power times as "
        "likely. Everything that was given out counts, also from earlier states of the graph."
    ]
    if recipient is not None:
        said.append(f"{recipient} has learnt {account.spent:g}; {account.left:g} is left.")
    elif account.spent_nano > account.public_nano:
        said.append(
            f"The recipient who has learnt the most has learnt {account.spent:g}; "
            f"{account.left:g} is left for it."
        )
    if account.public:
        said.append(f"Of this, {account.public:g} was published: everybody has learnt it.")
    said.append(
        f"Recipients who pool all they were given have learnt at most {account.pooled_spent:g} "
        "together about connections that touch none of them"
        + (
            "; there is no cap on that."
            if ledger.pooled_epsilon is None
            else f"; {account.pooled_left:g} of {ledger.pooled_epsilon:g} is left."
        )
    )
    return said


def _steps(spends: Sequence[Spend], recipient: str | None) -> list[tuple[str, float]]:
    """What the recipient, or the one who learnt the most, had learnt by the time of each spend."""
    steps, own = list[tuple[str, float]](), 0.0
    for spend in spends:
        own += spend.epsilon_nano / 1e9
        steps.append((spend.created, spend.most_nano / 1e9 if recipient is None else own))
    return steps
