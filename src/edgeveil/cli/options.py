"""Options that several commands have: their types and what ``--help`` says of them.

What belongs together is one class, whose fields become options of the command that takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from edgeveil.graph import Directed

__all__ = [
    "BUDGET",
    "FOLLOWS_FILE",
    "GRAPH_FILE",
    "Budget",
    "Config",
    "Dimension",
    "EmbeddingMechanism",
    "EngineAddress",
    "EngineName",
    "EngineWorkers",
    "Flag",
    "FollowsFile",
    "GraphFile",
    "LedgerAt",
    "ListMechanism",
    "Model",
    "PromisedMinDegree",
    "Restart",
    "ScoreMechanism",
    "Sigma",
    "Verbose",
    "default",
]


def default(words: str) -> Parameter:
    """What ``--help`` shows as the default of an option that is None if left out."""
    return Parameter(show_default=lambda _: words)


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
ListMechanism = Literal["suggest"]
Model = Annotated[Literal["joint", "public"] | None, default("joint")]

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Sigma = Annotated[
    float | None,
    Parameter(help="Sensitivity that a capped flow is held to."),
    default("1e-6"),
]
Restart = Annotated[
    float | None,
    Parameter(help="Restart probability of the walk."),
    default("0.15; for graph-diffusion 1/3"),
]
Dimension = Annotated[
    int | None, Parameter(help="Length of an embedding."), default("the mechanism's own")
]
PromisedMinDegree = Annotated[
    int | None,
    Parameter(help="For push-flow, which needs it: the promise that its guarantee rests on."),
]
Verbose = Annotated[
    Flag,
    Parameter(
        help="Say how many edges were read and normalised: the curator's, not private.",
    ),
]
# Text always; that it may be a path tells shells to complete the names of files.
LedgerAt = str | Path
EngineName = Annotated[
    Literal["local", "ray"],
    Parameter(help="Where to compute: threads of this machine, or a Ray cluster (edgeveil[ray])."),
]
EngineAddress = Annotated[
    str | None,
    Parameter(help="Of the Ray cluster: host:port, or auto."),
    default("a cluster is started for this call"),
]
EngineWorkers = Annotated[
    int | None, Parameter(help="Threads or Ray workers."), default("as many as processors")
]
Config = Annotated[
    Path | None,
    Parameter(
        help="TOML file with defaults: [rank], then epsilon = 1, and so on. No file is read "
        "unasked."
    ),
    default("the file that EDGEVEIL_CONFIG names, if any"),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GraphFile:
    """How the file with the graph is to be read."""

    nodes: Annotated[
        Path | None,
        Parameter(help="File with one node id per line: the public node set."),
        default("those in the file; who is in an edge list at all is then not protected"),
    ] = None
    directed: Annotated[
        Flag,
        Parameter(
            help="Allow a matrix (.mat, MatrixMarket) that is not symmetric. Every arc is read as "
            "an undirected edge, as the lines of an edge list always are."
        ),
    ] = False
    header: Annotated[
        bool | None,
        Parameter(help="Whether the first line of a text file holds names."),
        default("guessed"),
    ] = None

    @property
    def arcs(self) -> Directed:
        """What is done with arcs, in the words of `edgeveil.read_graph`."""
        return self.directed


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FollowsFile(GraphFile):
    """The same where directions may be kept."""

    directed: Annotated[
        Flag,
        Parameter(
            help="Keep directions: a line, or a row and column of a matrix, says that the first "
            "follows the second."
        ),
    ] = False

    @property
    def arcs(self) -> Directed:
        """Kept, if directions are asked for."""
        return "keep" if self.directed else False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Budget:
    """Who pays for a release, and with which noise."""

    ledger: Annotated[
        LedgerAt | None,
        Parameter(help="Budget to charge; made by `edgeveil ledger create`."),
        default("nobody keeps count"),
    ] = None
    label: Annotated[
        str,
        Parameter(
            help="With a ledger: the public name of the graph, if the ledger is for several.",
            show_default=False,
        ),
    ] = ""
    purpose: Annotated[
        str,
        Parameter(help="With a ledger: what the release is for.", show_default=False),
    ] = ""
    operator: Annotated[
        str,
        Parameter(help="With a ledger: who makes the release.", show_default=False),
    ] = ""
    dry_run: Annotated[
        Flag,
        Parameter(help="Print the price and what is left; charge and draw nothing."),
    ] = False
    yes: Annotated[
        Flag, Parameter(help="Do not ask before spending (asked on a terminal only).")
    ] = False
    insecure_seed: Annotated[
        int | None,
        Parameter(
            help="Repeatable noise, for tests and demonstrations. The result is then NOT private."
        ),
        default("fresh secure noise"),
    ] = None


# What a command has if none of their options is given.
GRAPH_FILE = GraphFile()
FOLLOWS_FILE = FollowsFile()
BUDGET = Budget()
