"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from edgeveil.cli import options
from edgeveil.cli.options import option
from edgeveil.cli.output import counted, say


def embed(
    graph: options.GraphPath,
    /,
    *,
    out: Annotated[
        Path,
        option(
            "File to write: .parquet, .json or .csv; its guarantee goes with it. A name without a "
            "suffix becomes a folder, for more rows than fit into memory."
        ),
    ],
    epsilon: options.Epsilon = None,
    dim: Annotated[int | None, option("Length of an embedding.", "the mechanism's own")] = None,
    sources: Annotated[
        Path | None, option("File with one id per line: embed these nodes only.", "all nodes")
    ] = None,
    mechanism: Annotated[
        options.AnyEmbeddingMechanism | None, option(options.WHICH_MECHANISM, "the recommended one")
    ] = None,
    parameters: options.Parameters = options.PARAMETERS,
    directed: options.ArcsAsEdges = False,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Embed the nodes of a graph, privately, each for its own owner.

    Example: edgeveil embed follows.csv --epsilon 1 --dim 128 --out emb.parquet
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import check_out, wanted_nodes
    from edgeveil.cli.releasing import make_release, read

    given = {"epsilon": epsilon, "dimension": dim, **parameters.given()}
    chosen = make_mechanism(mechanism, "embeddings", **given)
    check_out(out, (graph, how.nodes, sources), folder=True)
    private = read(graph, how, directed=directed)
    wanted = wanted_nodes(private.nodes, None, sources, "--sources") if sources else private.nodes
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

    make_release(private, chosen, wanted, how, put_out, out=out)
