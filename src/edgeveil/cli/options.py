"""Options that several commands have: their types and what ``--help`` says of them.

What belongs together is one frozen class, whose fields become options of the command that takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from edgeveil._internal.checks import check_int, positive
from edgeveil.cli.output import Format as OutputFormat
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.jobs import Engine


def default(words: str) -> Parameter:
    """What ``--help`` shows as the default of an option that is None if left out."""
    return Parameter(show_default=lambda _: words)


def option(words: str, if_left_out: str | None = None, **more: Any) -> Parameter:
    """The help of an option, and what happens without it if its default does not say that."""
    if if_left_out is not None:
        more["show_default"] = lambda _: if_left_out
    return Parameter(help=words, **more)


def checked(check: Callable[[Any], object]) -> Parameter:
    """Refuse a value of an option by the library's own check, before the command begins."""
    return Parameter(validator=lambda _, value: None if value is None else check(value))


def check_words(words: str) -> None:
    """Refuse words that are no nouns."""
    from edgeveil.results.nouns import Nouns

    Nouns.of(words)


def check_day(day: str) -> None:
    """Refuse a date that the history does not take."""
    from edgeveil.series.history import as_date

    as_date(day)


def two_columns(columns: str) -> tuple[str | int, str | int]:
    """The two columns of --columns, as `edgeveil.read_graph` takes them."""
    words = [word.strip() for word in columns.split(",")]
    if len(words) != 2 or not all(words):
        raise ParameterError(f"--columns takes two: --columns from,to, got {columns!r}")
    first, second = (int(word) if word.isdecimal() else word for word in words)
    return first, second


