"""Whom members may know, read out of released numbers. All of it is post-processing.

Input: degrees with Laplace noise, the members' own lists of friends, and noisy sums
x_v = sum of w_u over the common friends u of a member and v, w_u in [0, 1]; of the strangers'
sums only those of at least `threshold` are needed. Theorem, formulae and figures are in
docs/theory/suggestions.md. The order of use:

1. `split` shares the budget out between degrees and sums.
2. `learn` once for everybody: from the noisy degrees.
3. `friend_weights`: from the friends' noisy sums (all weights 1).
4. `lists`: from the strangers' noisy sums with these weights.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _friend_kernels as friend_kernels
from edgeveil.estimate import _list_kernels as list_kernels
from edgeveil.estimate import _mixture_kernels as mixture_kernels
from edgeveil.estimate import _place_kernels as place_kernels
from edgeveil.estimate._law_kernels import PLAIN
from edgeveil.estimate.popularity import CELLS, Popularity, learn
from edgeveil.estimate.rows import OwnLists

__all__ = ["Popularity", "Released", "friend_weights", "learn", "lists", "split", "threshold"]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]


class Released(NamedTuple):
    """What was released for some members, beside the degrees.

    Attributes
    ----------
    friend_sums : array
        Noisy numbers of common friends of a member and each friend, as `OwnLists.lists`.
    weights : array of the same length
        From `friend_weights`.
    places, sums : arrays of one length
        Nodes whose noisy sum is at least ``threshold(n, rate)``, rising for each member, and
        that sum. The member itself and its friends do not count. The other strangers are known
        to be below the threshold.
    starts : array of shape (members + 1,)
        Those of member i are at ``starts[i] : starts[i + 1]``.
    rate : float
        1 / scale of the noise on strangers' sums.
    friend_rate : float
        The same of the friends' sums.
    """

    friend_sums: Vector
    weights: Vector
    places: Indices
    sums: Vector
    starts: npt.NDArray[np.int64]
    rate: float
    friend_rate: float


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
    popularity: Popularity, own: OwnLists, friend_sums: Vector, rate: float
) -> Vector:
    """Choose the weights of members' friends for the strangers' sums.

    Friends of many count less, min(1, D0 / degree), if the sums that are left still stand out
    of the noise, else all weights of a member are 1.

    Parameters
    ----------
    popularity : Popularity
        From `learn`.
    own : OwnLists
        The members and their friends.
    friend_sums : array, one value for each friend
        Noisy numbers of common friends of the member and each friend.
    rate : float
        1 / scale of the noise on strangers' sums, split(epsilon)[1].

    Returns
    -------
    array, one weight in [0, 1] for each friend
    """
    weights = np.empty(len(own.lists))
    of_friends = popularity.estimates.of_friends
    clear = math.log(max(len(popularity.order) / 40, math.e)) / rate
    friend_kernels.weigh_friends(
        _whole(own.lists), _whole(own.starts), _real(friend_sums), _real(of_friends), clear, weights
    )
    return weights


def lists(
    popularity: Popularity,
    own: OwnLists,
    released: Released,
    k: int,
    candidates: Indices | None = None,
) -> npt.NDArray[np.float64]:
    """The best k strangers of each member.

    Parameters
    ----------
    popularity : Popularity
        From `learn`.
    own : OwnLists
        The members, their friends and, directed, if they know it, who follows them.
    released : Released
        About them.
    k : int
        Places of a list.
    candidates : array of int, optional
        Who may be suggested; public. Places are among all strangers all the same.

    Returns
    -------
    array of shape (members, k, 7)
        Best first; NaN where there are no more. For each place: the node; its score, expected
        common friends (by weight) and popularity in the same unit; the first and the last
        place, from 1, that the noise leaves open: in at least 95 % of the cases the place by
        true sums is one of these (degrees as released); estimated number of common friends; why
        (1 common friends: that there is one is more likely than not, the noisy sum at least
        doubles what the degree lets expect, and without it the node would not be on the list;
        2 it follows the member; 0 popularity); how many friends the member has.
    """
    members, rate = _whole(own.sources), released.rate
    own_lists = _whole(own.lists), _whole(own.starts)
    limit, m = threshold(len(popularity.order), rate), len(members)
    cell, between = popularity.cell, _real(popularity.between)
    row_values = released.places, released.sums, released.starts
    nodes, values, fines, begins, below = _strangers(members, own_lists, popularity, *row_values)
    expected = np.empty((m, PLAIN * CELLS))
    popular, facts = np.empty_like(below), np.empty((m, friend_kernels.FACTS))
    law_starts = np.empty(m + 1, dtype=np.int64)
    friend_kernels.read_friends(
        *own_lists, _real(released.friend_sums), _real(released.weights),
        _real(popularity.estimates.of_friends), _real(popularity.cell_degrees), popularity.total,
        between, (rate, released.friend_rate), values, begins,
        expected, popular, facts, law_starts,
    )  # fmt: skip
    laws, rankings = np.empty((2, law_starts[-1], CELLS))
    bins = np.empty(len(nodes), dtype=np.int32)
    mixture_kernels.fit_laws(
        expected, facts, own_lists[1], values, fines, begins, below, _real(popularity.growth),
        rate, limit, law_starts, laws, rankings, bins,
    )  # fmt: skip

    none = np.empty(0, dtype=np.int64)
    known = own.followers or (none,) * m
    known_starts = np.cumsum([0, *map(len, known)])
    followers = np.concatenate([none, *known]), np.zeros(known_starts[-1]), known_starts
    fans, _, _, fan_starts, _ = _strangers(members, own_lists, popularity, *followers)
    bonus = _follow_back(np.diff(own.starts), np.diff(known_starts), np.diff(fan_starts))
    bonus *= np.maximum(facts[:, 4], 1.0) / facts[:, 0]

    order, allowed = popularity.order, np.zeros(0, dtype=np.bool_)
    if candidates is not None:
        allowed = np.zeros(len(order), dtype=np.bool_)
        allowed[candidates] = True
        order = order[allowed[order]]
    out, limits = np.full((m, k, list_kernels.FIELDS), np.nan), np.empty((m, 2 * k))
    row = (facts, popular, bonus, nodes, values, fines, begins)
    list_kernels.score_lists(
        members, *own_lists, *row, fans, fan_starts, cell, between,
        order, allowed, rate, limit, law_starts, laws, rankings, limits, out,
    )  # fmt: skip
    others = np.maximum(len(popularity.order) - 1.0 - np.diff(own.starts), 1.0)
    place_kernels.open_places(
        *row, bins, fans, fan_starts, cell, below,
        rate, limit, law_starts, rankings, others, limits, out,
    )  # fmt: skip
    return out


def _strangers(
    members: Indices,
    own_lists: tuple[Indices, Indices],
    popularity: Popularity,
    places: Indices,
    sums: Vector,
    starts: Indices,
) -> tuple[Any, ...]:
    """What is left of the places without the members and their friends: noise may lift these.

    Nodes, sums, fine cells and where each member's begin; and for each member how many strangers
    of each fine cell are left beside them.
    """
    size, m = len(places), len(members)
    found = (
        *(np.empty(size, dtype=np.int64), np.empty(size), np.empty(size, dtype=np.uint8)),
        *(np.empty(m + 1, dtype=np.int64), np.empty((m, len(popularity.counts)))),
    )
    given = _whole(places), _real(sums), _whole(starts)
    friend_kernels.keep_strangers(
        members, *own_lists, *given, popularity.cell, _real(popularity.counts), *found
    )
    return found


def _follow_back(own: Indices, followers: Indices, strangers: Indices) -> Vector:
    """Odds that whom a member follows is a follower followed back, for each follower."""
    share = (followers - strangers + 0.5) / (own + 1)
    odds = share / np.maximum(1 - share, 1e-300) / np.maximum(followers, 1)
    return np.asarray(np.where(followers > 0, odds, 0.0))


# Arrays of one type each: for every other one the loops would be compiled again.


def _whole(values: Indices) -> Any:
    return _for_reading(np.ascontiguousarray(values, dtype=np.int64))


def _real(values: Vector) -> Any:
    return _for_reading(np.ascontiguousarray(values, dtype=np.float64))


def _for_reading(values: Any) -> Any:
    view = values.view()
    view.flags.writeable = False
    return view
