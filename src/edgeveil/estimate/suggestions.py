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
from edgeveil.estimate.popularity import Popularity, learn
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
    m, n = len(own.sources), len(popularity.order)
    followers = own.followers or (np.empty(0, dtype=np.int64),) * m
    order, allowed = popularity.order, np.zeros(0, dtype=np.bool_)
    if candidates is not None:
        allowed = np.zeros(n, dtype=np.bool_)
        allowed[candidates] = True
        order = order[allowed[order]]
    out = np.full((m, k, list_kernels.FIELDS), np.nan)
    list_kernels.make_lists(
        (
            *(_whole(own.sources), _whole(own.lists), _whole(own.starts)),
            *(_real(released.friend_sums), _real(released.weights)),
        ),
        (_whole(released.places), _real(released.sums), _whole(released.starts)),
        (
            _whole(np.concatenate([np.empty(0, dtype=np.int64), *followers])),
            _whole(np.cumsum([0, *map(len, followers)])),
        ),
        (
            *(_real(popularity.estimates.of_friends), popularity.cell, _real(popularity.counts)),
            *(_real(popularity.cell_degrees), _real(popularity.between), _real(popularity.growth)),
        ),
        popularity.total,
        _whole(order),
        allowed,
        (released.rate, released.friend_rate),
        threshold(n, released.rate),
        out,
    )
    return out


# Arrays of one type each: for every other one the loops would be compiled again.


def _whole(values: Indices) -> Any:
    return _for_reading(np.ascontiguousarray(values, dtype=np.int64))


def _real(values: Vector) -> Any:
    return _for_reading(np.ascontiguousarray(values, dtype=np.float64))


def _for_reading(values: Any) -> Any:
    view = values.view()
    view.flags.writeable = False
    return view