# Written out, because importing the mechanisms takes longer than `--help` may; a test compares.
ScoreMechanism = Literal[
    "two-hop",
    "degree-prior",
    "push-flow-cap",
    "push-flow",
    "sparse-ppr",
    "edge-flipping",
    "own-neighbours",
    "non-private",
]
EmbeddingMechanism = Literal[
    "own-list-embedding", "aggregation", "instant-embedding", "embedding-sparse"
]
ListMechanism = Literal["suggest"]
# Or one from outside, by the name that its package announces or as package.module:Class.
AnyScoreMechanism = ScoreMechanism | str
AnyEmbeddingMechanism = EmbeddingMechanism | str
AnyListMechanism = ListMechanism | str
AnyMechanism = ListMechanism | ScoreMechanism | EmbeddingMechanism | str
WHICH_MECHANISM = (
    "The mechanism; `edgeveil mechanisms` says what each is for. Your own: package.module:Class."
)
RECOMMENDED = option(WHICH_MECHANISM, "the recommended one")

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Words = Annotated[str, Parameter(show_default=False)]
Named = Annotated[list[str] | None, Parameter(negative="")]
Candidates = Annotated[Path | None, default("all nodes")]
Length = Annotated[int, Parameter(name=("-k", "--top")), checked(partial(check_int, "-k"))]
ListLength = Annotated[Length, checked(partial(check_int, "-k", least=1, most=10_000))]
Format = Annotated[OutputFormat, option("How the result is printed.")]
GraphPath = Annotated[
    Path, option("The graph: edge list, Parquet, .mat, MatrixMarket or graph folder.")
]
# Text always; that it may be a path tells shells to complete the names of files.
LedgerAt = str | Path
Day = Annotated[str, checked(check_day)]
LedgerPlace = Annotated[LedgerAt, option("The ledger's file, or its postgresql:// address.")]
Loss = Annotated[float | None, checked(partial(positive, "--epsilon"))]
Epsilon = Annotated[
    Loss,
    option(
        "Privacy loss of one list or ranking; smaller is more private. Required; there is no safe "
        "default."
    ),
]
Nouns = Annotated[str | None, default("members,friendships,friends"), checked(check_words)]
Settings = Annotated[
    Named,
    option(
        "Any parameter of the mechanism, as name=value; may be given more than once.",
        name="--set",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    option(
        "TOML file with defaults, such as epsilon = 1 in a table [rank].",
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
        File with one node id per line, the public node set.
    header
        Whether the first line of a text file holds names.
    columns
        The two columns with ids: their names in the first line, or positions from 0.
    key
        The name of the matrix in a .mat file.
    ids
        auto: ids are integers if each is spelt as an integer is (007 and +7 are not), else text.
        text: always.
    one_kind
        Both columns hold the same kind of nodes, although their names differ or they share no id.
    directed
        refuse: a matrix that is not symmetric is an error. ignore: every arc is an undirected edge.
        Either reads a line of an edge list as an undirected edge. keep: a line, or an entry of a
        matrix, means that the first follows the second; lists then say whom to follow.
    """

    nodes: Annotated[
        Path | None,
        default(
            "those in the file, unless a list is required; who is in an edge list at all is then "
            "not protected"
        ),
    ] = None
    header: Annotated[bool | None, default("guessed")] = None
    columns: Annotated[
        str | None, default("the first two, if that is clear"), checked(two_columns)
    ] = None
    key: Annotated[str | None, default("network, or the only square matrix")] = None
    ids: Literal["auto", "text"] = "auto"
    one_kind: Flag = False
    directed: Literal["refuse", "ignore", "keep"] = "refuse"

    @property
    def pair(self) -> tuple[str | int, str | int] | None:
        """The two columns, as `edgeveil.read_graph` takes them."""
        return None if self.columns is None else two_columns(self.columns)

    @property
    def of_edge_lists(self) -> dict[str, Any]:
        """What every reader of edge lists takes; ParameterError if --key says it is none."""
        if self.key is not None:
            raise ParameterError("--key is for a .mat file, which is no edge list")
        names = ("nodes", "header", "ids", "one_kind", "directed")
        return {"columns": self.pair, **{name: getattr(self, name) for name in names}}


@Parameter(name="*", group="Reading, charging, computing, printing")
@dataclass(frozen=True, kw_only=True)
class Releasing(GraphFile):
    """How a release is made: file, budget, noise, engine; and what is printed.

    Parameters
    ----------
    ledger
        The budget to charge, created by `edgeveil ledger create`.
    label
        Public name of the graph, if the ledger is for several graphs.
    purpose
        What the release is for; the ledger notes it.
    operator
        Who makes the release; the ledger notes it.
    skip_exhausted
        Leave out members whose budget does not allow a result, and say how many they are, as
        refresh always does. By default nobody is served if one cannot be.
    overwrite
        Replace a file or folder that exists. By default nothing is replaced.
    dry_run
        Print the price and the remaining budget; charge nothing and draw no noise.
    yes
        Do not ask before charging. Only on a terminal you are asked.
    insecure_seed
        Use repeatable noise, for tests and demonstrations. The result is NOT private.
    engine
        Where to compute: threads of this machine, or a Ray cluster (edgeveil[ray]).
    address
        Address of the Ray cluster: host:port, or auto.
    workers
        Number of threads or of Ray workers.
    verbose
        Print how many edges were read and normalised. The counts are exact: for the curator only.
    format
        How results are printed that are not written to a file.
    """

    ledger: Annotated[LedgerAt | None, default("none, but refresh needs one")] = None
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
    workers: Annotated[
        int | None, default("as many as processors"), checked(partial(check_int, "--workers"))
    ] = None
    verbose: Flag = False
    format: OutputFormat = "table"
    config: Config = None

    def make_engine(self) -> Engine:
        """The engine that was asked for."""
        from edgeveil.jobs import Local, Ray

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
        Id of a member, the person whom a list is for; may be given more than once.
    members
        File with the ids of members who get lists, one per line.
    k
        Length of a list, at most. With a ledger another length costs nothing.
    words
        What members and edges are called in tables and reasons: accounts,payments. A third word is
        for those at the other end of an edge.
    """

    member: Named = None
    members: Path | None = None
    epsilon: Epsilon = None
    k: ListLength = 20
    words: Nouns = None

    @property
    def n_named(self) -> int:
        """In how many ways members are named: by --member, --members or both."""
        return (self.member is not None) + (self.members is not None)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Suggestable:
    """Who may be suggested, and whom not to whom: applied whenever lists are shown, for nothing.

    Parameters
    ----------
    candidates
        File with one id per line. Lists name only these. It must not be made from edges.
    exclude
        File of blocks and dismissals, a line each: member,other keeps both off each
        other's list, member,other,one the other off the member's. It must not be made from edges
        of others. Who notices that a name has gone learns of the block, whatever epsilon.
    """

    candidates: Candidates = None
    exclude: Annotated[Path | None, default("nobody")] = None

    @property
    def files(self) -> tuple[Path | None, Path | None]:
        """Both files."""
        return self.candidates, self.exclude


@Parameter(name="*", group="Parameters of mechanisms")
@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters that several mechanisms have, by the names of their fields, and all others.

    Parameters
    ----------
    model
        Who may see a result: only its member (joint), or anyone (public).
    sigma
        Bound on the sensitivity of a capped flow.
    restart
        Restart probability of the walk.
    rounds
        Rounds of a push flow. --set rounds=none runs it to the fixed point.
    xi
        Largest residual, as in the paper, instead of --rounds.
    bound
        Theorem that bounds the sensitivity: tight is ours, paper is the paper's.
    prepush
        Start a push flow at the source's neighbours, the paper's heuristic. Joint model only.
    promised_min_degree
        Minimum degree of all possible graphs; push-flow needs this promise.
    """

    model: Annotated[Literal["joint", "public"] | None, default("joint")] = None
    sigma: Annotated[float | None, default("1e-6")] = None
    restart: Annotated[float | None, default("0.15")] = None
    rounds: Annotated[int | None, default("100")] = None
    xi: Annotated[float | None, default("as --rounds says")] = None
    bound: Annotated[Literal["tight", "paper"] | None, default("tight")] = None
    prepush: Annotated[bool | None, Parameter(negative=""), default("no")] = None
    promised_min_degree: Annotated[int | None, default("none")] = None
    settings: Settings = None

    def given(self) -> dict[str, Any]:
        """The parameters in the form that `make_mechanism` takes."""
        from edgeveil.flow.walk import rounds_for

        asked = dict(vars(self))
        xi = asked.pop("xi")
        if xi is not None:
            if self.rounds is not None:
                raise ParameterError("--xi and --rounds say the same: give one of them")
            asked["rounds"] = rounds_for(xi, 0.15 if self.restart is None else self.restart)
        return asked


def required_epsilon(epsilon: float | None) -> float:
    """The privacy loss, which has no default; ParameterError if it is missing."""
    if epsilon is None:
        raise ParameterError(
            "--epsilon is required (for example --epsilon 1); smaller is more private"
        )
    return epsilon


# What a command has if none of their options is given.
GRAPH_FILE = GraphFile()
RELEASING = Releasing()
LISTS = Lists()
SUGGESTABLE = Suggestable()
PARAMETERS = Parameters()
