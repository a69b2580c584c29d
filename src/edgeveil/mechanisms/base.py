"""The one seam: what every mechanism is, private or not.

guarantee   what is protected; sees no graph, so it cannot depend on the data
shared      numbers asked of the graph once for everybody, before their noise
learn       what the noised ones tell: post-processing, once
measure     numbers asked of the graph for some recipients, before their noise
estimate    rows from noised numbers and the recipients' own lists: post-processing

`edgeveil.mechanisms.run` drives it. Graphs go into `shared` and `measure` only, and what comes out
of these two reaches nobody but through `privacy.statistic.randomise`; so a row is private if the
statistics are what they say they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
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
    """A way to make rows of scores or embeddings from a graph, with its price.

    Mechanisms are frozen, keyword-only dataclasses; their fields are public parameters and
    are checked on construction, before any graph is near.
    """

    name: ClassVar[str]
    gives: ClassVar[Gives]
    when_to_use: ClassVar[str]

    def guarantee(self, n_sources: int) -> Guarantee:
        """What a release for this many sources protects."""
        ...

    def shared(self, graph: Graph) -> AnyStatistic | None:
        """What is asked once for everybody: a statistic of one row, or nothing."""
        ...

    def learn(self, noised: Noised, nodes: NodeSet) -> Any:
        """What the noised shared part tells, worked out once. It never sees the graph."""
        ...

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """What is asked for each of `own.sources`: statistics with one row for each.

        A generator: each statistic that it yields comes back noised, so that the next may
        depend on it. Row i must be a function of the graph, `shared`, source i and what came
        back for source i, not of the other sources: any grouping of them gives the same rows.
        """
        ...

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Any:
        """One row for each of `own.sources`. Sees released numbers and the own lists only.

        Rows are an array; where the mechanism gives suggestions they are `Evidence`, of which
        `MakesLists.lists` makes the lists.

        `noised` is all that came back to `measure`, in order; its arrays may be overwritten.
        In the public model the lists in `own` are empty.
        """
        ...


@runtime_checkable
class MakesLists(Protocol):
    """A mechanism that gives suggestions: how lists are made of what it has estimated."""

    def lists(
        self,
        evidence: Evidence,
        shared: Any,
        own: OwnLists,
        k: int,
        candidates: npt.NDArray[np.int64] | None = None,
    ) -> Lists:
        """The best k of each member, among the candidates: post-processing, done at any time."""
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
        """Refuse (ParameterError) what could never be made, before anything is charged."""
        ...


@runtime_checkable
class KnowsUncertainty(Protocol):
    """A mechanism that can say how far its noise may have moved a score.

    Post-processing: it reads no edge of anybody else and draws nothing.
    """

    def uncertainty(self, rows: Rows, shared: Any, own: OwnLists) -> Rows:
        """Half-widths of 95 % intervals around the scores in `rows`, which `estimate` gave.

        Of shape (sources, 1) or (sources, nodes). A score without noise lies within this distance
        of the released one, with probability 95 %. The mechanism says what "without noise" means
        and what the probability is over. What the model leaves out (caps, far hops) is not in it.
        """
        ...


@runtime_checkable
class HasHardPairs(Protocol):
    """A mechanism that knows neighbouring graphs on which it comes near its bound."""

    def hard_pairs(self) -> Iterator[Pair]:
        """Pairs for these parameters, made from public parameters alone."""
        ...

    @classmethod
    def hardest(cls) -> tuple[Mechanism, Pair]:
        """Parameters and a pair for which the noised numbers use at least 0.9 of the claim."""
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


class Checked:
    """Parameters that are checked by their names: one name means the same in all mechanisms."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every mechanism is a dataclass
            if field.name in _CHECKS:
                _CHECKS[field.name](getattr(self, field.name))


class NothingShared:
    """Sources that share nothing."""

    def shared(self, graph: Graph) -> AnyStatistic | None:
        """Nothing is shared between sources."""
        return None

    def learn(self, noised: Noised, nodes: NodeSet) -> Any:
        """Nothing is shared between sources."""
        raise AssertionError("nothing is shared")


