"""Suggest: for each member a short list of people it may know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgeveil._check import whole
from edgeveil.errors import ParameterError
from edgeveil.estimate.rows import exact_weights
from edgeveil.estimate.suggestions import (
    Popularity,
    Released,
    friend_weights,
    learn,
    lists,
    split,
    threshold,
)
from edgeveil.flow.two_hop import friend_counts_of_lists, two_hop_tail_of_lists
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Gives, Measuring, OwnLists, Rows
from edgeveil.mechanisms.hard_pairs import Pair, two_followed, two_hubs, wedge
from edgeveil.mechanisms.released_degrees import two_hop_guarantee
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, NoisedTail, Ragged, Statistic, Tail

_PART = "second hop"  # an edge moves the friends' sums or a stranger's, never both


@dataclass(frozen=True, kw_only=True)
class Suggest:
    """Shared noisy degrees; for each member noisy counts of common friends; a list from both.

    First the friends' sums (common friends of the member and each friend), with Laplace noise of
    scale 2 / e2; then, with weights in [0, 1] that come from released values, the strangers'
    sums with noise of scale 1 / e2, of which only those that reach a public threshold are
    released. An edge between two friends moves the first, an edge from a friend to a stranger
    the second, no edge both: e2 in all. With the degrees' e1 that is epsilon. The list is
    post-processing. Joint model only. Proof: docs/theory/suggestions.md. Cost per member: its
    two-hop neighbourhood, and at most n draws.

    Directed (whom to follow): the degrees are in-degrees, friends those whom the member follows,
    and an edge from u to v counts for v alone. It moves one in-degree by 1, and one sum: noise of
    scale 1 / e1 and 1 / e2 throughout.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one member, all parts together.
    top : int
        Places of a list.
    candidates : tuple of ids, optional
        Only these nodes are suggested; public.
    directed : bool
        For a directed graph.
    knows_followers : bool
        Directed: members know who follows them, so that edges to a member are not protected from
        it, and its followers may rank higher. Else every edge is that does not start at it.
    densely : bool
        Draw the noise of all nodes, also where it is not seen: slower, but how long the noise takes
        does not depend on edges. The lists have the same distribution.
    """

    name: ClassVar[str] = "suggest"
    gives: ClassVar[Gives] = "suggestions"
    when_to_use: ClassVar[str] = "the default for suggestions: whom a member may know"

    epsilon: float
    top: int = 20
    candidates: tuple[NodeId, ...] | None = None
    directed: bool = False
    knows_followers: bool = False
    densely: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        whole("top", self.top, 1, 10_000)
        given = self.candidates
        if given is not None and not (isinstance(given, tuple) and given):
            raise ParameterError(f"candidates must be a tuple of node ids, or None, got {given!r}")
        for name in ("directed", "knows_followers", "densely"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.knows_followers and not self.directed:
            raise ParameterError("knows_followers is for directed graphs: it needs directed=True")

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """Epsilon of the degrees and of one member's sums; they add up exactly."""
        shared = exact_epsilon(split(float(self.epsilon))[0])
        return shared, exact_epsilon(self.epsilon) - shared

    @property
    def _moved(self) -> int:
        """How many degrees, or friends' sums, one edge moves by 1."""
        return 1 if self.directed else 2

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon to each member, of which the degrees' part is shared by all."""
        theorem = "docs/theory/suggestions.md"
        claim = two_hop_guarantee(self.epsilon, self.split[0], n_sources, theorem)
        if self.directed and not self.knows_followers:
            return replace(claim, own_edges="starting")
        return claim

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate: that fails before the charge or not at all."""
        shared, own = self.split
        _noise(len(nodes), shared, self._moved)
        _noise(len(nodes), own, self._moved)
        _noise(len(nodes), own, 1)
        nodes.indices(self.candidates or ())

    def shared(self, graph: Graph) -> Statistic:
        """All degrees; directed: in-degrees."""
        degrees = graph.in_degrees.astype(np.float64)[None, :]
        return Statistic(degrees, _noise(graph.n_nodes, self.split[0], self._moved))

    def learn(self, noised: Noised, nodes: NodeSet) -> Popularity:
        """Estimate the degrees, and put the nodes into cells by degree."""
        return learn(noised.values[0], noised.scale)

    def measure(self, graph: Graph, shared: Popularity, own: OwnLists) -> Measuring:
        """Friends' sums; then strangers' sums with weights that come from what was released."""
        n, epsilon = graph.n_nodes, self.split[1]
        counts = friend_counts_of_lists(graph, own.lists, own.starts)
        asked = Ragged(counts, own.starts, _noise(n, epsilon, self._moved), part=_PART)
        friends = yield asked
        weights = self._weights(friends.values, shared, own)
        places, sums, starts = two_hop_tail_of_lists(
            graph, own.sources, own.lists, own.starts, weights
        )
        yield Tail(
            places,
            sums,
            starts,
            width=n,
            calibration=_noise(n, epsilon, 1),
            at_least=threshold(n, float(epsilon)),
            part=_PART,
            densely=self.densely,
        )

    def estimate(
        self, noised: tuple[Noised | NoisedTail, ...], shared: Popularity, own: OwnLists
    ) -> Rows:
        """The best places of what was released, with the places that the noise leaves open."""
        friends, tail = noised
        assert isinstance(tail, NoisedTail)
        rate = float(self.split[1])
        released = Released(
            friends.values,
            self._weights(friends.values, shared, own),
            tail.places,
            tail.values,
            tail.starts,
            rate,
            rate / self._moved,
        )
        candidates = self.candidates
        among = None if candidates is None else own.nodes.indices(candidates)
        return lists(shared, own, released, self.top, among)

    def _weights(self, sums: Rows, shared: Popularity, own: OwnLists) -> Rows:
        """Weights of all friends, cut to so few bits that sums of them are exact."""
        weights = friend_weights(shared, own, sums, float(self.split[1]))
        return exact_weights(weights, len(own.nodes))

    def hard_pairs(self) -> Iterator[Pair]:
        """The degrees move, and a stranger's sum or friends' sums, as far as an edge can."""
        yield two_followed(4) if self.directed else two_hubs(1, 4)
        yield wedge(directed=self.directed)

    @classmethod
    def tight_case(cls) -> tuple[Suggest, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(1, 4)


@lru_cache(maxsize=16)  # exact arithmetic, the same for all rows of a release
def _noise(n: int, epsilon: Fraction, sensitivity: int) -> Calibration:
    """One edge moves a stranger's sum by at most 1, or `_moved` friends' sums by 1 each: exactly.

    The same of degrees.
    """
    return calibrate(coordinates=max(n, 1), sensitivity=sensitivity, epsilon=epsilon)
