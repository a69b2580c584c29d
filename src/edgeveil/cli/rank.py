"""``edgeveil rank``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgeveil.cli.options import (
    BUDGET,
    GRAPH_FILE,
    Budget,
    Config,
    Flag,
    GraphFile,
    Model,
    PromisedMinDegree,
    Restart,
    ScoreMechanism,
    Sigma,
    Verbose,
    default,
)
from edgeveil.cli.output import Format, counted, print_table, say

if TYPE_CHECKING:
    from edgeveil.nodes import NodeId
    from edgeveil.releases import Release

__all__ = ["rank"]


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
    mechanism: Annotated[ScoreMechanism | None, default("the recommended one")] = None,
    model: Model = None,
    sigma: Sigma = None,
    restart: Restart = None,
    promised_min_degree: PromisedMinDegree = None,
    budget: Budget = BUDGET,
    reading: GraphFile = GRAPH_FILE,
    verbose: Verbose = False,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
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
        How to make the ranking; `edgeveil mechanisms` says which is for what.
    model
        joint: the ranking is for the source's owner alone. public: anyone may see it.
    format
        table, json or csv.
    """
    from edgeveil.cli.budget import print_price, spending
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.engine.api import known_to, release
    from edgeveil.errors import ParameterError

    choose = partial(
        make_mechanism,
        mechanism,
        "scores",
        epsilon=epsilon,
        model=model,
        sigma=sigma,
        restart=restart,
        promised_min_degree=promised_min_degree,
    )
    choose()  # what is wrong with the options is said before a file is read
    check_out(out, (graph, reading.nodes, sources, candidates))
    fewer = leave_out_source or leave_out_neighbours or candidates is not None
    if out is not None and fewer:
        raise ParameterError("--out keeps all scores: leave nodes out when showing a ranking")
    private_graph = read_and_say(graph, reading, counts=verbose)
    chosen = choose(n_nodes=private_graph.n_nodes)
    wanted = wanted_nodes(private_graph.nodes, source, sources)
    among = None if candidates is None else wanted_nodes(private_graph.nodes, None, candidates)
    private_graph.nodes.indices(among or ())  # an unknown one is said before anything is spent
    known = partial(known_to, itself=leave_out_source, neighbours=leave_out_neighbours)
    hidden = {node: known(private_graph, chosen, node) for node in wanted if fewer}
    if budget.dry_run:
        print_price(private_graph, chosen, wanted, budget, format)
        return
    # To the end inside of it, so that Ctrl-C is told what was charged.
    with spending(private_graph, chosen, wanted, budget) as how:
        with counting("rankings") as progress:
            made = release(private_graph, chosen, wanted, progress=progress, **how)
        if out is None:
            _show(made, top, hidden, among, format)
        else:
            _write(made, out)
    if format != "json" or out is not None:
        say(str(made.guarantee))


def _write(made: Release, out: Path) -> None:
    made.write(out)
    rankings = counted(len(made.sources), "ranking")
    say(f"{out}: {rankings} of {counted(len(made.columns), 'node')}.")


def _show(
    made: Release,
    top: int,
    hidden: dict[NodeId, list[NodeId]],
    among: list[NodeId] | None,
    style: Format,
) -> None:
    several = len(made.sources) > 1
    rows: list[tuple[Any, ...]] = []
    for source in made.sources:
        for place in made.ranking(top, source, without=hidden.get(source, ()), candidates=among):
            row = tuple(place)
            if style == "table":
                row = (*row[:4], _ties(place.first, place.last))
            rows.append((source, *row) if several else row)
    about: dict[str, Any] = {
        "guarantee": made.guarantee.as_dict(),
        "says": str(made.guarantee),
    }
    if not several:
        about = {"source": made.sources[0], **about}
    whom = f"{len(made.sources):,} sources" if several else str(made.sources[0])
    places = ["tied_with"] if style == "table" else ["first", "last"]
    print_table(
        [*(["source"] if several else []), "rank", "node", "score", "uncertainty", *places],
        rows,
        style=style,
        about=about,
        title=f"{made.provenance.mechanism} for {whom}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )


def _ties(first: int | None, last: int | None) -> str | None:
    """Which places the noise leaves open, in words."""
    if first is None or last is None:
        return None
    return "nobody" if first == last else f"places {first}-{last}"
