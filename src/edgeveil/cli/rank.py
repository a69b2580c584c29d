"""``edgeveil rank``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from edgeveil.cli.output import Format, print_table, say

__all__ = ["rank"]


def rank(
    graph: Path,
    /,
    *,
    source: str,
    epsilon: float | None = None,
    top: int = 20,
    mechanism: str | None = None,
    model: Literal["joint", "public"] | None = None,
    sigma: float | None = None,
    restart: float | None = None,
    ledger: str | None = None,
    nodes: Path | None = None,
    directed: Annotated[bool, Parameter(negative="")] = False,
    header: bool | None = None,
    verbose: Annotated[bool, Parameter(negative="")] = False,
    format: Format = "table",  # noqa: A002  (the option's name)
    insecure_seed: int | None = None,
) -> None:
    """Rank the nodes of a graph for one source, privately.

    Example: edgeveil rank follows.csv --source alice --epsilon 1 --top 20 --format json

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    source
        Id of the node to rank for.
    epsilon
        Privacy loss of the ranking; smaller protects more.
    top
        How many nodes to show.
    mechanism
        What to use instead of the recommended one; `edgeveil mechanisms` lists them.
    model
        joint: the ranking is for the source's owner alone. public: anyone may see it.
    sigma
        Sensitivity that a capped flow is held to.
    restart
        Restart probability of the walk (0.15).
    ledger
        Budget to charge; made by `edgeveil ledger create`.
    nodes
        File with one node id per line: the public node set.
    directed
        Read every arc as an undirected edge.
    header
        Whether the first line of a text file holds names; guessed if left out.
    verbose
        Say how many edges were read and normalised: the curator's, not private.
    format
        table, json or csv.
    insecure_seed
        Repeatable noise, for tests and demonstrations. The result is then NOT private.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import read_and_say
    from edgeveil.engine import release
    from edgeveil.privacy.ledger import Ledger
    from edgeveil.privacy.noise import NoiseSource

    options = {"epsilon": epsilon, "model": model, "sigma": sigma, "restart": restart}
    chosen = make_mechanism(mechanism, "scores", **options)
    private_graph = read_and_say(graph, nodes, directed, header, counts=verbose)
    node = source if private_graph.nodes.kind == "str" or not _is_int(source) else int(source)
    made = release(
        private_graph,
        chosen,
        [node],
        ledger=Ledger.open(ledger) if ledger else None,
        noise=None if insecure_seed is None else NoiseSource.insecure(insecure_seed),
    )
    ranked = made.top(top)
    print_table(
        ["rank", "node", "score"],
        [(i, *pair) for i, pair in enumerate(ranked, 1)],
        style=format,
        about={"source": node, "guarantee": made.guarantee.as_dict(), "says": str(made.guarantee)},
        title=f"{made.provenance.mechanism} for {node}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )
    if format != "json":
        say(str(made.guarantee))


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
