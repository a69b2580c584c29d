"""Options that several commands have: their types and what ``--help`` says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

__all__ = [
    "Config",
    "Directed",
    "DryRun",
    "EmbeddingMechanism",
    "EngineAddress",
    "EngineName",
    "EngineWorkers",
    "Flag",
    "Header",
    "InsecureSeed",
    "LedgerAt",
    "Model",
    "NodeList",
    "Nonce",
    "PromisedMinDegree",
    "Restart",
    "ScoreMechanism",
    "Sigma",
    "Verbose",
    "Yes",
]

# Written out, because importing the mechanisms takes longer than `--help` may; a test compares.
ScoreMechanism = Literal[
    "two-hop",
    "degree-prior",
    "push-flow-cap",
    "forward-cap",
    "push-flow",
    "sparse-ppr",
    "edge-flipping",
    "graph-diffusion",
    "own-neighbours",
    "non-private",
]
EmbeddingMechanism = Literal["two-hop-embedding", "instant-embedding", "embedding-sparse"]
Model = Literal["joint", "public"]

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Sigma = Annotated[float | None, Parameter(help="Sensitivity that a capped flow is held to.")]
Restart = Annotated[float | None, Parameter(help="Restart probability of the walk (0.15).")]
PromisedMinDegree = Annotated[
    int | None, Parameter(help="For push-flow: the promise that its guarantee rests on.")
]
LedgerAt = Annotated[
    str | None, Parameter(help="Budget to charge; made by `edgeveil ledger create`.")
]
Nonce = Annotated[
    str,
    Parameter(
        help="With a ledger: any other word asks for a fresh release, charged anew.",
        show_default=False,
    ),
]
NodeList = Annotated[
    Path | None, Parameter(help="File with one node id per line: the public node set.")
]
Directed = Annotated[Flag, Parameter(help="Read every arc as an undirected edge.")]
Header = Annotated[
    bool | None,
    Parameter(help="Whether the first line of a text file holds names; guessed if left out."),
]
Verbose = Annotated[
    Flag,
    Parameter(
        help="Say how many edges were read and normalised: the curator's, not private.",
    ),
]
DryRun = Annotated[
    Flag,
    Parameter(help="Print the price and what is left; charge and draw nothing."),
]
Yes = Annotated[Flag, Parameter(help="Do not ask before spending (asked on a terminal only).")]
EngineName = Annotated[
    Literal["local", "ray"],
    Parameter(help="Where to compute: threads of this machine, or a Ray cluster (edgeveil[ray])."),
]
EngineAddress = Annotated[
    str | None,
    Parameter(help="Of the Ray cluster: host:port, or auto; else one is started for this call."),
]
EngineWorkers = Annotated[
    int | None, Parameter(help="Threads or Ray workers; as many as there are processors.")
]
InsecureSeed = Annotated[
    int | None,
    Parameter(
        help="Repeatable noise, for tests and demonstrations. The result is then NOT private."
    ),
]
Config = Annotated[
    Path | None,
    Parameter(
        help="TOML file with defaults: [rank], then epsilon = 1, and so on. Else the file that "
        "EDGEVEIL_CONFIG names. No file is read unasked."
    ),
]
