"""Lists of suggestions from released numbers: post-processing, in numpy.

Released are all degrees with noise, once for everybody, and for each member the noisy sums of the
weights of common friends that reach a public threshold. A stranger's score is a log posterior
(docs/theory/suggestions.md):

    score_v = ln D_v + ln(1 + (K / n) e^(L_v)),    L_v = r z_v

D_v is the released degree, z_v the noisy sum, K / n the prior odds that a stranger belongs to the
member's circles, and r the rate at which a sum adds to the log odds. Nothing is fitted.

The order of use: `split`, `learn` once, `friend_weights`, `threshold`, `gather` (what is stored),
`make_lists` (any number of times, for any k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.rows import OwnLists, exact_weights

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

CIRCLE = 1000  # K: strangers with whom a member may share a circle, before anything is measured
_HUB = 4.0  # friends with a released degree above so many noise floors count less
_SPREAD = 0.3  # expected common friends of a stranger in a circle, for each friend by weight
_NOISE_NAMES = 200  # strangers whom noise alone lifts to the threshold, on average
STORED = 256  # names that are stored for a member, those with the best scores
_STANDS_OUT = 0.1  # a name stands out if noise alone explains at most so many like it
_BLOCK = 256  # members at a time


class Reason(IntEnum):
    """Why somebody is on a list."""

    POPULAR = 0
    COMMON_FRIENDS = 1
    FOLLOWS_YOU = 2


class Popularity(NamedTuple):
    """What the released degrees tell, the same for everybody."""

    degrees: Vector  # (n) released degrees, at least the noise floor
    order: Indices  # (n) nodes, the most popular first
    floor: float  # the scale of the degrees' noise, at least 1


class Evidence(NamedTuple):
    """What the noisy sums of some members tell about strangers: this is stored.

    Row i is at ``starts[i] : starts[i + 1]``, the best scores first.
    """

    starts: npt.NDArray[np.int64]  # (members + 1)
    nodes: Indices
    sums: npt.NDArray[np.float32]  # noisy sum of the weights of common friends
    log_odds: npt.NDArray[np.float32]  # what it adds to the log odds of a common circle

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: Sequence[int] | Indices) -> Evidence:
        """The evidence of some members, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate(([0], np.cumsum(counts)))
        at = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], counts)
        return Evidence(starts, self.nodes[at], self.sums[at], self.log_odds[at])

    def dense(self, n: int) -> Vector:
        """The sums as an array (members, n), NaN where nothing is stored: for tests and audits."""
        sums = np.full((len(self), n), np.nan)
        sums[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.nodes] = self.sums
        return sums

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The evidence of the members of all parts, one part after the other."""
        counts = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate(([0], np.cumsum(counts))),
            *(np.concatenate(columns) for columns in zip(*(p[1:] for p in parts), strict=True)),
        )


class Lists(NamedTuple):
    """Lists of some members as columns; that of member i is at ``starts[i] : starts[i + 1]``."""

    starts: npt.NDArray[np.int64]  # (members + 1)
    nodes: npt.NDArray[np.int64]
    scores: Vector
    common: Vector  # estimated common friends
    chance: Vector  # how many such names noise alone would put there, for each name
    reasons: npt.NDArray[np.int8]  # of `Reason`


def split(epsilon: float) -> tuple[float, float]:
    """Share epsilon out between the degrees and the sums; the parts add up to it.

    Degrees need little: they only have to tell hubs from others.

    Examples
    --------
    >>> split(1.0)
    (0.05, 0.95)
    """
    for_degrees = max(0.05 * epsilon, min(0.2 * epsilon, 0.03))
    return for_degrees, epsilon - for_degrees


def threshold(n: int, rate: float) -> float:
    """Public threshold that about `_NOISE_NAMES` of n sums reach which are noise of rate `rate`."""
    return max(0.0, math.log(n / (2 * _NOISE_NAMES)) / rate) if n else 0.0


def learn(noisy: Vector, scale: float) -> Popularity:
    """Prepare what all lists share from degrees with Laplace noise of this scale."""
    floor = max(scale, 1.0)
    return Popularity(np.maximum(noisy, floor), np.argsort(-noisy, kind="stable"), floor)


def friend_weights(popularity: Popularity, own: OwnLists) -> Vector:
    """The weight in [0, 1] of each friend in ``own.lists``: hubs count less, as far as known.

    Cut to so few bits that sums of weights are exact.
    """
    degrees = popularity.degrees[own.lists]
    return exact_weights(_HUB * popularity.floor / degrees, len(popularity.degrees))


def gather(
    popularity: Popularity,
    own: OwnLists,
    tail: tuple[npt.NDArray[np.int64], Indices, Vector],
    rate: float,
) -> Evidence:
    """Turn released sums into evidence: strangers only, at most `STORED` a member.

    Parameters
    ----------
    popularity, own
        From `learn`; the members and their friends.
    tail : starts, nodes and noisy sums
        What reached the threshold; row i is at ``starts[i] : starts[i + 1]``.
    rate : float
        1 / scale of the noise on the sums.
    """
    starts, nodes, sums = tail
    m, n = len(own.sources), len(popularity.degrees)
    rows = np.repeat(np.arange(m), np.diff(starts))
    stranger = ~_contains(_known(own, n), rows * n + nodes)
    rows, nodes, sums = rows[stranger], nodes[stranger], sums[stranger]
    log_odds: Vector = log_odds_rate(rate, _weight_of_friends(popularity, own))[rows] * sums
    scores = _scores(popularity.degrees[nodes], log_odds, n)
    order = np.lexsort((nodes, -scores, rows))
    counts = np.bincount(rows, minlength=m)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = order[place < STORED]
    return Evidence(
        np.concatenate(([0], np.cumsum(np.minimum(counts, STORED)))),
        nodes[kept].astype(np.int32 if n <= 2**31 else np.int64),
        sums[kept].astype(np.float32),
        log_odds[kept].astype(np.float32),
    )


def log_odds_rate(rate: float, weight: Vector) -> Vector:
    """The rate r at which a noisy sum adds to the log odds, given the total weight of friends.

    With noise of this rate the likelihood ratio of "about z common friends" against "none" grows
    like e^(rate z); a prior on their number that falls off with mean mu takes 1 / mu from it.
    """
    return np.asarray(np.maximum(0.0, rate - 1 / (1 + _SPREAD * weight)))


def make_lists(
    popularity: Popularity,
    own: OwnLists,
    evidence: Evidence,
    rate: float,
    k: int,
    candidates: Indices | None = None,
) -> Lists:
    """The best k strangers of each member.

    Parameters
    ----------
    popularity, own, evidence
        From `learn`; the members and their friends; from `gather`. Friends who were strangers when
        the evidence was gathered are left out.
    rate : float
        1 / scale of the noise on the sums.
    k : int
        Length of a list, at most.
    candidates : array of int, optional
        Who may be suggested; public.
    """
    n = len(popularity.degrees)
    allowed, order = None, popularity.order
    if candidates is not None:
        allowed = np.zeros(n, dtype=np.bool_)
        allowed[candidates] = True
        order = order[allowed[order]]
    blocks = []
    for first in range(0, len(own.sources), _BLOCK):
        here = slice(first, min(first + _BLOCK, len(own.sources)))
        part = _slice(own, here)
        found = evidence.take(np.arange(here.start, here.stop))
        blocks.append(_lists_of_block(popularity, order, allowed, part, found, rate, k))
    counts = np.concatenate([np.diff(block.starts) for block in blocks] or [np.empty(0, np.int64)])
    columns = [np.concatenate(column) for column in zip(*(b[1:] for b in blocks), strict=True)]
    return Lists(np.concatenate(([0], np.cumsum(counts))), *columns)


def _lists_of_block(
    popularity: Popularity,
    order: Indices,
    allowed: npt.NDArray[np.bool_] | None,
    own: OwnLists,
    evidence: Evidence,
    rate: float,
    k: int,
) -> Lists:
    """The lists of a few members: evidence, followers and the popular, sorted by score."""
    m, n = len(own.sources), len(popularity.degrees)
    known = _known(own, n)
    rows = np.repeat(np.arange(m), np.diff(evidence.starts))
    fit = ~_contains(known, rows * n + evidence.nodes)
    if allowed is not None:
        fit &= allowed[evidence.nodes]
    rows, nodes = rows[fit], evidence.nodes[fit].astype(np.int64)
    sums = evidence.sums[fit].astype(np.float64)
    log_odds = evidence.log_odds[fit].astype(np.float64)
    taken = np.sort(np.concatenate([known, rows * n + nodes]))
    more = [_followers(own, taken, n, allowed)] if own.followers else []
    if more:
        taken = np.sort(np.concatenate([taken, more[0][0] * n + more[0][1]]))
    more.append(_most_popular(order, taken, m, n, k))
    rows = np.concatenate([rows, *(r for r, _ in more)])
    nodes = np.concatenate([nodes, *(v for _, v in more)])
    absent = np.zeros(len(rows) - len(sums))
    sums, log_odds = np.concatenate([sums, absent]), np.concatenate([log_odds, absent])
    scores = _scores(popularity.degrees[nodes], log_odds, n)
    follows = np.zeros(len(rows), dtype=np.bool_)
    if own.followers:
        bonus, follows = _follow_back(own, rows, nodes, n)
        scores += bonus
    best = np.lexsort((nodes, -scores, rows))
    counts = np.bincount(rows, minlength=m)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    best, place = best[place < k], place[place < k]
    rows, nodes, scores, sums = rows[best], nodes[best], scores[best], sums[best]
    friends = np.diff(own.starts)
    chance = np.minimum(1.0, n / 2 * np.exp(-rate * sums) / (place + 1))
    chance[sums <= 0] = 1.0
    decided = log_odds[best] + math.log(_prior_odds(n)) > 0  # the circle is likelier than not
    reasons = np.where(decided, Reason.COMMON_FRIENDS, Reason.POPULAR)
    reasons[~decided & follows[best]] = Reason.FOLLOWS_YOU
    per_weight = friends / np.maximum(_weight_of_friends(popularity, own), 1e-9)
    common = np.clip(sums * per_weight[rows], 0.0, friends[rows])
    starts = np.concatenate(([0], np.cumsum(np.minimum(counts, k))))
    return Lists(starts, nodes, scores, common, chance, reasons.astype(np.int8))


def _prior_odds(n: int) -> float:
    return CIRCLE / n


def _scores(degrees: Vector, log_odds: Vector, n: int) -> Vector:
    """Ln D + ln(1 + (K / n) e^L), without overflow."""
    return np.asarray(np.log(degrees) + np.logaddexp(0.0, log_odds + math.log(_prior_odds(n))))


def _weight_of_friends(popularity: Popularity, own: OwnLists) -> Vector:
    """The total weight of each member's friends."""
    rows = np.repeat(np.arange(len(own.sources)), np.diff(own.starts))
    weights = friend_weights(popularity, own)
    return np.asarray(np.bincount(rows, weights, minlength=len(own.sources)), dtype=np.float64)


