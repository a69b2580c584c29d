"""``edgeveil report``: a page of lists from the user's own graph."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import edgeveil as ev
from edgeveil._internal.files import filled_folder
from edgeveil._internal.words import counted, date_in_words
from edgeveil.cli import options
from edgeveil.cli.options import required_epsilon
from edgeveil.cli.output import counting, say
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.results.nouns import FRIENDS

if TYPE_CHECKING:
    from edgeveil.cli.runner import Run
    from edgeveil.evaluation.measurements import Result
    from edgeveil.graph.nodes import NodeId
    from edgeveil.jobs import ReleaseJob
    from edgeveil.series.campaign import Current

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
    releasing: options.Releasing = options.RELEASING,
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
    from edgeveil.cli.reading import check_folder
    from edgeveil.cli.runner import Run
    from edgeveil.series.campaign import current_series

    if per_member is None:
        out = out or Path("edgeveil-report.html")
    elif accuracy and out is None:
        raise ParameterError("--accuracy is for the curator: name a page for it with --out")
    check_folder(per_member, overwrite=releasing.overwrite or releasing.dry_run)

    run = Run.of(releasing, out, ".html", ".htm", inputs=(graph, lists.members, *shown.files))
    series = None if run.ledger is None else current_series(run.ledger, releasing.label)
    _check_graph(graph, releasing, series, accuracy=accuracy)
    if series is not None and not lists.n_named and out is not None and per_member is None:
        _write_series_page(series, run, out)
        return
    if lists.n_named != 1:
        raise ParameterError("say for whom: --member alice or --members FILE, one of them")
    name = releasing.label or "this graph"
    job: ReleaseJob | ev.Suggestions
    if series is not None:
        private = run.read(graph) if graph is not None and accuracy else None
        job = _lists_of_series(series, run, lists, shown)
    else:
        assert graph is not None  # refused above
        mechanism = ev.mechanisms.Suggest(epsilon=required_epsilon(lists.epsilon))
        name, private = graph.name, run.read(graph)
        members = _members(private.nodes, lists)
        job = run.prepare_lists(private, mechanism, members, lists, shown, per_member)

    def show(suggestions: ev.Suggestions) -> None:
        suggestions = suggestions.in_words(lists.words)
        if per_member is not None:
            _write_per_member(suggestions, per_member, run.ledger)
        if out is not None:
            _write_page(suggestions, name, out, run.ledger, private if accuracy else None)

    run.release(job, None, show)


def _check_graph(
    graph: Path | None, releasing: options.Releasing, series: Current | None, *, accuracy: bool
) -> None:
    """Refuse to go on without a graph if one is needed."""
    if graph is None and series is None:
        missing = (
            "" if releasing.ledger is None else f"the ledger has no series {releasing.label!r}: "
        )
        raise ParameterError(
            f"{missing}name the graph: edgeveil report friends.csv; only lists of a series "
            "(--ledger, --label) need none"
        )
    if graph is None and accuracy:
        raise ParameterError("--accuracy measures on the graph: name it")


def _lists_of_series(
    series: Current, run: Run, lists: options.Lists, shown: options.Suggestable
) -> ev.Suggestions:
    """The lists of a page, from the label's series."""
    from edgeveil.cli.reading import who_may_be_suggested
    from edgeveil.series.stored_lists import read_series_lists

    assert run.ledger is not None
    label, asked = run.releasing.label, series.mechanism
    if lists.epsilon is not None:
        asked = replace(asked, epsilon=lists.epsilon)
    members = _members(series.history.nodes, lists)
    among = who_may_be_suggested(shown, series.history.nodes)
    suggestions = read_series_lists(run.ledger, label, asked, members, k=lists.k, **among)
    if suggestions is None:
        raise LedgerError(f"the series {label!r} was renewed meanwhile: refresh it first")
    return suggestions


def _members(nodes: ev.NodeSet, lists: options.Lists) -> list[NodeId]:
    """The members whose lists are on the page."""
    from edgeveil.cli.reading import wanted_nodes

    members = list(wanted_nodes(nodes, lists.member, lists.members, "--members"))
    if len(members) > _MOST:
        raise ParameterError(
            f"a page shows at most {_MOST:,} members, got {len(members):,}; `edgeveil suggest` "
            "writes tables of any size"
        )
    return members


