"""``edgeveil rank``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from edgeveil._internal.checks import check_int
from edgeveil.cli import options
from edgeveil.errors import ParameterError


def rank(
    graph: options.GraphPath,
    /,
    *,
    source: options.Named = None,
    sources: Path | None = None,
    epsilon: options.Epsilon = None,
    k: options.Length = 20,
    leave_out_source: options.Flag = False,
    leave_out_neighbours: options.Flag = False,
    candidates: options.Candidates = None,
    out: Path | None = None,
    mechanism: Annotated[options.AnyScoreMechanism | None, options.RECOMMENDED] = None,
    parameters: options.Parameters = options.PARAMETERS,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Rank the nodes of a graph for a source, privately.

    Name the sources with --source or --sources.
    Example: edgeveil rank follows.csv --source alice --epsilon 1 -k 20 --format json

    Parameters
    ----------
    source
        Id of a source; may be given more than once.
    sources
        File with ids of sources, one per line.
    k
        Length of a ranking that is shown.
    leave_out_source
        Leave the source out of its own ranking.
    leave_out_neighbours
        Leave out the neighbours of the source. Joint model only.
    candidates
        File with one id per line. Only these nodes are shown.
    out
        File for all scores, instead of showing the first ones: .parquet, .json or .csv.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import TABLES, check_release, wanted_nodes
    from edgeveil.cli.releasing import Setup, make_release, print_lists
    from edgeveil.jobs.api import check_left_out, known_to

    check_int("-k", k)
    if source is None and sources is None:
        raise ParameterError("say for which node: --source alice or --sources FILE")
    choose = partial(make_mechanism, mechanism, "scores", epsilon=epsilon, **parameters.given())
    model = choose().guarantee(1).model
    check_left_out(model, neighbours=leave_out_neighbours)  # before any file is read
    check_release(how, out, *TABLES, inputs=(graph, sources, candidates))
    fewer = leave_out_source or leave_out_neighbours or candidates is not None
    if out is not None and fewer:
        raise ParameterError("--out keeps all scores: leave nodes out when showing a ranking")
    setup = Setup.of(how)
    private = setup.read(graph)
    nodes, chosen = private.nodes, choose(n_nodes=private.n_nodes)
    wanted = wanted_nodes(nodes, source, sources, "--sources")
    among = None
    if candidates is not None:
        among = nodes.take(wanted_nodes(nodes, None, candidates, "--candidates"))
    known = partial(known_to, itself=leave_out_source, neighbours=leave_out_neighbours)
    hidden = {node: known(private, chosen, node) for node in nodes.take(wanted) if fewer}

    def write_output(made: Any) -> None:
        if out is not None:
            return
        for_people = how.format == "table"  # they see the places that the noise leaves open as one

        def lines(node: int | str) -> Iterator[tuple[Any, ...]]:
            for place in made.ranking(k, node, without=hidden.get(node, ()), candidates=among):
                between = [place.first, place.last]
                yield *place[:4], *([_range(*between)] if for_people else between)

        columns = ["rank", "node", "score", "uncertainty"]
        columns += ["could_be_place"] if for_people else ["first", "last"]
        title = f"{made.provenance.mechanism} for"
        print_lists(made, "source", columns, lines, style=how.format, title=title)

    make_release(private, chosen, wanted, setup, write_output, out=out)


def _range(first: int | None, last: int | None) -> str | None:
    return f"{first}-{last}" if first != last else None if first is None else str(first)
