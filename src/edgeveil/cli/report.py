"""``edgeveil report``: the page of one's own graph."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import Flag, default
from edgeveil.cli.output import counted, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgeveil.evaluation.results import Result
    from edgeveil.graph import Directed, Graph
    from edgeveil.suggestions import Suggestions

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the picture
_MOST = 1000  # members on one page


def report(
    graph: Path,
    /,
    *,
    member: Annotated[list[str] | None, Parameter(negative="")] = None,
    members: Path | None = None,
    epsilon: float | None = None,
    top: int = 20,
    accuracy: Flag = False,
    out: Annotated[
        Path | None, default("edgeveil-report.html, unless --per-member is given")
    ] = None,
    per_member: Path | None = None,
    budget: options.Budget = options.BUDGET,
    reading: options.GraphFile = options.GRAPH_FILE,
    directed: Flag = False,
    shown: options.Shown = options.SHOWN,
) -> None:
    """Make a page of private lists: whom members may know, and how sure that is.

    The page shows each list and its guarantee, and with --ledger what was spent. These are the
    lists of `edgeveil suggest`: a list that a ledger was charged for costs nothing here.
    Example: edgeveil report friends.csv --member alice --epsilon 1 --out alice.html

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    member
        Id of the member to make a list for; may be given more than once. This or --members is
        needed.
    members
        File with one id per line: a list for each of them.
    epsilon
        Privacy loss of one list; smaller protects more. No default: nobody else can choose it.
    top
        How many people a list names.
    accuracy
        Add the curator's part: what lists find at each epsilon, by members' degree, and each list
        beside the one without privacy. It is NOT private: keep such a page.
    out
        The page to write: one file, opens offline. With lists of several members, or a ledger, it
        is for the curator.
    per_member
        Folder for one page per member with its own list and nothing else, which only its owner
        should get (mode 0600).
    directed
        Keep directions: a line, or a row and column of a matrix, says that the first follows the
        second.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_place, check_places, read_and_say, wanted_nodes
    from edgeveil.cli.releasing import make_release
    from edgeveil.errors import ParameterError
    from edgeveil.suggestions import member_files

    if (member is None) == (members is None):
        raise ParameterError("say for whom: --member alice or --members FILE, one of them")
    choose = partial(make_mechanism, "suggest", "suggestions", epsilon=epsilon, top=top)
    choose()  # what is wrong with the options is said before a file is read
    if per_member is not None:
        check_places(per_member)
        if accuracy and out is None:
            raise ParameterError("--accuracy is the curator's: name a page for it with --out")
    else:
        out = out or Path("edgeveil-report.html")
    if out is not None:
        if out.suffix not in (".html", ".htm"):
            raise ParameterError(f"--out must end in .html, got {out.name!r}")
        check_place(out)
    arcs: Directed = "keep" if directed else False
    private_graph = read_and_say(graph, reading, directed=arcs, counts=shown.verbose)
    wanted = wanted_nodes(private_graph.nodes, member, members, "--members")
    if len(wanted) > _MOST:
        raise ParameterError(
            f"a page shows at most {_MOST:,} members, got {len(wanted):,}; `edgeveil suggest` "
            "writes tables of any size"
        )
    if per_member is not None:
        member_files(wanted, ".html")  # what cannot be the name of a file is said before the charge

    def put_out(made: Suggestions) -> None:
        if per_member is not None:
            _write_per_member(made, per_member, budget.ledger)
        if out is not None:
            truth = private_graph if accuracy else None
            _write_page(made, graph.name, out, budget.ledger, truth)

    chosen = choose(directed=private_graph.directed)
    make_release(private_graph, chosen, wanted, budget, put_out, out=None, style=shown.format)


def _write_page(
    made: Suggestions, name: str, out: Path, ledger: options.LedgerAt | None, truth: Graph | None
) -> None:
    """Write the page with all lists, and with the curator's part if the graph is given."""
    from edgeveil.ledger import Ledger
    from edgeveil.report import page_from_releases, write_page

    [first, *others] = made.members
    top, epsilon = made.values.shape[1], made.guarantee.epsilon
    found = [] if truth is None else measured(truth, name, {*EPSILONS, epsilon}, top)
    page = page_from_releases(
        [made],
        truth,
        title=_title(f"{len(made.members):,} members" if others else str(first), made),
        name=name,
        results=found,
        ledger=None if ledger is None else Ledger.open(ledger),
    )
    write_page(out, page)
    if truth is not None:
        say("The page holds the curator's part, which is NOT private: do not pass it on.")
    elif others:
        say("Each list is for its member alone: --per-member FOLDER writes a page for each.")
    sys.stdout.write(f"{out.resolve()}\n")


def _write_per_member(made: Suggestions, folder: Path, ledger: options.LedgerAt | None) -> None:
    """Write a page for each member, with its own list and what it has learnt in all."""
    from edgeveil.ledger import Ledger
    from edgeveil.report import page_from_releases, write_page
    from edgeveil.suggestions import member_files

    opened = None if ledger is None else Ledger.open(ledger)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for member, file in zip(made.members, member_files(made.members, ".html"), strict=True):
        spent = []
        if opened is not None:
            account = opened.account(str(member))
            spent = [
                f"In all, {member} has been told things at epsilon = {account.spent:g} about "
                f"connections of others; at most {opened.epsilon:g} is allowed."
            ]
        own, title = made.only(member), _title(str(member), made)
        page = page_from_releases([own], title=title, summary=spent)
        write_page(folder / file, page)
    say(f"{folder}: {counted(len(made.members), 'page')}, one per member, for it alone.")


def _title(whom: str, made: Suggestions) -> str:
    act = "follow" if made.provenance.parameters.get("directed") else "know"
    return f"Whom {whom} may {act}, privately"


def measured(
    graph: Graph,
    name: str,
    epsilons: Iterable[float],
    k: int,
    *,
    members: int = 150,
    seed: int = 0,
) -> list[Result]:
    """What lists of k find at each epsilon, by members' degree. For the curator only."""
    from edgeveil.cli.progress import counting
    from edgeveil.evaluation.suggesting import default_mechanisms, measure_suggestions

    with counting("lines measured", lines=True) as progress:
        found = measure_suggestions(
            name,
            graph,
            default_mechanisms(sorted(epsilons), k, directed=graph.directed),
            k=k,
            per_group=members,
            seed=seed,
            progress=progress,
        )
    if not found:
        say("Nobody with 5 friends or more has one that was hidden: accuracy is not measured.")
    return found
