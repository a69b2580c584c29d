"""Rows of PageRank from the own list, everybody's noisy degrees, and a noisy second hop.

The walk restarts with probability a = `restart` after every step, so the row of a source s is
the sum over hops j of a (1 - a)^j times the walk's distribution after j steps. The member knows
hops 0 and 1, and the part of the second hop that returns to s and of the third that goes on from
there to its friends. Far hops are modelled as the stationary distribution, proportional to
degree. Friends of one person have more friends in common than that (triadic closure), and get
`CLOSURE_EXCESS` on top. The second hop is measured with noise and shrunk towards this prior; its
departure from the prior persists into further hops, by a factor per step. The factor is 0.5
where friends have no more in common than their degrees explain, and rises to 0.8 where they have
many times that: a walk that returns to a dense group stays in it.

Degrees are those that each member sees (`DegreeEstimates.seen_by`). Two-hop sums are in units of
1 / floor (`two_hop_weights`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.graph.nodes import NodeSet

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

# Parameters of the model. "Tuned" means on generated networks.
CLOSURE_EXCESS = 0.034  # prior mean of friends' sums beyond what degrees explain; tuned
CLOSURE_DEVIATION = 0.1  # its standard deviation between members
_PERSISTENCE, _MAX_PERSISTENCE = 0.5, 0.8
_HALF_RISE = 3.0  # closure - 1 at which persistence is half way between these two
_OVERDISPERSION = 4.0  # of two-hop sums, relative to independent edges; tuned
_FLOOR_CANDIDATES = 41
_PRIOR_TAU = 3.0  # overdispersion of sums; 2 to 4 on generated networks
_MAX_TAU = 50.0
_BLOCK = 1 << 14
_TINY = 1e-150  # the smallest variance: its inverse can be squared


class LocalViews(NamedTuple):
    """The neighbour lists of a block of sources, which their members know, and the public nodes.

    In a directed graph a list holds the nodes that the member follows, and `followers` those that
    follow it, if members are assumed to know them.
    """

    sources: npt.NDArray[np.int64]  # (m)
    lists: Indices  # all lists concatenated, each sorted
    starts: npt.NDArray[np.int64]  # (m + 1) where each begins
    nodes: NodeSet
    followers: tuple[Indices, ...] = ()
    first_seen: npt.NDArray[np.uint16] | None = (
        None  # of the edges to `lists`, in a graph with first_seen
    )

    def of(self, i: int) -> Indices:
        """The list of source i."""
        return self.lists[self.starts[i] : self.starts[i + 1]]


def exact_weights(weights: Vector, n: int | None = None) -> Vector:
    """Round weights in [0, 1] down to so few bits that any sum of them is exact in float64.

    With n nodes (by default as many as weights) the step is 2^(L-52), L the bit length of n: a
    sum of at most n weights has at most 52 bits, and halving it adds one.
    """
    step = 2.0 ** ((len(weights) if n is None else n).bit_length() - 52)
    return np.asarray(np.floor(np.clip(weights, 0.0, 1.0) / step) * step)


def two_hop_weights(views: LocalViews, degrees: Vector, epsilon: float) -> tuple[Vector, Vector]:
    """Floors of the sources and weights of friends in two-hop sums, from released degrees alone.

    A source's floor is the D0 of the weights min(1 / d, 1 / D0) with the smallest estimated mean
    squared error; 1 without friends. The noise of a two-hop sum has variance 2 / (D0 epsilon)^2.
    The floor cuts the weight of neighbours with fewer than D0 friends: its squared bias is
    sum (1/d - 1/D0)^2 d / n over them for a typical node, times an overdispersion. The weight of
    each friend in ``views.lists`` is in units of 1 / floor: floor / degree, at most 1, exact.
    """
    lists = (views.of(i) for i in range(len(views.sources)))
    floors = np.array(
        [_best_floor(degrees[friends], len(views.nodes), epsilon) for friends in lists]
    )
    # Not the degrees that the member sees: the posterior mean of 1 / d for a friend, whose
    # posterior is weighted by d, is 1 / E[d].
    ratios = np.repeat(floors, np.diff(views.starts)) / degrees[views.lists]
    return floors, exact_weights(ratios, len(views.nodes))


def _best_floor(of_friends: Vector, n: int, epsilon: float) -> float:
    """The quantile of the friends' degrees with the smallest mean squared error."""
    k = len(of_friends)
    if k == 0:
        return 1.0
    candidates = np.linspace(0, k - 1, _FLOOR_CANDIDATES)
    floors = np.interp(candidates, np.arange(k), np.sort(of_friends))
    cut = np.maximum(1 / of_friends - 1 / floors[:, None], 0.0)
    bias = _OVERDISPERSION / n * (cut**2 * of_friends).sum(axis=1)
    noise = 2 / (floors * epsilon) / (floors * epsilon)
    return float(floors[np.argmin(bias + noise)])


