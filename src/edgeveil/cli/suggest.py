"""``edgeveil suggest``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from edgeveil.cli import options
from edgeveil.cli.options import Flag, option
from edgeveil.cli.output import Format, counted, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.suggestions import Suggestions


def suggest(
    graph: options.GraphPath,
    /,
    *,
    lists: options.Lists = options.LISTS,
    all: Annotated[Flag, option("A list for everybody, instead.")] = False,  # noqa: A002  (the option's name)
    candidates: Annotated[
        Path | None, option("File with one id per line: suggest only these.", "all nodes")
    ] = None,
    knows_followers: Annotated[
        Flag,
        option(
            "With --directed: members know who follows them. Then edges to a member are not "
            "protected from it, and its followers may rank higher."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        option(
            "File for all lists (.parquet, .json or .csv), or without a suffix a folder, for more "
            "lists than fit into memory."
        ),
    ] = None,
    per_member: Annotated[
        Path | None,
        option("Folder for one .csv file per member, which only its owner should get (mode 0600)."),
    ] = None,
    mechanism: Annotated[
        options.AnyListMechanism,
        option("How to make the lists: ours, or one of your own by package.module:Class."),
    ] = "suggest",
    settings: options.Settings = None,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Suggest people to members, privately: whom each may know.

    --member, --members or --all says to whom. With --directed: whom to follow.
    Example: edgeveil suggest friends.csv --member alice --epsilon 1 --top 20
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, wanted_nodes
    from edgeveil.cli.releasing import make_release, read_members

    if (lists.member is not None) + (lists.members is not None) + all != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")
    asked: dict[str, Any] = {"epsilon": lists.epsilon, "top": lists.top, "settings": settings}
    choose = partial(make_mechanism, mechanism, "suggestions", **asked)
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, how.nodes, lists.members, candidates), folder=True)
    private, wanted = read_members(graph, lists, how, per_member, ".csv", everybody=all)
    among = candidates and wanted_nodes(private.nodes, None, candidates, "--candidates")
    chosen = choose(
        candidates=among and tuple(among),
        directed=private.directed or None,
        knows_followers=knows_followers or None,
    )
    put_out = partial(_put_out, out=out, per_member=per_member, style=how.format)
    make_release(private, chosen, wanted, how, put_out, out=out)


def _put_out(made: Any, out: Path | None, per_member: Path | None, style: Format) -> None:
    """Write or show the lists, and say how different they are."""
    if out is not None and not out.suffix:  # the folder is written by now
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

    print_lists(
        made,
        "member",
        ["rank", "node", "score", "first", "last", "why"],
        lambda member: [
            (s.rank, s.node, s.score, s.first, s.last, s.why) for s in made.for_member(member)
        ],
        style=style,
        title="suggestions for",
        summary=made.summary,
    )
