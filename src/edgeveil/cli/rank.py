"""``edgeveil rank``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgeveil._check import whole
from edgeveil.cli import options
from edgeveil.cli.options import Flag, option
from edgeveil.cli.output import counted, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.releases import Release


def rank(
    graph: options.GraphPath,
    /,
    *,
    source: Annotated[
        options.Named, option("Id of a node to rank for; may be given more than once.")
    ] = None,
    sources: Annotated[
        Path | None, option("File with one id per line, instead or beside: rank for all of them.")
    ] = None,
    epsilon: options.Epsilon = None,
    top: Annotated[int, option("How many nodes to show.")] = 20,
    leave_out_source: Annotated[Flag, option("Do not show the source in its own ranking.")] = False,
    leave_out_neighbours: Annotated[
        Flag, option("Do not show whom the source knows already. Joint model only.")
    ] = False,
    candidates: Annotated[
        Path | None, option("File with one id per line: show only these nodes.", "all nodes")
    ] = None,
    out: Annotated[
        Path | None,
        option("File for all scores (.parquet, .json or .csv), instead of showing the first ones."),
    ] = None,
    mechanism: Annotated[
        options.AnyScoreMechanism | None, option(options.WHICH_MECHANISM, "the recommended one")
    ] = None,
    parameters: options.Parameters = options.PARAMETERS,
    directed: options.ArcsAsEdges = False,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Rank the nodes of a graph for one source, privately.

    --source or --sources says for whom.
    Example: edgeveil rank follows.csv --source alice --epsilon 1 --top 20 --format json
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, wanted_nodes
    from edgeveil.cli.releasing import make_release, print_lists, read
    from edgeveil.engine.api import known_to

    whole("--top", top)
    if source is None and sources is None:
        raise ParameterError("say for which node: --source alice or --sources FILE")
    choose = partial(make_mechanism, mechanism, "scores", epsilon=epsilon, **parameters.given())
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, how.nodes, sources, candidates))
    fewer = leave_out_source or leave_out_neighbours or candidates is not None
    if out is not None and fewer:
        raise ParameterError("--out keeps all scores: leave nodes out when showing a ranking")
    private = read(graph, how, directed=directed)
    chosen = choose(n_nodes=private.n_nodes)
    wanted = wanted_nodes(private.nodes, source, sources, "--sources")
    among = None
    if candidates is not None:
        among = wanted_nodes(private.nodes, None, candidates, "--candidates")
    known = partial(known_to, itself=leave_out_source, neighbours=leave_out_neighbours)
    hidden = {node: known(private, chosen, node) for node in wanted if fewer}

    def put_out(made: Release) -> None:
        if out is not None:
            made.write(out)
            rankings = counted(len(made.sources), "ranking")
            say(f"{out}: {rankings} of {counted(len(made.columns), 'node')}.")
            return
        print_lists(
            made,
            "source",
            ["rank", "node", "score", "uncertainty", "first", "last"],
            lambda one: made.ranking(top, one, without=hidden.get(one, ()), candidates=among),
            style=how.format,
            title=f"{made.provenance.mechanism} for",
        )

    make_release(private, chosen, wanted, how, put_out, out=out)
