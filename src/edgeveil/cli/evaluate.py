"""``edgeveil evaluate``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edgeveil.cli.output import Format, print_table, say

__all__ = ["evaluate"]


def evaluate(
    graph: Path,
    /,
    *,
    epsilon: list[float] | None = None,
    sources: int = 30,
    nodes: Path | None = None,
    directed: Annotated[bool, Parameter(negative="")] = False,
    header: bool | None = None,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """Measure on your own graph how well private rankings do. For the curator only.

    Recall@100 and NDCG@100 against exact PageRank, ours beside the paper's and the floors.
    Nothing is charged: the numbers are not private and must not be published.
    Example: edgeveil evaluate follows.csv --epsilon 0.5 --epsilon 2

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    epsilon
        Privacy losses to try, by default 0.1, 1 and 5.
    sources
        Nodes with at least 50 neighbours that are tried.
    nodes
        File with one node id per line: the public node set.
    directed
        Read every arc as an undirected edge.
    header
        Whether the first line of a text file holds names; guessed if left out.
    format
        table, json or csv.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.evaluate.runs import Cells
    from edgeveil.evaluate.showcase import ranking_results

    read = read_and_say(graph, nodes, directed, header, counts=True)
    losses = epsilon or [0.1, 1.0, 5.0]
    with tempfile.TemporaryDirectory() as folder:
        results = ranking_results(graph.name, read, losses, sources, Cells(folder, {}))
    recall, ndcg = "recall@100", "ndcg@100"
    found = {(r.mechanism, r.epsilon, r.metric, r.scope): r.mean for r in results}
    rows = [
        (
            mechanism,
            "-" if loss is None or loss == float("inf") else loss,
            *(found[mechanism, loss, recall, s] for s in ("all", "non-neighbours", "lift")),
            found[mechanism, loss, ndcg, "all"],
        )
        for mechanism, loss in dict.fromkeys((r.mechanism, r.epsilon) for r in results)
    ]
    columns = ["mechanism", "epsilon", "recall", "recall non-neighbours", "recall lift", "ndcg"]
    print_table(columns, rows, style=format, title=f"{graph.name}: top 100, for the curator only")
    say("These numbers come from the exact graph. They are not private: keep them.")