class PerSource(NothingShared):
    """Rows that share nothing: each is a release of its own, proved in `theorem`."""

    theorem: ClassVar[str]  # page of the proof
    epsilon: float

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon per recipient (joint) or per source, added up (public)."""
        model: Model = getattr(self, "model", "joint")  # without such a field: joint only
        rows = n_sources if model == "public" else 1
        return Guarantee(
            epsilon=float(exact_epsilon(self.epsilon) * rows),
            model=model,
            n_sources=n_sources,
            theorem=self.theorem,
        )


class OnceForAll:
    """All noise is drawn once for everybody; nothing is asked for one recipient alone."""

    theorem: ClassVar[str]  # page of the proof
    epsilon: float

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=getattr(self, "model", "joint"),
            n_sources=n_sources,
            theorem=self.theorem,
            pooling="shared",
        )

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """Nothing is asked for one recipient alone."""
        yield from ()


class NoiseLast(PerSource):
    """Rows that are a bounded function of the graph plus Laplace noise, and nothing else.

    The class gives `exact_rows` and `calibration`; the rest follows.
    """

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The rows before their noise, freshly made; they do not depend on epsilon."""
        raise NotImplementedError

    def calibration(self, n_nodes: int) -> Calibration:
        """The noise of one row."""
        raise NotImplementedError

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, own: OwnLists) -> Measuring:
        """Ask for the rows."""
        rows = np.ascontiguousarray(self.exact_rows(graph, own.sources))
        yield Statistic(rows, self.calibration(graph.n_nodes))

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """Give the rows as they are."""
        return noised[0].values

    def uncertainty(self, rows: Rows, shared: Any, own: OwnLists) -> Rows:
        """Around the row without noise: P(|noise| > b ln 20) = 1/20 for noise of scale b.

        Rounding to the lattice moves a value by half a step more. What caps cut off, or further
        rounds would add, is not in it.
        """
        calibration = self.calibration(rows.shape[1])
        half = math.log(20) * calibration.noise_scale + 2.0**calibration.step_log2
        return np.full((len(rows), 1), half)


def own_lists(
    graph: Graph, sources: npt.ArrayLike, model: str, own_edges: OwnEdges = "touching"
) -> OwnLists:
    """What each recipient knows by itself: its list, which in the public model is nobody's.

    In a directed graph that is whom it follows, and with own edges "touching" who follows it.
    """
    at = np.asarray(sources, dtype=np.int64)
    if model == "public":
        none = np.empty(0, dtype=np.int64)
        return OwnLists(at, none, np.zeros(len(at) + 1, dtype=np.int64), graph.nodes)
    lists = [graph.neighbours(int(source)) for source in at]
    starts = np.cumsum([0, *map(len, lists)])
    own = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    followers = at if graph.directed and own_edges == "touching" else ()
    return OwnLists(at, own, starts, graph.nodes, tuple(map(graph.followers, followers)))


def check_mechanism(given: Any) -> Mechanism:
    """Refuse a name or a class where a mechanism with its parameters is meant."""
    if isinstance(given, type) or not isinstance(given, Mechanism):
        shown = given.__name__ if isinstance(given, type) else repr(given)
        raise ParameterError(
            f"a mechanism comes with its parameters, such as TwoHop(epsilon=1), got {shown}"
        )
    return given


def check_directions(mechanism: Mechanism, graph: Graph) -> None:
    """Refuse a directed graph unless the mechanism is for these, and the other way round.

    Which kind of graph it is, is public.
    """
    wanted = bool(getattr(mechanism, "directed", False))
    if graph.directed and not wanted:
        raise ParameterError(f"{mechanism.name} is not made for directed graphs; suggestions are")
    if wanted and not graph.directed:
        raise ParameterError(
            f"{mechanism.name} was asked for a directed graph, and this one is undirected; "
            'read it with directed="keep"'
        )
