"""What the kernels of `edgeveil.estimate.suggestions` compute, one member at a time, in numpy.

Slow and plain: no tables, every likelihood a sum over the whole grid. docs/theory/suggestions.md
has the formulae.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgeveil.estimate.popularity import CELLS, FINE, Popularity
from edgeveil.estimate.suggestions import threshold

TAIL = np.array([0.5, 1.0, 2.5])
PLAIN = 5
TIES = 1e-9


def friend_weights(popularity, friends, friend_sums, rate):
    ones = np.ones(len(friends))
    if len(friends) == 0:
        return ones
    degrees = popularity.estimates.of_friends[friends]
    clear = 1.5 * math.log(max(len(popularity.order) / 40, math.e)) / rate
    for quantile in (0.75, 0.9):
        weights = np.minimum(1.0, np.quantile(degrees, quantile) / degrees)
        if weights.mean() * friend_sums.mean() >= clear:
            return weights
    return ones


# -- laws of a sum on a grid -----------------------------------------------------------------


def grid(top, unit):
    """Points and how much of the line each stands for, in units."""
    steps = [float(i) for i in range(31)]
    while steps[-1] * unit < top:
        steps.append(max(steps[-1] + 1, round(1.06 * steps[-1])))
    count = np.array(steps)
    edges = np.concatenate([[-0.5], (count[1:] + count[:-1]) / 2, [count[-1] + 0.5]])
    return count * unit, np.diff(edges)


def poissons(count, width, mean):
    log_factorial = np.array([math.lgamma(c + 1) for c in count])
    mean = np.maximum(mean, 1e-9)[..., None]
    log_mass = count * np.log(mean) - mean - log_factorial
    mass = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True)) * width
    return mass / mass.sum(axis=-1, keepdims=True)


def exponentials(points, width, typical):
    width = width.copy()
    width[0] /= 2
    mass = np.exp(-points / (TAIL[:, None] * typical)) * width
    return mass / mass.sum(axis=1, keepdims=True)


def stays_below(limit, points, rate):
    gap = rate * (limit - points)
    return np.where(
        gap < 0, 0.5 * np.exp(np.minimum(gap, 0)), 1 - 0.5 * np.exp(-np.maximum(gap, 0))
    )


def nearness(points, noisy, rate):
    """exp(-rate |z - x|): what noise leaves of each point's mass; 1 at the nearest point.

    Only ratios are used, and not all points may underflow.
    """
    away = rate * np.abs(np.asarray(noisy)[..., None] - points)
    return np.exp(away.min(axis=-1, keepdims=True) - away)


def mean_counts(degrees, friends, weights, total):
    """(5, c): sum_u w_u (1 - exp(-t d_u d / total)) for t = 1/4, 1/2, 1, 2, 4."""
    product = np.outer(degrees, friends) / total
    return np.array([(1 - np.exp(-t * product)) @ weights for t in (0.25, 0.5, 1, 2, 4)])


def fit_share(one, other, for_one, for_other, rounds):
    share = for_one / (for_one + for_other)
    for _ in range(rounds):
        whole = share * one + (1 - share) * other
        count = for_one + np.where(whole > 0, share * one / np.maximum(whole, 1e-300), share).sum()
        before, share = share, count / (len(one) + for_one + for_other)
        if abs(share - before) < 1e-4 * before:
            break
    return share


def grouped(cells, sums, points, follows):
    """A number for each value: those of one cell in the same half of a gap are one item.

    Those that follow the member are apart.
    """
    at = np.searchsorted(points, sums, side="right")
    inside = (at > 0) & (at < len(points))
    left, right = points[np.maximum(at - 1, 0)], points[np.minimum(at, len(points) - 1)]
    keys = np.stack([cells, 2 * at + (inside & (2 * sums > left + right)), follows], axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def mean_by(group, values):
    return np.bincount(group, values) / np.bincount(group)


def fit_mixture(likelihoods, cells, often, growth, pseudo, faster, most=0.5):
    """Shares by cell (c, k) after EM; faster: two steps, a longer one, and a third."""
    kinds = likelihoods.shape[1]
    shares = np.full(kinds, 0.001)
    shares[:PLAIN] = 1 / PLAIN
    exposure = (often * growth[cells]).sum() + 1

    def mixed(shares):
        tail = np.outer(growth, shares[PLAIN:])
        tail *= np.minimum(1, most / tail.sum(axis=1))[:, None]
        return np.hstack([np.outer(1 - tail.sum(axis=1), shares[:PLAIN]), tail])

    def improved(shares):
        parts = mixed(shares)[cells] * likelihoods
        whole = parts.sum(axis=1, keepdims=True)
        counts = often @ np.where(whole > 1e-290, parts / np.maximum(whole, 1e-290), 0)
        counts[:PLAIN] += 1
        counts[PLAIN:] += pseudo
        return np.append(counts[:PLAIN] / counts[:PLAIN].sum(), counts[PLAIN:] / exposure)

    for _ in range(7 if faster else 60):
        before, between = shares, improved(shares)
        if not faster:
            shares = between
            if (np.abs(shares - before) / (shares + 1e-9)).max() < 1e-3:
                break
            continue
        shares = improved(between)
        first, second = between - before, shares - between
        if (np.abs(second) / (shares + 1e-9)).max() < 1e-3:
            break
        slowed = (((second - first) / shares) ** 2).sum()
        far = max(np.sqrt(((first / shares) ** 2).sum() / slowed), 1) if slowed > 0 else 1
        further = before + 2 * far * first + far**2 * (second - first)
        if further.min() > 0:
            shares = improved(further)
    return mixed(shares)


# -- one member ------------------------------------------------------------------------------


def circles(popularity, friends, friend_sums, rate):
    """How many friends share circles with the member, as a share, and their typical sum."""
    if len(friends) == 0:
        return 0.5, 0.0
    degrees = popularity.estimates.of_friends[friends]
    centres, total = popularity.cell_degrees, popularity.total
    counted = mean_counts(centres, degrees, np.ones(len(friends)), total)[2]
    by_degree = np.maximum(counted + np.expm1(-(centres**2) / total), 0.0)
    cells = np.clip(np.searchsorted(centres, degrees), 0, CELLS - 1)
    typical = max(float(friend_sums.mean() - by_degree[cells].mean()), 1.0)
    highest = max(float(friend_sums.max()) + 10 / rate, 8 * typical)
    points, width = grid(min(len(friends), highest), 1.0)
    near = nearness(points, friend_sums, rate)
    by_tail = near @ exponentials(points, width, typical).mean(axis=0)
    by_plain = (near * poissons(points, width, by_degree)[cells]).sum(axis=1)
    return fit_share(by_tail, by_plain, 0.5, 1.5, 60), typical


def follow_back(friends, followers):
    if len(followers) == 0:
        return 0.0
    share = (len(np.intersect1d(friends, followers)) + 0.5) / (len(friends) + 1)
    return share / (1 - share) / len(followers)


def read_row(
    popularity,
    member,
    friends,
    friend_sums,
    weights,
    nodes,
    sums,
    rate,
    *,
    friend_rate=None,
    followers=(),
):
    """What one member's released row tells. `nodes` are strangers with their noisy `sums`."""
    followers = np.asarray(followers, dtype=np.int64)
    own = np.append(friends, member).astype(np.int64)
    friend_degrees = popularity.estimates.of_friends[friends]
    expected = mean_counts(popularity.cell_degrees, friend_degrees, weights, popularity.total)
    typical_weight = float(weights.mean()) if len(weights) else 1.0
    share, typical = circles(
        popularity, friends, friend_sums, rate / 2 if friend_rate is None else friend_rate
    )
    typical = max(1.0, typical * typical_weight)
    reach = float(weights @ friend_degrees)
    unit = max(float(weights**2 @ friend_degrees) / reach if reach > 0 else 1.0, 0.02)
    highest = float(sums.max()) if len(sums) else 0.0
    top = min(float(weights.sum()), max(8 * typical, highest + 10 / rate))
    points, width = grid(top, unit)
    tail = exponentials(points, width, typical)[:, None]
    laws = np.concatenate(
        [
            poissons(points / unit, width, expected / unit),
            np.broadcast_to(tail, (len(TAIL), CELLS, len(points))),
        ]
    )
    below = popularity.counts.copy()
    np.subtract.at(below, popularity.cell[np.concatenate([own, nodes])], 1)
    unseen = stays_below(threshold(len(popularity.order), rate), points, rate)
    cells = popularity.cell[nodes].astype(np.int64) // FINE
    group = grouped(cells, sums, points, np.isin(nodes, followers))
    some, where = (mean_by(group, cells).astype(np.int64), mean_by(group, sums))
    seen = np.einsum("kix,ix->ik", laws[:, some], nearness(points, where, rate))
    likelihoods = np.concatenate([(laws @ unseen).T, seen])
    items = np.concatenate([np.arange(CELLS), some])
    often = np.concatenate([below.reshape(CELLS, FINE).sum(axis=1), np.bincount(group)])
    growth = np.sqrt(popularity.cell_degrees * len(popularity.order) / popularity.total)
    law, ranking = (
        np.einsum("ck,kcx->cx", fit_mixture(likelihoods, items, often, growth, *how), laws)
        for how in ((0.2, False), (0.2 + 0.5 * share * len(friends) / len(TAIL), True))
    )
    return Reading(
        popularity=popularity,
        own=own,
        nodes=nodes,
        sums=sums,
        points=points,
        rate=rate,
        law=law,
        ranking=ranking,
        unseen=unseen,
        expected=expected[2],
        below=below,
        kappa=(1 - share) / share,
        typical_weight=typical_weight,
        followers=np.setdiff1d(followers, own),
        bonus=follow_back(friends, followers) * max(reach, 1.0) / share,
    )


