"""``edgeveil rank``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil._check import whole
from edgeveil.cli import options
from edgeveil.cli.options import Flag, default
from edgeveil.cli.output import Format, counted, say

if TYPE_CHECKING:
    from edgeveil.nodes import NodeId
    from edgeveil.releases import Release


def rank(
    graph: Path,
    /,
    *,
    source: Annotated[list[str] | None, Parameter(negative="")] = None,
    sources: Path | None = None,
    epsilon: float | None = None,
    top: int = 20,
    leave_out_source: Flag = False,
    leave_out_neighbours: Flag = False,
    candidates: Annotated[Path | None, default("all nodes")] = None,
    out: Path | None = None,
    mechanism: Annotated[options.AnyScoreMechanism | None, default("the recommended one")] = None,
    parameters: options.Parameters = options.PARAMETERS,
    budget: options.Budget = options.BUDGET,
    reading: options.GraphFile = options.GRAPH_FILE,
    directed: options.ArcsAsEdges = False,
    shown: options.Shown = options.SHOWN,
) -> None:
    """Rank the nodes of a graph for one source, privately.

    Example: edgeveil rank follows.csv --source alice --epsilon 1 --top 20 --format json

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    source
        Id of the node to rank for; may be given more than once. This or --sources is needed.
    sources
        File with one id per line: rank for all of them.
    epsilon
        Privacy loss of one ranking; smaller protects more. No default: nobody else can choose it.
    top
        How many nodes to show.
    leave_out_source
        Do not show the source in its own ranking.
    leave_out_neighbours
        Do not show whom the source knows already. Joint model only.
    candidates
        File with one id per line: show only these nodes.
    out
        File for all scores (.parquet, .json or .csv), instead of showing the first ones.
    mechanism
        How to make the ranking; `edgeveil mechanisms` says which is for what. One of your own:
        package.module:Class.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.cli.releasing import make_release
    from edgeveil.engine.api import known_to
    from edgeveil.errors import ParameterError

    whole("--top", top)
    choose = partial(make_mechanism, mechanism, "scores", epsilon=epsilon, **parameters.given())
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, reading.nodes, sources, candidates))
    fewer = leave_out_source or leave_out_neighbours or candidates is not None
    if out is not None and fewer:
        raise ParameterError("--out keeps all scores: leave nodes out when showing a ranking")
    private_graph = read_and_say(graph, reading, directed=directed, counts=shown.verbose)
    chosen = choose(n_nodes=private_graph.n_nodes)
    wanted = wanted_nodes(private_graph.nodes, source, sources, "--sources")
    among = None
    if candidates is not None:
        among = wanted_nodes(private_graph.nodes, None, candidates, "--candidates")
    known = partial(known_to, itself=leave_out_source, neighbours=leave_out_neighbours)
    hidden = {node: known(private_graph, chosen, node) for node in wanted if fewer}

    def put_out(made: Release) -> None:
        if out is None:
            _show(made, top, hidden, among, shown.format)
        else:
            made.write(out)
            rankings = counted(len(made.sources), "ranking")
            say(f"{out}: {rankings} of {counted(len(made.columns), 'node')}.")

    make_release(private_graph, chosen, wanted, budget, put_out, out=out, style=shown.format)


def _show(
    made: Release,
    top: int,
    hidden: dict[NodeId, list[NodeId]],
    among: list[NodeId] | None,
    style: Format,
) -> None:
    from edgeveil.cli.releasing import print_lists

    def lines(source: NodeId) -> Iterator[tuple[Any, ...]]:
        for place in made.ranking(top, source, without=hidden.get(source, ()), candidates=among):
            ties = [_ties(place.first, place.last)] if style == "table" else place[4:]
            yield *place[:4], *ties

    places = ["tied_with"] if style == "table" else ["first", "last"]
    columns = ["rank", "node", "score", "uncertainty", *places]
    print_lists(
        made, "source", columns, lines, style=style, title=f"{made.provenance.mechanism} for"
    )


def _ties(first: int | None, last: int | None) -> str | None:
    """Which places the noise leaves open, in words."""
    if first is None or last is None:
        return None
    return "nobody" if first == last else f"places {first}-{last}"
