"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from edgeveil.cli import options
from edgeveil.cli.options import default
from edgeveil.cli.output import counted, say


def embed(
    graph: Path,
    /,
    *,
    out: Path,
    epsilon: float | None = None,
    dim: Annotated[int | None, default("the mechanism's own")] = None,
    sources: Annotated[Path | None, default("all nodes")] = None,
    mechanism: Annotated[
        options.AnyEmbeddingMechanism | None, default("the recommended one")
    ] = None,
    parameters: options.Parameters = options.PARAMETERS,
    budget: options.Budget = options.BUDGET,
    reading: options.GraphFile = options.GRAPH_FILE,
    directed: options.ArcsAsEdges = False,
    engine: options.EngineChoice = options.ENGINE,
    shown: options.Shown = options.SHOWN,
) -> None:
    """Embed the nodes of a graph, privately, each for its own owner.

    Example: edgeveil embed follows.csv --epsilon 1 --dim 128 --out emb.parquet

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    out
        File to write: .parquet, .json or .csv; its guarantee goes with it. A name without a
        suffix becomes a folder, for more rows than fit into memory.
    epsilon
        Privacy loss of one embedding; smaller protects more. No default: nobody else can choose it.
    dim
        Length of an embedding.
    sources
        File with one id per line: embed these nodes only.
    mechanism
        How to make the embeddings; `edgeveil mechanisms` says which is for what. One of your own:
        package.module:Class.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.cli.releasing import make_release

    given = {"epsilon": epsilon, "dimension": dim, **parameters.given()}
    chosen = make_mechanism(mechanism, "embeddings", **given)
    where = engine.make()
    check_out(out, (graph, reading.nodes, sources), folder=True)
    private_graph = read_and_say(graph, reading, directed=directed, counts=shown.verbose)
    nodes = private_graph.nodes
    wanted = wanted_nodes(nodes, None, sources, "--sources") if sources else nodes
    if (total := chosen.guarantee(len(wanted)).epsilon) > (one := chosen.guarantee(1).epsilon):
        say(
            f"In the public model every embedding costs: {counted(len(wanted), 'embedding')} cost "
            f"epsilon = {total:g}. For {one:g} in all: leave out --model public (each is then for "
            "its owner alone), or `rank --mechanism edge-flipping --model public` and "
            "edgeveil.postprocess.embed of what it gives."
        )

    def put_out(made: Any) -> None:
        if out.suffix:  # else it is a folder, which is written by now
            made.write(out)
        say(f"{out}: {counted(len(wanted), 'embedding')}.")

    make_release(
        private_graph, chosen, wanted, budget, put_out, out=out, style=shown.format, engine=where
    )
