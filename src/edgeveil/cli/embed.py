"""``edgeveil embed``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeveil.cli.options import (
    Config,
    Directed,
    DryRun,
    EmbeddingMechanism,
    EngineAddress,
    EngineName,
    EngineWorkers,
    Header,
    InsecureSeed,
    LedgerAt,
    Model,
    NodeList,
    Nonce,
    Restart,
    Sigma,
    Verbose,
    Yes,
)
from edgeveil.cli.output import Format, say

__all__ = ["embed"]


def embed(
    graph: Path,
    /,
    *,
    out: Path,
    epsilon: float | None = None,
    dim: int | None = None,
    sources: Path | None = None,
    mechanism: EmbeddingMechanism | None = None,
    model: Model | None = None,
    sigma: Sigma = None,
    restart: Restart = None,
    ledger: LedgerAt = None,
    nonce: Nonce = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    nodes: NodeList = None,
    directed: Directed = False,
    header: Header = None,
    verbose: Verbose = False,
    engine: EngineName = "local",
    address: EngineAddress = None,
    workers: EngineWorkers = None,
    format: Format = "table",  # noqa: A002  (the option's name)
    insecure_seed: InsecureSeed = None,
    config: Config = None,
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
        Privacy loss of one embedding; smaller protects more.
    dim
        Length of an embedding (256).
    sources
        File with one id per line: embed these nodes only.
    mechanism
        What to use instead of the recommended one; `edgeveil mechanisms` says when.
    model
        joint: an embedding is for its node's owner alone. public: anyone may see all of them,
        and their losses add up.
    format
        How --dry-run prints the price: table, json or csv.
    """
    from edgeveil.cli.budget import print_price, spending
    from edgeveil.cli.engines import make_engine
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting
    from edgeveil.cli.reading import check_out, read_and_say, wanted_nodes
    from edgeveil.engine import release, release_to
    from edgeveil.privacy.noise import NoiseSource

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
    check_out(out, (graph, nodes, sources), folder=True)
    private_graph = read_and_say(graph, nodes, directed, header, counts=verbose)
    everyone = private_graph.nodes
    wanted = wanted_nodes(everyone, None, sources) if sources else everyone
    if dry_run:
        print_price(private_graph, chosen, wanted, ledger, format, nonce)
        return
    noise = None if insecure_seed is None else NoiseSource.insecure(insecure_seed)
    with spending(ledger, yes=yes) as budget, counting("embeddings") as progress:
        how: dict[str, Any] = {"ledger": budget, "nonce": nonce, "noise": noise}
        how |= {"engine": where, "progress": progress}
        if out.suffix:
            made = release(private_graph, chosen, wanted, **how)
            made.write(out)
            guarantee = made.guarantee
        else:
            guarantee = release_to(out, private_graph, chosen, wanted, **how).guarantee
    say(f"{out}: {len(wanted):,} embeddings. {guarantee}")
