"""``edgeveil refresh``: the weekly job."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil._check import whole
from edgeveil._words import some_of
from edgeveil.cli import options
from edgeveil.cli.options import Day, default
from edgeveil.cli.output import counting, print_table, say
from edgeveil.errors import BudgetError, ParameterError

if TYPE_CHECKING:
    from edgeveil.series import Refreshed, RefreshPrice


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a series is made with, and where its lists go.

    Parameters
    ----------
    k
        Length of a list, at most.
    out
        Folder for everybody's lists. Every snapshot gets a new folder in it, such as lists/0007.
    per_member
        Folder for one .csv file per member (mode 0600), in a new folder for every snapshot. Show
        each only to its member.
    date
        Date of the snapshot. The same graph with the same date is the same snapshot.
    knows_followers
        With --directed keep: members know who follows them. Edges to a member are then not
        protected from it, and its followers may rank higher.
    folder
        Folder for the history of the series and for what was drawn so far.
    artifacts
        Folder with the files of the ledger; required for PostgreSQL.
    """

    epsilon: options.Epsilon = None
    k: options.Length = 20
    out: Path | None = None
    per_member: Path | None = None
    date: Annotated[Day | None, default("today")] = None
    knows_followers: options.Flag = False
    folder: Annotated[Path | None, default("beside the ledger")] = None
    artifacts: Annotated[Path | None, default("beside the ledger")] = None


def refresh(
    graph: options.GraphPath,
    /,
    *,
    wanted: Wanted = Wanted(),  # noqa: B008  (frozen)
    how: options.Releasing = options.RELEASING,
) -> None:
    """Give everybody a new list from today's graph; members pay once, when they join.

    Run the same command every week. After an interruption, run it again: it goes on
    where it was.
    Example: edgeveil refresh friends.csv --label friends --ledger f.ledger --epsilon 1 --out lists
    """
    from edgeveil.cli.reading import check_folder
    from edgeveil.cli.releasing import Setup, confirm
    from edgeveil.mechanisms import Suggest
    from edgeveil.series import price_refresh
    from edgeveil.series import refresh as bring_up_to_date
    from edgeveil.series.campaign import series_folder
    from edgeveil.suggestions import member_files

    if how.ledger is None:
        raise ParameterError("--ledger is required: it knows who has paid for the series")
    if wanted.epsilon is None:
        raise ParameterError("--epsilon is required (for example --epsilon 1)")
    Suggest(epsilon=wanted.epsilon)  # refuse an epsilon that is none
    whole("-k", wanted.k, 1, 10_000)
    for place, option in ((wanted.out, "--out"), (wanted.per_member, "--per-member")):
        if place is not None and (place.suffix or place.is_file()):
            raise ParameterError(f"{option} is a folder, got {place.name!r}")
        check_folder(place, option, overwrite=True)  # it gets a new folder inside
    setup = Setup.of(how, wanted.artifacts)
    assert setup.ledger is not None
    series_folder(setup.ledger, how.label, wanted.folder)  # refuse a label that cannot be its name
    today = setup.read(graph)
    if wanted.per_member is not None:
        member_files(today.nodes)  # ids have to be names of files
    series: dict[str, Any] = {
        "ledger": setup.ledger,
        "epsilon": wanted.epsilon,
        "label": how.label,
        "folder": wanted.folder,
        "knows_followers": wanted.knows_followers,
    }
    price = price_refresh(today, **series)
    if how.dry_run:
        _print_price(price, how, setup.ledger_name)
        return
    if price.n_newcomers:
        confirm(
            f"{setup.ledger_name}: {some_of(price.n_newcomers, price.n_members, 'member')} would "
            f"be charged epsilon = {price.epsilon:g} each, once for all lists of the series; "
            f"{price.least_left:g} is left for whoever has the least.",
            how,
        )
    try:
        with counting("members") as progress:
            done = bring_up_to_date(
                today,
                **series,
                date=None if wanted.date is None else wanted.date.isoformat(),
                engine=setup.engine,
                progress=progress,
                purpose=how.purpose,
                operator=how.operator,
            )
        with counting("lists") as progress:
            _put_out(done, wanted, progress, overwrite=how.overwrite)
    except KeyboardInterrupt:
        again = "the same command again goes on where it was, and nobody pays twice"
        raise KeyboardInterrupt(again) from None
    say(done.summary)


def _print_price(price: RefreshPrice, how: options.Releasing, name: str) -> None:
    """Print what a refresh would charge; BudgetError if nobody can pay."""
    columns = ["members", "newcomers", "left_out", "epsilon_each", "least_left"]
    row = (
        *(price.n_members, price.n_newcomers, price.n_left_out),
        *(price.epsilon, price.least_left),
    )
    title = f"price of a refresh, {name}"
    print_table(columns, [row], style=how.format, about={"dry_run": True}, title=title)
    say("Dry run: nothing was merged, charged or drawn.")
    if price.n_left_out == price.n_members:
        raise BudgetError("the budget of nobody allows a series")


def _put_out(
    done: Refreshed, wanted: Wanted, progress: Callable[[int, int], None], *, overwrite: bool
) -> None:
    """Write the lists to new folders; those that are there stay, unless they may be replaced."""
    if wanted.out is None and wanted.per_member is None:
        say("No list was written (--out, --per-member); edgeveil suggest gives single ones.")
    for above, write in ((wanted.out, done.write), (wanted.per_member, done.write_per_member)):
        if above is None:
            continue
        place = above / f"{done.snapshot:04d}"
        if place.exists() and not overwrite:
            say(f"{place} exists and stays as it is; --overwrite replaces it.")
        else:
            if place.exists():
                shutil.rmtree(place)
            write(place, wanted.k, progress)
        sys.stdout.write(f"{place}\n")
