"""What every mechanism is: one abstract class, private or not.

guarantee    what is protected; sees no graph, so it cannot depend on the data
shared       statistics of the graph that all members share, before their noise
fit_shared   estimates from the noised shared statistics: post-processing, once
measure      statistics of the graph for some sources, before their noise
estimate     rows from noised statistics and the members' own lists: post-processing

`edgeveil.mechanisms.run` drives it. Only `shared` and `measure` see the graph, and their output
passes through `privacy.statistic.randomise` before anybody sees it. So a row is private if the
sensitivities that the statistics declare are true.
"""

from __future__ import annotations

import math
import re
from abc import ABC
from collections.abc import Callable, Generator, Iterator
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self, cast, dataclass_transform

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_bool, check_choice
from edgeveil._internal.paper_names import refuse_paper_names
from edgeveil.errors import ParameterError
from edgeveil.estimate.hashing import check_dimension, check_hash_key
from edgeveil.estimate.lists import Candidates, Evidence, Lists
from edgeveil.estimate.rows import LocalViews as LocalViews
from edgeveil.flow.bounds import check_bound
from edgeveil.flow.walk import check_restart, check_tol
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, KnownEdges, Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import AnyStatistic, Noised, Statistic
from edgeveil.results.predictions import Predictions
from edgeveil.results.provenance import Metadata
from edgeveil.results.provenance import OutputKind as OutputKind
from edgeveil.results.release import Release

Rows = npt.NDArray[np.float64]

Statistics = Generator[AnyStatistic, Noised, None]
"""A generator of statistics: each one is sent back noised before it yields the next."""

_WORD_BEGINS = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Mechanism(ABC):  # what a class lacks: `requirements.missing_parts`
    """A way to make rows of scores, lists or embeddings from a graph, with its guarantee.

    A subclass is a frozen, keyword-only dataclass without saying so. Its fields are public
    parameters and are checked on construction, before any graph is read. What it does not
    override, it does not do: by default nothing is shared, nothing is measured, and there are no
    lists, no promise, no uncertainty and no hard pairs.

    Attributes
    ----------
    name : str
        What commands and records call it; by default made of the name of the class, as two-hop
        of TwoHop. A subclass is another mechanism, so it does not inherit a name.
    output : {"scores", "lists", "embeddings", "predictions"}
        What a row is.
    theorem : str
        Why the guarantee holds: the page of the proof, or the proof in a few words. No default.
    when_to_use : str
        For people who choose.
    shared_rounds : int
        How many statistics `shared` yields; for the progress.
    model, directed : str, bool
        Who may see a row, and whether graphs are directed; fields of mechanisms that offer both.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    output: ClassVar[OutputKind] = "scores"
    theorem: ClassVar[str]
    when_to_use: ClassVar[str] = ""
    shared_rounds: ClassVar[int] = 1
    model: str = "joint"
    directed: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = _WORD_BEGINS.sub("-", cls.__name__.strip("_")).lower()
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        """Check fields by their names: one name means the same in all mechanisms.

        Numbers of numpy become Python's: those of narrow types would round what noise is made of.
        """
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, parameter.name, value.item())
            if check := _CHECKS.get(parameter.name):
                check(getattr(self, parameter.name))

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Answer the paper's symbols (alpha, R, xi) with the names of fields."""
        refuse_paper_names(cls.__name__, parameters, getattr(cls, "__dataclass_fields__", ()))
        return super().__new__(cls)

    def guarantee(self, n_members: int) -> Guarantee:
        """What a release for this many sources protects.

        By default every row is a release of its own: `epsilon` for each member in the joint model,
        `epsilon` for each source, added up, in the public model.
        """
        epsilon = exact_epsilon(self.epsilon)  # type: ignore[attr-defined]  # or it overrides this
        rows = n_members if self.model == "public" else 1
        return Guarantee(
            epsilon=float(epsilon * rows),
            model=cast("Model", self.model),
            n_members=n_members,
            theorem=self.theorem,
        )

    def shared(self, graph: Graph) -> Statistics:
        """Yield statistics of one row that all members share; by default none.

        In rounds: each statistic is sent back noised, so that the next may depend on it. Their
        epsilons add up to at most the shared epsilon of the guarantee.
        """
        yield from ()

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> Any:
        """What follows from the noised shared statistics, computed once. Does not see the graph."""
        return None

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """Yield statistics with one row for each of `views.sources`; by default none.

        In rounds, as in `shared`. Row i must be a function of the graph, `shared`, source i and
        the noised values of source i, not of the other sources: any grouping of them gives the
        same rows.
        """
        yield from ()

    def estimate(self, noised: tuple[Noised, ...], shared: Any, views: LocalViews) -> Any:
        """One row for each of `views.sources`, from released values and the own lists only.

        Rows are an array; if the mechanism gives suggestions they are `Evidence`, from which
        `lists` makes the lists. By default the last noised statistic, unchanged.

        `noised` has the noised statistics of `measure`, in order; its arrays may be overwritten.
        In the public model the lists in `views` are empty.
        """
        return noised[-1].values

    def lists(
        self,
        evidence: Evidence,
        shared: Any,
        views: LocalViews,
        k: int,
        candidates: Candidates | None = None,
    ) -> Lists:
        """The k best candidates for each member: post-processing, possible at any time.

        Pass `candidates` on to `edgeveil.estimate.lists.make_lists`, which applies them.

        A mechanism that gives suggestions overrides it.
        """
        raise ParameterError(f"{self.name} makes no lists")

    def published(self, shared: Any, nodes: NodeSet, metadata: Metadata) -> Release | Predictions:
        """What a release for everybody gives, from what `fit_shared` gave alone: post-processing.

        A mechanism that overrides it has nothing to measure for single members: its shared
        statistics are all that it releases. Its guarantee must be public, and the same for any
        number of members.
        """
        raise ParameterError(f"{self.name} releases rows of members, and nothing for everybody")

    def check_nodes(self, nodes: NodeSet) -> None:  # noqa: B027  # nothing to refuse
        """Refuse (ParameterError) a node set that cannot be served, before anything is charged.

        For example calibrate the noise once, so that it cannot fail after the charge.
        """

    def check_promise(self, graph: Graph) -> None:  # noqa: B027  # no promise
        """Refuse (PromiseError) a graph that breaks a public promise about every possible graph.

        The refusal is outside of the guarantee.
        """

    def uncertainty(self, rows: Rows, shared: Any, views: LocalViews) -> Rows | None:
        """Half-widths of 95 % intervals around the scores in `rows`, which `estimate` gave.

        Of shape (sources, 1) or (sources, nodes). A score without noise lies within this distance
        of the released one, with probability 95 %. The mechanism documents what "without noise"
        means and what the probability is over. Model error (caps, far hops) is not covered.
        Post-processing: it reads no private edge and draws nothing. None: it is not known.
        """
        return None

    def hard_pairs(self) -> Iterator[Pair]:
        """Neighbouring graphs on which the privacy loss is near epsilon, for audits.

        A function of public parameters alone.
        """
        return iter(())

    @classmethod
    def tight_case(cls) -> tuple[Self, Pair] | None:
        """Parameters and a pair for which the privacy loss is at least 0.9 of epsilon."""
        return None


