"""``edgeveil refresh``: the weekly job."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgeveil.cli import options
from edgeveil.cli.options import default, required_epsilon
from edgeveil.cli.output import counting, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.series import Refreshed

OF_ALL_LISTS = (
    "Privacy loss of all lists of a member together, in this series; smaller is more private. "
    "Required; there is no safe default."
)


def refresh(
    graph: options.GraphPath,
    /,
    *,
    epsilon: Annotated[options.Loss, options.option(OF_ALL_LISTS)] = None,
    k: options.ListLength = 20,
    shown: options.Suggestable = options.SUGGESTABLE,
    out: Path | None = None,
    per_member: Path | None = None,
    date: Annotated[options.Day | None, default("today")] = None,
    knows_followers: options.Flag = False,
    nodes_from_edges: options.Flag = False,
    accept_loss: options.Flag = False,
    folder: Annotated[Path | None, default("beside the ledger")] = None,
    artifacts: Annotated[Path | None, default("beside the ledger")] = None,
    words: options.Nouns = None,
    releasing: options.Releasing = options.RELEASING,
) -> None:
    """Give everybody a new list from today's graph; charge members once, on joining.

    Run the same command every week. After an interruption, run it again: it goes on
    where it was.
    Example: edgeveil refresh f.csv --nodes members.txt --ledger f.ledger --epsilon 1

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
        Date of the snapshot, such as 2026-11-16 or 2026-11-16T04:00 (UTC). On the same day the same
        graph is the same snapshot, and another one a new snapshot. Refresh by the calendar: two
        snapshots of a day show that the graph changed.
    knows_followers
        Directed graphs: members know who follows them. Edges to a member are then not protected
        from it, and its followers may rank higher.
    nodes_from_edges
        Needed without --nodes: who has any friend at all, and from when until when, is then public.
        Others' lists show exactly when somebody's first friendship begins and the last one ends.
    accept_loss
        Go on although members or edges are over 10 % fewer than in the last snapshot. This is
        refused otherwise (exit code 5), because the file may be cut short.
    folder
        Folder for the history of the series and for what was drawn so far.
    artifacts
        Folder with the files of the ledger; required for PostgreSQL.
    words
        What members and edges are called in the summary: accounts,payments.
    """
    from edgeveil.cli import price_words
    from edgeveil.cli.reading import check_folder, who_may_be_suggested
    from edgeveil.cli.runner import Run
    from edgeveil.results.suggestions import member_files
    from edgeveil.series import prepare_refresh
    from edgeveil.series.campaign import series_folder
    from edgeveil.series.lost_edges import MOST_LOSS

    if releasing.ledger is None:
        raise ParameterError("--ledger is required: it knows who was charged for the series")
    epsilon = required_epsilon(epsilon)
    for place, option in ((out, "--out"), (per_member, "--per-member")):
        if place is not None and (place.suffix or place.is_file()):
            raise ParameterError(f"{option} is a folder, got {place.name!r}")
        check_folder(place, option, overwrite=True)  # it gets a new folder inside
    run = Run.of(releasing, artifacts=artifacts)
    assert run.ledger is not None
    series_folder(run.ledger, releasing.label, folder)  # refuse a label that cannot be its name
    today = run.read(graph)
    if per_member is not None:
        member_files(today.nodes)  # ids have to be names of files
    job = prepare_refresh(
        today,
        epsilon=epsilon,
        knows_followers=knows_followers,
        folder=folder,
        date=date,
        nodes_from_edges=nodes_from_edges,
        most_loss=1.0 if accept_loss else MOST_LOSS,
        **who_may_be_suggested(shown, today.nodes),
        **run.series_options,
    )
    if releasing.dry_run:
        price_words.print_refresh_price(job.price, run.ledger_name, releasing.format)
        return
    question = price_words.refresh_question(job.price, run.ledger_name)
    with run.confirmed(question, partial(price_words.newcomers_charged_since, job)):
        with counting("members") as progress:
            done = job.with_progress(progress).run()
        _write(done, out, done.write, k, releasing.overwrite)
        _write(done, per_member, done.write_per_member, k, releasing.overwrite)
    if out is None and per_member is None:
        say("No list was written (--out, --per-member); edgeveil suggest gives single ones.")
    say(done.summary_in(words))


def _write(
    done: Refreshed, above: Path | None, write: Callable[..., object], k: int, overwrite: bool
) -> None:
    """Write lists to a new folder; one that is there stays, unless it may be replaced."""
    if above is None:
        return
    place = above / f"{done.snapshot:04d}"
    if place.exists() and not overwrite:
        say(f"{place} exists and stays as it is; --overwrite replaces it.")
    else:
        with counting("lists") as progress:
            write(place, k=k, progress=progress, overwrite=overwrite)
    sys.stdout.write(f"{place}\n")
