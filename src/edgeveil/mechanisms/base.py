"""The interface of every mechanism, private or not, and base classes for the usual kinds.

guarantee   what is protected; sees no graph, so it cannot depend on the data
shared      statistics of the graph that all members share, before their noise
learn       estimates from the noised shared statistics: post-processing, once
measure     statistics of the graph for some sources, before their noise
estimate    rows from noised statistics and the members' own lists: post-processing

`edgeveil.mechanisms.run` drives it. Only `shared` and `measure` see the graph, and their output
passes through `privacy.statistic.randomise` before anybody sees it. So a row is private if the
sensitivities that the statistics declare are true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Evidence, Lists
from edgeveil.estimate.rows import OwnLists as OwnLists
from edgeveil.flow.bounds import check_bound
from edgeveil.flow.walk import check_restart, check_tol
from edgeveil.graph import Graph
from edgeveil.hashing import check_dimension, check_hash_key
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.nodes import NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model, OwnEdges
from edgeveil.privacy.noise import Calibration
from edgeveil.privacy.statistic import AnyStatistic, Noised, Statistic
from edgeveil.provenance import Gives as Gives

Rows = npt.NDArray[np.float64]
Measuring = Generator[AnyStatistic, Noised, None]


@runtime_checkable
class Mechanism(Protocol):
    """A way to make rows of scores, lists or embeddings from a graph, with its guarantee.

    Mechanisms are frozen, keyword-only dataclasses; their fields are public parameters and
    are checked on construction, before any graph is read.
    """

    name: ClassVar[str]
    gives: ClassVar[Gives]
    when_to_use: ClassVar[str]

    def guarantee(self, n_sources: int) -> Guarantee:
        """What a release for this many sources protects."""
        ...

    def shared(self, graph: Graph) -> AnyStatistic | None:
        """A statistic of one row that all members share, or None."""
        ...

    def learn(self, noised: Noised, nodes: NodeSet) -> Any:
        """What follows from the noised shared statistic, computed once. Does not see the graph."""
        ...

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """Yield statistics with one row for each of `own.sources`.

        Each statistic is sent back noised, so that the next may depend on it. Row i must be a
        function of the graph, `shared`, source i and the noised values of source i, not of the
        other sources: any grouping of them gives the same rows.
        """
        ...

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Any:
        """One row for each of `own.sources`, from released values and the own lists only.

        Rows are an array; if the mechanism gives suggestions they are `Evidence`, from which
        `MakesLists.lists` makes the lists.

        `noised` has the noised statistics of `measure`, in order; its arrays may be overwritten.
        In the public model the lists in `own` are empty.
        """
        ...


@runtime_checkable
class MakesLists(Protocol):
    """A mechanism that gives suggestions: makes lists from its estimates."""

    def lists(
        self,
        evidence: Evidence,
        shared: Any,
        own: OwnLists,
        k: int,
        candidates: npt.NDArray[np.int64] | None = None,
    ) -> Lists:
        """The k best candidates for each member: post-processing, possible at any time."""
        ...


@runtime_checkable
class RestsOnPromise(Protocol):
    """A mechanism whose guarantee needs a public promise about every possible graph."""

    def check_promise(self, graph: Graph) -> None:
        """Refuse a graph that breaks the promise (PromiseError), outside of the guarantee."""
        ...


@runtime_checkable
class ChecksNodes(Protocol):
    """A mechanism that cannot be run on every public node set with its parameters."""

    def check_nodes(self, nodes: NodeSet) -> None:
        """Refuse (ParameterError) a node set that cannot be served, before anything is charged."""
        ...


@runtime_checkable
class KnowsUncertainty(Protocol):
    """A mechanism that gives confidence intervals for its scores.

    Post-processing: it reads no private edge and draws nothing.
    """

    def uncertainty(self, rows: Rows, shared: Any, own: OwnLists) -> Rows:
        """Half-widths of 95 % intervals around the scores in `rows`, which `estimate` gave.

        Of shape (sources, 1) or (sources, nodes). A score without noise lies within this distance
        of the released one, with probability 95 %. The mechanism documents what "without noise"
        means and what the probability is over. Model error (caps, far hops) is not covered.
        """
        ...


@runtime_checkable
class HasHardPairs(Protocol):
    """A mechanism that names neighbouring graphs on which its privacy loss is near its epsilon."""

    def hard_pairs(self) -> Iterator[Pair]:
        """Pairs for these parameters, a function of public parameters alone."""
        ...

    @classmethod
    def tight_case(cls) -> tuple[Mechanism, Pair]:
        """Parameters and a pair for which the privacy loss is at least 0.9 of epsilon."""
        ...


def check_model(model: str) -> str:
    """Refuse anything but the two privacy models."""
    return one_of("model", model, "joint", "public")


_CHECKS: dict[str, Callable[[Any], object]] = {
    "epsilon": check_epsilon,
    "model": check_model,
    "restart": check_restart,
    "tol": check_tol,
    "bound": check_bound,
    "score": lambda score: one_of("score", score, "pagerank", "lift"),
    "dimension": check_dimension,
    "hash_key": check_hash_key,
}


def check_parameters(mechanism: Any) -> None:
    """Check fields by their names: one name means the same in all mechanisms."""
    for field in fields(mechanism):
        if field.name in _CHECKS:
            _CHECKS[field.name](getattr(mechanism, field.name))


def per_source_guarantee(mechanism: Any, n_sources: int) -> Guarantee:
    """Epsilon per member (joint), or per source and added up (public)."""
    model: Model = getattr(mechanism, "model", "joint")  # without such a field: joint only
    rows = n_sources if model == "public" else 1
    return Guarantee(
        epsilon=float(exact_epsilon(mechanism.epsilon) * rows),
        model=model,
        n_sources=n_sources,
        theorem=mechanism.theorem,
    )


def partly_shared_guarantee(
    epsilon: float, shared: Fraction, n_sources: int, theorem: str
) -> Guarantee:
    """Epsilon to each member, of which `shared` is drawn once for all members."""
    nearest = float(shared)  # rounded down: it counts once, however many members combine lists
    below = nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)
    return Guarantee(
        epsilon=epsilon,
        model="joint",
        n_sources=n_sources,
        theorem=theorem,
        shared_epsilon=below,
    )


def share_nothing(mechanism: Any, graph: Graph) -> AnyStatistic | None:
    """Nothing is shared between sources."""
    return None


def learn_nothing(mechanism: Any, noised: Noised, nodes: NodeSet) -> Any:
    """Never called: nothing is shared between sources."""
    raise AssertionError("nothing is shared")


class PerSource:
    """Base for mechanisms that share nothing: each row is a release of its own."""

    theorem: ClassVar[str]  # page of the proof
    epsilon: float

    guarantee = per_source_guarantee
    shared = share_nothing
    learn = learn_nothing


class OnceForAll:
    """Base for mechanisms whose noise is drawn once for everybody."""

    theorem: ClassVar[str]  # page of the proof
    epsilon: float

    def guarantee(self, n_sources: int) -> Guarantee:
        """Epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=getattr(self, "model", "joint"),
            n_sources=n_sources,
            theorem=self.theorem,
            pooling="shared",
        )

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """No statistic for one member alone."""
        yield from ()


