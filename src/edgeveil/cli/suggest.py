"""``edgeveil suggest``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from edgeveil.cli import options
from edgeveil.errors import ParameterError


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
    releasing: options.Releasing = options.RELEASING,
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
        Directed graphs: members know who follows them. Edges to a member are then not protected
        from it, and its followers may rank higher.
    out
        File for all lists: .parquet, .json or .csv. A name without a suffix is a folder, for more
        lists than fit into memory.
    per_member
        Folder for one .csv file per member (mode 0600). Show each only to its member.
    mechanism
        How to make the lists: the built-in mechanism, or your own as package.module:Class.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.presentation import show_lists
    from edgeveil.cli.reading import TABLES, check_folder, wanted_nodes
    from edgeveil.cli.runner import Run

    if lists.n_named + all != 1:
        raise ParameterError("say for whom: --member alice, --members FILE or --all, one of them")
    if out is not None and not out.suffix and per_member is not None:
        raise ParameterError("a folder of parts and --per-member do not go together")
    chosen = make_mechanism(
        mechanism,
        "lists",
        settings=settings,
        epsilon=lists.epsilon,
        directed=knows_followers or None,  # otherwise as the graph is, which is not read yet
        knows_followers=knows_followers or None,
    )
    check_folder(per_member, overwrite=releasing.overwrite or releasing.dry_run)
    run = Run.of(releasing, out, *TABLES, "", inputs=(graph, lists.members, *shown.files))
    private = run.read(graph)
    wanted = wanted_nodes(private.nodes, lists.member, lists.members, "--members")
    job = run.prepare_lists(private, chosen, None if all else wanted, lists, shown, per_member)
    show = partial(
        show_lists, words=lists.words, out=out, per_member=per_member, style=releasing.format
    )
    run.release(job, out, show)
