"""What suggest, report, rank and embed have in common: price, pay, make, put out.

What a release costs is shown before, asked for on a terminal, and accounted for on Ctrl-C.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from edgeveil import Graph, Ledger, NodeSet, NoiseSource, Release, Suggestions
from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Lists, Releasing
from edgeveil.cli.output import Format, counted, counting, print_table, say, wrapped
from edgeveil.cli.reading import check_places, read_and_say, wanted_nodes
from edgeveil.engine import Quote, price, release, release_to
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.graph import Directed
from edgeveil.ledger import Price
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.suggestions import member_files

_MADE = {"scores": "ranking", "embeddings": "embedding", "suggestions": "list"}
_NOTHING = "nothing was charged"

Sources = list[NodeId] | NodeSet


def read(path: Path, how: Releasing, *, directed: Directed) -> Graph:
    """The graph; what is wrong with the engine or the ledger is said before it is read."""
    how.make_engine()
    if how.ledger is not None:
        Ledger.open(how.ledger)
    return read_and_say(path, how, directed=directed, counts=how.verbose)


def read_members(
    path: Path,
    lists: Lists,
    how: Releasing,
    per_member: Path | None,
    suffix: str,
    *,
    everybody: bool = False,
) -> tuple[Graph, Sources]:
    """The graph, and for whom lists are wanted; what is wrong is said before anything is paid."""
    if per_member is not None:
        check_places(per_member)
    graph = read(path, how, directed="keep" if lists.directed else False)
    nodes = graph.nodes
    wanted = nodes if everybody else wanted_nodes(nodes, lists.member, lists.members, "--members")
    if per_member is not None:
        member_files(wanted, suffix)  # ids have to be names of files
    return graph, wanted


def make_release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Sources,
    how: Releasing,
    put_out: Callable[[Any], None] = lambda made: None,
    *,
    out: Path | None,
    **lists: Any,
) -> None:
    """Make a release, write it to `out` and put it out, or print its price if only that is asked.

    An `out` without a suffix is a folder, written while the rows are made. `lists` are k and
    candidates of suggestions.
    """
    ledger = None if how.ledger is None else Ledger.open(how.ledger)
    quoted = partial(price, graph, mechanism, sources, ledger=ledger, label=how.label)
    if how.dry_run:
        _print_price(quoted(), mechanism.name, len(sources), how.format)
        return
    noise = None if how.insecure_seed is None else NoiseSource.insecure(how.insecure_seed)
    if ledger is not None and noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave --insecure-seed out")
    # To the end inside of it, so that Ctrl-C is told what was charged.
    with _spending(quoted, how, ledger):
        what = _MADE[mechanism.gives]
        with counting(f"{what}s") as progress:
            make = release if out is None or out.suffix else partial(release_to, out)
            made: Any = make(
                graph,
                mechanism,
                sources,
                ledger=ledger,
                label=how.label,
                purpose=how.purpose,
                operator=how.operator,
                noise=noise,
                engine=how.make_engine(),
                progress=progress,
                **lists,
            )
        if out is not None:
            if out.suffix:
                made.write(out)
            of = f" of {counted(graph.n_nodes, 'node')}" if mechanism.gives == "scores" else ""
            say(f"{out}: {counted(len(sources), what)}{of}.")
        put_out(made)
    if how.format != "json" or out is not None:
        say(str(made.guarantee))


@contextmanager
def _spending(quoted: Callable[[], Quote], how: Releasing, ledger: Ledger | None) -> Iterator[None]:
    """Say what a release costs and was charged, also where the work ends early.

    Only where a person sits in front of it, at a terminal, is anything asked.
    """
    if ledger is None:
        yield
        if quoted().guarantee.epsilon:  # else there is nothing to count
            say("No ledger was named (--ledger): nobody keeps count of what was released.")
        return

    def look_up() -> Price:
        found = quoted().in_ledger
        assert found is not None  # there is a ledger
        return found

    before = look_up()
    # As the person called it, but for an address, which may hold a password.
    name = ledger.location if "://" in str(how.ledger) else str(how.ledger)
    try:
        if before.n_new and not before.short:
            asks = before.epsilon and not how.yes and sys.stdin.isatty() and sys.stderr.isatty()
            if asks:
                ask(f"{name}: {_spends(before)}")
        elif before.n_open:
            say(_free(before))
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_after_interrupt(before, look_up)) from None
    except Exception:
        # Whoever is told what went wrong (a disk is full) must hear what was charged as well.
        words = _after_interrupt(before, look_up)
        if words != _NOTHING:
            say(f"{name}: {words}.")
        raise
    if before.n_new:
        say(f"{name}: {_charged(before)}.")
    elif not before.n_open:
        say(_free(before))


def ask(words: str) -> None:
    """Ask the person at the terminal whether to go on; EdgeveilError if not."""
    sys.stderr.write(wrapped(f"{words} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed, nothing was spent")


def _charged(price: Price) -> str:
    """What was charged, what is left, and how far that goes."""
    of_all = price.n_new + price.n_open + price.n_stored
    some = f" for {price.n_new:,} of {of_all:,} rows" if price.n_new < of_all else ""
    left = _in_words(price.left_nano - price.needs_nano)
    more = "" if price.more == math.inf else f", enough for {price.more:,} more like it"
    return f"charged epsilon = {price.epsilon:.15g}{some}; {left} left for {_whom(price)}{more}"


def _after_interrupt(before: Price, look_up: Callable[[], Price]) -> str:
    """What became of the budget, as the ledger has it."""
    try:
        after = look_up()
    except LedgerError:
        return "`edgeveil ledger show` says what was charged"
    again = "the same command again"
    if not before.n_new or after.n_new == before.n_new:
        return _NOTHING
    if after.n_new:
        rows = f"{before.n_new - after.n_new:,} of {before.n_new:,} rows are charged"
        return f"{rows}: {again} goes on with the others"
    if after.n_open:
        return f"the release is charged: {again} costs nothing and goes on with the same noise"
    return f"the release is charged and stored: {again} costs nothing and gives it"


def _print_price(quote: Quote, mechanism: str, n_sources: int, style: Format) -> None:
    """Print what a release would cost and what is left; BudgetError if that is too little."""
    guarantee, found, together = quote.guarantee, quote.in_ledger, "all recipients together"
    rows: list[tuple[str, float, float | None, float | None]] = []
    if found is None:
        whom = {"joint": "each recipient", "public": "everybody"}.get(guarantee.model, "nobody")
        rows.append((whom, guarantee.epsilon, None, None))
        if guarantee.model == "joint" and n_sources > 1:
            rows.append((together, guarantee.pooled_epsilon, None, None))
    else:
        due = [(_whom(found), found.needs_nano, found.left_nano)]
        if found.pooled_left_nano is not None:
            due.append((together, found.pooled_needs_nano, found.pooled_left_nano))
        for whom, needs, left in due:
            after = None if needs > left else (left - needs) / 10**9
            rows.append((whom, needs / 10**9, left / 10**9, after))
    print_table(
        ["for_whom", "epsilon", "left_before", "left_after"],
        rows,
        style=style,
        about={"dry_run": True, "charged_before": found is not None and not found.n_new},
        title=f"price of {mechanism} for {counted(n_sources, 'source')}",
    )
    if found is None:
        say("Dry run: nothing was drawn. No ledger was named (--ledger): nobody keeps count.")
        return
    say(f"Dry run: nothing was charged or drawn. {_free(found)}".rstrip())
    if found.short:
        raise BudgetError(found.short)


def _free(price: Price) -> str:
    """What of it costs nothing, in words."""
    if price.n_new:
        paid = price.n_open + price.n_stored
        return f"{counted(paid, 'row')} of it cost nothing: charged before." * bool(paid)
    if price.n_open:
        return "This release was charged before and not finished: going on costs nothing."
    return "This release is stored already: to get it again costs nothing."


def _spends(price: Price) -> str:
    words, left = f"this spends epsilon = {price.epsilon:.15g}", f"{price.left:.15g}"
    if price.n_new > 1:
        words += f" for each of {price.n_new:,} recipients; {price.whom}, who has the least, has "
        words += f"{left} left"
    else:
        words += f" of the {left} left for {_whom(price)}"
    if price.pooled_left_nano is not None:
        needs, of = _in_words(price.pooled_needs_nano), _in_words(price.pooled_left_nano)
        words += f", and {needs} of the {of} left for all recipients together"
    return f"{words}."


def _whom(price: Price) -> str:
    if price.whom is None:
        return "everybody"
    if price.n_new > 1:
        return f"{price.whom}, who has the least left of {price.n_new:,} recipients"
    return price.whom


def _in_words(nano: int) -> str:
    return f"{nano / 10**9:.15g}"


def print_lists(
    made: Release | Suggestions,
    whose: str,
    columns: list[str],
    lines: Callable[[NodeId], Iterable[tuple[Any, ...]]],
    *,
    style: Format,
    title: str,
    **about: Any,
) -> None:
    """Print the list of every source; if there are several, a column named `whose` says whose.

    People see the columns "first" and "last", the places that the noise leaves open, as one.
    """
    several = len(made.sources) > 1
    own = 0 if several else 1
    columns = [whose, *columns][own:]
    rows = [(source, *line)[own:] for source in made.sources for line in lines(source)]
    if style == "table" and "first" in columns:
        at = columns.index("first")
        columns[at : at + 2] = ["could_be_place"]
        rows = [(*row[:at], _places(*row[at : at + 2]), *row[at + 2 :]) for row in rows]
    whom = counted(len(made.sources), whose) if several else str(made.sources[0])
    print_table(
        columns,
        rows,
        style=style,
        about={
            **({} if several else {whose: made.sources[0]}),
            "guarantee": made.guarantee.as_dict(),
            "says": str(made.guarantee),
            **about,
        },
        title=f"{title} {whom}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )


def _places(first: int | None, last: int | None) -> str | None:
    return f"{first}-{last}" if first != last else None if first is None else str(first)
