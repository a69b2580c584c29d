"""Lists of suggestions from released numbers: post-processing, in numpy.

Released are all degrees with noise, once for everybody, and for each member the noisy sums of the
weights of common friends that reach a public threshold. A stranger's score is a log posterior
(docs/theory/suggestions.md):

    score_v = ln D_v + ln(1 + (K / n) e^(r z_v))

D_v is the released degree, z_v the noisy sum, K / n the prior odds that a stranger belongs to the
member's circles, and r the rate at which a sum adds to the log odds. Nothing is fitted.

The order of use: `split_epsilon`, `fit_popularity` once, `friend_weights`, `threshold`,
`make_evidence` (what is stored), `make_lists` (any number of times, for any k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil._internal.flat_rows import starts_of, take_rows
from edgeveil.estimate import _list_kernels as kernels
from edgeveil.estimate.rows import LocalViews, exact_weights

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]
ReleasedSums = tuple[npt.NDArray[np.int64], Indices, Vector]
"""Starts, nodes and noisy sums of some members; row i is at ``starts[i] : starts[i + 1]``."""

CIRCLE = 2000  # K: prior number of strangers who share a circle with a member
_LARGEST_PRIOR = 1.0  # of the odds K / n, where there are few nodes
_FLOOR = 1.5  # released degrees below this many scales of noise are set to it
_HUB = 3.0  # friends whose released degree is above this many floors count less
_SPREAD = 0.3  # expected common friends of a stranger in a circle, per weight of friends
_NOISE_NAMES = 200  # expected number of strangers that reach the threshold by noise alone
DEFAULT_K = 20  # names on a list
STORED = 200  # names that are stored for a member, those with the best scores
STANDS_OUT = 0.5  # a place stands out if its `chance` is below this,
STRONG = 0.1  # and is strong if it is below this


class Reason(IntEnum):
    """Why a name is on a list."""

    POPULAR = 0
    COMMON_FRIENDS = 1
    FOLLOWS_YOU = 2


class Popularity(NamedTuple):
    """Popularity of all nodes from the released degrees, the same for everybody."""

    log_degrees: Vector  # (n) logarithms of released degrees, of the noise floor at least
    order: npt.NDArray[np.int64]  # (n) nodes, the most popular first
    floor: float  # the smallest degree that can be told from noise


def check_k(k: int | None) -> int:
    """The length of a list, at most; ParameterError if no list has it."""
    return DEFAULT_K if k is None else check_int("k", k, 1, 10_000)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The noisy sums of some members, as evidence about strangers: this is stored.

    Row i is at ``starts[i] : starts[i + 1]``, nodes rising.
    """

    starts: npt.NDArray[np.int64]  # (members + 1)
    nodes: Indices
    sums: npt.NDArray[np.float32]  # noisy sum of the weights of common friends
    rates: Vector  # (members) what a unit of a sum adds to the log odds of a common circle

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: Sequence[int] | Indices) -> Evidence:
        """The evidence of some members, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        starts, places = take_rows(self.starts, rows)
        return Evidence(starts, self.nodes[places], self.sums[places], self.rates[rows])

    def dense(self, n: int) -> Vector:
        """The sums as an array (members, n), NaN where nothing is stored: for tests and audits."""
        sums = np.full((len(self), n), np.nan)
        sums[np.repeat(np.arange(len(self)), np.diff(self.starts)), self.nodes] = self.sums
        return sums

    @classmethod
    def none(cls, members: int) -> Evidence:
        """No evidence, for this many members: their lists follow what everybody shares."""
        starts, nodes = np.zeros(members + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
        return cls(starts, nodes, np.empty(0, dtype=np.float32), np.zeros(members))

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The evidence of the members of all parts, one part after the other."""
        counts = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            starts_of(counts),
            np.concatenate([part.nodes for part in parts]),
            np.concatenate([part.sums for part in parts]),
            np.concatenate([part.rates for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """Who may be suggested, by index.

    Given by the curator or by members, never computed from edges: then a list for other candidates
    is post-processing of released values, and costs nothing (docs/theory/series.md).

    Attributes
    ----------
    nodes : array of int, optional
        Who may be suggested at all; everybody by default.
    excluded : array of shape (pairs, 2)
        Rows (member, other): the other is not suggested to this member.
    """

    nodes: Indices | None = None
    excluded: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.empty((0, 2), dtype=np.int64)
    )

    def allowed(self, n: int) -> npt.NDArray[np.bool_]:
        """For each of n nodes, whether it may be suggested; empty: everybody may."""
        if self.nodes is None:
            return np.zeros(0, dtype=np.bool_)
        allowed = np.zeros(n, dtype=np.bool_)
        allowed[self.nodes] = True
        return allowed

    def beside(
        self, sources: Indices, lists: Indices, starts: npt.NDArray[np.int64], n: int
    ) -> tuple[Indices, npt.NDArray[np.int64]]:
        """The members' lists of friends, each with those excluded for the member; sorted.

        `sources` has no repeats.
        """
        pairs = self.excluded[np.isin(self.excluded[:, 0], sources)]
        if not len(pairs):
            return lists, starts
        order = np.argsort(sources)
        rows = order[np.searchsorted(sources[order], pairs[:, 0])]
        keys = np.repeat(np.arange(len(sources)), np.diff(starts)) * n + lists
        both = np.unique(np.concatenate([keys, rows * n + pairs[:, 1]]))
        return both % n, np.searchsorted(both, np.arange(len(sources) + 1) * n).astype(np.int64)


class Lists(NamedTuple):
    """Lists of some members as columns; that of member i is at ``starts[i] : starts[i + 1]``."""

    starts: npt.NDArray[np.int64]  # (members + 1)
    nodes: npt.NDArray[np.int64]
    scores: Vector
    common: Vector  # estimated common friends
    chance: Vector  # share of names with at least this sum that is expected from noise alone
    reasons: npt.NDArray[np.int8]  # of `Reason`


def split_epsilon(epsilon: float) -> tuple[float, float]:
    """Split epsilon into a part for the degrees and one for the sums.

    Degrees need little: they only have to tell hubs from other nodes.

    Examples
    --------
    >>> split_epsilon(1.0)
    (0.03, 0.97)
    """
    for_degrees = max(0.03 * epsilon, min(0.2 * epsilon, 0.03))
    return for_degrees, epsilon - for_degrees


def threshold(n: int, rate: float) -> float:
    """Public threshold that about `_NOISE_NAMES` of n sums reach which are noise of rate `rate`."""
    return max(0.0, math.log(n / (2 * _NOISE_NAMES)) / rate) if n else 0.0


def fit_popularity(noisy: Vector, scale: float) -> Popularity:
    """What all lists share, from degrees with Laplace noise of this scale."""
    floor = max(_FLOOR * scale, 1.0)
    order = np.argsort(-noisy, kind="stable")
    return Popularity(np.log(np.maximum(noisy, floor)), order, floor)


def friend_weights(popularity: Popularity, views: LocalViews) -> Vector:
    """The weight in [0, 1] of each friend in ``views.lists``: hubs count less, as far as known.

    Rounded down so that sums of weights are exact (`exact_weights`).
    """
    degrees = np.exp(popularity.log_degrees[views.lists])
    return exact_weights(_HUB * popularity.floor / degrees, len(popularity.log_degrees))


def make_evidence(
    popularity: Popularity,
    views: LocalViews,
    tail: ReleasedSums,
    rate: float,
    weight: Vector | None = None,
) -> Evidence:
    """Turn released sums into evidence: strangers only, at most `STORED` a member.

    Parameters
    ----------
    popularity, views
        From `fit_popularity`; the members and their friends.
    tail : starts, nodes and noisy sums
        What reached the threshold.
    rate : float
        1 / scale of the noise on the sums.
    weight : array of shape (members,), optional
        Total weight of the friends whose edges were counted; by default of all friends.
    """
    if weight is None:
        weight = weight_of_friends(popularity, views)
    rates = log_odds_rate(rate, weight)
    return _keep_best(popularity, views, tail, rates)


def _keep_best(
    popularity: Popularity,
    views: LocalViews,
    tail: ReleasedSums,
    rates: Vector,
) -> Evidence:
    """The `STORED` strangers with the best scores of each member."""
    starts, nodes, sums = tail
    n, size = len(popularity.log_degrees), len(nodes)
    out_starts = np.empty(len(views.sources) + 1, dtype=np.int64)
    out_nodes: Indices = np.empty(size, dtype=np.int32 if n <= 2**31 else np.int64)
    out_sums = np.empty(size, dtype=np.float32)
    kernels.store_best(
        _ints(views.sources),
        _ints(views.lists),
        _ints(views.starts),
        _ints(starts),
        _ints(nodes),
        _reals(sums),
        rates,
        popularity.log_degrees,
        _log_prior(n),
        STORED,
        out_starts,
        out_nodes,
        out_sums,
    )
    used = out_starts[-1]
    return Evidence(out_starts, out_nodes[:used].copy(), out_sums[:used].copy(), rates)


def merge_evidence(
    popularity: Popularity, views: LocalViews, old: Evidence, new: Evidence
) -> Evidence:
    """Add up the log odds of two windows of the same members, at most `STORED` names a member.

    The rate of the result is the larger one of the two, and its sums are in units of that.
    """
    if not len(old.nodes) and (old.rates <= new.rates).all():  # the first window of all
        return new
    m, n = len(views.sources), len(popularity.log_degrees)
    rates = np.maximum(old.rates, new.rates)
    scale = np.where(rates > 0, rates, 1.0)
    keys, odds = [], []
    for part in (old, new):
        rows = np.repeat(np.arange(m), np.diff(part.starts))
        keys.append(rows * n + part.nodes)
        odds.append((np.where(rates > 0, part.rates, 1.0) / scale)[rows] * part.sums)
    unique_keys, places = np.unique(np.concatenate(keys), return_inverse=True)
    sums: Vector = np.zeros(len(unique_keys))
    np.add.at(sums, places, np.concatenate(odds))
    starts = np.searchsorted(unique_keys, np.arange(m + 1) * n).astype(np.int64)
    return _keep_best(popularity, views, (starts, unique_keys % n, sums), rates)


def log_odds_rate(rate: float, weight: Vector) -> Vector:
    """The rate r at which a noisy sum adds to the log odds, given the total weight of friends.

    With noise of this rate the likelihood ratio of "about z common friends" against "none" grows
    like e^(rate z); a prior on their number that falls off with mean mu takes 1 / mu from it.
    """
    return np.asarray(np.maximum(0.0, rate - 1 / (1 + _SPREAD * weight)))


def make_lists(
    popularity: Popularity,
    views: LocalViews,
    evidence: Evidence,
    rate: float,
    k: int,
    candidates: Candidates | None = None,
    windows: npt.NDArray[np.int64] | None = None,
) -> Lists:
    """The best k strangers of each member.

    Parameters
    ----------
    popularity, views, evidence
        From `fit_popularity`; the members and their friends; from `make_evidence`. Friends who were
        strangers when the evidence was made are left out.
    rate : float
        1 / scale of the noise on the sums.
    k : int
        Length of a list, at most.
    candidates : Candidates, optional
        Who may be suggested, and to whom not.
    windows : array of shape (members,), optional
        How many times noise was drawn for the evidence of each member; by default once.
    """
    m, n = len(views.sources), len(popularity.log_degrees)
    candidates = candidates or Candidates()
    allowed, order = candidates.allowed(n), popularity.order
    if len(allowed):
        order = order[allowed[order]]
    # The loop leaves out friends; who is excluded is left out in the same way.
    hidden, hidden_starts = candidates.beside(views.sources, views.lists, views.starts, n)
    starts, size = np.empty(m + 1, dtype=np.int64), m * min(k, n)
    nodes, above = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    scores, sums = np.empty(size), np.empty(size)
    followers = [np.empty(0, np.int64), *views.followers]
    follower_starts = np.cumsum([0, *map(len, views.followers or [()] * m)])
    kernels.best_of_rows(
        _ints(views.sources),
        _ints(hidden),
        _ints(hidden_starts),
        _ints(evidence.starts),
        _ints(evidence.nodes),
        _reals(evidence.sums),
        _reals(evidence.rates),
        _ints(np.concatenate(followers)),
        _ints(follower_starts),
        _follow_back(views, n),
        popularity.log_degrees,
        order,
        allowed,
        _log_prior(n),
        min(k, n),
        starts,
        nodes,
        scores,
        sums,
        above,
    )
    used = starts[-1]
    nodes, scores, sums = nodes[:used], scores[:used], sums[:used]
    friends, rows = np.diff(views.starts), np.repeat(np.arange(m), np.diff(starts))
    # As many strangers as (n / 2) e^(-rate z) get a sum of z or more from noise alone.
    by_noise = n / 2 * np.exp(-rate * np.maximum(sums, 0.0))
    if windows is not None:
        by_noise *= windows[rows]
    chance = np.where(sums > 0, np.minimum(1.0, by_noise / np.maximum(above[:used], 1)), 1.0)
    per_weight = friends / np.maximum(weight_of_friends(popularity, views), 1e-9)
    common = np.clip(sums * per_weight[rows] * (1 - chance), 0.0, friends[rows])
    reasons = _reasons(views, starts, nodes, chance)
    return Lists(starts, nodes, scores, common, chance, reasons)


def _reasons(
    views: LocalViews, starts: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64], chance: Vector
) -> npt.NDArray[np.int8]:
    """Common friends where a place stands out; else a follower; else popular."""
    reasons = np.full(len(nodes), Reason.POPULAR, dtype=np.int8)
    for i, followers in enumerate(views.followers):
        row = slice(starts[i], starts[i + 1])
        reasons[row][np.isin(nodes[row], followers)] = Reason.FOLLOWS_YOU
    reasons[chance < STANDS_OUT] = Reason.COMMON_FRIENDS
    return reasons


