"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from edgeveil.cli.options import (
    BUDGET,
    GRAPH_FILE,
    Budget,
    Config,
    Dimension,
    EmbeddingMechanism,
    EngineAddress,
    EngineName,
    EngineWorkers,
    GraphFile,
    Model,
    Restart,
    Sigma,
    Verbose,
    default,
)
from edgeveil.cli.output import Format, counted, say

__all__ = ["embed"]


def embed(
    graph: Path,
    /,
    *,
    out: Annotated[
        Path,
        Parameter(
            help="File to write: .parquet, .json or .csv; its guarantee goes with it. A name "
            "without a suffix becomes a folder, for more rows than fit into memory."
        ),
    ],
    epsilon: float | None = None,
    dim: Dimension = None,
    sources: Annotated[Path | None, default("all nodes")] = None,
    mechanism: Annotated[EmbeddingMechanism | None, default("the recommended one")] = None,
    model: Annotated[
        Model,
        Parameter(
            help="joint: an embedding is for its node's owner alone. public: anyone may see all "
            "of them, and their losses add up."
        ),
    ] = None,
    sigma: Sigma = None,
    restart: Restart = None,
    budget: Budget = BUDGET,
    reading: GraphFile = GRAPH_FILE,
    verbose: Verbose = False,
    engine: EngineName = "local",
    address: EngineAddress = None,
    workers: EngineWorkers = None,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
) -> None:
    """Embed the nodes of a graph, privately, each for its own owner.

    Example: edgeveil embed follows.csv --epsilon 1 --dim 128 --out emb.parquet

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    epsilon
        Privacy loss of one embedding; smaller protects more. No default: nobody else can choose it.
    sources
        File with one id per line: embed these nodes only.
    mechanism
        How to make the embeddings; `edgeveil mechanisms` says which is for what.
    format
        How --dry-run prints the price: table, json or csv.
    """
    from edgeveil.cli.budget import print_price, spending
    from edgeveil.cli.engines import make_engine
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.engine import release, release_to

    chosen = make_mechanism(
        mechanism,
        "embeddings",
        epsilon=epsilon,
        model=model,
        sigma=sigma,
        restart=restart,
        dimension=dim,
    )
    where = make_engine(engine, address, workers)
    check_out(out, (graph, reading.nodes, sources), folder=True)
    private_graph = read_and_say(graph, reading, counts=verbose)
    wanted = wanted_nodes(private_graph.nodes, None, sources) if sources else private_graph.nodes
    if budget.dry_run:
        print_price(private_graph, chosen, wanted, budget, format)
        return
    with spending(private_graph, chosen, wanted, budget) as how, counting("embeddings") as progress:
        how |= {"engine": where, "progress": progress}
        if out.suffix:
            made: Any = release(private_graph, chosen, wanted, **how)
            made.write(out)
        else:
            made = release_to(out, private_graph, chosen, wanted, **how)
    say(f"{out}: {counted(len(wanted), 'embedding')}. {made.guarantee}")
