"""``edgeveil ledger plan`` and ``edgeveil ledger report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import LedgerAt, default
from edgeveil.cli.output import Format, print_table, say
from edgeveil.errors import ParameterError


def plan(
    location: LedgerAt,
    /,
    *,
    every: str = "week",
    lasting: Annotated[str, Parameter(name=["--for", "--lasting"])] = "1y",
    members: int | None = None,
    graph: Path | None = None,
    top: int = 20,
    reading: options.GraphFile = options.GRAPH_FILE,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """Say what each list may cost so that the budget lasts, beside the alternatives.

    With --graph also what each epsilon buys: the share of hidden friends that lists would find.
    That is measured on the graph itself, for the curator only; nothing is charged.
    Example: edgeveil ledger plan friends.ledger --every week --for 1y

    Parameters
    ----------
    location
        The ledger's file, or its postgresql:// address.
    every
        How often there are new lists: day, week, 2 weeks, month, and so on.
    lasting
        How long the budget is to last: 90d, 6m, 1y.
    members
        How many get a list each time; needed if the ledger has a cap on what all may pool.
    graph
        The private graph, to measure on.
    top
        Places of a list, to measure with.
    format
        table, json or csv.
    """
    from edgeveil.ledger import Ledger
    from edgeveil.ledger.plan import plan as plan_of
    from edgeveil.mechanisms.suggest import Suggest

    opened = Ledger.open(location)
    read = None
    if graph is not None:
        from edgeveil.cli.reading import read_and_say

        read = read_and_say(graph, reading, directed=False, counts=False)
        members = read.n_nodes if members is None else members
    if opened.pooled_epsilon is not None and members is None:
        raise ParameterError(
            "the ledger has a cap on what all may pool: say how many get a list (--members)"
        )

    def pooled(epsilon: float) -> float:
        many = members or 1
        return Suggest(epsilon=epsilon).guarantee(many).pooled_epsilon if epsilon else 0.0

    plans = plan_of(opened.account(), every, lasting, window=opened.window, pooled=pooled)
    columns = ["every", "releases", "epsilon"]
    rows: list[tuple[Any, ...]] = [(p.every, p.releases, p.epsilon) for p in plans]
    if read is not None:
        from edgeveil.cli.progress import counting
        from edgeveil.evaluation.own_graph import evaluate

        worth = sorted({p.epsilon for p in plans if p.epsilon > 0})
        with counting("lines measured", lines=True) as progress:
            found = evaluate(read, worth, protocol="suggestions", k=top, progress=progress)
        hits = {
            (r.scope, r.epsilon): r.mean
            for r in found.results
            if r.mechanism == "suggest" and r.metric == f"hits@{top}"
        }
        groups = list(dict.fromkeys(scope for scope, _ in hits))
        columns += [f"hits@{top}, {group}" for group in groups]
        rows = [(*row, *(hits.get((group, row[2])) for group in groups)) for row in rows]
        say("FOR THE CURATOR, NOT PRIVATE: the hits come from the exact graph.")
    print_table(columns, rows, style=format, about={"for": lasting}, title="what lists may cost")
    if opened.window is not None:
        say(
            f"With a window of {opened.window} snapshots this goes on for ever; it protects what "
            "happens to an edge within the window, not an edge that stays for ever."
        )


def report(
    location: LedgerAt,
    /,
    *,
    out: Annotated[Path | None, default("the table, on standard output")] = None,
    recipient: str | None = None,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """Say who was given what, when, from what and for which purpose.

    Example: edgeveil ledger report friends.ledger --out report.html

    Parameters
    ----------
    location
        The ledger's file, or its postgresql:// address.
    out
        A page (.html) with a chart, or a table (.csv, .json).
    recipient
        Only what this one got.
    format
        Without --out: table, json or csv.
    """
    from edgeveil._files import write_atomically
    from edgeveil.ledger import Ledger
    from edgeveil.report import PageData, write_page
    from edgeveil.report.spending import COLUMNS, spending_of, spending_rows

    opened = Ledger.open(location)
    if out is not None and out.suffix == ".html":
        title = "What was given out" if recipient is None else f"What {recipient} was given"
        write_page(out, PageData(title=title, spending=spending_of(opened, recipient)))
        sys.stdout.write(f"{out.resolve()}\n")
        return
    if out is not None and out.suffix not in (".csv", ".json"):
        raise ParameterError(f"--out must end in .html, .csv or .json, got {out.name!r}")
    rows = spending_rows(opened.spends(recipient))
    about = {"ledger": opened.location, "epsilon": opened.epsilon}
    if out is None:
        print_table(list(COLUMNS), rows, style=format, about=about)
        return
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_table(list(COLUMNS), rows, style=out.suffix[1:], about=about)  # type: ignore[arg-type]
    write_atomically(out, lambda path: path.write_text(text.getvalue(), encoding="utf-8"))
