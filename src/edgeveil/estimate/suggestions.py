"""Whom a member may know, read out of released numbers. All of it is post-processing.

Input: degrees with Laplace noise, the member's own list of friends, and noisy sums
x_v = sum of w_u over the common friends u of the member and v, w_u in [0, 1]; of the strangers'
sums only those of at least `threshold` are needed. Theorem, formulae and figures are in
docs/theory/suggestions.md. The order of use:

1. `split` shares the budget out between degrees and sums.
2. `learn` once for everybody: from the noisy degrees.
3. `friend_weights` for one member: from its friends' noisy sums (all weights 1).
4. `read_row` for one member: from the strangers' noisy sums with these weights.
5. `Reading.top` gives the list: scores, reasons, and the places that the noise leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _suggestion_kernels as kernels
from edgeveil.estimate._sum_laws import TAIL, Law, exponentials, grid, poissons, stays_below
from edgeveil.estimate.popularity import CELLS, FINE, Popularity, learn
from edgeveil.estimate.suggestion_lists import Reading, Suggestions

__all__ = [
    "Popularity",
    "Reading",
    "Suggestions",
    "friend_weights",
    "learn",
    "read_row",
    "split",
    "threshold",
]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

_QUANTILES = (0.75, 0.9)  # of the friends' degrees, tried as the degree from which weights fall
_CLEAR = 1.5  # by how much weighted sums must exceed what noise alone reaches
_TAIL_GROWTH = 0.5  # the tail's share grows with this power of the degree
_TAIL_MOST = 0.5  # of the nodes of a cell
_PLAIN = 5  # components without the tail: `mean_counts`
_PSEUDO = 0.2  # nodes that each component of the tail has beforehand, and
_SEATS = 0.5  # strangers in the member's circles for each friend in them, beforehand
_BEFOREHAND = (0.5, 1.5)  # friends who share circles, and who do not: popularity if in doubt
_ROUNDS = 60


def split(epsilon: float) -> tuple[float, float]:
    """Share epsilon out between the degrees and the sums; the parts add up to it.

    0.1 for the degrees is enough where sums can be seen. Below 0.5 they hardly can, and a list
    lives on popularity: then the degrees get up to 0.15.

    Examples
    --------
    >>> split(1.0)
    (0.1, 0.9)
    """
    for_degrees = 0.1 if epsilon >= 0.5 else min(0.15, 0.6 * epsilon)
    return for_degrees, epsilon - for_degrees


def threshold(n: int, rate: float) -> float:
    """Public threshold: about 100 of n values that are noise of rate `rate` only reach it."""
    return max(0.0, math.log(n / 200) / rate)


def friend_weights(
    popularity: Popularity, friends: Indices, friend_sums: Vector, rate: float
) -> Vector:
    """Choose the weights of a member's friends for the strangers' sums.

    Friends of many count less, min(1, D0 / degree), if the sums that are left still stand out
    of the noise, else all weights are 1.

    Parameters
    ----------
    popularity : Popularity
        From `learn`.
    friends : array of int
        The member's own list.
    friend_sums : array, one value for each friend
        Noisy numbers of common friends of the member and each friend.
    rate : float
        1 / scale of the noise on strangers' sums, split(epsilon)[1].

    Returns
    -------
    array, one weight in [0, 1] for each friend
    """
    ones = np.ones(len(friends))
    if len(friends) == 0:
        return ones
    degrees = popularity.estimates.of_friends[friends]
    clear = _CLEAR * math.log(max(len(popularity.order) / 40, math.e)) / rate
    for quantile in _QUANTILES:
        weights = np.minimum(1.0, np.quantile(degrees, quantile) / degrees)
        if weights.mean() * friend_sums.mean() >= clear:
            return np.asarray(weights)
    return ones


def read_row(
    popularity: Popularity,
    member: int,
    friends: Indices,
    friend_sums: Vector,
    weights: Vector,
    nodes: Indices,
    sums: Vector,
    rate: float,
    *,
    friend_rate: float | None = None,
    followers: Indices | None = None,
) -> Reading:
    """Read one member's noisy sums.

    Parameters
    ----------
    popularity : Popularity
        From `learn`.
    member : int
        Index of the member.
    friends, friend_sums, weights
        As for `friend_weights`, and what it gave.
    nodes, sums : arrays of one length
        Strangers whose noisy sum is at least ``threshold(n, rate)``, and that sum. The other
        strangers are known to be below it.
    rate : float
        1 / scale of the noise on strangers' sums.
    friend_rate : float, optional
        The same of the friends' sums; half of `rate` by default. (Directed: `rate`.)
    followers : array of int, optional
        Directed, if the member knows it: who follows it.
    """
    if followers is None:
        followers = np.empty(0, dtype=np.int64)
    own = np.append(friends, member)
    degrees = popularity.cell_degrees
    friend_degrees = popularity.estimates.of_friends[friends]
    expected = np.empty((_PLAIN, CELLS))
    kernels.mean_counts(degrees, friend_degrees, weights, popularity.total, expected)
    typical_weight = float(weights.mean()) if len(weights) else 1.0
    share, typical = _circles(
        popularity, friends, friend_sums, rate / 2 if friend_rate is None else friend_rate
    )
    typical = max(1.0, typical * typical_weight)

    reach = float(weights @ friend_degrees)
    unit = max(float(weights**2 @ friend_degrees) / reach if reach > 0 else 1.0, 0.02)
    whole = float(weights.sum())
    highest = float(sums.max()) if len(sums) else 0.0
    points, width = grid(min(whole, max(8 * typical, highest + 10 / rate)), unit)
    tail = np.broadcast_to(
        exponentials(points, width, typical)[:, None], (len(TAIL), CELLS, len(points))
    )
    laws = np.concatenate([poissons(points / unit, width, expected / unit), tail])
    below = popularity.counts.copy()
    np.subtract.at(below, popularity.cell[np.concatenate([own, nodes])], 1)
    unseen = stays_below(threshold(len(popularity.order), rate), points, rate)
    law, ranking = (
        Law.of(points, np.einsum("ck,kcx->cx", mix, laws), rate)
        for mix in _fitted(
            popularity,
            Law.of(points, laws.reshape(-1, len(points)), rate),
            laws @ unseen,
            popularity.by_cell(below),
            popularity.cell[nodes] // FINE,
            sums,
            (_PSEUDO, _PSEUDO + _SEATS * share * len(friends) / len(TAIL)),
        )
    )
    return Reading(
        popularity=popularity,
        own=own,
        nodes=nodes,
        sums=sums,
        law=law,
        ranking=ranking,
        unseen=unseen,
        expected=expected[2],
        below=below,
        kappa=(1 - share) / share,
        typical_weight=typical_weight,
        followers=np.setdiff1d(followers, own),
        bonus=_follow_back(friends, followers) * max(reach, 1.0) / share,
    )


def _follow_back(friends: Indices, followers: Indices) -> float:
    """Odds that whom the member follows is a follower followed back, for each follower."""
    if len(followers) == 0:
        return 0.0
    mutual = len(np.intersect1d(friends, followers))
    share = (mutual + 0.5) / (len(friends) + 1)
    return share / (1 - share) / len(followers)


def _fitted(
    popularity: Popularity,
    laws: Law,
    unseen: Vector,
    below: Vector,
    cells: Indices,
    sums: Vector,
    beforehand: Sequence[float],
) -> list[Vector]:
    """Shares of the components by cell, (cells, components), fitted to one row.

    Once for each number of nodes that a component of the tail has beforehand.
    """
    kinds = len(unseen)
    rows = cells[:, None] + CELLS * np.arange(kinds)
    seen = laws.likelihood(rows, sums[:, None])
    growth = (popularity.cell_degrees * len(popularity.order) / popularity.total) ** _TAIL_GROWTH
    rest = np.ascontiguousarray(unseen.T)
    fits = []
    for pseudo in beforehand:
        shares = np.full(kinds, 0.001)
        shares[:_PLAIN] = 1 / _PLAIN
        mix = np.empty((CELLS, kinds))
        kernels.fit_mixture(
            seen, cells, rest, below, growth, shares, _PLAIN, _TAIL_MOST, pseudo, _ROUNDS, mix
        )
        fits.append(mix)
    return fits


def _circles(
    popularity: Popularity, friends: Indices, friend_sums: Vector, rate: float
) -> tuple[float, float]:
    """How many friends share circles with the member, as a share, and their typical sum.

    A friend's sum is either what its degree explains, or has the law of the tail.
    """
    if len(friends) == 0:
        return 0.5, 0.0
    degrees = popularity.estimates.of_friends[friends]
    expected = np.empty((_PLAIN, CELLS))
    centres = popularity.cell_degrees
    kernels.mean_counts(centres, degrees, np.ones(len(friends)), popularity.total, expected)
    # The friends' degrees are size-biased: they have cells of their own.
    cells = np.clip(np.searchsorted(centres, degrees), 0, CELLS - 1)
    by_degree = np.maximum(
        expected[2] + np.expm1(-(centres**2) / popularity.total), 0.0
    )  # not its own friend
    typical = float(friend_sums.mean() - by_degree[cells].mean())
    typical = max(typical, 1.0)
    highest = max(float(friend_sums.max()) + 10 / rate, 8 * typical)
    points, width = grid(min(len(friends), highest), 1.0)
    plain = Law.of(points, poissons(points, width, by_degree), rate)
    tail = Law.of(points, exponentials(points, width, typical).mean(axis=0, keepdims=True), rate)
    by_tail = tail.likelihood(np.zeros(len(friends), dtype=np.int64), friend_sums)
    share = kernels.fit_share(by_tail, plain.likelihood(cells, friend_sums), *_BEFOREHAND, _ROUNDS)
    return share, typical