def _slice(own: OwnLists, here: slice) -> OwnLists:
    """What some of the members know."""
    first, last = own.starts[here.start], own.starts[here.stop]
    return own._replace(
        sources=own.sources[here],
        lists=own.lists[first:last],
        starts=own.starts[here.start : here.stop + 1] - first,
        followers=own.followers[here],
    )


def _known(own: OwnLists, n: int) -> npt.NDArray[np.int64]:
    """Pairs of member and friend, or itself, as sorted numbers row * n + node."""
    rows = np.arange(len(own.sources))
    pairs = np.repeat(rows, np.diff(own.starts)) * n + own.lists
    return np.sort(np.concatenate([pairs, rows * n + own.sources]))


def _contains(
    ordered: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which values are among the ordered ones."""
    if len(ordered) == 0:
        return np.zeros(len(values), dtype=np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)


def _most_popular(
    order: Indices, taken: npt.NDArray[np.int64], m: int, n: int, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each of m members the k most popular nodes that are not taken, as rows and nodes."""
    width, rows = min(2 * k + 32, len(order)), np.arange(m)[:, None]
    while True:
        nodes = np.broadcast_to(order[:width].astype(np.int64), (m, width))
        free = ~_contains(taken, (rows * n + nodes).ravel()).reshape(m, width)
        rank = free.cumsum(axis=1)
        if width == len(order) or (m and rank[:, -1].min() >= k):
            chosen = free & (rank <= k)
            return np.nonzero(chosen)[0], nodes[chosen]
        width = min(4 * width, len(order))


def _followers(
    own: OwnLists, taken: npt.NDArray[np.int64], n: int, allowed: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Followers of the members about whom there is no other evidence, as rows and nodes."""
    rows = np.repeat(np.arange(len(own.sources)), [len(f) for f in own.followers])
    nodes = np.concatenate([np.empty(0, np.int64), *own.followers]).astype(np.int64)
    fit = ~_contains(taken, rows * n + nodes)
    if allowed is not None:
        fit &= allowed[nodes]
    return rows[fit], nodes[fit]


def _follow_back(
    own: OwnLists, rows: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64], n: int
) -> tuple[Vector, npt.NDArray[np.bool_]]:
    """What being a follower adds to a score, and who is one.

    The likelihood ratio of "follows the member": how often those whom the member follows do, by
    its own lists, against how often anybody does; with half a pseudo-count.
    """
    counts = np.array([len(f) for f in own.followers])
    pairs = np.repeat(np.arange(len(counts)), counts) * n + np.concatenate(
        [np.empty(0, np.int64), *own.followers]
    ).astype(np.int64)
    pairs.sort()
    friends = np.diff(own.starts)
    friend_rows = np.repeat(np.arange(len(friends)), friends)
    mutual = np.bincount(
        friend_rows, _contains(pairs, friend_rows * n + own.lists), minlength=len(friends)
    )
    often = (mutual + 0.5) / (friends + 1)
    anybody = (counts + 0.5) / (n + 1)
    bonus = np.maximum(0.0, np.log(often / anybody))
    follows = _contains(pairs, rows * n + nodes)
    return np.where(follows, bonus[rows], 0.0), follows
