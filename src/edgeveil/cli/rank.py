"""``edgeveil rank``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

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
    releasing: options.Releasing = options.RELEASING,
) -> None:
    """Rank the nodes of a graph for a source, privately.

    Name the sources with --source or --sources.
    Example: edgeveil rank follows.csv --source alice --epsilon 1 -k 20 --format json

    Parameters
    ----------
    source
        Id of a source, the node where the walk starts; in the joint model the ranking is for the
        member there. May be given more than once.
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
    from edgeveil.cli.mechanisms import chosen_mechanism
    from edgeveil.cli.presentation import print_rankings
    from edgeveil.cli.reading import TABLES, nodes_in_file, wanted_nodes
    from edgeveil.cli.runner import Run
    from edgeveil.jobs import prepare
    from edgeveil.jobs.choice import mechanism_for_scores
    from edgeveil.jobs.ranking import check_left_out, known_to

    if source is None and sources is None:
        raise ParameterError("say for which node: --source alice or --sources FILE")
    if out is not None and (leave_out_source or leave_out_neighbours or candidates is not None):
        raise ParameterError("--out keeps all scores: leave nodes out when showing a ranking")
    asked = chosen_mechanism(mechanism, "scores", parameters, epsilon=epsilon)
    check_left_out(parameters.model, neighbours=leave_out_neighbours)

    run = Run.of(releasing, out, *TABLES, inputs=(graph, sources, candidates))
    private = run.read(graph)
    chosen = mechanism_for_scores(private, asked, epsilon, parameters.model)
    wanted = wanted_nodes(private.nodes, source, sources, "--sources")
    among = nodes_in_file(private.nodes, candidates, "--candidates")
    left_out = partial(known_to, itself=leave_out_source, neighbours=leave_out_neighbours)
    hidden = {node: left_out(private, chosen, node) for node in wanted}
    show = partial(print_rankings, k=k, hidden=hidden, candidates=among, style=releasing.format)
    run.release(prepare(private, chosen, wanted, **run.options), out, None if out else show)
