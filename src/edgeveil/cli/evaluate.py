"""``edgeveil evaluate``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edgeveil.cli.options import Config, Directed, Header, NodeList
from edgeveil.cli.output import Format, print_table, say

__all__ = ["evaluate"]


def evaluate(
    graph: Path,
    /,
    *,
    epsilon: Annotated[list[float] | None, Parameter(negative="")] = None,
    sources: int = 30,
    nodes: NodeList = None,
    directed: Directed = False,
    header: Header = None,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
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
    format
        table, json or csv.
    """
    import numpy as np

    from edgeveil.cli.reading import read_and_say
    from edgeveil.errors import ParameterError
    from edgeveil.evaluation.runs import Cells
    from edgeveil.evaluation.showcase import ranking_results

    read = read_and_say(graph, nodes, directed, header, counts=True)
    if not (np.diff(read.indptr) >= 50).any():
        raise ParameterError(f"no node of {graph} has 50 neighbours, and only such are tried")
    losses = epsilon or [0.1, 1.0, 5.0]
    with tempfile.TemporaryDirectory() as folder:
        results = ranking_results(graph.name, read, losses, sources, Cells(folder, {}))
    recall, ndcg = "recall@100", "ndcg@100"
    found = {(r.mechanism, r.epsilon, r.metric, r.scope): r.mean for r in results}
    rows = [
        (
            mechanism,
            loss,
            *(found[mechanism, loss, recall, s] for s in ("all", "non-neighbours", "lift")),
            found[mechanism, loss, ndcg, "all"],
        )
        for mechanism, loss in dict.fromkeys((r.mechanism, r.epsilon) for r in results)
    ]
    columns = ["mechanism", "epsilon", "recall", "recall non-neighbours", "recall lift", "ndcg"]
    warning = "NOT PRIVATE: for the curator only"
    print_table(
        columns,
        rows,
        style=format,
        about={"graph": graph.name, "says": warning},
        title=f"{graph.name}: top 100",
        warning=warning,
    )
    say("These numbers come from the exact graph. They are not private: keep them.")
