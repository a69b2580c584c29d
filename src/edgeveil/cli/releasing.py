"""What suggest, report, rank and embed have in common: price, charge, make and output a release.

The price is shown first and confirmed on a terminal; on Ctrl-C, what was charged is reported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil import Graph, Ledger, NoiseSource, Release, Suggestions
from edgeveil._internal.checks import check_int
from edgeveil._internal.files import new_folder
from edgeveil._internal.words import counted, some_of
from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Lists, Releasing
from edgeveil.cli.output import Format, counting, print_table, say, wrapped
from edgeveil.cli.reading import check_folder, read_and_say, wanted_nodes
from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs import Engine
from edgeveil.jobs.job import ReleaseJob, prepare
from edgeveil.jobs.tasks import ListOptions
from edgeveil.ledger import Price
from edgeveil.mechanisms import Mechanism
from edgeveil.results.suggestions import member_files

# By what a mechanism gives: the word for a row, and for whom or what it is.
_ROWS = {
    "scores": "ranking",
    "embeddings": "embedding",
    "suggestions": "list",
    "predictions": "prediction",
}
_FOR = {"scores": "source", "embeddings": "source", "suggestions": "member"}
_NOTHING = "nothing was charged"
_AGAIN = "the same command again"

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Ledger, engine and noise of a release, set up once, before the graph is read."""

    how: Releasing
    engine: Engine
    ledger: Ledger | None
    noise: NoiseSource | None

    @classmethod
    def of(cls, how: Releasing, artifacts: Path | None = None) -> Setup:
        """Refuse options that cannot be used, before any file is read."""
        how.pair  # noqa: B018  (refuse what are not two columns)
        engine = how.make_engine()
        noise = None if how.insecure_seed is None else NoiseSource.insecure(how.insecure_seed)
        if how.skip_exhausted and how.ledger is None:
            raise ParameterError("--skip-exhausted needs --ledger: it knows what is left")
        if how.ledger is not None and noise is not None:
            raise ParameterError("a ledger keeps its own noise secret: leave --insecure-seed out")
        ledger = None if how.ledger is None else Ledger.open(how.ledger, artifacts=artifacts)
        return cls(how=how, engine=engine, ledger=ledger, noise=noise)

    def read(self, path: Path) -> Graph:
        """The graph."""
        return read_and_say(path, self.how, counts=self.how.verbose)

    @property
    def ledger_name(self) -> str:
        """The ledger as given on the command line, but an address without its password."""
        assert self.ledger is not None
        return self.ledger.location if "://" in str(self.how.ledger) else str(self.how.ledger)


def read_for_lists(
    path: Path,
    lists: Lists,
    how: Releasing,
    choose: Callable[..., Mechanism],
    per_member: Path | None,
    suffix: str,
    *,
    everybody: bool = False,
) -> tuple[Setup, Graph, Mechanism, Indices]:
    """The graph, the mechanism, and the members to make lists for; nothing is charged yet."""
    check_int("-k", lists.k, 1, 10_000)
    chosen = choose(directed=how.directed == "keep" or None)
    check_folder(per_member, overwrite=how.overwrite or how.dry_run)
    setup = Setup.of(how)
    graph = setup.read(path)
    if graph.directed and how.directed != "keep":  # a graph folder knows that it has directions
        chosen = choose(directed=True)
    wanted = np.arange(graph.n_nodes)
    if not everybody:
        wanted = wanted_nodes(graph.nodes, lists.member, lists.members, "--members")
    if per_member is not None:
        member_files(graph.nodes.take(wanted), suffix)  # ids have to be names of files
    return setup, graph, chosen, wanted


