"""A row of PageRank from one's own list, everybody's noisy degrees, and a noisy second hop.

The walk restarts with probability a = `restart` after every step, so the row of a source s is
the sum over hops j of a (1 - a)^j times the walk's distribution after j steps. Hop 0 and hop 1
are the recipient's own knowledge, and so is what returns to s in the second hop and is spread
over its friends in the third. Far hops forget where they came from: their distribution is
proportional to degree. Friends of one person have friends in common more often than that, and
get `IN_COMMON` on top of it. The second hop is measured with noise and shrunk towards that
prior; of its departure from the prior a share survives each further step. That share is `ECHO`
where friends have no more in common than their degrees explain, and rises to `MOST_ECHO` where
they have many times that: a walk that comes back to the circle it left stays in it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _kernels, _prior_kernels

__all__ = [
    "DEGREE_STEPS",
    "ECHO",
    "FLOOR_CANDIDATES",
    "HALF_ECHO",
    "IN_COMMON",
    "MOST_ECHO",
    "MOST_TAU",
    "OVERDISPERSION",
    "SPREAD_IN_COMMON",
    "USUAL_TAU",
    "best_degree_floor",
    "closure_of",
    "echo_share",
    "expected_sums",
    "prior_row",
    "prior_shares",
    "shrink",
    "two_hop_row",
    "two_hop_shares",
]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

IN_COMMON = 0.034  # two friends' sum beyond what degrees explain; tuned on generated networks
SPREAD_IN_COMMON = 0.1  # deviation of the same from member to member
ECHO, MOST_ECHO = 0.5, 0.8
HALF_ECHO = 3.0  # how far beyond 1 the closure is where the echo is half way to the most
OVERDISPERSION = 4.0  # of two-hop sums against independent edges; tuned on generated networks
FLOOR_CANDIDATES = 41
DEGREE_STEPS = 64
USUAL_TAU = 3.0  # overdispersion of sums on generated networks: 2 to 4
MOST_TAU = 50.0


def prior_row(
    n: int, source: int, own: Indices, degrees: Vector, restart: float, known_hops: int = 1
) -> Vector:
    """The row if nothing is known beyond the own list: all further hops follow the degrees.

    Parameters
    ----------
    n : int
        Number of nodes.
    source : int
        The source.
    own : array of int
        Its neighbours; empty for a source without any, which keeps all of its mass.
    degrees : array of shape (n,)
        Estimated degrees of everybody.
    restart : float
        Restart probability.
    known_hops : int
        Hops that the own list tells: 1, or 0 where the list may not be used (then `own` is
        empty).
    """
    row, starts = np.empty((1, n)), np.array([0, len(own)])
    total, echo = float(degrees.sum()), echo_share(restart)
    at = np.array([source])
    _prior_kernels.prior_rows(
        row, at, own, starts, degrees, degrees, total, restart, known_hops, IN_COMMON, echo
    )
    return np.asarray(row[0])


def prior_shares(
    own: Indices, degrees: Vector, restart: float, known_hops: int
) -> tuple[float, float]:
    """How `prior_row` shares a row out: mass that is known to go to friends, mass by degree."""
    friends, far = _prior_kernels.prior_shares(
        degrees[own], restart, known_hops, IN_COMMON, echo_share(restart)
    )
    return float(friends), float(far)


def best_degree_floor(own_degrees: Vector, n: int, epsilon: float) -> float:
    """The floor D0 of the weights min(1 / d, 1 / D0) that promises the smallest error.

    The noise of a two-hop sum has variance 2 / (D0 epsilon)^2; the floor cuts the weight of
    neighbours with fewer than D0 friends, which costs sum (1/d - 1/D0)^2 d / n over them for a
    typical node, times an overdispersion. Both are functions of released degrees.
    """
    floor, everybody = np.empty(1), np.arange(len(own_degrees))
    starts = np.array([0, len(own_degrees)])
    _prior_kernels.degree_floors(
        everybody, starts, own_degrees, n, epsilon, OVERDISPERSION, FLOOR_CANDIDATES, floor
    )
    return float(floor[0])


def expected_sums(own: Indices, degrees: Vector, weights: Vector) -> Vector:
    """Two-hop sums to be expected if edges followed the degrees alone.

    Nodes u and v are joined with probability 1 - exp(-d_u d_v / sum d): about d_u d_v / sum d,
    but a hub cannot be joined to anybody more than once. Scaled so that all sums together are
    what they must be, the sum of weight times degree over the own list.

    Parameters
    ----------
    own, degrees, weights
        As for `two_hop_row`; `own` is not empty.
    """
    expected = np.empty(len(degrees))
    total, low, high = float(degrees.sum()), float(degrees.min()), float(degrees.max())
    factor = _kernels.expected(
        own, degrees[own], weights, degrees, total, low, high, DEGREE_STEPS, expected
    )
    return np.asarray(factor * expected)


def shrink(noisy: Vector, own: Indices, scale: float, prior: Vector, grain: float) -> Vector:
    """Posterior means of two-hop sums: the noisy ones, pulled towards their prior.

    A sum's variance around its prior is taken as tau * prior * grain; tau is estimated from
    the noisy sums themselves, whose variance is that plus the known noise's. Where they are
    too noisy to tell, tau is what it usually is.

    Parameters
    ----------
    noisy : array
        Sums with Laplace noise.
    own : array of int
        The friends.
    scale : float
        The noise's scale on strangers; that on friends is twice as large.
    prior : array
        Expected sums if edges followed the degrees alone.
    grain : float
        Size of a typical weight.
    """
    sums = np.array(noisy)
    _kernels.shrunk(sums, -1, own, np.array(prior), 1.0, grain, scale, USUAL_TAU, MOST_TAU)
    return sums


def two_hop_row(
    source: int, own: Indices, degrees: Vector, weights: Vector, sums: Vector, restart: float
) -> Vector:
    """The row with a measured second hop.

    Parameters
    ----------
    source, own, degrees, restart
        As for `prior_row`; `own` is not empty.
    weights : array of shape (k,)
        Weight of each friend in the sums, about 1 / degree.
    sums : array of shape (n,)
        Estimated sum of the weights of the common neighbours with the source.
    """
    direct, friends, far = two_hop_shares(own, degrees, weights, restart)
    echo = echo_share(restart, closure_of(own, degrees, weights, sums))
    # What is at the source goes to the friends next, so it has no echo.
    seen = float(sums[:source].sum() + sums[source + 1 :].sum())
    by_echo, rest = (far * echo / seen, far * (1 - echo)) if seen > 0 else (0.0, far)
    row, by_degree = np.array(sums), rest / float(degrees.sum())
    of_friends = degrees[own]
    _kernels.mixed(row, own, of_friends, degrees, direct + by_echo, by_degree, friends / len(own))
    row[source] += restart - by_echo * sums[source]
    return row


def two_hop_shares(
    own: Indices, degrees: Vector, weights: Vector, restart: float
) -> tuple[float, float, float]:
    """How `two_hop_row` shares a row out.

    Returns
    -------
    direct : float
        What a unit of a two-hop sum gets.
    friends : float
        Mass of the friends that is known: the first hop, and what comes back over the source.
    far : float
        Mass of all hops beyond the second, and of what the weights' floor cuts off the second.
    """
    of_friends = degrees[own]
    mass = float(weights @ of_friends)
    direct, friends, far = _kernels.two_hop_shares(of_friends, mass, restart, IN_COMMON)
    return direct, friends, far


def closure_of(own: Indices, degrees: Vector, weights: Vector, sums: Vector) -> float:
    """How many times what their degrees explain the friends have in common with the source.

    Parameters
    ----------
    own, degrees, weights, sums
        As for `two_hop_row`.
    """
    return float(sums[own].sum() / expected_sums(own, degrees, weights)[own].sum())


def echo_share(restart: float, closure: float = 1.0) -> float:
    """Share of the far hops that follows the second: sum of restart follow^j survives^(j+1).

    With x how far `closure` exceeds 1, ``survives`` goes from ECHO to MOST_ECHO like
    x^2 / (x^2 + HALF_ECHO^2).

    Parameters
    ----------
    restart : float
        Restart probability.
    closure : float
        From `closure_of`.
    """
    return float(_kernels.echo_share(closure, restart, (ECHO, MOST_ECHO, HALF_ECHO)))
