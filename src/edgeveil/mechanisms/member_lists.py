"""Suggest: for each member a short list of people it may know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, Evidence, Lists, Popularity, ReleasedSums
from edgeveil.flow.common_neighbours import Windows, two_hop_tail_of_lists
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    Statistics,
    partly_shared_guarantee,
)
from edgeveil.mechanisms.hard_pairs import Pair, two_followed, two_hubs, wedge
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, NoisedTail, Statistic, Tail

# Of friends from before a window only the new edges are in it: expected to be this share of their
# weight if the window is a year (of weekly snapshots) long, and less in proportion.
_OLDER, _YEAR = 0.3, 52
_BLOCK = 1 << 22  # entries that are counted at a time


class Suggest(Mechanism):
    """Suggestions from noisy degrees, shared by all, and noisy counts of common friends.

    The degrees have privacy loss e1. For each member, one statistic is measured: for every
    stranger, the sum of the weights of common friends, with weights in [0, 1] that are computed
    from the released degrees. An edge between others changes only one of these sums, by at most
    1, so Laplace noise of scale 1 / e2 has privacy loss e2, and e1 + e2 = epsilon. Only noisy sums
    that reach a public threshold are released and stored; lists of any length, for any candidates,
    are post-processing. Joint model only. Proof: docs/theory/suggestions.md. The time per member
    grows with the size of its two-hop neighbourhood.

    Directed (whom to follow): degrees are in-degrees, a member's friends are those it follows, and
    an edge from u to v counts for v only: the noise has scale 1 / e1 and 1 / e2.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one member, both parts together.
    directed : bool
        Whether the graph is directed.
    knows_followers : bool
        Directed: assume that members know who follows them. Edges to a member are then not
        protected from it, and its followers may rank higher. If False, every edge that does not
        start at the member is protected from it.
    densely : bool
        Draw noise for all nodes, even where it stays below the threshold: slower, but the time to
        draw it does not depend on edges. The lists have the same distribution.
    """

    name = "suggest"
    output = "lists"
    when_to_use = "the default for suggestions: whom a member may know"
    theorem = "docs/theory/suggestions.md"

    epsilon: float
    directed: bool = False
    knows_followers: bool = False
    densely: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.knows_followers and not self.directed:
            raise ParameterError("knows_followers is for directed graphs: it needs directed=True")

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """Epsilon of the degrees and of one member's sums; they add up exactly to epsilon."""
        shared = exact_epsilon(lists.split_epsilon(float(self.epsilon))[0])
        return shared, exact_epsilon(self.epsilon) - shared

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon for each member, of which the part for the degrees is shared by all."""
        claim = partly_shared_guarantee(self.epsilon, self.split[0], n_members, self.theorem)
        if self.directed and not self.knows_followers:
            return replace(claim, known_edges="outgoing")
        return claim

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate the noise once, so that a failure comes before the charge."""
        self._degree_noise(len(nodes))
        self._sum_noise(len(nodes))

    def _degree_noise(self, n: int) -> Calibration:
        """One edge changes two degrees by 1 each; directed, one in-degree. Both are exact."""
        sensitivity = 1 if self.directed else 2
        return calibrate(coordinates=max(n, 1), sensitivity=sensitivity, epsilon=self.split[0])

    def _sum_noise(self, n: int) -> Calibration:
        """One edge changes one stranger's sum, by at most 1; sums are exact."""
        return calibrate(coordinates=max(n, 1), sensitivity=1, epsilon=self.split[1])

    def shared(self, graph: Graph) -> Statistics:
        """All degrees; directed: in-degrees."""
        degrees = graph.in_degrees.astype(np.float64)[None, :]
        yield Statistic(degrees, self._degree_noise(graph.n_nodes))

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> Popularity:
        """Sort the nodes by released degree."""
        return lists.fit_popularity(noised[0].values[0], noised[0].scale)

    def measure(self, graph: Graph, shared: Popularity, views: LocalViews) -> Statistics:
        """Strangers' sums of the weights of common friends."""
        yield self._tail(graph, shared, views)

    def _tail(
        self, graph: Graph, shared: Popularity, views: LocalViews, windows: Windows | None = None
    ) -> Tail:
        weights = lists.friend_weights(shared, views)
        nodes, sums, starts = two_hop_tail_of_lists(
            graph, views.sources, views.lists, views.starts, weights, windows
        )
        return Tail(
            nodes,
            sums,
            starts,
            width=graph.n_nodes,
            calibration=self._sum_noise(graph.n_nodes),
            threshold=lists.threshold(graph.n_nodes, float(self.split[1])),
            densely=self.densely,
        )

    def estimate(
        self, noised: tuple[Noised, ...], shared: Popularity, views: LocalViews
    ) -> Evidence:
        """The evidence about strangers in the released sums, from which lists are made."""
        return lists.make_evidence(shared, views, _released_sums(noised), float(self.split[1]))

    def lists(
        self,
        evidence: Evidence,
        shared: Popularity,
        views: LocalViews,
        k: int,
        candidates: Candidates | None = None,
        windows: npt.NDArray[np.integer] | None = None,
    ) -> Lists:
        """The k best strangers of each member among the candidates: post-processing.

        `windows` says for how many windows of a series each member's evidence was drawn.
        """
        rate = float(self.split[1])
        times = None if windows is None else np.maximum(windows.astype(np.int64), 1)
        return lists.make_lists(shared, views, evidence, rate, k, candidates, times)

    def hard_pairs(self) -> Iterator[Pair]:
        """Pairs on which degrees and a stranger's sum change as much as an edge can change them."""
        yield two_followed(4) if self.directed else two_hubs(1, 4)
        yield wedge(directed=self.directed)

    @classmethod
    def tight_case(cls) -> tuple[Suggest, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(1, 4)


class SuggestWindow(Suggest):
    """One window of a series: like `Suggest`, on paths that are new in (since, until].

    Needs a graph with `first_seen`. A path member - friend - stranger is as old as its later edge:
    it counts in at most one window of a member: all windows together have the privacy loss of one
    list. Friends are all friends ever, and nobody who was ever a friend counts as a stranger.
    Proof: docs/theory/series.md.

    Parameters
    ----------
    since : array of shape (n,)
        The snapshot at which each node's last window ended, 0 before its first one. A function
        of the member's own list and of what was released to it.
    until : int
        The latest snapshot of the graph.
    """

    name = "suggest-window"

    since: npt.NDArray[np.integer]
    until: int

    def shared(self, graph: Graph) -> Statistics:
        """All degrees by edges first seen up to `until`; directed: in-degrees."""
        assert graph.first_seen is not None
        degrees = np.zeros(graph.n_nodes)
        for first in range(0, len(graph.indices), _BLOCK):
            block = slice(first, first + _BLOCK)
            counted = graph.indices[block][graph.first_seen[block] <= self.until]
            degrees += np.bincount(counted, minlength=graph.n_nodes)
        yield Statistic(degrees[None, :], self._degree_noise(graph.n_nodes))

    def measure(self, graph: Graph, shared: Popularity, views: LocalViews) -> Statistics:
        """Strangers' sums over the paths of the window."""
        assert views.first_seen is not None
        yield self._tail(
            graph, shared, views, Windows(views.first_seen, self._since(views), self.until)
        )

    def estimate(
        self, noised: tuple[Noised, ...], shared: Popularity, views: LocalViews
    ) -> Evidence:
        """The evidence about strangers in the released sums of this window."""
        assert views.first_seen is not None
        since = self._since(views)
        rows = np.repeat(np.arange(len(since)), np.diff(views.starts))
        share = _OLDER * np.minimum((self.until - since) / _YEAR, 1.0)
        counts = np.where(views.first_seen > since[rows], 1.0, share[rows]) * (
            views.first_seen <= self.until
        )
        weights = counts * lists.friend_weights(shared, views)
        weight = np.bincount(rows, weights, minlength=len(since)).astype(np.float64)
        return lists.make_evidence(
            shared, views, _released_sums(noised), float(self.split[1]), weight
        )

    def _since(self, views: LocalViews) -> npt.NDArray[np.int64]:
        return self.since[views.sources].astype(np.int64)


def _released_sums(noised: tuple[Noised, ...]) -> ReleasedSums:
    """Starts, nodes and values of the sums that reached the threshold."""
    (tail,) = noised
    assert isinstance(tail, NoisedTail)
    return tail.starts, tail.positions, tail.values