def make_release(
    graph: Graph,
    mechanism: Mechanism,
    indices: Indices,
    setup: Setup,
    write_output: Callable[[Any], None] = lambda made: None,
    *,
    out: Path | None,
    lists: ListOptions | None = None,
    make_all: Callable[[ReleaseJob], Any] | None = None,
) -> None:
    """Make a release and write or print it; in a dry run, print only its price.

    An `out` without a suffix is a folder, written while the rows are made. `make_all` makes
    what is for everybody at once; the one row of the job stands for it.
    """
    how, what = setup.how, _ROWS[mechanism.output]
    if make_all and mechanism.output == "embeddings":
        what = "row"
    folder = out if out is not None and not out.suffix else None
    with ExitStack() as bar:
        job = prepare(
            graph,
            mechanism,
            None,
            indices=indices,
            lists=lists,
            ledger=setup.ledger,
            label=how.label,
            skip_exhausted=how.skip_exhausted,
            purpose=how.purpose,
            operator=how.operator,
            noise=setup.noise,
            engine=setup.engine,
            progress=bar.enter_context(counting(f"{what}s")),
        )
        n_rows, n_left_out = len(job.request.indices), job.request.n_left_out
        if n_left_out:
            say(
                f"{some_of(n_left_out, len(indices), 'member', 'were')} left out, because "
                "their budget does not allow it; their stored lists stay readable."
            )
        if how.dry_run:
            _print_price(job, how.format, everybody=make_all is not None)
            return
        # All of the work is inside this block, so that Ctrl-C reports what was charged.
        with _charging(job, setup):
            made: Any
            try:
                if folder:
                    made = job.run_to(folder, overwrite=how.overwrite)
                else:
                    made = make_all(job) if make_all else job.run()
            finally:
                bar.close()
            of = f" of {counted(graph.n_nodes, 'node')}" if mechanism.output == "scores" else ""
            n_rows = len(made.sources) if make_all else n_rows
            deliver(made, out, f"{counted(n_rows, what)}{of}", write_output)
    say_guarantee(made, out, how)


def deliver(made: Any, out: Path | None, what: str, write_output: Callable[[Any], None]) -> None:
    """Write a release to a file, unless it is in a folder already, and print it."""
    if out is not None:
        if out.suffix:
            made.write(out)
        say(f"{out}: {what}.")
    write_output(made)


def say_guarantee(made: Any, out: Path | None, how: Releasing) -> None:
    """Print what a release protects; JSON on standard output has it already."""
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
    with new_folder(folder) as unfinished:
        yield unfinished


@contextmanager
def _charging(job: ReleaseJob, setup: Setup) -> Iterator[None]:
    """Print the charge of a release before and after, even if the work ends early."""
    before = job.price.in_ledger
    if before is None:
        yield
        if job.price.guarantee.epsilon:  # else there is nothing to count
            say("No --ledger given: this release was not counted against any budget.")
        return
    name = setup.ledger_name
    try:
        if before.n_new and not before.refusal and before.epsilon:
            confirm(f"{name}: {_charges(before)}", setup.how)
        elif before.n_open and not before.n_new:
            say(_free(before))
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_after_interrupt(before, job)) from None
    except Exception:
        # With an error (a full disk, for instance), also report what was charged.
        words = _after_interrupt(before, job)
        if words != _NOTHING:
            say(f"{name}: {words}.")
        raise
    if before.n_new:
        say(f"{name}: {_charges(before, done=True)} {_free(before)}".rstrip())
    elif not before.n_open:
        say(_free(before))


