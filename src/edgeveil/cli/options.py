"""Options that several commands have: their types and what ``--help`` says of them.

What belongs together is one class, whose fields become options of the command that takes it;
the text below a field is its help.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from edgeveil.cli.output import Format

if TYPE_CHECKING:
    from edgeveil.engine import Engine


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
# Or one from outside, by the name that its package announces or by its place.
AnyScoreMechanism = ScoreMechanism | str
AnyEmbeddingMechanism = EmbeddingMechanism | str
AnyListMechanism = ListMechanism | str
AnyMechanism = ListMechanism | ScoreMechanism | EmbeddingMechanism | str
Model = Annotated[Literal["joint", "public"] | None, default("joint")]

# Text always; that it may be a path tells shells to complete the names of files.
LedgerAt = str | Path
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
ArcsAsEdges = Annotated[
    Flag,
    Parameter(
        help="Allow a matrix (.mat, MatrixMarket) that is not symmetric. Every arc is read as an "
        "undirected edge, as the lines of an edge list always are."
    ),
]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        show_default=False,
        help="Any other parameter of the mechanism, as name=value; may be given more than once.",
    ),
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
        default("those in the file; who is in an edge list at all is then not protected"),
    ] = None
    """File with one node id per line: the public node set."""
    header: Annotated[bool | None, default("guessed")] = None
    """Whether the first line of a text file holds names."""
    columns: Annotated[str | None, default("the first two, if that is clear")] = None
    """The two columns with ids, of text and Parquet: their names in the first line, or their
    positions from 0. For instance: from,to"""

    @property
    def pair(self) -> tuple[str | int, str | int] | None:
        """The two columns, as `edgeveil.read_graph` takes them."""
        from edgeveil.errors import ParameterError

        if self.columns is None:
            return None
        words = [word.strip() for word in self.columns.split(",")]
        if len(words) != 2 or not all(words):
            raise ParameterError(f"--columns takes two: --columns from,to, got {self.columns!r}")
        first, second = (int(word) if word.isdecimal() else word for word in words)
        return first, second


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Budget:
    """Who pays for a release, and with which noise."""

    ledger: Annotated[LedgerAt | None, default("nobody keeps count")] = None
    """Budget to charge; made by `edgeveil ledger create`."""
    label: Annotated[str, Parameter(show_default=False)] = ""
    """With a ledger: the public name of the graph, if the ledger is for several."""
    purpose: Annotated[str, Parameter(show_default=False)] = ""
    """With a ledger: what the release is for."""
    operator: Annotated[str, Parameter(show_default=False)] = ""
    """With a ledger: who makes the release."""
    dry_run: Flag = False
    """Print the price and what is left; charge and draw nothing."""
    yes: Flag = False
    """Do not ask before spending (asked on a terminal only)."""
    insecure_seed: Annotated[int | None, default("fresh secure noise")] = None
    """Repeatable noise, for tests and demonstrations. The result is then NOT private."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters that several mechanisms have, by the names of their fields, and all others."""

    model: Model = None
    """joint: what is made for a node is for its owner alone. public: anyone may see it, and the
    losses of several embeddings add up."""
    sigma: Annotated[float | None, default("1e-6")] = None
    """Sensitivity that a capped flow is held to."""
    restart: Annotated[float | None, default("0.15; for graph-diffusion 1/3")] = None
    """Restart probability of the walk."""
    rounds: Annotated[int | None, default("100; for forward-cap the fixed point")] = None
    """Rounds of a push flow; --set rounds=none is the fixed point."""
    xi: Annotated[float | None, default("as --rounds says")] = None
    """Instead of --rounds: residual that they leave at most, as in the paper."""
    bound: Annotated[Literal["tight", "paper"] | None, default("tight")] = None
    """Which theorem on the sensitivity is used: ours or the paper's."""
    prepush: Annotated[bool | None, Parameter(negative=""), default("no")] = None
    """Start a push flow at the source's neighbours (the paper's heuristic). Joint model only."""
    promised_min_degree: Annotated[int | None, default("none")] = None
    """For push-flow, which needs it: the promise that its guarantee rests on."""
    settings: Settings = None

    def given(self) -> dict[str, Any]:
        """What `make_mechanism` takes of them."""
        from edgeveil.errors import ParameterError
        from edgeveil.flow.walk import rounds_for

        asked = dict(vars(self))
        xi = asked.pop("xi")
        if xi is not None:
            if self.rounds is not None:
                raise ParameterError("--xi and --rounds say the same: give one of them")
            asked["rounds"] = rounds_for(xi, 0.15 if self.restart is None else self.restart)
        return asked


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """Where rows are computed."""

    engine: Literal["local", "ray"] = "local"
    """Where to compute: threads of this machine, or a Ray cluster (edgeveil[ray])."""
    address: Annotated[str | None, default("a cluster is started for this call")] = None
    """Of the Ray cluster: host:port, or auto."""
    workers: Annotated[int | None, default("as many as processors")] = None
    """Threads or Ray workers."""

    def make(self) -> Engine:
        """The engine that was asked for."""
        from edgeveil.engine import Local, Ray
        from edgeveil.errors import ParameterError

        if self.engine == "ray":
            return Ray(address=self.address, workers=self.workers)
        if self.address is not None:
            raise ParameterError("--address is the address of a Ray cluster: add --engine ray")
        return Local(threads=self.workers)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is said and printed of a release."""

    verbose: Flag = False
    """Say how many edges were read and normalised: the curator's, not private."""
    format: Format = "table"
    """How what goes to no file is printed: table, json or csv."""
    config: Config = None


# What a command has if none of their options is given.
GRAPH_FILE = GraphFile()
BUDGET = Budget()
PARAMETERS = Parameters()
ENGINE = EngineChoice()
SHOWN = Shown()
