"""``edgeveil suggest``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from edgeveil._internal.words import counted
from edgeveil.cli import options
from edgeveil.cli.output import say
from edgeveil.errors import ParameterError
from edgeveil.results.suggestions import Suggestion


def suggest(
    graph: options.GraphPath,
    /,
    *,
    lists: options.Lists = options.LISTS,
    all: options.Flag = False,  # noqa: A002  (the option's name)
    shown: options.Suggestable = options.SUGGESTABLE,
    knows_followers: options.Flag = False,
    out: Path | None = None,
    per_member: Path | None = None,
    mechanism: options.AnyListMechanism = "suggest",
    settings: options.Settings = None,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Suggest to members whom they may know, privately.

    Name the members with --member, --members or --all. With --directed keep the
    lists say whom to follow.
    Example: edgeveil suggest friends.csv --member alice --epsilon 1 -k 20

    Parameters
    ----------
    all
        Make a list for everybody.
    knows_followers
        With --directed keep: members know who follows them. Edges to a member are then not
        protected from it, and its followers may rank higher.
    out
        File for all lists: .parquet, .json or .csv. A name without a suffix is a folder, for more
        lists than fit into memory.
    per_member
        Folder for one .csv file per member (mode 0600). Show each only to its member.
    mechanism
        How to make the lists: the built-in mechanism, or your own as package.module:Class.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import TABLES, check_release, who_may_be_suggested
    from edgeveil.cli.releasing import filling, make_release, print_lists, read_for_lists
    from edgeveil.cli.series_lists import write_series_lists
    from edgeveil.jobs.request import candidates_of
    from edgeveil.jobs.tasks import ListOptions
    from edgeveil.results.nouns import Nouns
    from edgeveil.series import had_series

    if (lists.member is not None) + (lists.members is not None) + all != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")
    nouns = Nouns.of(lists.words)
    check_release(how, out, *TABLES, "", inputs=(graph, lists.members, *shown.files))
    choose = partial(
        make_mechanism,
        mechanism,
        "suggestions",
        settings=settings,
        epsilon=lists.epsilon,
        knows_followers=knows_followers or None,
    )
    setup, private, chosen, wanted = read_for_lists(
        graph, lists, how, choose, per_member, ".csv", everybody=all
    )
    among = who_may_be_suggested(shown, private.nodes)

    def write_output(made: Any) -> None:
        if out is not None and not out.suffix:  # a folder: its lists are not in memory
            return
        made = made.in_words(nouns)
        if per_member is not None:
            with filling(per_member) as place:
                made.write_per_member(place)
            files = counted(len(made.members), "file")
            say(f"{per_member}: {files}. Show each only to its member.")
        if out is None and per_member is None:
            columns = ["rank", "node", "score", "common", "chance", "why"]
            line: Callable[[Suggestion], tuple[Any, ...]] = attrgetter(*columns)
            if how.format == "table":  # for people
                columns, line = ["rank", "node", "strength", "why", "by_chance"], _for_people
            print_lists(
                made,
                nouns.member if how.format == "table" else "member",
                columns,
                lambda v: map(line, made.for_member(v)),
                style=how.format,
                title="suggestions for",
                summary=made.summary,
            )
        say(f"{made.summary}.")
        if len(made.members) == 1 and (remark := made.remark(made.members[0])):
            say(f"{remark[0].upper()}{remark[1:]}.")

    if setup.ledger is not None and had_series(setup.ledger, how.label):
        members = None if all else private.nodes.take(wanted)
        write_series_lists(setup, chosen, members, write_output, out, lists.k, *among)
        return
    options_of_lists = ListOptions(lists.k, candidates_of(private.nodes, *among))
    make_release(private, chosen, wanted, setup, write_output, out=out, lists=options_of_lists)


def _for_people(line: Suggestion) -> tuple[Any, ...]:
    """One row; a name that does not stand out has a reason, and no word for its strength."""
    strength = line.strength if line.stands_out else None
    return line.rank, line.node, strength, line.why, line.by_chance
