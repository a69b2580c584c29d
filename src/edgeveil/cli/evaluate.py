"""``edgeveil evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from edgeveil._check import whole
from edgeveil.cli.options import GRAPH_FILE, ArcsAsEdges, Config, GraphFile, default
from edgeveil.cli.output import Format, print_table, say
from edgeveil.cli.progress import counting

__all__ = ["evaluate"]


def evaluate(
    graph: Path,
    /,
    *,
    epsilon: Annotated[
        list[float] | None,
        Parameter(negative=""),
        default("0.5, 1 and 2; for rankings 0.1, 1 and 5"),
    ] = None,
    protocol: Literal["suggestions", "rankings"] = "suggestions",
    sources: Annotated[int | None, default("150 of each degree group; for rankings 30")] = None,
    top: Annotated[int | None, default("20; for rankings 100")] = None,
    min_degree: int = 50,
    reading: GraphFile = GRAPH_FILE,
    directed: ArcsAsEdges = False,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
) -> None:
    """Measure on your own graph what private results are worth. For the curator only.

    suggestions: hidden friends that private lists find, beside popularity, scores without privacy
    and the limit. rankings: Recall and NDCG against exact PageRank, beside the paper's mechanism.
    Nothing is charged: the numbers are not private and must not be published.
    Example: edgeveil evaluate follows.csv --epsilon 0.5 --epsilon 2

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    epsilon
        Privacy loss to try; may be given more than once.
    protocol
        What is measured.
    sources
        How many members are asked for.
    top
        How many suggestions, or places of a ranking, count.
    min_degree
        For rankings: neighbours that a node must have to be ranked for.
    format
        table, json or csv.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.evaluation.own_graph import evaluate as measure

    if top is not None:
        whole("--top", top)
    read = read_and_say(graph, reading, directed=directed, counts=True)
    with counting("parts") as progress:
        found = measure(
            read,
            epsilon,
            protocol=protocol,
            sources=sources,
            k=top,
            min_degree=min_degree,
            progress=progress,
        )
    warning = "NOT PRIVATE: for the curator only"
    rows = found.rows()
    if format == "table":
        rows = [tuple(round(c, 3) if isinstance(c, float) else c for c in row) for row in rows]
    print_table(
        found.columns,
        rows,
        style=format,
        about={"graph": graph.name, "says": warning},
        title=f"{graph.name}: {found.heading}",
        warning=warning,
    )
    say(
        "These numbers come from the exact graph. They are not private: keep them. A parameter "
        "that is chosen by them is a release outside of any guarantee."
    )
