"""What commands print: tables on standard output, words and progress on standard error."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from edgeveil.cli.interrupts import raise_if_interrupted

Format = Literal["table", "json", "csv"]

_MOST_LETTERS = 24  # of a word, an id for instance, that a column is made wide for
_SECONDS_BETWEEN_LINES = 10.0


def say(text: str) -> None:
    """Print a message to the user; never part of the data.

    A terminal gets it wrapped between words; a file or a pipe gets one line per call.
    """
    sys.stderr.write(f"{wrapped(text)}\n")
    sys.stderr.flush()


def wrapped(text: str) -> str:
    """The text without control characters, wrapped to the terminal's width if there is one."""
    text = plain(text)
    if not sys.stderr.isatty():
        return text
    # Do not break names of options and files, so that they can be copied.
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    """Width of the terminal that messages go to: COLUMNS if set, else what the terminal reports."""
    own = 0
    with suppress(OSError, ValueError):
        own = os.get_terminal_size(sys.stderr.fileno()).columns
    return max(shutil.get_terminal_size((own or 80, 0)).columns, 20)


def plain(text: str) -> str:
    r"""The text on one line, without characters that control a terminal.

    Names come from files that others may have written.

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
    metadata: dict[str, Any] | None = None,
    title: str = "",
    warning: str = "",
) -> None:
    """Print rows for people (under a title), programs or spreadsheets.

    Names of columns are those of programs: people see "left_before" as "left before". None is an
    empty cell. `metadata` is what belongs to the table (its guarantee): part of JSON output, not of
    the others. A warning stands above the rows of the others (JSON has it in `metadata`): what is
    not private must say so wherever it goes.
    """
    if style == "json":
        from edgeveil.results.tabular import as_json

        records = [dict(zip(columns, row, strict=True)) for row in rows]
        whole = as_json({**(metadata or {}), "rows": records})
        sys.stdout.write(json.dumps(whole, indent=2, allow_nan=False) + "\n")
    elif style == "csv":
        if warning:
            sys.stdout.write(f"# {warning}\n")
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        _print_for_people(columns, rows, [line for line in (title, warning) if line])


def _print_for_people(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], above: list[str]
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for line in above:
        sys.stdout.write(f"{textwrap.fill(plain(line), console.width)}\n")
    names = [name.replace("_", " ") for name in columns]
    cells = [[plain(_in_words(cell)) for cell in row] for row in rows]
    least = [_longest_word(column) for column in zip(names, *cells, strict=True)]
    spare = console.width - sum(least) - len(names) - 1
    if spare < 0:  # too many columns: a paragraph per row, a line per cell
        for row in cells:
            for name, cell, start in zip(names, row, ["", *["  "] * len(row)], strict=False):
                words = f"{start}{name}: {cell}"
                words = textwrap.fill(words, console.width, subsequent_indent="    ")
                sys.stdout.write(f"{words.rstrip()}\n")
        return
    # A blank on both sides of each cell, if that breaks no word.
    padding = int(spare >= 2 * len(names))
    spare -= 2 * padding * len(names)
    table = Table(padding=(0, padding))
    for i, name in enumerate(names):
        # Room for whole cells, from the left, as long as there is some: rich would cut the edge.
        more = min(max(map(cell_len, (name, *(row[i] for row in cells)))) - least[i], spare)
        spare -= more
        table.add_column(
            name,
            justify="right" if any(isinstance(row[i], (int, float)) for row in rows) else "left",
            overflow="fold",
            width=least[i] + more,
        )
    for row in cells:
        table.add_row(*map(Text, row))  # not str: square brackets in a name are no markup
    console.print(table)


def _longest_word(column: Sequence[str]) -> int:
    """Length of the longest word, up to `_MOST_LETTERS`."""
    return min(max(len(word) for cell in column for word in cell.split() or [""]), _MOST_LETTERS)


def _in_words(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@contextmanager
def counting(what: str, *, lines: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Give a function to be told ``(done, total)``; it shows that and the time left.

    Both numbers must be public. On a terminal it draws a bar, which appears with the first call,
    so that a question can be asked before, and goes away at the end. With `lines` it says so
    elsewhere, too, from time to time: how fast it goes then stands in a log, so that is for
    graphs that are not private.
    """
    if not sys.stderr.isatty():
        yield _in_lines(what) if lines else lambda done, total: raise_if_interrupted()
        return
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        "{task.description}",
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        "elapsed",
        progress.TimeElapsedColumn(),
        "left",
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=None)

    def show(done: int, total: int) -> None:
        raise_if_interrupted()
        bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _in_lines(what: str) -> Callable[[int, int], None]:
    start = said = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal said
        raise_if_interrupted()
        now = time.monotonic()
        if done and now - said >= _SECONDS_BETWEEN_LINES:
            said = now
            left = (now - start) * (total - done) / done
            say(f"{done:,} of {total:,} {what}, about {left:.0f} s left")

    return show
