"""``edgeveil embed``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edgeveil.cli import options
from edgeveil.cli.output import counted, say


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which embeddings are to be made, how, and where they go."""

    out: Path
    """File to write: .parquet, .json or .csv; its guarantee goes with it. A name without a suffix
    becomes a folder, for more rows than fit into memory."""
    epsilon: options.Epsilon = None
    dim: Annotated[int | None, options.default("the mechanism's own")] = None
    """Length of an embedding."""
    sources: Annotated[Path | None, options.default("all nodes")] = None
    """File with one id per line: embed these nodes only."""
    mechanism: Annotated[options.AnyEmbeddingMechanism | None, options.RECOMMENDED] = None


def embed(
    graph: options.GraphPath,
    /,
    *,
    asked: Asked,
    parameters: options.Parameters = options.PARAMETERS,
    directed: options.ArcsAsEdges = False,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Embed the nodes of a graph, privately, each for its own owner.

    Example: edgeveil embed follows.csv --epsilon 1 --dim 128 --out emb.parquet
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import TABLES, check_out, wanted_nodes
    from edgeveil.cli.releasing import make_release, read

    given = {"epsilon": asked.epsilon, "dimension": asked.dim, **parameters.given()}
    chosen = make_mechanism(asked.mechanism, "embeddings", **given)
    check_out(asked.out, *TABLES, "", inputs=(graph, how.nodes, asked.sources))
    private = read(graph, how, directed=directed)
    wanted = wanted_nodes(private.nodes, None, asked.sources, "--sources") or private.nodes
    if (total := chosen.guarantee(len(wanted)).epsilon) > (one := chosen.guarantee(1).epsilon):
        say(
            f"In the public model every embedding costs: {counted(len(wanted), 'embedding')} cost "
            f"epsilon = {total:g}. For {one:g} in all: leave out --model public (each is then for "
            "its owner alone), or `rank --mechanism edge-flipping --model public` and "
            "edgeveil.postprocess.embed of what it gives."
        )
    make_release(private, chosen, wanted, how, out=asked.out)