def confirm(words: str, how: Releasing | None = None) -> None:
    """On a terminal, ask the user whether to go on; EdgeveilError if not."""
    if (how is not None and how.yes) or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    sys.stderr.write(wrapped(f"{words} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError("not confirmed: nothing was charged")


def _after_interrupt(before: Price, job: ReleaseJob) -> str:
    """What was charged, according to the ledger."""
    try:
        after = job.request.price()
    except LedgerError:
        return "`edgeveil ledger show` says what was charged"
    if not before.n_new or after.n_new == before.n_new:
        return _NOTHING
    if after.n_new:
        rows = some_of(before.n_new - after.n_new, before.n_new, "row", "are")
        return f"{rows} charged: {_AGAIN} goes on with the others"
    if after.n_open:
        return f"the release is charged: {_AGAIN} costs nothing and goes on with the same noise"
    return f"the release is charged and stored: {_AGAIN} costs nothing and gives it"


def _print_price(job: ReleaseJob, style: Format, *, everybody: bool = False) -> None:
    """Print the price of a release and what is left; BudgetError if that is too little."""
    claim, found, request = job.price.guarantee, job.price.in_ledger, job.request
    together, n_rows = "all members together", len(request.indices)
    due: list[tuple[str, float, float | None]]
    whose = "everybody" if everybody else counted(n_rows, _FOR[request.mechanism.output])
    if found is None:
        whom = {"joint": "each member", "public": "everybody"}.get(claim.model, "nobody")
        due = [(whom, claim.epsilon, None)]
        if claim.model == "joint" and n_rows > 1:
            due.append((together, claim.pooled_epsilon, None))
    else:
        due = [(_whom(found), found.epsilon, found.left)]
        if found.pooled_left_nano is not None:
            nano = found.pooled_needs_nano, found.pooled_left_nano
            due.append((together, nano[0] / 10**9, nano[1] / 10**9))
    print_table(
        ["for_whom", "epsilon", "left_before", "left_after"],
        [(*row, _rest(*row[1:])) for row in due],
        style=style,
        about={"dry_run": True, "charged_before": found is not None and not found.n_new},
        title=f"price of {request.mechanism.name} for {whose}",
    )
    if found is None:
        say("Dry run: nothing was drawn. No --ledger given: no budget would be charged.")
        return
    say(f"Dry run: nothing was charged or drawn. {_free(found)}".rstrip())
    if found.refusal:
        raise BudgetError(found.refusal)


def _rest(needs: float, left: float | None) -> float | None:
    """What is left after the charge, if it is enough; without binary rounding errors."""
    return None if left is None or needs > left else round(left - needs, 9)


def _free(price: Price) -> str:
    """What charges nothing, in words."""
    if price.n_new:
        paid = price.n_open + price.n_stored
        return f"{counted(paid, 'row', 'cost')} nothing: charged before." * bool(paid)
    if price.n_open:
        return "This release was charged before and not finished: going on costs nothing."
    return "This release is stored already: to get it again costs nothing."


def _charges(price: Price, *, done: bool = False) -> str:
    """The charge and the remaining budget, in words: before the charge, or after it (`done`)."""
    verb = "Charged" if done else "Charges"
    left = f"{(price.left_nano - price.needs_nano * done) / 10**9:.15g}"
    whom = "everybody" if price.whom is None else f"member {price.whom!r}"
    remains = f"Remaining budget: {left}"
    if price.whom is not None and price.n_new > 1:
        remains = f"Lowest remaining budget: {left} ({whom})"
        whom = f"each of {price.n_new:,} members"
    words = f"{verb} {price.epsilon:.15g} to {whom}. {remains}"
    if done and price.repeats_left != math.inf:
        words += f", enough for {price.repeats_left:,} more like it"
    if price.pooled_left_nano is not None:
        needs, of = price.pooled_needs_nano, price.pooled_left_nano
        words += f". {verb} {needs / 10**9:.15g} to all members together. Remaining for them: "
        words += f"{(of - needs * done) / 10**9:.15g}"
    return f"{words}."


def _whom(price: Price) -> str:
    if price.whom is None or price.n_new <= 1:
        return price.whom or "everybody"
    return f"{price.whom}, who has the least left of {price.n_new:,} members"


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
    """Print the list of every source; if there are several, a column named `whose` says whose."""
    several = len(made.sources) > 1
    first, own = made.sources[0], 0 if several else 1
    many = counted(len(made.sources), whose)
    if isinstance(made, Suggestions):
        many = made.nouns.counted_members(len(made.members))
    print_table(
        [whose, *columns][own:],
        [(source, *line)[own:] for source in made.sources for line in lines(source)],
        style=style,
        about={
            **({} if several else {whose: first}),
            "guarantee": made.guarantee.as_dict(),
            "says": str(made.guarantee),
            **about,
        },
        title=f"{title} {many if several else first}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )
