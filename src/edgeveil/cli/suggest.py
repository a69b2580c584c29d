"""``edgeveil suggest``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil.cli.options import (
    BUDGET,
    FOLLOWS_FILE,
    Budget,
    Config,
    EngineAddress,
    EngineName,
    EngineWorkers,
    Flag,
    FollowsFile,
    Verbose,
    default,
)
from edgeveil.cli.output import Format, counted, print_table, say

if TYPE_CHECKING:
    from edgeveil.suggestions import Suggestions

__all__ = ["suggest"]


def suggest(
    graph: Path,
    /,
    *,
    member: Annotated[list[str] | None, Parameter(negative="")] = None,
    members: Path | None = None,
    all: Flag = False,  # noqa: A002  (the option's name)
    epsilon: float | None = None,
    top: int = 20,
    candidates: Annotated[Path | None, default("all nodes")] = None,
    knows_followers: Flag = False,
    out: Path | None = None,
    per_member: Path | None = None,
    budget: Budget = BUDGET,
    reading: FollowsFile = FOLLOWS_FILE,
    verbose: Verbose = False,
    engine: EngineName = "local",
    address: EngineAddress = None,
    workers: EngineWorkers = None,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
) -> None:
    """Suggest people to members, privately: whom each may know.

    With --directed: whom to follow.
    Example: edgeveil suggest friends.csv --member alice --epsilon 1 --top 20

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    member
        Id of the member to make a list for; may be given more than once. This, --members or --all
        is needed.
    members
        File with one id per line: a list for each of them.
    all
        A list for everybody.
    epsilon
        Privacy loss of one list; smaller protects more. No default: nobody else can choose it.
    top
        How many people a list names.
    candidates
        File with one id per line: suggest only these.
    knows_followers
        With --directed: members know who follows them. Then edges to a member are not protected
        from it, and its followers may rank higher.
    out
        File for all lists (.parquet, .json or .csv), or without a suffix a folder, for more lists
        than fit into memory.
    per_member
        Folder for one .csv file per member, which only its owner should get (mode 0600).
    format
        table, json or csv.
    """
    from edgeveil.cli.budget import print_price, spending
    from edgeveil.cli.engines import make_engine
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.engine import release_to
    from edgeveil.engine import suggest as make_lists
    from edgeveil.suggestions import member_files

    _check((member is not None) + (members is not None) + all, out, per_member)
    make_mechanism("suggest", "suggestions", epsilon=epsilon, top=top)  # what is wrong is said now
    check_out(out, (graph, reading.nodes, members, candidates), folder=True)
    where = make_engine(engine, address, workers)
    private_graph = read_and_say(graph, reading, counts=verbose)
    nodes = private_graph.nodes
    wanted = nodes if all else wanted_nodes(nodes, member, members)
    among = None if candidates is None else tuple(wanted_nodes(nodes, None, candidates))
    chosen = make_mechanism(
        "suggest",
        "suggestions",
        epsilon=epsilon,
        top=top,
        candidates=among,
        directed=private_graph.directed,
        knows_followers=knows_followers,
    )
    if per_member is not None:
        member_files(wanted)  # what cannot be the name of a file is said before the charge
    if budget.dry_run:
        print_price(private_graph, chosen, wanted, budget, format)
        return
    with spending(private_graph, chosen, wanted, budget) as how:
        with counting("lists") as progress:
            how |= {"engine": where, "progress": progress}
            if out is not None and not out.suffix:
                made: Any = release_to(out, private_graph, chosen, wanted, **how)
            else:
                made = make_lists(private_graph, wanted, mechanism=chosen, **how)
        _put_out(made, out, per_member, format)
    if format != "json" or out is not None:
        say(str(made.guarantee))


def _check(ways: int, out: Path | None, per_member: Path | None) -> None:
    """Refuse options that do not go together."""
    from edgeveil.errors import ParameterError

    if ways != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")


def _put_out(made: Any, out: Path | None, per_member: Path | None, style: Format) -> None:
    """Write or show the lists, and say how different they are."""
    if out is not None and not out.suffix:
        say(f"{out}: {counted(len(made), 'list')}.")
        return
    if out is not None:
        made.write(out)
        say(f"{out}: {counted(len(made.members), 'list')}.")
    if per_member is not None:
        made.write_per_member(per_member)
        say(f"{per_member}: {counted(len(made.members), 'file')}, one per member, for it alone.")
    if out is None and per_member is None:
        _show(made, style)
    say(f"{made.summary}.")
    if len(made.members) == 1 and (remark := made.remark(made.members[0])):
        say(f"{remark[0].upper()}{remark[1:]}.")


def _show(made: Suggestions, style: Format) -> None:
    several = len(made.members) > 1
    rows: list[tuple[Any, ...]] = []
    for member in made.members:
        for s in made.for_member(member):
            places: tuple[Any, ...] = (s.first, s.last)
            if style == "table":
                places = (f"{s.first}-{s.last}" if s.first < s.last else str(s.first),)
            line = (s.rank, s.node, s.score, *places, s.why)
            rows.append((member, *line) if several else line)
    about: dict[str, Any] = {
        "guarantee": made.guarantee.as_dict(),
        "says": str(made.guarantee),
        "summary": made.summary,
    }
    if not several:
        about = {"member": made.members[0], **about}
    whom = counted(len(made.members), "member") if several else str(made.members[0])
    left_open = ["could_be_place"] if style == "table" else ["first", "last"]
    print_table(
        [*(["member"] if several else []), "rank", "node", "score", *left_open, "why"],
        rows,
        style=style,
        about=about,
        title=f"suggestions for {whom}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )
