"""Options that several commands have: their types and what ``--help`` says of them.

What belongs together is one frozen class, whose fields become options of the command that takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from edgeveil.cli.output import Format as OutputFormat
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.engine import Engine


def default(words: str) -> Parameter:
    """What ``--help`` shows as the default of an option that is None if left out."""
    return Parameter(show_default=lambda _: words)


def option(words: str, if_left_out: str | None = None, **more: Any) -> Parameter:
    """The help of an option, and what happens without it if its default does not say that."""
    if if_left_out is not None:
        more["show_default"] = lambda _: if_left_out
    return Parameter(help=words, **more)


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
EmbeddingMechanism = Literal["own-list-embedding", "instant-embedding", "embedding-sparse"]
ListMechanism = Literal["suggest"]
# Or one from outside, by the name that its package announces or by its place.
AnyScoreMechanism = ScoreMechanism | str
AnyEmbeddingMechanism = EmbeddingMechanism | str
AnyListMechanism = ListMechanism | str
AnyMechanism = ListMechanism | ScoreMechanism | EmbeddingMechanism | str
WHICH_MECHANISM = (
    "Which to take: `edgeveil mechanisms` says what each is for. One of your own: "
    "package.module:Class."
)
RECOMMENDED = option(WHICH_MECHANISM, "the recommended one")

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Words = Annotated[str, Parameter(show_default=False)]
Named = Annotated[list[str] | None, Parameter(negative="")]
Candidates = Annotated[Path | None, default("all nodes")]
Length = Annotated[int, Parameter(name=("-k", "--top"))]
Format = Annotated[OutputFormat, option("table, json or csv.")]
GraphPath = Annotated[Path, option("Edge list, Parquet, .mat, MatrixMarket or a graph folder.")]
# Text always; that it may be a path tells shells to complete the names of files.
LedgerAt = str | Path
Day = date | datetime
LedgerPlace = Annotated[LedgerAt, option("The ledger's file, or its postgresql:// address.")]
Epsilon = Annotated[
    float | None,
    option(
        "Privacy loss of one list, ranking or embedding; smaller is more private. Required; there "
        "is no safe default."
    ),
]
Settings = Annotated[
    Named,
    option(
        "Any other parameter of the mechanism, as name=value; may be given more than once.",
        name="--set",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    option(
        "TOML file with defaults: [rank], then epsilon = 1, and so on. No file is read unasked.",
        "the file that EDGEVEIL_CONFIG names, if any",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GraphFile:
    """How the file with the graph is to be read.

    Parameters
    ----------
    nodes
        File with one node id per line: the public node set.
    header
        Whether the first line of a text file holds names.
    columns
        The two columns with ids: their names in the first line, or positions from 0.
    directed
        keep: a line, or a row and column of a matrix, means that the first follows the second, for
        suggestions of whom to follow. ignore: every arc is an undirected edge, as the lines of an
        edge list are in any case. refuse: so is a matrix that is not symmetric.
    """

    nodes: Annotated[
        Path | None,
        default("those in the file; who is in an edge list at all is then not protected"),
    ] = None
    header: Annotated[bool | None, default("guessed")] = None
    columns: Annotated[str | None, default("the first two, if that is clear")] = None
    directed: Literal["refuse", "ignore", "keep"] = "refuse"

    @property
    def pair(self) -> tuple[str | int, str | int] | None:
        """The two columns, as `edgeveil.read_graph` takes them."""
        if self.columns is None:
            return None
        words = [word.strip() for word in self.columns.split(",")]
        if len(words) != 2 or not all(words):
            raise ParameterError(f"--columns takes two: --columns from,to, got {self.columns!r}")
        first, second = (int(word) if word.isdecimal() else word for word in words)
        return first, second


@Parameter(name="*", group="Reading, paying, computing, printing")
@dataclass(frozen=True, kw_only=True)
class Releasing(GraphFile):
    """How a release is made: from which file, who pays, with which noise, where; what is said.

    Parameters
    ----------
    ledger
        Budget to charge; made by `edgeveil ledger create`.
    label
        With a ledger: the public name of the graph, if the ledger is for several.
    purpose
        With a ledger: what the release is for.
    operator
        With a ledger: who makes the release.
    skip_exhausted
        With a ledger: leave out members whose budget does not allow a result, and count them.
        Without it, nobody is served if one cannot be.
    overwrite
        Replace a file or folder that is there already. Without it, nothing is replaced.
    dry_run
        Print the price and what is left; charge and draw nothing.
    yes
        Do not ask before charging (asked on a terminal only).
    insecure_seed
        Repeatable noise, for tests and demonstrations. The result is then NOT private.
    engine
        Where to compute: threads of this machine, or a Ray cluster (edgeveil[ray]).
    address
        Of the Ray cluster: host:port, or auto.
    workers
        Threads or Ray workers.
    verbose
        Say how many edges were read and normalised: exact counts, for the curator only.
    format
        How what goes to no file is printed: table, json or csv.
    """

    ledger: Annotated[LedgerAt | None, default("no budget is charged")] = None
    label: Words = ""
    purpose: Words = ""
    operator: Words = ""
    skip_exhausted: Flag = False
    overwrite: Flag = False
    dry_run: Flag = False
    yes: Flag = False
    insecure_seed: Annotated[int | None, default("fresh secure noise")] = None
    engine: Literal["local", "ray"] = "local"
    address: Annotated[str | None, default("a cluster is started for this call")] = None
    workers: Annotated[int | None, default("as many as processors")] = None
    verbose: Flag = False
    format: OutputFormat = "table"
    config: Config = None

    def make_engine(self) -> Engine:
        """The engine that was asked for."""
        from edgeveil.engine import Local, Ray

        if self.engine == "ray":
            return Ray(address=self.address, workers=self.workers)
        if self.address is not None:
            raise ParameterError("--address is the address of a Ray cluster: add --engine ray")
        return Local(threads=self.workers)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Lists:
    """Which lists of suggestions are to be made.

    Parameters
    ----------
    member
        Id of a member to make a list for; may be given more than once.
    members
        File with one id per line, instead: a list for each of them.
    k
        How many people a list names, at most. With a ledger another number costs nothing.
    """

    member: Named = None
    members: Path | None = None
    epsilon: Epsilon = None
    k: Length = 20


@Parameter(name="*", group="Parameters of mechanisms")
@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters that several mechanisms have, by the names of their fields, and all others.

    Parameters
    ----------
    model
        Who may see a result: the member it is for, or anyone (losses of embeddings add up).
    sigma
        Sensitivity that a capped flow is held to.
    restart
        Restart probability of the walk.
    rounds
        Rounds of a push flow; --set rounds=none is the fixed point.
    xi
        Instead of --rounds: residual that they leave at most, as in the paper.
    bound
        Which theorem on the sensitivity is used: ours or the paper's.
    prepush
        Start a push flow at the source's neighbours (the paper's heuristic). Joint model only.
    promised_min_degree
        For push-flow, which needs it: the promise that its guarantee rests on.
    """

    model: Annotated[Literal["joint", "public"] | None, default("joint")] = None
    sigma: Annotated[float | None, default("1e-6")] = None
    restart: Annotated[float | None, default("0.15; for graph-diffusion 1/3")] = None
    rounds: Annotated[int | None, default("100; for forward-cap the fixed point")] = None
    xi: Annotated[float | None, default("as --rounds says")] = None
    bound: Annotated[Literal["tight", "paper"] | None, default("tight")] = None
    prepush: Annotated[bool | None, Parameter(negative=""), default("no")] = None
    promised_min_degree: Annotated[int | None, default("none")] = None
    settings: Settings = None

    def given(self) -> dict[str, Any]:
        """What `make_mechanism` takes of them."""
        from edgeveil.flow.walk import rounds_for

        asked = dict(vars(self))
        xi = asked.pop("xi")
        if xi is not None:
            if self.rounds is not None:
                raise ParameterError("--xi and --rounds say the same: give one of them")
            asked["rounds"] = rounds_for(xi, 0.15 if self.restart is None else self.restart)
        return asked


# What a command has if none of their options is given.
GRAPH_FILE = GraphFile()
RELEASING = Releasing()
LISTS = Lists()
PARAMETERS = Parameters()
