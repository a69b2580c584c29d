"""Small pieces of HTML for notebooks: text in, HTML out. Every text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# White on red is readable on a light and on a dark page.
_ALARM = "background:#b00020;color:#fff;font-weight:bold;padding:0.4em 0.6em"


def html_card(heading: str, statement: str, *, alarm: bool, table: str = "") -> str:
    """A heading, a statement (in red for an alarm) and a table made by `html_table`."""
    style = f' style="{_ALARM}"' if alarm else ""
    return (
        f"<div><p><strong>{escape(heading)}</strong></p>"
        f"<p{style}>{escape(statement)}</p>{table}</div>"
    )


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers with six digits."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_pre(text: str) -> str:
    """Lines as they are."""
    return f"<pre>{escape(text)}</pre>"


def _shown(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