class OwnListOnly(PerSource):
    """Base for mechanisms that use nothing but the member's own list: epsilon 0."""

    def guarantee(self, n_sources: int) -> Guarantee:
        """Epsilon 0: a row reveals nothing about edges that do not touch its source."""
        return Guarantee(
            epsilon=0.0,
            model="joint",
            n_sources=n_sources,
            theorem=self.theorem,
            pooling="shared",
        )

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """No statistic beyond the own lists."""
        yield from ()


class LaplaceRows:
    """Base for the Laplace mechanism: rows of bounded sensitivity plus noise, one by one.

    A subclass gives `exact_rows` and `calibration`. Nothing is shared between sources.
    """

    theorem: ClassVar[str]  # page of the proof
    epsilon: float

    guarantee = per_source_guarantee
    shared = share_nothing
    learn = learn_nothing

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The rows before their noise, as a new array; they do not depend on epsilon."""
        raise NotImplementedError

    def calibration(self, n_nodes: int) -> Calibration:
        """The noise of one row."""
        raise NotImplementedError

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """The rows, before their noise."""
        rows = np.ascontiguousarray(self.exact_rows(graph, own.sources))
        yield Statistic(rows, self.calibration(graph.n_nodes))

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """The noised rows, unchanged."""
        return noised[0].values

    def uncertainty(self, rows: Rows, shared: Any, own: OwnLists) -> Rows:
        """Around the row without noise: P(|noise| > b ln 20) = 1/20 for noise of scale b.

        Rounding to the lattice moves a value by half a step more. What caps cut off, or further
        rounds would add, is not covered.
        """
        calibration = self.calibration(rows.shape[1])
        half = math.log(20) * calibration.noise_scale + 2.0**calibration.step_log2
        return np.full((len(rows), 1), half)


def own_lists(
    graph: Graph, sources: npt.ArrayLike, model: str, own_edges: OwnEdges = "touching"
) -> OwnLists:
    """The neighbour list of each source, which its member knows; empty in the public model.

    In a directed graph those whom the member follows, and with own edges "touching" its followers.
    """
    at = np.asarray(sources, dtype=np.int64)
    if model == "public":
        none = np.empty(0, dtype=np.int64)
        return OwnLists(at, none, np.zeros(len(at) + 1, dtype=np.int64), graph.nodes)
    lists = [graph.neighbours(int(source)) for source in at]
    starts = np.cumsum([0, *map(len, lists)])
    own = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    followers = at if graph.directed and own_edges == "touching" else ()
    births = None
    if graph.births is not None:
        rows = [graph.births[graph.indptr[s] : graph.indptr[s + 1]] for s in at.tolist()]
        births = np.concatenate([np.empty(0, dtype=graph.births.dtype), *rows])
    known = tuple(map(graph.followers, followers))
    return OwnLists(at, own, starts, graph.nodes, known, births)


def check_mechanism(given: Any) -> Mechanism:
    """Refuse a name or a class in place of a mechanism with its parameters."""
    if isinstance(given, type) or not isinstance(given, Mechanism):
        shown = given.__name__ if isinstance(given, type) else repr(given)
        raise ParameterError(
            f"expected a mechanism with its parameters, such as TwoHop(epsilon=1), got {shown}"
        )
    if given.gives == "suggestions" and not isinstance(given, MakesLists):
        raise ParameterError(f"{given.name} gives suggestions, so it needs a method `lists`")
    return given


def check_directions(mechanism: Mechanism, graph: Graph) -> None:
    """Refuse a directed graph for a mechanism for undirected ones, and the other way round.

    Whether a graph is directed is public.
    """
    wanted = bool(getattr(mechanism, "directed", False))
    if graph.directed and not wanted:
        raise ParameterError(f"{mechanism.name} does not support directed graphs; suggest does")
    if wanted and not graph.directed:
        raise ParameterError(
            f"{mechanism.name} has directed=True, but the graph is undirected; "
            'read it with directed="keep"'
        )
