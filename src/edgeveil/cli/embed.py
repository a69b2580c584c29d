"""``edgeveil embed``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from edgeveil._internal.words import counted
from edgeveil.cli import options
from edgeveil.cli.output import say
from edgeveil.errors import ParameterError


def embed(
    graph: options.GraphPath,
    /,
    *,
    out: Path,
    epsilon: Annotated[float | None, options.default("none: the own list costs nothing")] = None,
    dim: Annotated[int | Literal["nodes"] | None, options.default("the mechanism's own")] = None,
    source: options.Named = None,
    sources: Annotated[Path | None, options.default("all nodes")] = None,
    mechanism: Annotated[options.AnyEmbeddingMechanism | None, options.RECOMMENDED] = None,
    parameters: options.Parameters = options.PARAMETERS,
    how: options.Releasing = options.RELEASING,
) -> None:
    """Embed members privately, each for itself; by default its own list, at no cost.

    A member knows its own list. An embedding of it uses no other edge, so epsilon
    is 0. With --model public, embeddings of all nodes cost epsilon in all.
    Example: edgeveil embed follows.csv --out emb.parquet

    Parameters
    ----------
    out
        File to write, with the guarantee: .parquet, .json or .csv. A name without a suffix is a
        folder, for more rows than fit into memory.
    epsilon
        Privacy loss of one embedding, for --mechanism or --model public.
    dim
        Length of an embedding. nodes: one number for each node of the graph, no hash.
    source
        Id of a node to embed; may be given more than once.
    sources
        File with one id per line. Only these nodes are embedded.
    """
    import numpy as np

    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import TABLES, check_release, wanted_nodes
    from edgeveil.cli.releasing import Setup, make_release
    from edgeveil.mechanisms import Aggregation, OwnListEmbedding

    unhashed = dim == "nodes"
    given = {"epsilon": epsilon, "dimension": None if unhashed else dim, **parameters.given()}
    if mechanism is None and parameters.model != "public" and epsilon is not None:
        raise ParameterError(
            "an embedding of a member's own list costs nothing: leave --epsilon out, or name the "
            "mechanism that is to use it (--mechanism)"
        )
    chosen = make_mechanism(mechanism, "embeddings", **given)
    if unhashed and chosen.name != "own-list-embedding":
        raise ParameterError(f"{chosen.name} hashes all nodes: --dim takes a number")
    check_release(how, out, *TABLES, "", inputs=(graph, sources))
    setup = Setup.of(how)
    private = setup.read(graph)
    if private.directed and isinstance(chosen, Aggregation):
        chosen = replace(chosen, directed=True)
    if unhashed:
        chosen = OwnListEmbedding.unhashed(private.n_nodes)
    wanted = np.arange(private.n_nodes)
    if source is not None or sources is not None:
        wanted = wanted_nodes(private.nodes, source, sources, "--sources")
    if (total := chosen.guarantee(len(wanted)).epsilon) > (one := chosen.guarantee(1).epsilon):
        say(
            f"In the public model every embedding costs: {counted(len(wanted), 'embedding')} cost "
            f"epsilon = {total:g}. For nothing: leave out --epsilon and --model public (each is "
            f"then a member's own list, for itself alone). For {one:g} in all: leave out "
            "--mechanism."
        )
    make_release(private, chosen, wanted, setup, out=out)
