"""``edgeveil ledger create | advance | renew | plan | report | show | verify | backup``."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

import edgeveil as ev
from edgeveil._internal.checks import check_int
from edgeveil._internal.words import some_of
from edgeveil.cli import options
from edgeveil.cli.options import Format, LedgerPlace, checked, default, option
from edgeveil.cli.output import counting, print_table, say
from edgeveil.errors import BudgetError, ParameterError

_EXACT = "FOR THE CURATOR ONLY, NOT PRIVATE: the hits come from the exact graph."

ledger = App(
    name="ledger",
    help="Manage the privacy budget: a file, or a PostgreSQL database, that enforces a cap.\n\n"
    "Example: edgeveil ledger create follows.ledger --epsilon 4",
    help_format="plaintext",
)


@ledger.command
def create(
    location: Annotated[options.LedgerAt, option("A new file, or a postgresql:// address.")],
    /,
    *,
    epsilon: float,
    pooled_epsilon: float | None = None,
) -> None:
    """Create a ledger with a cap, which can never be changed.

    Example: edgeveil ledger create follows.ledger --epsilon 4

    Parameters
    ----------
    epsilon
        Cap for each member: the privacy loss of all public releases and of its own rows together.
    pooled_epsilon
        Cap for all members together, should they combine all their rows.
    """
    created = ev.Ledger.create(location, epsilon=epsilon, pooled_epsilon=pooled_epsilon)
    say(f"{created.location}: each member may be charged epsilon = {created.epsilon:g} in all")


@ledger.command
def advance(location: LedgerPlace, label: str = "", /) -> None:
    """Declare the next generation of a graph, in which everything is charged anew.

    The ledger counts the generations of a label's graph. Declare the next one
    before you use a graph that has changed. Members may have joined or left.
    Members who stayed must have kept their id.
    Follow a public schedule: a generation that is declared whenever the graph
    has changed reveals that it has.
    Example: edgeveil ledger advance follows.ledger friends

    Parameters
    ----------
    label
        Public name of the graph, if it has one.
    """
    from edgeveil.ledger.generations import SERIES

    def refuse_series(fingerprint: str | None) -> None:
        if (fingerprint or "").startswith(SERIES):
            raise ParameterError(
                f"the lists of {label or 'this graph'} are a series: edgeveil refresh takes every "
                "new state of the graph. To start the series anew, and charge all again: edgeveil "
                "ledger renew"
            )

    number = ev.Ledger(location).advance(label, check=refuse_series)
    sys.stdout.write(f"{number}\n")
    of_label = f" under the label {label!r}" if label else ""
    say(f"the next release{of_label} begins generation {number} of the graph")


@ledger.command
def renew(location: LedgerPlace, label: str = "", /, *, yes: options.Flag = False) -> None:
    """Start a series anew: the next refresh counts its edges and charges again.

    In the ledger this declares the next generation of the graph. A new series
    has better evidence: one question about the edges of that day instead of many
    small ones over time. Edges that have ended no longer count.
    Decide by the calendar, not by what you see in the graph.
    Example: edgeveil ledger renew friends.ledger friends

    Parameters
    ----------
    label
        Public name of the graph, if it has one.
    yes
        Do not ask before. Only on a terminal you are asked.
    """
    from edgeveil.cli.runner import confirm

    opened = ev.Ledger.open(location)
    words = _renewal(opened, label)
    if not yes:
        confirm(words)
    opened.advance(label)
    say(f"{words} The next edgeveil refresh starts the new series.")


def _renewal(opened: ev.Ledger, label: str) -> str:
    """What a renewal changes, in words; BudgetError if nobody could be charged again."""
    from edgeveil.series import last_series

    price, name = last_series(opened, label), label or "this graph"
    if price is None:
        return f"Lists of {name} were made one by one; they become a series."
    accounts = opened.accounts()
    able = sum(account.left >= price for account in accounts)
    if not able:
        raise BudgetError(
            f"no member has epsilon = {price:g} left to be charged again: nothing was changed, "
            "and the series continues"
        )
    return (
        f"The series of {name} ends. The next refresh charges epsilon = {price:g} again. Of those "
        f"who were charged so far, {some_of(able, len(accounts), 'member', 'have')} as much left; "
        "the others get no more lists."
    )


@ledger.command
def plan(
    location: LedgerPlace,
    /,
    *,
    members: Annotated[
        int | None, default("not needed"), checked(partial(check_int, "--members"))
    ] = None,
    graph: Annotated[Path | None, default("nothing is measured")] = None,
    k: options.Length = 20,
    reading: options.GraphFile = options.GRAPH_FILE,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """Show what is left: the highest epsilon of one more series, or of two.

    A series is charged once, whatever the number of its lists, and so is each
    renewal. With --graph it also measures what each epsilon buys: the share of
    hidden friends that lists find, beside popularity. That is for the curator
    only; nothing is charged.
    Example: edgeveil ledger plan friends.ledger

    Parameters
    ----------
    members
        How many members get lists; required if the ledger has a cap for all together.
    graph
        The private graph to measure.
    k
        Length of a list.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.series import highest_epsilon

    opened = ev.Ledger.open(location)
    private = None if graph is None else read_and_say(graph, reading, counts=False)
    if members is None and private is not None:
        members = private.n_nodes
    if opened.pooled_epsilon is not None and members is None:
        raise ParameterError(
            "the ledger has a cap for all members together: give the number of members who get a "
            "list (--members)"
        )
    account = opened.account()
    lists = ev.mechanisms.Suggest(epsilon=1)
    once, twice = (highest_epsilon(account, lists, members or 1, count) for count in (1, 2))
    if not once > 0:
        raise BudgetError("nothing is left for the member who was charged the most")
    say(
        f"Lowest remaining budget: epsilon = {account.left:g}. A series (edgeveil refresh) or its "
        f"renewal (edgeveil ledger renew) is one charge, up to {once:g} for each member, "
        f"whatever the number of its lists; two of them, up to {twice:g} each."
    )
    columns: list[str] = ["lists", "charges", "epsilon"]
    rows: list[tuple[Any, ...]] = [("series", 1, once), ("series, renewed once", 2, twice)]
    metadata: dict[str, Any] = {"least_left": account.left}
    warning = ""
    if private is not None:
        columns, rows = _with_hits(columns, rows, private, k)
        warning = metadata["warning"] = _EXACT
    print_table(
        columns, rows, style=format, metadata=metadata, title="what is left", warning=warning
    )


