"""What commands print: tables on standard output, words on standard error."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

__all__ = ["Format", "plain", "print_table", "say"]

Format = Literal["table", "json", "csv"]


def say(text: str = "") -> None:
    """Say something to the person, on one line; never part of the data."""
    sys.stderr.write(f"{plain(text)}\n")
    sys.stderr.flush()


def plain(text: str) -> str:
    r"""The text on one line, without characters that steer a terminal.

    Names come from files that somebody else may have written.

    >>> plain("eve\x1b[2J")
    'eve\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    style: Format = "table",
    about: dict[str, Any] | None = None,
    title: str | None = None,
    warning: str = "",
) -> None:
    """Print rows in the style asked for.

    Parameters
    ----------
    columns, rows
        The table. None is an empty cell.
    style : {"table", "json", "csv"}
        For people, for programs, for spreadsheets.
    about : dict
        What belongs to the table (its guarantee): part of JSON output, not of the others.
    title : str
        Heading for people.
    warning : str
        Stands above the rows in every style: what is not private must say so wherever it goes.
    """
    if style == "json":
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        from edgeveil.io.labelled_tables import as_json

        whole = as_json({**(about or {}), "rows": records})
        sys.stdout.write(json.dumps(whole, indent=2, allow_nan=False) + "\n")
    elif style == "csv":
        if warning:
            sys.stdout.write(f"# {warning}\n")
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        _print_for_people(columns, rows, f"{title}\n{warning}" if warning else title)


def _print_for_people(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Text, not str: square brackets in a name are no markup.
    heading = None if title is None else Text("\n".join(map(plain, title.split("\n"))))
    table = Table(title=heading, title_justify="left")
    for name, cell in zip(columns, rows[0] if rows else columns, strict=True):
        number = isinstance(cell, (int, float))
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(_in_words(cell))) for cell in row))
    Console().print(table)


def _in_words(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
