"""What commands print: tables on standard output, words on standard error."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

__all__ = ["Format", "print_table", "say"]

Format = Literal["table", "json", "csv"]


def say(text: str = "") -> None:
    """Say something to the person; never part of the data."""
    sys.stderr.write(f"{text}\n")


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
        The table.
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
        sys.stdout.write(json.dumps({**(about or {}), "rows": records}, indent=2) + "\n")
    elif style == "csv":
        if warning:
            sys.stdout.write(f"# {warning}\n")
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        from rich.console import Console
        from rich.table import Table

        heading = f"{title}\n{warning}" if warning else title
        table = Table(title=heading, title_justify="left")
        for name, cell in zip(columns, rows[0] if rows else columns, strict=True):
            number = isinstance(cell, (int, float))
            table.add_column(name, justify="right" if number else "left")
        for row in rows:
            table.add_row(*(f"{c:.6g}" if isinstance(c, float) else str(c) for c in row))
        Console().print(table)
