"""What suggest, report, rank and embed have in common: price, pay, make, put out.

The price of a release is shown before, asked about on a terminal, and accounted for on Ctrl-C.
"""

from __future__ import annotations

import math
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil import Graph, Ledger, NoiseSource, Release, Suggestions
from edgeveil._files import move
from edgeveil._words import counted, some_of
from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Lists, Releasing
from edgeveil.cli.output import Format, counting, print_table, say, wrapped
from edgeveil.cli.reading import read_and_say, wanted_nodes
from edgeveil.engine import Engine
from edgeveil.engine.folders import make_folder
from edgeveil.engine.making import make
from edgeveil.engine.question import Options, Question, ask
from edgeveil.engine.tasks import ListOptions
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.ledger import Price
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.suggestions import member_files

_MADE = {"scores": "ranking", "embeddings": "embedding", "suggestions": "list"}
_NOTHING = "nothing was charged"

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a release is made with, each of it once and before the graph is read."""

    how: Releasing
    engine: Engine
    ledger: Ledger | None
    noise: NoiseSource | None

    @classmethod
    def of(cls, how: Releasing) -> Setup:
        """Refuse what cannot be used, before any file is read."""
        how.pair  # noqa: B018  (refuse what are not two columns)
        engine = how.make_engine()
        noise = None if how.insecure_seed is None else NoiseSource.insecure(how.insecure_seed)
        if how.skip_exhausted and how.ledger is None:
            raise ParameterError("--skip-exhausted needs --ledger: it knows what is left")
        if how.ledger is not None and noise is not None:
            raise ParameterError("a ledger keeps its own noise secret: leave --insecure-seed out")
        ledger = None if how.ledger is None else Ledger.open(how.ledger)
        return cls(how=how, engine=engine, ledger=ledger, noise=noise)

    def read(self, path: Path) -> Graph:
        """The graph."""
        return read_and_say(path, self.how, counts=self.how.verbose)


def read_members(
    path: Path,
    lists: Lists,
    setup: Setup,
    per_member: Path | None,
    suffix: str,
    *,
    everybody: bool = False,
) -> tuple[Graph, Indices]:
    """The graph, and for whom lists are wanted; what is wrong is said before anything is paid."""
    graph = setup.read(path)
    nodes = graph.nodes
    if everybody:
        wanted = np.arange(len(nodes))
    else:
        wanted = wanted_nodes(nodes, lists.member, lists.members, "--members")
    if per_member is not None:
        member_files(nodes.take(wanted), suffix)  # ids have to be names of files
    return graph, wanted


def make_release(
    graph: Graph,
    mechanism: Mechanism,
    indices: Indices,
    setup: Setup,
    put_out: Callable[[Any], None] = lambda made: None,
    *,
    out: Path | None,
    lists: ListOptions | None = None,
) -> None:
    """Make a release, write it to `out` and put it out, or print its price if only that is asked.

    An `out` without a suffix is a folder, written while the rows are made.
    """
    how, what = setup.how, _MADE[mechanism.gives]
    folder = out if out is not None and not out.suffix else None
    with ExitStack() as bar:
        options: Options = {
            "ledger": setup.ledger,
            "label": how.label,
            "purpose": how.purpose,
            "operator": how.operator,
            "skip_exhausted": how.skip_exhausted,
            "noise": setup.noise,
            "engine": setup.engine,
            "progress": bar.enter_context(counting(f"{what}s")),
        }
        question = ask(
            graph,
            mechanism,
            None,
            options,
            indices=indices,
            lists=lists,
            in_memory=not folder and not how.dry_run,
            only_price=how.dry_run,
        )
        price = None if question.ledger is None else question.price()
        if question.n_left_out:
            say(
                f"{some_of(question.n_left_out, len(indices), 'member', 'were')} left out, because "
                "their budget does not allow it; their stored lists stay readable."
            )
        if how.dry_run:
            _print_price(question, price, how.format)
            return
        # To the end inside of it, so that Ctrl-C is told what was charged.
        with _charging(question, price, how):
            made: Any
            try:
                made = (
                    make_folder(folder, question, price, overwrite=how.overwrite)
                    if folder
                    else make(question, price)
                )
            finally:
                bar.close()
            if out is not None:
                if not folder:
                    made.write(out)
                of = f" of {counted(graph.n_nodes, 'node')}" if mechanism.gives == "scores" else ""
                say(f"{out}: {counted(len(question.indices), what)}{of}.")
            put_out(made)
    if how.format != "json" or out is not None:
        say(str(made.guarantee))


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Where to write the files of a folder: a new one appears when it is whole.

    So the same command can be given again after an interruption.
    """
    if folder.exists():
        yield folder
        return
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder.with_name(f"{folder.name}.unfinished-{secrets.token_hex(4)}")
    try:
        unfinished.mkdir(mode=0o700)
        yield unfinished
        move(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _charging(question: Question, before: Price | None, how: Releasing) -> Iterator[None]:
    """Say what a release will be charged and was charged, also where the work ends early.

    Only where a person sits in front of it, at a terminal, is anything asked.
    """
    ledger = question.ledger
    if ledger is None or before is None:
        yield
        if question.guarantee.epsilon:  # else there is nothing to count
            say("No --ledger given: this release was not counted against any budget.")
        return

    # As the person called it, but for an address, which may hold a password.
    name = ledger.location if "://" in str(how.ledger) else str(how.ledger)
    try:
        if before.n_new and not before.short:
            asks = before.epsilon and not how.yes and sys.stdin.isatty() and sys.stderr.isatty()
            if asks:
                confirm(f"{name}: {_charges(before)}")
        elif before.n_open:
            say(_free(before))
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_after_interrupt(before, question)) from None
    except Exception:
        # Whoever is told what went wrong (a disk is full) must hear what was charged as well.
        words = _after_interrupt(before, question)
        if words != _NOTHING:
            say(f"{name}: {words}.")
        raise
    if before.n_new:
        say(f"{name}: {_charged(before)}.")
    elif not before.n_open:
        say(_free(before))


