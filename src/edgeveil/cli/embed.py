"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from edgeveil.cli.output import say

__all__ = ["embed"]


def embed(
    graph: Path,
    /,
    *,
    out: Path,
    epsilon: float | None = None,
    dim: int | None = None,
    mechanism: str | None = None,
    model: Literal["joint", "public"] | None = None,
    sigma: float | None = None,
    restart: float | None = None,
    ledger: str | None = None,
    nodes: Path | None = None,
    directed: Annotated[bool, Parameter(negative="")] = False,
    header: bool | None = None,
    verbose: Annotated[bool, Parameter(negative="")] = False,
    insecure_seed: int | None = None,
) -> None:
    """Embed the nodes of a graph, privately, each for its own owner.

    Example: edgeveil embed follows.csv --epsilon 1 --dim 128 --out emb.parquet

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    out
        File to write, .parquet or .json; its guarantee goes with it.
    epsilon
        Privacy loss of one embedding; smaller protects more.
    dim
        Length of an embedding (256).
    mechanism
        What to use instead of the recommended one; `edgeveil mechanisms` lists them.
    model
        joint: an embedding is for its node's owner alone. public: anyone may see all of them.
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
    insecure_seed
        Repeatable noise, for tests and demonstrations. The result is then NOT private.
    """
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.reading import read_and_say
    from edgeveil.engine import release
    from edgeveil.errors import ParameterError
    from edgeveil.privacy.ledger import Ledger
    from edgeveil.privacy.noise import NoiseSource

    if out.suffix not in (".parquet", ".json"):
        raise ParameterError(f"--out must end in .parquet or .json, got {out.name!r}")
    options = {"epsilon": epsilon, "model": model, "sigma": sigma, "restart": restart}
    chosen = make_mechanism(mechanism, "embeddings", dimension=dim, **options)
    private_graph = read_and_say(graph, nodes, directed, header, counts=verbose)
    made = release(
        private_graph,
        chosen,
        private_graph.nodes,
        ledger=Ledger.open(ledger) if ledger else None,
        noise=None if insecure_seed is None else NoiseSource.insecure(insecure_seed),
    )
    made.write(out)
    say(f"{out}: {len(made.sources):,} embeddings of length {len(made.columns)}. {made.guarantee}")