def expected_sums(friends: Indices, released: DegreeEstimates, weights: Vector) -> Vector:
    """Expected two-hop sums if edges depended on degrees alone; `friends` is not empty.

    Nodes u and v are joined with probability 1 - exp(-d_u d_v / sum d): about d_u d_v / sum d,
    but never more than 1. Computed on a grid of degrees d_v, interpolated, and scaled to the known
    total, the sum of weight times degree over the friends.
    """
    of_friends = released.of_friends[friends]
    total = released.degrees.sum() + (of_friends - released.degrees[friends]).sum()
    joined = -np.expm1(-np.outer(released.grid, of_friends / total))
    expected = released.interpolate((joined * weights).sum(axis=1), friends)
    expected *= (weights @ of_friends) / expected.sum()
    return expected


def shrink(sums: Vector, prior: Vector, grain: float, noise: Vector) -> Vector:
    """Posterior means, at least 0, of noisy sums with these variances of the noise.

    Model: a sum has mean `prior` and variance tau * prior * grain, where `grain` is the size of a
    typical weight. tau is fitted by weighted least squares to the noisy sums, whose variance is
    that plus the noise, and shrunk to `_PRIOR_TAU` as far as they are too noisy to determine it.
    """
    fit = np.zeros(3)
    for part in row_blocks(len(sums)):
        spread, excess = prior[part] * grain, (sums[part] - prior[part]) ** 2 - noise[part]
        fit += _regression_sums(excess, spread, noise[part], _PRIOR_TAU)
    fitted, variance = _regression(fit)
    belief = _PRIOR_TAU**2 / (_PRIOR_TAU**2 + variance)
    tau = min(max(belief * fitted + (1 - belief) * _PRIOR_TAU, 0.0), _MAX_TAU)
    shrunk = np.empty_like(sums)
    for part in row_blocks(len(sums)):
        variance_of_sums = tau * grain * prior[part]
        trust = variance_of_sums / (variance_of_sums + noise[part])
        shrunk[part] = np.maximum(prior[part] + trust * (sums[part] - prior[part]), 0.0)
    return shrunk


def regression_error(spread: Vector, noise: Vector, tau: float) -> float:
    """Standard error of the regression of `shrink`, if its result is `tau`."""
    fit = np.zeros(3)
    for part in row_blocks(len(spread)):
        fit += _regression_sums(spread[part], spread[part], noise[part], tau)
    return math.sqrt(_regression(fit)[1])


def _regression_sums(excess: Vector, spread: Vector, noise: Vector, tau: float) -> Vector:
    """What a fit of excess = tau * spread by weighted least squares needs of some of the nodes.

    Squares of Laplace noise have variance 5 noise^2. (No dot products of long arrays: numpy's use
    threads, and their bits depend on how many.)
    """
    weight = spread / (noise + 6 * spread) ** 2
    return np.array(
        [
            (weight * spread).sum(),
            ((weight * (noise + tau * spread)) ** 2).sum(),
            (weight * excess).sum(),
        ]
    )


def _regression(fit: Vector) -> tuple[float, float]:
    """The estimate of tau and, at the tau that `_regression_sums` was given, its variance."""
    certainty, scatter, product = fit.tolist()
    return product / certainty, 5 * scatter / certainty**2


def row_blocks(n: int) -> Iterator[slice]:
    """Parts of a row: what is computed for one of them stays in the processor's cache.

    On a million nodes that takes half the time of whole rows, whose pages are new each time.
    """
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


def two_hop_shares(of_friends: Vector, mass: float, restart: float) -> tuple[float, float, float]:
    """Split the mass of a row: per unit of a two-hop sum, on friends, on far nodes.

    The mass on friends is what is known: the first hop, and walks that return through the source.
    The mass on far nodes is that of all hops beyond the second, and what the weights' floor cuts
    off the second. `mass` is the sum of weight times degree over the friends.
    """
    follow, k = 1 - restart, len(of_friends)
    cut_off = restart * follow**2 * (1 - min(mass / k, 1.0))
    # What the floor cuts off follows the degrees, except for the friends' excess.
    back = restart * follow**3 * float(np.mean(1 / of_friends)) + cut_off * CLOSURE_EXCESS
    return restart * follow**2 / k, restart * follow + back, follow**3 + cut_off - back