@dataclass(frozen=True, eq=False)
class Reading:
    """Laws (cells, points) of a true sum, and what counts beside it."""

    popularity: Popularity
    own: np.ndarray
    nodes: np.ndarray
    sums: np.ndarray
    points: np.ndarray
    rate: float
    law: np.ndarray  # for estimates
    ranking: np.ndarray  # for scores and places
    unseen: np.ndarray
    expected: np.ndarray
    below: np.ndarray  # by fine cell
    kappa: float
    typical_weight: float
    followers: np.ndarray
    bonus: float

    @cached_property
    def degrees(self):
        """Of every node the mean of its fine cell."""
        return self.popularity.degrees[self.popularity.cell]

    @cached_property
    def cells(self):
        return self.popularity.cell[self.nodes].astype(np.int64) // FINE

    def means(self, law, cells, noisy):
        mass = law[cells] * nearness(self.points, noisy, self.rate)
        return mass @ self.points / np.maximum(mass.sum(axis=1), 1e-300)

    def low(self, law):
        """Law of a sum below the threshold."""
        mass = law * self.unseen
        return mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)

    def by_degree(self, values, degrees):
        centres = np.log(self.popularity.cell_degrees)
        return np.interp(np.log(degrees), centres, np.maximum.accumulate(values))

    def popular(self, degrees):
        return self.kappa * self.by_degree(self.expected, degrees)

    def beside(self, nodes):
        """What counts beside the sum: popularity, and to follow the member."""
        popular = self.popular(self.degrees[nodes])
        return popular + self.bonus * np.isin(nodes, self.followers)

    def low_sums(self, degrees):
        return self.by_degree(self.low(self.ranking) @ self.points, degrees)

    @cached_property
    def ranked(self):
        degrees = self.degrees[self.nodes]
        means = self.means(self.ranking, self.cells, self.sums)
        return np.maximum(means, self.low_sums(degrees))

    def row(self):
        """Scores of all nodes; -inf for the member and its friends."""
        degrees = self.degrees
        sums = self.low_sums(degrees)
        sums[self.nodes] = self.ranked
        row = sums + self.beside(np.arange(len(degrees)))
        row[self.own] = -np.inf
        return row

    def top(self, k, allowed=None):
        """As a row of `suggestions.lists`, by way of `row`."""
        row, order = self.row(), self.popularity.order
        if allowed is not None:
            row[~allowed] = -np.inf
        # Of equal scores first those seen, then followers, then the others, by popularity.
        among = np.concatenate([self.nodes, np.intersect1d(order, self.followers), order])
        among = among[np.sort(np.unique(among, return_index=True)[1])]
        best = among[np.argsort(-row[among], kind="stable")[:k]]
        best = best[row[best] > -np.inf]
        out = np.full((k, 7), np.nan)
        if len(best) == 0:
            return out
        place = {v: i for i, v in enumerate(self.nodes.tolist())}
        above = np.array([v in place for v in best.tolist()])
        at = np.array([place[v] for v in best[above].tolist()], dtype=np.int64)
        degrees = self.degrees[best]
        common = self.by_degree(self.low(self.law) @ self.points, degrees)
        common[above] = self.means(self.law, self.cells[at], self.sums[at])
        posterior = self.law[self.cells[at]] * nearness(self.points, self.sums[at], self.rate)
        shared = above.copy()
        shared[above] = posterior[:, 0] < 0.5 * posterior.sum(axis=1)
        shared &= common >= 2 * self.by_degree(self.law @ self.points, degrees)
        shared &= self.low_sums(degrees) + self.beside(best) < row[best].min()
        first, last = self.places(best, above, at)
        friends = len(self.own) - 1
        out[: len(best)] = np.stack(
            [
                best,
                row[best],
                first,
                last,
                np.minimum(common / self.typical_weight, friends),
                np.where(shared, 1, 2 * np.isin(best, self.followers)),
                np.full(len(best), friends),
            ],
            axis=1,
        )
        return out

    def places(self, best, above, at):
        cells = self.popularity.cell[best].astype(np.int64) // FINE
        mass = self.low(self.ranking)[cells]
        mass[above] = self.ranking[cells[above]] * nearness(self.points, self.sums[at], self.rate)
        upto = np.cumsum(mass, axis=1)
        upto /= mass.sum(axis=1, keepdims=True)
        low, high = (
            np.minimum((upto < part).sum(axis=1), len(self.points) - 1) for part in (0.02, 0.98)
        )
        beside = self.beside(best)
        ahead, spread = self.ahead(
            np.append(self.points[high], self.points[low]) + np.tile(beside, 2)
        )
        k, margin = len(best), 2 * np.sqrt(spread + 1)
        own = np.arange(1, k + 1)
        first = np.floor(ahead[:k] - margin[:k]) + 1
        last = np.ceil(ahead[k:] + margin[k:]) + 1
        strangers = len(self.popularity.order) - len(self.own)
        return np.clip(first, 1, own), np.clip(last, own, max(strangers, 1))

    def ahead(self, limits):
        """Mean and variance of the number of strangers whose true score exceeds each limit."""
        fine = np.arange(CELLS * FINE)
        popular = self.popular(self.popularity.degrees)
        hidden = np.setdiff1d(self.followers, self.nodes)
        known = np.bincount(self.popularity.cell[hidden], minlength=len(fine))
        # Values of one item count as so many at their mean.
        follows = np.isin(self.nodes, self.followers)
        group = grouped(self.cells, self.sums, self.points, follows)
        some = mean_by(group, self.cells).astype(np.int64)
        where = mean_by(group, self.sums)
        posterior = self.ranking[some] * nearness(self.points, where, self.rate)
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
        low = self.low(self.ranking)[fine // FINE]
        mean, variance = np.zeros((2, len(limits)))
        for law, offsets, count in (
            (posterior, mean_by(group, self.beside(self.nodes)), np.bincount(group)),
            (low, popular, self.below - known),
            (low, popular + self.bonus, known),
        ):
            scores = self.points + offsets[:, None]
            for q, limit in enumerate(limits):
                chance = (law * (scores > limit + TIES)).sum(axis=1)
                mean[q] += chance @ count
                variance[q] += (chance * (1 - chance)) @ count
        return mean, variance
