"""``edgeveil report``: a page of lists from the user's own graph."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import edgeveil as ev
from edgeveil._internal.checks import check_int
from edgeveil._internal.words import counted, date_in_words
from edgeveil.cli import options
from edgeveil.cli.output import counting, say
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.results.nouns import FRIENDS, Nouns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgeveil.evaluation.results import Result

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the picture
_MOST = 1000  # members on one page


def report(
    graph: Annotated[options.GraphPath | None, options.default("none, for a series")] = None,
    /,
    *,
    lists: options.Lists = options.LISTS,
    shown: options.Suggestable = options.SUGGESTABLE,
    accuracy: options.Flag = False,
    out: Annotated[
        Path | None, options.default("edgeveil-report.html, unless --per-member is given")
    ] = None,
    per_member: Path | None = None,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Make a page of private lists: whom members may know, and how sure that is.

    The page shows each list and its guarantee, and with --ledger all charges. The
    lists are those of `edgeveil suggest`: what was charged before costs nothing.
    A series needs no graph and charges nobody: name its --ledger and --label.
    Without a member the page says who was charged for the series, and when.
    Example: edgeveil report friends.csv --member alice --epsilon 1 --out alice.html

    Parameters
    ----------
    accuracy
        Add what lists find at each epsilon, by members' degree, and each list without privacy.
        This part is for the curator only; it is NOT private.
    out
        The page to write: one file that opens offline. With lists of several members, or with a
        ledger, it is for the curator only.
    per_member
        Folder for one page per member with only its own list (mode 0600). Show each only to its
        member.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_release, who_may_be_suggested
    from edgeveil.cli.releasing import make_release, read_for_lists
    from edgeveil.jobs.request import candidates_of
    from edgeveil.jobs.tasks import ListOptions
    from edgeveil.series.campaign import is_series

    of_series = how.ledger is not None and is_series(ev.Ledger.open(how.ledger), how.label)
    if graph is None and not of_series:
        missing = "" if how.ledger is None else f"the ledger has no series {how.label!r}: "
        raise ParameterError(
            f"{missing}name the graph: edgeveil report friends.csv; only lists of a series "
            "(--ledger, --label) need none"
        )
    named = (lists.member is not None) + (lists.members is not None)
    if named != 1 and not (of_series and not named and per_member is None):
        raise ParameterError("say for whom: --member alice or --members FILE, one of them")
    if per_member is None:
        out = out or Path("edgeveil-report.html")
    elif accuracy and out is None:
        raise ParameterError("--accuracy is for the curator: name a page for it with --out")
    Nouns.of(lists.words)  # refuses what are no nouns
    check_release(how, out, ".html", ".htm", inputs=(graph, lists.members, *shown.files))
    if of_series:
        _report_series(graph, lists, shown, accuracy, out, per_member, how)
        return
    assert graph is not None  # refused above
    choose = partial(make_mechanism, "suggest", "suggestions", epsilon=lists.epsilon)
    setup, private, chosen, wanted = read_for_lists(graph, lists, how, choose, per_member, ".html")
    _check_number(len(wanted))

    def write_output(made: ev.Suggestions) -> None:
        made = made.in_words(lists.words)
        if per_member is not None:
            _write_per_member(made, per_member, setup.ledger)
        if out is not None:
            _write_page(made, graph.name, out, setup.ledger, private if accuracy else None)

    among = candidates_of(private.nodes, *who_may_be_suggested(shown, private.nodes))
    wanted_lists = ListOptions(lists.k, among)
    make_release(private, chosen, wanted, setup, write_output, out=None, lists=wanted_lists)


def _check_number(n_members: int) -> None:
    if n_members > _MOST:
        raise ParameterError(
            f"a page shows at most {_MOST:,} members, got {n_members:,}; `edgeveil suggest` "
            "writes tables of any size"
        )


def _report_series(
    graph: Path | None,
    lists: options.Lists,
    shown: options.Suggestable,
    accuracy: bool,
    out: Path | None,
    per_member: Path | None,
    how: options.Releasing,
) -> None:
    """Make the page of a label's series, or of some of its lists. Nobody is charged."""
    from edgeveil.cli.reading import check_folder, wanted_nodes, who_may_be_suggested
    from edgeveil.cli.releasing import Setup
    from edgeveil.report import PageData, write_page
    from edgeveil.report.spending import spending_of
    from edgeveil.series.campaign import current_series
    from edgeveil.series.stored_lists import read_series_lists

    check_int("-k", lists.k, 1, 10_000)
    check_folder(per_member, overwrite=how.overwrite or how.dry_run)
    setup, name = Setup.of(how), how.label or "this graph"
    assert setup.ledger is not None
    if accuracy and graph is None:
        raise ParameterError("--accuracy measures on the graph: name it")
    now = current_series(setup.ledger, how.label)
    if now is None:
        raise LedgerError(f"the series of {name} was renewed meanwhile: refresh it first")
    epsilon, nodes = now.mechanism.epsilon, now.history.nodes
    asked = replace(now.mechanism, epsilon=epsilon if lists.epsilon is None else lists.epsilon)
    about = f"Series {name}: epsilon = {epsilon:g} for all lists of a member together"
    if now.about.until:
        snapshot = now.history.snapshots[now.about.until - 1]
        about += f", as of its snapshot {snapshot.number} ({date_in_words(snapshot.date or '')})"
    if how.dry_run:
        say(f"Dry run. {about}: nobody is charged for its lists.")
        return
    if lists.member is None and lists.members is None:
        assert out is not None
        page = PageData(title=f"The series {name}", summary=[f"{about}."])
        write_page(out, replace(page, spending=spending_of(setup.ledger)))
        sys.stdout.write(f"{out.resolve()}\n")
        return
    wanted = nodes.take(wanted_nodes(nodes, lists.member, lists.members, "--members"))
    _check_number(len(wanted))
    among, pairs = who_may_be_suggested(shown, nodes)
    made = read_series_lists(
        *(setup.ledger, how.label, asked, wanted), k=lists.k, candidates=among, exclude=pairs
    )
    if made is None:
        raise LedgerError(f"the series of {name} was renewed meanwhile: refresh it first")
    made = made.in_words(lists.words)
    if per_member is not None:
        _write_per_member(made, per_member, setup.ledger)
    if out is not None:
        truth = setup.read(graph) if accuracy and graph is not None else None
        _write_page(made, name, out, setup.ledger, truth)
    say(f"{about}: nobody is charged.")
    say(str(made.guarantee))


def _write_page(
    made: ev.Suggestions, name: str, out: Path, ledger: ev.Ledger | None, truth: ev.Graph | None
) -> None:
    """Write the page with all lists, and with the curator's part if the graph is given."""
    from edgeveil.report import page_from_releases, write_page

    [first, *others] = made.members
    epsilon = made.guarantee.epsilon
    page = page_from_releases(
        [made],
        truth,
        title=_title(made.nouns.counted_members(len(made.members)) if others else str(first), made),
        name=name,
        results=() if truth is None else measured(truth, name, {*EPSILONS, epsilon}, made.k),
        ledger=ledger,
    )
    write_page(out, page)
    if truth is not None:
        say("The page holds the curator's part, which is NOT private: do not pass it on.")
    elif others:
        say("Show each list only to its member: --per-member FOLDER writes a page for each.")
    sys.stdout.write(f"{out.resolve()}\n")


def _write_per_member(made: ev.Suggestions, folder: Path, ledger: ev.Ledger | None) -> None:
    """Write a page for each member, with its own list and what it was charged in all."""
    from edgeveil.cli.releasing import filling
    from edgeveil.report import page_from_releases, write_page
    from edgeveil.results.suggestions import member_files

    files = member_files(made.members, ".html")
    with filling(folder) as place:
        for member, file in zip(made.members, files, strict=True):
            page = page_from_releases([made.only(member)], title=_title(str(member), made))
            if ledger is not None:
                charged = (
                    f"In all, {member} was charged epsilon = "
                    f"{ledger.account(str(member)).charged:g} about connections of others; the cap "
                    f"is {ledger.epsilon:g}."
                )
                page = replace(page, lists=[replace(one, charged=charged) for one in page.lists])
            write_page(place / file, page)
    say(f"{folder}: {counted(len(made.members), 'page')}. Show each only to its member.")


def _title(whom: str, made: ev.Suggestions) -> str:
    if made.nouns != FRIENDS:
        return f"Suggested to {whom}, privately"
    act = "follow" if made.provenance.parameters.get("directed") else "know"
    return f"Whom {whom} may {act}, privately"


def measured(
    graph: ev.Graph, name: str, epsilons: Iterable[float], k: int, members: int = 150, seed: int = 0
) -> list[Result]:
    """What lists of k find at each epsilon, by members' degree. For the curator only."""
    from edgeveil.evaluation.hits import default_mechanisms, measure_suggestions

    tried = default_mechanisms(sorted(epsilons), directed=graph.directed)
    with counting("measurements", lines=True) as progress:
        found = measure_suggestions(
            name, graph, tried, k=k, per_group=members, seed=seed, progress=progress
        )
    if not found:
        say("Nobody with 5 edges or more has one that was hidden: accuracy is not measured.")
    return found
