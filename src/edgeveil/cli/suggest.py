"""``edgeveil suggest``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.options import Flag
from edgeveil.cli.output import Format, counted, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.suggestions import Suggestions


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Suggesting(options.Lists):
    """Which lists are to be made, how, and where they go."""

    all: Flag = False
    """A list for everybody, instead."""
    candidates: Annotated[Path | None, options.default("all nodes")] = None
    """File with one id per line: suggest only these."""
    knows_followers: Flag = False
    """With --directed: members know who follows them; such edges are not protected from them."""
    out: Path | None = None
    """File for all lists (.parquet, .json, .csv); without a suffix a folder, for very many."""
    per_member: Path | None = None
    """Folder for one .csv file per member, which only its owner should get (mode 0600)."""
    mechanism: options.AnyListMechanism = "suggest"
    """How to make the lists: ours, or one of your own by package.module:Class."""
    settings: options.Settings = None


def suggest(
    graph: options.GraphPath,
    /,
    *,
    lists: Suggesting = Suggesting(),  # noqa: B008  (frozen)
    how: options.Releasing = options.RELEASING,
) -> None:
    """Suggest people to members, privately: whom each may know.

    --member, --members or --all says to whom. With --directed: whom to follow.
    Example: edgeveil suggest friends.csv --member alice --epsilon 1 --top 20
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, wanted_nodes
    from edgeveil.cli.releasing import make_release, read_members

    out, per_member = lists.out, lists.per_member
    if (lists.member is not None) + (lists.members is not None) + lists.all != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")
    asked: dict[str, Any] = {name: vars(lists)[name] for name in ("epsilon", "top", "settings")}
    choose = partial(make_mechanism, lists.mechanism, "suggestions", **asked)
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, how.nodes, lists.members, lists.candidates), folder=True)
    private, wanted = read_members(graph, lists, how, per_member, ".csv", everybody=lists.all)
    listed = lists.candidates
    among = listed and wanted_nodes(private.nodes, None, listed, "--candidates")
    chosen = choose(
        candidates=among and tuple(among),
        directed=private.directed or None,
        knows_followers=lists.knows_followers or None,
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