def _log_prior(n: int) -> float:
    """The logarithm of the prior odds that a stranger shares a circle with a member."""
    return math.log(min(_LARGEST_PRIOR, CIRCLE / n))


def weight_of_friends(popularity: Popularity, views: LocalViews) -> Vector:
    """The total weight of each member's friends."""
    rows = np.repeat(np.arange(len(views.sources)), np.diff(views.starts))
    weights = friend_weights(popularity, views)
    return np.asarray(np.bincount(rows, weights, minlength=len(views.sources)), dtype=np.float64)


def _follow_back(views: LocalViews, n: int) -> Vector:
    """What being a follower adds to a score, for each member: a log likelihood ratio.

    The share of those it follows who follow it back, over the share of all nodes that follow it,
    with half a pseudo-count each.
    """
    friends = np.diff(views.starts)
    if not views.followers:
        return np.zeros(len(friends))
    followers = np.array([len(theirs) for theirs in views.followers])
    mutual = np.array([len(np.intersect1d(views.of(i), f)) for i, f in enumerate(views.followers)])
    back, follow = (mutual + 0.5) / (friends + 1), (followers + 0.5) / (n + 1)
    return np.asarray(np.maximum(0.0, np.log(back / follow)))


# Loops are compiled for each type of their arguments, so they get arrays of one type, read-only.


def _ints(array: Indices) -> npt.NDArray[np.int64]:
    return _read_only(np.ascontiguousarray(array, dtype=np.int64))


def _reals(array: npt.NDArray[np.floating[Any]]) -> Vector:
    return _read_only(np.ascontiguousarray(array, dtype=np.float64))


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
