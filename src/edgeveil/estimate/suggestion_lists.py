"""The list of one member, out of what was read: scores, reasons, and places left open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _suggestion_kernels as kernels
from edgeveil.estimate._sum_laws import Law
from edgeveil.estimate.popularity import FINE, Popularity

__all__ = ["Reading", "Suggestions"]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

_OPEN = 0.02  # posterior mass left out on either side of a place's range
_TELLING = 2.0  # a reason multiplies the expected sum by this
_DEVIATIONS = 2.0  # of the number of nodes ahead


class Suggestions(NamedTuple):
    """A list of suggestions, best first; arrays of one length.

    Attributes
    ----------
    nodes : array of int
        Whom: indices of strangers.
    scores : array of float
        Expected common friends (by weight), and popularity in the same unit.
    common : array of float
        Estimated number of common friends.
    shared : array of bool
        Why: True for common friends: that there is one is more likely than not, the noisy sum
        at least doubles what the degree lets expect, and without it the node would not be on
        the list. Else popularity.
    first, last : arrays of int
        Places, from 1, that the noise leaves open: in at least 95 % of the cases the place by
        true sums is one of these (degrees as released).
    """

    nodes: Indices
    scores: Vector
    common: Vector
    shared: npt.NDArray[np.bool_]
    first: Indices
    last: Indices

    @property
    def mostly_popularity(self) -> bool:
        """Whether fewer than half of the suggestions rest on common friends."""
        return 2 * int(self.shared.sum()) < len(self.nodes)


@dataclass(frozen=True, eq=False)
class Reading:
    """What one member's noisy sums tell. From `read_row`.

    Attributes
    ----------
    popularity : Popularity
        Of everybody.
    own : array of int
        The member and its friends: never suggested.
    nodes, sums : arrays of one length
        Strangers above the threshold, and their noisy sums.
    law : Law
        Of a true sum, by degree cell: for estimates.
    ranking : Law
        The same with more in the tail beforehand: for scores and places. Where noise is large
        it keeps large sums apart and leaves more open; estimates by it would be too high.
    unseen : array of shape (points,)
        Chance that a sum at each point of the grid stays below the threshold.
    expected : array of shape (cells,)
        What the degree alone explains.
    below : array of shape (fine cells,)
        Strangers below the threshold.
    kappa : float
        What popularity counts beside common friends.
    typical_weight : float
        Mean weight of a friend.
    followers : array of int
        Strangers who are known to follow the member.
    bonus : float
        What that counts beside common friends.
    """

    popularity: Popularity
    own: Indices
    nodes: Indices
    sums: Vector
    law: Law
    ranking: Law
    unseen: Vector
    expected: Vector
    below: Vector
    kappa: float
    typical_weight: float
    followers: Indices
    bonus: float

    @cached_property
    def _cells(self) -> Indices:
        return np.asarray(self.popularity.cell[self.nodes] // FINE)

    @cached_property
    def _ranked(self) -> Vector:
        """Expected sums of `nodes`, for their scores."""
        mean = self.ranking.expected(self._cells, self.sums)
        # Interpolation between cells must not make more evidence count less.
        return np.maximum(mean, self._low_sums(self.popularity.estimates.degrees[self.nodes]))

    @cached_property
    def _low(self) -> Vector:
        """Law of a sum, given that it is below the threshold: (cells, points)."""
        return self.ranking.given(self.unseen)

    def _by_degree(self, values: Vector, degrees: Vector) -> Vector:
        centres = np.log(self.popularity.cell_degrees)
        return np.interp(np.log(degrees), centres, np.maximum.accumulate(values))

    def _popular(self, degrees: Vector) -> Vector:
        return self.kappa * self._by_degree(self.expected, degrees)

    def _beside(self, nodes: Indices) -> Vector:
        """What counts beside the sum of some nodes: popularity, and to follow the member."""
        popular = self._popular(self.popularity.estimates.degrees[nodes])
        if len(self.followers) == 0:
            return popular
        return popular + self.bonus * np.isin(nodes, self.followers)

    def _low_sums(self, degrees: Vector) -> Vector:
        """Expected sum of a stranger below the threshold; it does not fall with the degree."""
        return self._by_degree(self._low @ self.ranking.points, degrees)

    def row(self) -> Vector:
        """Scores of all nodes; -inf for the member and its friends. O(n): for evaluation."""
        degrees = self.popularity.estimates.degrees
        sums = self._low_sums(degrees)
        sums[self.nodes] = self._ranked
        row = sums + self._beside(np.arange(len(degrees)))
        row[self.own] = -np.inf
        return row

    def top(self, k: int, allowed: npt.NDArray[np.bool_] | None = None) -> Suggestions:
        """The best k strangers.

        Parameters
        ----------
        k : int
            How many; fewer if there are not as many.
        allowed : array of bool, shape (n,), optional
            Who may be suggested; public. Places are among all strangers all the same.
        """
        order = self.popularity.order
        if allowed is not None:
            order = order[allowed[order]]
        known = self.popularity.estimates.degrees
        followers = np.setdiff1d(self.followers, self.nodes)
        followers = followers[np.argsort(-known[followers], kind="stable")]
        taken = np.concatenate([self.own, self.nodes, followers])
        others = order[: k + len(taken)]
        others = others[~np.isin(others, taken)][:k]
        nodes = np.concatenate([self.nodes, followers, others])
        degrees = known[nodes]
        sums = np.concatenate([self._ranked, self._low_sums(degrees[len(self.nodes) :])])
        beside = self._beside(nodes)
        scores = sums + beside
        if allowed is not None:
            scores[~allowed[nodes]] = -np.inf
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[scores[best] > -np.inf]
        # On the list without its sum? Then that is not why it is there.
        alone = self._low_sums(degrees[best]) + beside[best] >= scores[best].min(initial=np.inf)
        common, telling = self._common(best, degrees[best])
        first, last = self._places(best, nodes[best])
        return Suggestions(
            nodes=nodes[best],
            scores=scores[best],
            common=common / self.typical_weight,
            shared=telling & ~alone,
            first=first,
            last=last,
        )

    def _common(self, best: Indices, degrees: Vector) -> tuple[Vector, npt.NDArray[np.bool_]]:
        """Estimated sums of some nodes, and whether they are a reason. As `_places`."""
        law, above = self.law, best < len(self.nodes)
        common = self._by_degree(law.given(self.unseen) @ law.points, degrees)
        cells, noisy = self._cells[best[above]], self.sums[best[above]]
        common[above] = law.expected(cells, noisy)
        telling = above.copy()
        none = law.mass[cells, 0] * np.exp(-law.rate * noisy)
        telling[above] = (none < 0.5 * law.likelihood(cells, noisy)) & (
            common[above] >= _TELLING * self._by_degree(law.mass @ law.points, degrees[above])
        )
        return common, telling

    def _places(self, best: Indices, nodes: Indices) -> tuple[Indices, Indices]:
        """First and last place open to some nodes, given where they are in `nodes`, or beyond."""
        low, high = self._ranges(best, nodes)
        ahead, spread = self._ahead(np.concatenate([high, low]))
        k = len(best)
        margin = _DEVIATIONS * np.sqrt(spread + 1)
        own = np.arange(1, k + 1)
        first = np.floor(ahead[:k] - margin[:k]).astype(np.int64) + 1
        last = np.ceil(ahead[k:] + margin[k:]).astype(np.int64) + 1
        strangers = len(self.popularity.order) - len(self.own)
        return np.clip(first, 1, own), np.clip(last, own, max(strangers, 1))

    def _ranges(self, best: Indices, nodes: Indices) -> tuple[Vector, Vector]:
        """Lowest and highest true score that the noise leaves open to some nodes."""
        law, above = self.ranking, best < len(self.nodes)
        cells = self.popularity.cell[nodes] // FINE
        mass = self._low[cells]
        noisy = self.sums[best[above]][:, None]
        # Relative to the nearest point: all of the row must not underflow.
        away = law.rate * np.abs(noisy - law.points)
        near = np.exp(away.min(axis=1, keepdims=True) - away)
        mass[above] = law.mass[cells[above]] * near
        upto = np.cumsum(mass, axis=1)
        upto /= upto[:, -1:]
        last = len(law.points) - 1
        low = np.minimum((upto < _OPEN).sum(axis=1), last)
        high = np.minimum((upto < 1 - _OPEN).sum(axis=1), last)
        beside = self._beside(nodes)
        return law.points[low] + beside, law.points[high] + beside

    def _ahead(self, limits: Vector) -> tuple[Vector, Vector]:
        """Mean and variance of the number of strangers whose true score exceeds each limit."""
        law, shared = self.ranking, self.popularity
        # P(sum > point j - 1 | below the threshold), j = 0 .. number of points
        beyond = np.cumsum(self._low[:, ::-1], axis=1)[:, ::-1]
        beyond = np.concatenate([beyond, np.zeros((len(beyond), 1))], axis=1)
        popular, cells = self._popular(shared.degrees), np.arange(len(shared.degrees)) // FINE
        known = np.bincount(
            shared.cell[np.setdiff1d(self.followers, self.nodes)], minlength=len(popular)
        )
        mean, variance = np.zeros(len(limits)), np.zeros(len(limits))
        for count, offsets in ((self.below - known, popular), (known, popular + self.bonus)):
            if not count.any():
                continue
            at = np.searchsorted(law.points, limits[:, None] - offsets, side="right")
            chance = beyond[cells, at]
            mean += chance @ count
            variance += (chance * (1 - chance)) @ count
        order = np.argsort(limits)
        kernels.count_above(
            limits[order],
            self.sums,
            self._cells,
            self._beside(self.nodes),
            np.maximum(law.likelihood(self._cells, self.sums), 1e-300),
            np.searchsorted(law.points, self.sums, side="right"),
            law.points,
            law.rate,
            law.left,
            law.right,
            ahead := np.zeros(len(limits)),
            spread := np.zeros(len(limits)),
        )
        mean[order] += ahead
        variance[order] += spread
        return mean, variance