def persistent_share(closure: float, restart: float) -> float:
    """Share of the far hops distributed like the second: sum of restart follow^j persists^(j+1).

    `closure` is the friends' sums over what degrees explain of them.
    """
    more = max(closure - 1, 0.0) / _HALF_RISE
    persists = _MAX_PERSISTENCE - (_MAX_PERSISTENCE - _PERSISTENCE) / (1 + more * more)
    return restart * persists / (1 - (1 - restart) * persists)


def complete_rows(
    rows: Rows,
    views: LocalViews,
    weights: Vector,
    floors: Vector,
    released: DegreeEstimates,
    scale: float,
    restart: float,
) -> None:
    """Turn noisy two-hop sums into rows of PageRank, in place.

    The sums are in units of 1 / floor, friends' halved, with Laplace noise of this scale. A
    source without friends keeps all of its mass.
    """
    for i, (row, source) in enumerate(zip(rows, views.sources, strict=True)):
        weight = weights[views.starts[i] : views.starts[i + 1]]
        _complete_row(row, int(source), views.of(i), weight, floors[i], released, scale, restart)


def _complete_row(
    row: Vector,
    source: int,
    friends: Indices,
    weights: Vector,
    floor: float,
    released: DegreeEstimates,
    scale: float,
    restart: float,
) -> None:
    """Shrink the sums of one source to their prior, then complete them to its row."""
    k = len(friends)
    if k == 0:
        row[:] = 0.0
        row[source] = 1.0
        return
    degrees = released.degrees_seen_by(friends)
    of_friends = degrees[friends]
    mass = float(weights @ of_friends)
    noise = np.full(len(row), max(2 * scale**2, _TINY))
    noise[friends] *= 4
    row[friends] *= 2  # friends' sums were halved before the noise
    prior = expected_sums(friends, released, weights)
    explained = float(prior[friends].sum())
    # Triadic closure: friends' sums exceed what degrees explain. Shrink the measured excess to its
    # prior mean by the ratio of the variances.
    trust = CLOSURE_DEVIATION**2 / (CLOSURE_DEVIATION**2 + float(noise[friends].sum()) / mass**2)
    measured = (float(row[friends].sum()) - explained) / mass
    excess = trust * measured + (1 - trust) * CLOSURE_EXCESS
    prior[friends] += max(excess, 0.0) * min(mass / k, floor)
    sums = shrink(row, prior, float(weights**2 @ of_friends) / mass, noise)
    # The sum of the source itself is known: every friend has it as a friend. From there the walk
    # goes to the friends, so it is left out of what persists.
    sums[source] = 0.0
    elsewhere, closure = float(sums.sum()), float(sums[friends].sum()) / explained
    direct, on_friends, far = two_hop_shares(of_friends, mass / floor, restart)
    direct /= floor
    share = persistent_share(closure, restart) if elsewhere else 0.0
    by_sum = direct + far * share / (elsewhere or 1.0)
    np.multiply(sums, by_sum, out=row)
    degrees *= far * (1 - share) / degrees.sum()
    row += degrees
    row[friends] += on_friends / k
    row[source] += restart + direct * float(weights.sum())


def prior_rows(
    views: LocalViews, released: DegreeEstimates, restart: float, known_hops: int = 1
) -> Rows:
    """Rows without a second hop: all hops that the lists do not tell follow the degrees.

    `known_hops` is how many hops the lists tell: 1, or 0 in the public model, where they are
    empty. A source without friends keeps all of its mass.
    """
    rows = np.zeros((len(views.sources), len(released.degrees)))
    for i, (row, source) in enumerate(zip(rows, views.sources, strict=True)):
        friends = views.of(i)
        if known_hops and len(friends) == 0:
            row[source] = 1.0
            continue
        degrees = released.degrees_seen_by(friends)
        to_friends, far = prior_shares(degrees[friends], restart, known_hops)
        np.multiply(degrees, far / degrees.sum(), out=row)
        row[friends] += to_friends / max(len(friends), 1)
        row[source] += restart
    return rows


def prior_shares(of_friends: Vector, restart: float, known_hops: int) -> tuple[float, float]:
    """How `prior_rows` splits a row: mass that is known to be on friends, mass by degree."""
    follow = 1 - restart
    if not known_hops:
        return 0.0, follow
    back = float(np.mean(1 / of_friends))  # the part of the second hop that returns to the source
    near = restart * follow * (1 + follow**2 * back)
    # The excess that `complete_rows` gives to friends at the prior mean.
    near += CLOSURE_EXCESS * (restart * follow**2 + follow**3 * persistent_share(1.0, restart))
    return min(near, follow), max(follow - near, 0.0)


def over_degrees(rows: Rows, views: LocalViews, released: DegreeEstimates) -> None:
    """Divide every score by the degree of its node as the member sees it, in place."""
    for i, row in enumerate(rows):
        row /= released.degrees_seen_by(views.of(i))