def _with_hits(
    columns: list[str], rows: list[tuple[Any, ...]], graph: ev.Graph, k: int
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The table with what lists find at each epsilon; a sentence says where that is worth it."""
    hits = _hits(graph, {row[2] for row in rows if row[2] > 0}, k)
    say(_worth(hits))
    groups = list(dict.fromkeys(scope for scope, _ in hits))
    rows = [*rows, ("popularity", 0, None)]
    return [*columns, *(f"hits@{k}, {group}" for group in groups)], [
        (*row, *(hits.get((group, row[2])) for group in groups)) for row in rows
    ]


def _hits(graph: ev.Graph, epsilons: set[float], k: int) -> dict[tuple[str, float | None], float]:
    """Share of hidden friends on lists of k, by degree group and epsilon; None: popularity."""
    with counting("measurements", lines=True) as progress:
        evaluation = ev.evaluate(
            graph, sorted(epsilons), protocol="suggestions", k=k, progress=progress
        )
    return {
        (r.scope, r.epsilon): r.mean
        for r in evaluation.results
        if r.mechanism in ("suggest", "popularity") and r.metric == f"hits@{k}"
    }


def _worth(hits: dict[tuple[str, float | None], float]) -> str:
    """State at which of the prices lists are no better than popularity."""
    hit_of = {epsilon: hit for (scope, epsilon), hit in hits.items() if scope == "all members"}
    popular = hit_of.pop(None)
    useless = [epsilon for epsilon, hit in hit_of.items() if hit <= popular and epsilon]
    if not useless:
        return "At all of these prices lists are better than popularity, the same for everybody."
    return (
        f"At epsilon = {max(useless):g} and below, lists are no better than popularity, which is "
        "the same list for everybody."
    )


@ledger.command
def report(
    location: LedgerPlace,
    /,
    *,
    out: Annotated[Path | None, default("the table, on standard output")] = None,
    overwrite: options.Flag = False,
    member: str | None = None,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """List all charges: when, for whom, in which generation, and for what.

    Example: edgeveil ledger report friends.ledger --out report.html

    Parameters
    ----------
    out
        File to write: a page with a chart (.html), or a table (.csv, .json).
    overwrite
        Replace a file that exists.
    member
        Only the charges that count for this member.
    """
    from edgeveil._internal.files import write_atomically
    from edgeveil.cli.reading import check_out
    from edgeveil.report import PageData, write_page
    from edgeveil.report.charges import COLUMNS, charge_rows, charges_of

    check_out(out, ".html", ".csv", ".json", overwrite=overwrite)
    opened = ev.Ledger.open(location)
    if out is not None and out.suffix == ".html":
        title = "What was charged" if member is None else f"What was charged to {member}"
        write_page(out, PageData(title=title, charges=charges_of(opened, member)))
        sys.stdout.write(f"{out.resolve()}\n")
        return
    rows, text = charge_rows(opened.charges(member)), StringIO()
    metadata = {"ledger": opened.location, "epsilon": opened.epsilon}
    if out is not None:
        with redirect_stdout(text):
            print_table(
                COLUMNS, rows, style="csv" if out.suffix == ".csv" else "json", metadata=metadata
            )
        write_atomically(out, lambda path: path.write_text(text.getvalue(), encoding="utf-8"))
        return
    print_table(COLUMNS, rows, style=format, metadata=metadata)
    if not rows:
        say("nothing was charged yet")


@ledger.command
def show(location: LedgerPlace, /, *, format: Format = "table") -> None:  # noqa: A002  (the option's name)
    """Show charges and remaining budgets; json and csv list every member.

    Example: edgeveil ledger show follows.ledger
    """
    opened = ev.Ledger.open(location)
    if format == "table":
        sys.stdout.write(opened.show() + "\n")
        return
    anybody = opened.account("")  # a member without rows: public releases only
    pooled = opened.pooled_epsilon
    print_table(
        ["member", "charged", "left"],
        [(account.member, account.charged, account.left) for account in opened.accounts()]
        + [("(anybody else)", anybody.public, (anybody.cap_nano - anybody.public_nano) / 10**9)],
        style=format,
        metadata={
            "ledger": opened.location,
            "epsilon": opened.epsilon,
            "public_charged": anybody.public,
            "pooled_charged": anybody.pooled_charged,
            "pooled_epsilon": pooled,
            "pooled_left": None if pooled is None else anybody.pooled_left,
        },
    )


def _check_head(head: str) -> None:
    """A misspelt head is not a ledger that was rewritten."""
    if not re.fullmatch("[0-9a-f]{64}", head):
        raise ParameterError(
            "--known-head takes the 64 digits that edgeveil ledger verify or backup printed, "
            f"got {head!r}"
        )


@ledger.command
def verify(
    location: LedgerPlace,
    /,
    *,
    known_head: Annotated[str | None, checked(_check_head)] = None,
) -> None:
    """Check that no entry of the ledger was changed, and print its head.

    Example: edgeveil ledger verify follows.ledger

    Parameters
    ----------
    known_head
        A head that you noted earlier, somewhere else. It must still be part of the ledger. Only
        this finds every ledger that was restored from an older copy.
    """
    head = ev.Ledger.open(location).verify(known_head)
    sys.stdout.write(f"{head}\n")
    say("every entry is as it was written")


@ledger.command
def backup(location: LedgerPlace, copy: Path, /) -> None:
    """Copy a ledger that may be in use, and print the head of the copy. Note it.

    Example: edgeveil ledger backup follows.ledger backups/follows-2026-11-16.ledger

    Parameters
    ----------
    copy
        A new file. Use it only if the ledger is lost: never use both.
    """
    opened = ev.Ledger.open(location)
    sys.stdout.write(f"{opened.backup(copy)}\n")
    beside = (opened.folder, Path(f"{opened.location}.series"))
    others = " and ".join(str(folder) for folder in beside if folder.exists())
    say(f"{copy} is a whole copy of the ledger alone." + f" Copy {others}, too." * bool(others))
