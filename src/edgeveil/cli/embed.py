"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from edgeveil._internal.checks import check_int
from edgeveil._internal.words import counted
from edgeveil.cli import options
from edgeveil.cli.options import checked
from edgeveil.cli.output import say
from edgeveil.errors import ParameterError


def embed(
    graph: options.GraphPath,
    /,
    *,
    out: Path,
    epsilon: Annotated[options.Loss, options.default("none: the own list costs nothing")] = None,
    dim: Annotated[
        int | Literal["nodes"] | None,
        options.default("the mechanism's own"),
        checked(lambda dim: dim == "nodes" or check_int("--dim", dim)),
    ] = None,
    source: options.Named = None,
    sources: Annotated[Path | None, options.default("all nodes")] = None,
    mechanism: Annotated[options.AnyEmbeddingMechanism | None, options.RECOMMENDED] = None,
    parameters: options.Parameters = options.PARAMETERS,
    releasing: options.Releasing = options.RELEASING,
) -> None:
    """Embed members privately, each for itself; by default its own list, at no cost.

    A member knows its own list. An embedding of it uses no other edge, so epsilon
    is 0 for that member. It shows the list to anyone else: give it to nobody else.
    With --model public anyone may see the embeddings; all together cost epsilon.
    Example: edgeveil embed follows.csv --out emb.parquet

    Parameters
    ----------
    out
        File to write, with the guarantee: .parquet, .json or .csv. A name without a suffix is a
        folder, for more rows than fit into memory.
    epsilon
        Privacy loss. With --model public: of all embeddings together. With --mechanism: of one,
        unless the mechanism makes them all at once.
    dim
        Length of an embedding. nodes: one number for each node of the graph, no hash.
    source
        Id of a source, a node to embed; in the joint model the embedding is for the member there.
        May be given more than once.
    sources
        File with one id per line. Only these nodes are embedded.
    """
    from edgeveil.cli.mechanisms import chosen_mechanism
    from edgeveil.cli.reading import TABLES, wanted_nodes
    from edgeveil.cli.runner import Run
    from edgeveil.jobs import prepare
    from edgeveil.jobs.choice import default_embedding, for_graph

    if mechanism is not None and dim == "nodes":
        raise ParameterError("--dim nodes is for the own list: leave --mechanism out")
    asked = chosen_mechanism(
        mechanism, "embeddings", parameters, epsilon=epsilon, dimension=dim
    ) or default_embedding(epsilon, parameters.model, dim)
    run = Run.of(releasing, out, *TABLES, "", inputs=(graph, sources))
    private = run.read(graph)
    chosen = for_graph(asked, private)
    wanted = wanted_nodes(private.nodes, source, sources, "--sources")
    if (total := chosen.guarantee(len(wanted)).epsilon) > (single := chosen.guarantee(1).epsilon):
        say(
            f"In the public model every embedding costs: {counted(len(wanted), 'embedding')} cost "
            f"epsilon = {total:g}. For nothing: leave out --epsilon and --model public (each is "
            f"then a member's own list, for itself alone). For {single:g} in all: leave out "
            "--mechanism."
        )
    run.release(prepare(private, chosen, wanted, **run.options), out)
