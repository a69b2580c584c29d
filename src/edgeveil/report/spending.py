"""What a ledger has given out: the report for whoever is answerable for it, as a page or a table.

The page is one file without scripts that needs no network. It holds names of labels, purposes and
operators, and no ids of recipients unless one is asked for.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from string import Template
from typing import Any

from edgeveil.ledger import Ledger, Spend

__all__ = ["COLUMNS", "render_spending", "spending_rows"]

COLUMNS = (
    *("number", "time", "label", "snapshot", "mechanism", "parameters", "purpose", "operator"),
    *("recipients", "epsilon_each", "epsilon_pooled", "state"),
)
_WIDE, _HIGH, _LEFT, _LOW = 760, 240, 60, 30


def spending_rows(spends: Sequence[Spend]) -> list[tuple[Any, ...]]:
    """One row per spend, as named by `COLUMNS`; what nobody wrote down is empty."""
    return [
        (
            spend.seq,
            spend.created,
            spend.label or "",
            spend.snapshot,
            spend.note.get("mechanism", ""),
            spend.note.get("parameters", ""),
            spend.note.get("purpose", ""),
            spend.note.get("operator", ""),
            "everybody" if spend.model == "public" else spend.n_rows,
            spend.epsilon_nano / 1e9,
            spend.pooled_nano / 1e9,
            "stored" if spend.released else "charged, not stored",
        )
        for spend in spends
    ]


def render_spending(ledger: Ledger, recipient: str | None = None) -> str:
    """The report as an HTML page.

    Parameters
    ----------
    ledger : Ledger
        Whose spends.
    recipient : str, optional
        Only what this one got; the page then names them.
    """
    spends = ledger.spends(recipient)
    rows = spending_rows(spends)
    shown = [[_cell(name, value) for name, value in zip(COLUMNS, row, strict=True)] for row in rows]
    assets = files(__package__)
    title = "What was given out" if recipient is None else f"What {recipient} was given"
    return Template(assets.joinpath("spending.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        ledger=html.escape(ledger.location),
        statements="".join(f"<p>{html.escape(words)}</p>" for words in _words(ledger, recipient)),
        chart=_chart(ledger, spends, recipient),
        head="".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in COLUMNS),
        rows="".join(f"<tr>{''.join(row)}</tr>" for row in shown),
    )


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, int | float):
        return f'<td class="number">{value:,.15g}</td>'
    text = str(value)[:16].replace("T", " ") if name == "time" else str(value)
    return f"<td>{html.escape(text)}</td>"


def _words(ledger: Ledger, recipient: str | None) -> list[str]:
    """Who may know how much, in sentences."""
    account, window = ledger.account(recipient), ledger.window
    over = "in all" if window is None else f"within any {window} consecutive snapshots"
    said = [
        f"Any one recipient may learn epsilon = {ledger.epsilon:g} {over} about a connection "
        "between others: with or without it, what it is given is at most e to that power times as "
        "likely. Everything that was given out counts, also from earlier states of the graph."
    ]
    if recipient is not None:
        said.append(f"{recipient} has learnt {account.spent:g}; {account.left:g} is left.")
    elif account.recipient is not None:
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
    if window is not None:
        said.append(
            f"The window protects what happens to a connection within {window} consecutive "
            "snapshots, not a connection that stays for ever."
        )
    return said


def _chart(ledger: Ledger, spends: Sequence[Spend], recipient: str | None) -> str:
    """Steps: what the one who learnt the most had learnt by each time, below the cap."""
    if not spends:
        return "<p>Nothing was spent so far.</p>"
    times = [datetime.fromisoformat(spend.created).timestamp() for spend in spends]
    totals, own = list[float](), 0.0
    for spend in spends:
        own += spend.epsilon_nano / 1e9
        before = totals[-1] if totals else 0.0  # what nobody wrote down before version 2
        most = before if spend.most_nano is None else spend.most_nano / 1e9
        totals.append(own if recipient is not None else most)
    first, last = times[0], max(times[-1], times[0] + 1)
    highest = max(ledger.epsilon, *totals)

    def x(time: float) -> float:
        return _LEFT + (time - first) / (last - first) * (_WIDE - _LEFT - 10)

    def y(value: float) -> float:
        return _HIGH - _LOW - value / highest * (_HIGH - _LOW - 20)

    path, level = f"M{x(first):.1f} {y(0):.1f}", 0.0
    for time, total in zip(times, totals, strict=True):
        path += f"H{x(time):.1f}V{y(total):.1f}"
        level = total
    path += f"H{_WIDE - 10}"
    cap, days = y(ledger.epsilon), [spends[0].created[:10], spends[-1].created[:10]]
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="Spent over time: '
        f'{level:g} of {ledger.epsilon:g}">'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDE - 10}" y1="{y(0)}" y2="{y(0)}"/>'
        f'<line class="cap" x1="{_LEFT}" x2="{_WIDE - 10}" y1="{cap:.1f}" y2="{cap:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{cap + 4:.1f}" text-anchor="end">{ledger.epsilon:g}</text>'
        f'<text x="{_LEFT - 8}" y="{y(0) + 4}" text-anchor="end">0</text>'
        f'<text x="{_LEFT}" y="{_HIGH - 8}">{days[0]}</text>'
        f'<text x="{_WIDE - 10}" y="{_HIGH - 8}" text-anchor="end">{days[1]}</text>'
        f'<path class="spent" d="{path}"/></svg>'
    )