def confirm(words: str) -> None:
    """Ask the person at the terminal whether to go on; EdgeveilError if not."""
    sys.stderr.write(wrapped(f"{words} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed: nothing was charged")


def _charged(price: Price) -> str:
    """What was charged, what is left, and how far that goes."""
    of_all = price.n_new + price.n_open + price.n_stored
    some = f" for {price.n_new:,} of {of_all:,} rows" if price.n_new < of_all else ""
    left = _in_words(price.left_nano - price.needs_nano)
    more = "" if price.more == math.inf else f", enough for {price.more:,} more like it"
    return f"charged epsilon = {price.epsilon:.15g}{some}; {left} left for {_whom(price)}{more}"


def _after_interrupt(before: Price, question: Question) -> str:
    """What became of the budget, as the ledger has it."""
    try:
        after = question.price()
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


def _print_price(question: Question, found: Price | None, style: Format) -> None:
    """Print the price of a release and what is left; BudgetError if that is too little."""
    guarantee, together, n_sources = (
        question.guarantee,
        "all members together",
        len(question.indices),
    )
    rows: list[tuple[str, float, float | None, float | None]] = []
    if found is None:
        whom = {"joint": "each member", "public": "everybody"}.get(guarantee.model, "nobody")
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
        title=f"price of {question.mechanism.name} for {counted(n_sources, 'source')}",
    )
    if found is None:
        say("Dry run: nothing was drawn. No --ledger given: no budget would be charged.")
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


def _charges(price: Price) -> str:
    """What a release would be charged, and what is left before."""
    epsilon, left = f"{price.epsilon:.15g}", f"{price.left:.15g}"
    if price.whom is None:
        words = f"Charges {epsilon} to everybody. Remaining budget: {left}."
    elif price.n_new > 1:
        words = (
            f"Charges {epsilon} to each of {price.n_new:,} members. Lowest remaining budget: "
            f"{left} (member {price.whom!r})."
        )
    else:
        words = f"Charges {epsilon} to member {price.whom!r}. Remaining budget: {left}."
    if price.pooled_left_nano is not None:
        needs, of = _in_words(price.pooled_needs_nano), _in_words(price.pooled_left_nano)
        words += f" Charges {needs} to all members together. Remaining for them: {of}."
    return words


def _whom(price: Price) -> str:
    if price.whom is None:
        return "everybody"
    if price.n_new > 1:
        return f"{price.whom}, who has the least left of {price.n_new:,} members"
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