def check_model(model: str) -> str:
    """Refuse anything but the two privacy models."""
    return check_choice("model", model, "joint", "public")


_FLAGS = ("directed", "knows_followers", "densely", "hashed")

_CHECKS: dict[str, Callable[[Any], object]] = {
    **{name: partial(check_bool, name) for name in _FLAGS},
    "epsilon": check_epsilon,
    "model": check_model,
    "restart": check_restart,
    "tol": check_tol,
    "bound": check_bound,
    "score": lambda score: check_choice("score", score, "pagerank", "lift"),
    "dimension": check_dimension,
    "hash_key": check_hash_key,
}


def partly_shared_guarantee(
    epsilon: float, shared: Fraction, n_members: int, theorem: str
) -> Guarantee:
    """Epsilon to each member, of which `shared` is drawn once for all members."""
    nearest = float(shared)  # rounded down: it counts once, however many members combine lists
    below = nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)
    return Guarantee(
        epsilon=epsilon,
        model="joint",
        n_members=n_members,
        theorem=theorem,
        shared_epsilon=below,
    )


class OnceForAll(Mechanism):
    """Base for mechanisms whose noise is drawn once for everybody."""

    epsilon: float

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=cast("Model", self.model),
            n_members=n_members,
            theorem=self.theorem,
            collusion="shared",
        )


class OwnListOnly(Mechanism):
    """Base for mechanisms that use nothing but the member's own list: epsilon 0."""

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon 0: a row reveals nothing about edges that do not touch its source."""
        return Guarantee(
            epsilon=0.0,
            model="joint",
            n_members=n_members,
            theorem=self.theorem,
            collusion="shared",
        )


def laplace_statistic(
    values: npt.ArrayLike, *, sensitivity: float, epsilon: float, error: float = 0.0
) -> Statistic:
    """Rows of numbers with the Laplace noise for their sensitivity.

    Parameters
    ----------
    values : array of shape (rows, width), or (width,) for a single row
        They are copied.
    sensitivity : float
        Proven bound on the L1 distance between the rows of two neighbouring graphs.
    epsilon : float
        Privacy loss of a row.
    error : float
        Proven bound on the L1 distance between a row as computed and as defined; whole numbers
        have none.
    """
    rows = np.array(values, dtype=np.float64, order="C", ndmin=2)
    noise = calibrate(
        coordinates=max(rows.shape[1], 1),
        sensitivity=sensitivity,
        epsilon=exact_epsilon(epsilon),
        error=error,
    )
    return Statistic(rows, noise)


def laplace_uncertainty(rows: Rows, calibration: Calibration) -> Rows:
    """Half-widths of 95 % intervals around rows that have Laplace noise and nothing else.

    P(|noise| > b ln 20) = 1/20 for noise of scale b. Rounding to the lattice moves a value by half
    a step more.
    """
    half = math.log(20) * calibration.noise_scale + 2.0**calibration.step_log2
    return np.full((len(rows), 1), half)


def local_views(
    graph: Graph, sources: npt.ArrayLike, model: str, known_edges: KnownEdges = "incident"
) -> LocalViews:
    """The neighbour list of each source, which its member knows; empty in the public model.

    In a directed graph those whom the member follows; if its known edges are "incident", also its
    followers.
    """
    at = np.asarray(sources, dtype=np.int64)
    if model == "public":
        none = np.empty(0, dtype=np.int64)
        return LocalViews(at, none, np.zeros(len(at) + 1, dtype=np.int64), graph.nodes)
    lists = [graph.neighbours(int(source)) for source in at]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    followers: tuple[npt.NDArray[np.integer], ...] = ()
    if graph.directed and known_edges == "incident":
        followers = tuple(map(graph.followers, at))
    first_seen = None
    if graph.first_seen is not None:
        rows = [graph.first_seen[graph.indptr[s] : graph.indptr[s + 1]] for s in at.tolist()]
        first_seen = np.concatenate([np.empty(0, dtype=graph.first_seen.dtype), *rows])
    return LocalViews(at, flat, starts, graph.nodes, followers, first_seen)
