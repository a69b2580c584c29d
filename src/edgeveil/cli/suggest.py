"""``edgeveil suggest``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import Flag, default
from edgeveil.cli.output import Format, counted, say

if TYPE_CHECKING:
    from edgeveil.graph import Directed
    from edgeveil.nodes import NodeId
    from edgeveil.suggestions import Suggestions


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
    mechanism: Annotated[options.AnyListMechanism, default("suggest")] = "suggest",
    settings: options.Settings = None,
    budget: options.Budget = options.BUDGET,
    reading: options.GraphFile = options.GRAPH_FILE,
    directed: Flag = False,
    engine: options.EngineChoice = options.ENGINE,
    shown: options.Shown = options.SHOWN,
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
    mechanism
        How to make the lists: ours, or one of your own by package.module:Class.
    directed
        Keep directions: a line, or a row and column of a matrix, says that the first follows the
        second.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, check_places, read_and_say, wanted_nodes
    from edgeveil.cli.releasing import make_release
    from edgeveil.errors import ParameterError
    from edgeveil.suggestions import member_files

    if (member is not None) + (members is not None) + all != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")
    choose = partial(
        make_mechanism, mechanism, "suggestions", epsilon=epsilon, top=top, settings=settings
    )
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, reading.nodes, members, candidates), folder=True)
    if per_member is not None:
        check_places(per_member)
    where = engine.make()
    arcs: Directed = "keep" if directed else False
    private_graph = read_and_say(graph, reading, directed=arcs, counts=shown.verbose)
    nodes = private_graph.nodes
    wanted = nodes if all else wanted_nodes(nodes, member, members, "--members")
    among = wanted_nodes(nodes, None, candidates, "--candidates") if candidates else None
    chosen = choose(
        candidates=None if among is None else tuple(among),
        directed=private_graph.directed or None,
        knows_followers=knows_followers or None,
    )
    if per_member is not None:
        member_files(wanted)  # what cannot be the name of a file is said before the charge
    put_out = partial(_put_out, out=out, per_member=per_member, style=shown.format)
    make_release(
        private_graph, chosen, wanted, budget, put_out, out=out, style=shown.format, engine=where
    )


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
    from edgeveil.cli.releasing import print_lists

    def lines(member: NodeId) -> Iterator[tuple[Any, ...]]:
        for s in made.for_member(member):
            places: tuple[Any, ...] = (s.first, s.last)
            if style == "table":
                places = (f"{s.first}-{s.last}" if s.first < s.last else str(s.first),)
            yield s.rank, s.node, s.score, *places, s.why

    left_open = ["could_be_place"] if style == "table" else ["first", "last"]
    columns = ["rank", "node", "score", *left_open, "why"]
    about = {"summary": made.summary}
    print_lists(made, "member", columns, lines, style=style, title="suggestions for", about=about)