def _write_series_page(series: Current, run: Run, out: Path) -> None:
    """Write who was charged for a series, and when."""
    from edgeveil.report import PageData, write_page
    from edgeveil.report.charges import charges_of

    assert run.ledger is not None
    name, epsilon = run.releasing.label or "this graph", series.mechanism.epsilon
    summary = f"Series {name}: epsilon = {epsilon:g} for all lists of a member together"
    if series.manifest.until:
        snapshot = series.history.snapshots[series.manifest.until - 1]
        summary += f", as of its snapshot {snapshot.number} ({date_in_words(snapshot.date or '')})"
    if run.releasing.dry_run:
        say(f"Dry run. {summary}: nobody is charged for its lists.")
        return
    page = PageData(title=f"The series {name}", summary=[f"{summary}."])
    write_page(out, replace(page, charges=charges_of(run.ledger)))
    sys.stdout.write(f"{out.resolve()}\n")


def _write_page(
    suggestions: ev.Suggestions,
    name: str,
    out: Path,
    ledger: ev.Ledger | None,
    truth: ev.Graph | None,
) -> None:
    """Write the page with all lists, and with the curator's part if the graph is given."""
    from edgeveil.report import page_from_releases, write_page

    [first, *others] = suggestions.members
    epsilon = suggestions.guarantee.epsilon
    whom = suggestions.nouns.counted_members(len(suggestions.members)) if others else str(first)
    page = page_from_releases(
        [suggestions],
        truth,
        title=_title(whom, suggestions),
        name=name,
        results=() if truth is None else measured(truth, name, {*EPSILONS, epsilon}, suggestions.k),
        ledger=ledger,
    )
    write_page(out, page)
    if truth is not None:
        say("The page holds the curator's part, which is NOT private: do not pass it on.")
    elif others:
        say("Show each list only to its member: --per-member FOLDER writes a page for each.")
    sys.stdout.write(f"{out.resolve()}\n")


def _write_per_member(suggestions: ev.Suggestions, folder: Path, ledger: ev.Ledger | None) -> None:
    """Write a page for each member, with its own list and what it was charged in all."""
    from edgeveil.report import page_from_releases, write_page
    from edgeveil.results.suggestions import member_files

    files = member_files(suggestions.members, ".html")
    with filled_folder(folder) as place:
        for member, file in zip(suggestions.members, files, strict=True):
            page = page_from_releases(
                [suggestions.only(member)], title=_title(str(member), suggestions)
            )
            if ledger is not None:
                charged = (
                    f"In all, {member} was charged epsilon = "
                    f"{ledger.account(str(member)).charged:g} about connections of others; the cap "
                    f"is {ledger.epsilon:g}."
                )
                page = replace(page, lists=[replace(page.lists[0], charged=charged)])
            write_page(place / file, page)
    say(f"{folder}: {counted(len(suggestions.members), 'page')}. Show each only to its member.")


def _title(whom: str, suggestions: ev.Suggestions) -> str:
    if suggestions.nouns != FRIENDS:
        return f"Suggested to {whom}, privately"
    act = "follow" if suggestions.provenance.parameters.get("directed") else "know"
    return f"Whom {whom} may {act}, privately"


def measured(
    graph: ev.Graph, name: str, epsilons: Iterable[float], k: int, members: int = 150, seed: int = 0
) -> list[Result]:
    """What lists of k find at each epsilon, by members' degree. For the curator only."""
    from edgeveil.evaluation.hits import default_mechanisms, measure_suggestions

    tried = default_mechanisms(sorted(epsilons), directed=graph.directed)
    with counting("measurements", lines=True) as progress:
        results = measure_suggestions(
            name, graph, tried, k=k, per_group=members, seed=seed, progress=progress
        )
    if not results:
        say("Nobody with 5 edges or more has one that was hidden: accuracy is not measured.")
    return results
