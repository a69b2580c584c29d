"""The report of a ledger, for a privacy officer: all charges, as a page or a table.

It names labels, purposes and operators, but no members unless it is about one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from edgeveil.ledger import Charge, Ledger
from edgeveil.ledger.accounts import is_window
from edgeveil.report.page import Charges

_NOTED = ("mechanism", "parameters", "purpose", "operator")
COLUMNS: tuple[str, ...] = ("number", "time", "label", "generation", *_NOTED)
COLUMNS += ("members", "epsilon_each", "epsilon_pooled", "state")


def charge_rows(charges: Sequence[Charge]) -> list[tuple[Any, ...]]:
    """One row per charge, as named by `COLUMNS`; what was not noted is empty.

    A series has a row for those who joined first, and one for the newcomers of every later
    refresh. Its windows, whose price is 0, are left out: their number depends on edges, and nothing
    else here does. So rows are numbered as they are shown, not by their number in the ledger.
    """
    rows: dict[tuple[str, str], list[Charge]] = {}
    for charge in charges:
        if not is_window(charge):
            # One refresh charges its newcomers in several batches, all in the same generation.
            joined = (charge.campaign, charge.note.get("first", ""))
            of_series = joined if "series" in charge.note else (str(charge.seq), "")
            rows.setdefault(of_series, []).append(charge)
    begun = dict[str, int]()
    for group in rows.values():
        begun.setdefault(group[0].campaign, group[0].seq)
    return [
        (
            number,
            first.created,
            first.label,
            first.generation,
            _mechanism(first, begun[first.campaign]),
            *(first.note.get(name, "") for name in _NOTED[1:]),
            "everybody" if first.model == "public" else sum(charge.n_rows for charge in group),
            first.epsilon_nano / 1e9,
            sum(charge.pooled_nano for charge in group) / 1e9,
            "stored" if all(charge.released for charge in group) else "charged, not stored",
        )
        for number, group in enumerate(rows.values(), 1)
        for first in group[:1]
    ]


def _mechanism(charge: Charge, begun: int) -> str:
    """What was charged for; the later charges of a series are for members who have joined since."""
    name = charge.note.get("mechanism", "")
    if "returned" in charge.note:
        return f"{name}, members who came back"
    return f"{name}, newcomers" if "series" in charge.note and charge.seq != begun else name


def charges_of(ledger: Ledger, member: str | None = None) -> Charges:
    """What the report page shows of a ledger.

    Parameters
    ----------
    ledger : Ledger
        Its charges are listed.
    member : str, optional
        Only the charges that count for this member, whom the page then names.
    """
    charges = ledger.charges(member)
    return Charges(
        ledger=ledger.location,
        words=_words(ledger, charges, member),
        cap=ledger.epsilon,
        steps=_steps(charges, member),
        columns=COLUMNS,
        rows=charge_rows(charges),
    )


def factor(epsilon: float) -> float:
    """E to the power of epsilon, rounded up, so that "at most" stays true.

    >>> factor(1.0), factor(0.5)
    (2.72, 1.65)
    """
    return math.ceil(100 * math.exp(epsilon)) / 100


def _words(ledger: Ledger, charges: Sequence[Charge], member: str | None) -> list[str]:
    """What the caps allow and what is left of them, in sentences."""
    account = ledger.account(member)
    sentences = [
        f"Each member may be charged epsilon = {ledger.epsilon:g} in all: with or without a "
        "connection between others, what the member is given is at most e to that power times as "
        "likely. Everything released with this ledger counts, also from earlier states of the "
        "graph."
    ]
    if any("series" in charge.note for charge in charges):
        sentences.append(
            "A series of lists is charged once, when a member joins. This covers its lists of all "
            "weeks together, because each connection between others is counted only once for it."
        )
    if member is not None:
        sentences.append(f"{member} was charged {account.charged:g}; {account.left:g} is left.")
        if 0 < account.charged <= 10:
            sentences.append(
                f"Whatever {member} believed before about whether two others are connected, all "
                f"lists of {member} together change the odds by a factor of at most "
                f"{factor(account.charged):,}."
            )
    elif account.charged_nano > account.public_nano:
        sentences.append(
            f"The highest charge to any member is {account.charged:g} in all; "
            f"{account.left:g} is left."
        )
    if account.public:
        sentences.append(
            f"Of this, {account.public:g} is for public releases, which count for everybody."
        )
    sentences.append(
        f"All members together were charged {account.pooled_charged:g}: the most that members who "
        "combine their lists can learn about whether others are connected"
        + (
            "; there is no cap on that."
            if ledger.pooled_epsilon is None
            else f"; {account.pooled_left:g} of {ledger.pooled_epsilon:g} is left."
        )
    )
    return sentences


def _steps(charges: Sequence[Charge], member: str | None) -> list[tuple[str, float]]:
    """Epsilon charged by the time of each charge: to the member, or the highest of any member."""
    steps, own = list[tuple[str, float]](), 0.0
    for charge in charges:
        if is_window(charge):
            continue
        own += charge.epsilon_nano / 1e9
        steps.append((charge.created, charge.highest_nano / 1e9 if member is None else own))
    return steps
