"""``edgeveil aggregate``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from edgeveil._internal.checks import check_int, positive
from edgeveil.cli import options
from edgeveil.cli.options import checked, default, option, required_epsilon


def aggregate(
    graph: options.GraphPath,
    /,
    *,
    out: Path,
    values: Annotated[Path | None, default("a public hash of all nodes")] = None,
    epsilon: Annotated[
        options.Loss,
        option(
            "Privacy loss of all rows together, for any edge; smaller is more private. Required; "
            "there is no safe default."
        ),
    ] = None,
    bound: Annotated[float, checked(partial(positive, "--bound"))] = 1.0,
    dim: Annotated[
        int | None, default("64, without --values"), checked(partial(check_int, "--dim"))
    ] = None,
    releasing: options.Releasing = options.RELEASING,
) -> None:
    """Add up what is public about neighbours, privately, for anybody to see.

    The sums are private features for any model of your own: how many flagged
    accounts an account pays, for instance. Every edge is protected with epsilon in
    all, whoever sees them.
    The values are NOT protected, and must not be computed from the graph: otherwise
    the guarantee does not hold.
    Without --values the rows are embeddings that anyone may see.
    Example: edgeveil aggregate payments.csv --values flags.csv --epsilon 1 --out sums.parquet

    Parameters
    ----------
    out
        File to write, with the guarantee: .parquet, .json or .csv.
    values
        What is added up: .csv, .tsv or .parquet with a column of nodes (named node or id, or else
        the first) and others of numbers. Nodes without a row have 0.
    bound
        The most that the numbers of one node may add up to, without their signs; public. Larger
        ones are scaled down to it. The noise grows with it.
    dim
        Without --values: numbers in a row.
    """
    from edgeveil.cli.reading import TABLES
    from edgeveil.cli.runner import Run
    from edgeveil.jobs import prepare
    from edgeveil.jobs.aggregating import aggregation

    epsilon = required_epsilon(epsilon)
    run = Run.of(releasing, out, *TABLES, inputs=(graph, values))
    private = run.read(graph)
    mechanism = aggregation(private, values, epsilon=epsilon, bound=bound, dimension=dim)
    run.release(prepare(private, mechanism, **run.options), out)
