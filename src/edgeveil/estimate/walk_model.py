"""A row of PageRank from one's own list, everybody's noisy degrees, and a noisy second hop.

The walk restarts with probability a = `restart` after every step, so the row of a source s is
the sum over hops j of a (1 - a)^j times the walk's distribution after j steps. Hop 0 and hop 1
are the recipient's own knowledge, and so is what returns to s in the second hop and is spread
over its friends in the third. Far hops forget where they came from: their distribution is
proportional to degree. Friends of one person have friends in common more often than that, and
get `IN_COMMON` on top of it. The second hop is measured with noise and shrunk towards that
prior; of its departure from the prior, a share `ECHO` survives each further step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _kernels

__all__ = [
    "ECHO",
    "IN_COMMON",
    "best_degree_floor",
    "closeness_weights",
    "expected_sums",
    "prior_row",
    "prior_shares",
    "shrink",
    "two_hop_row",
    "two_hop_shares",
]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

ECHO = 0.5
IN_COMMON = 0.034  # two friends' sum beyond what degrees explain; tuned on generated networks
_OVERDISPERSION = 4.0  # of two-hop sums against independent edges; tuned on generated networks
_FLOOR_CANDIDATES = 41
_DEGREE_STEPS = 64
_USUAL_TAU = 3.0  # overdispersion of sums on generated networks: 2 to 4
_MOST_TAU = 50.0


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
    row = np.zeros(n)
    if known_hops and len(own) == 0:
        row[source] = 1.0
        return row
    friends, far = prior_shares(own, degrees, restart, known_hops)
    row += far * degrees / degrees.sum()
    row[own] += friends / max(len(own), 1)
    row[source] += restart
    return row


def prior_shares(
    own: Indices, degrees: Vector, restart: float, known_hops: int
) -> tuple[float, float]:
    """How `prior_row` shares a row out: mass that is known to go to friends, mass by degree."""
    if not known_hops:
        return 0.0, 1 - restart
    back = float(np.mean(1 / degrees[own]))  # of the second hop, at the source
    follow = 1 - restart
    friends = restart * follow * (1 + follow**2 * back)
    # As much as `two_hop_row` would give them for these sums.
    friends += IN_COMMON * (restart * follow**2 + follow**3 * _echo(restart))
    return min(friends, follow), max(follow - friends, 0.0)


def best_degree_floor(own_degrees: Vector, n: int, epsilon: float) -> float:
    """The floor D0 of the weights min(1 / d, 1 / D0) that promises the smallest error.

    The noise of a two-hop sum has variance 2 / (D0 epsilon)^2; the floor cuts the weight of
    neighbours with fewer than D0 friends, which costs sum (1/d - 1/D0)^2 d / n over them for a
    typical node, times an overdispersion. Both are functions of released degrees.
    """
    return float(
        _kernels.degree_floor(np.sort(own_degrees), n, epsilon, _OVERDISPERSION, _FLOOR_CANDIDATES)
    )


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
    _kernels.expected(degrees[own], weights, degrees, total, low, high, _DEGREE_STEPS, expected)
    return expected


def shrink(noisy: Vector, scales: Vector, prior: Vector, grain: float) -> Vector:
    """Posterior means of two-hop sums: the noisy ones, pulled towards their prior.

    A sum's variance around its prior is taken as tau * prior * grain; tau is estimated from
    the noisy sums themselves, whose variance is that plus the known noise's. Where they are
    too noisy to tell, tau is what it usually is.

    Parameters
    ----------
    noisy : array
        Sums with Laplace noise.
    scales : array
        The noise's scale on each.
    prior : array
        Expected sums if edges followed the degrees alone.
    grain : float
        Size of a typical weight.
    """
    sums = np.empty(len(noisy))
    _kernels.shrunk(noisy, scales, prior, grain, _USUAL_TAU, _MOST_TAU, sums)
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
    direct, friends, far, echo = two_hop_shares(own, degrees, weights, restart)
    # What is at the source goes to the friends next, so it has no echo.
    seen = float(sums[:source].sum() + sums[source + 1 :].sum())
    by_echo, rest = (far * echo / seen, far * (1 - echo)) if seen > 0 else (0.0, far)
    row = np.empty(len(degrees))
    _kernels.mixed(sums, degrees, direct + by_echo, rest / float(degrees.sum()), row)
    row[own] += friends / len(own)
    row[source] += restart - by_echo * sums[source]
    return row


def two_hop_shares(
    own: Indices, degrees: Vector, weights: Vector, restart: float
) -> tuple[float, float, float, float]:
    """How `two_hop_row` shares a row out.

    Returns
    -------
    direct : float
        What a unit of a two-hop sum gets.
    friends : float
        Mass of the friends that is known: the first hop, and what comes back over the source.
    far : float
        Mass of all hops beyond the second, and of what the weights' floor cuts off the second.
    echo : float
        The share of `far` that follows the sums and not the degrees.
    """
    follow, k = 1 - restart, len(own)
    carried = min(float(weights @ degrees[own]) / k, 1.0)
    back = restart * follow**3 * float((1 / degrees[own]).sum()) / k
    # What the floor cuts off follows the degrees, but for what friends have in common.
    back += restart * follow**2 * (1 - carried) * IN_COMMON
    far = follow**3 + restart * follow**2 * (1 - carried) - back
    return restart * follow**2 / k, restart * follow + back, far, _echo(restart)


def _echo(restart: float) -> float:
    """Share of the far hops that follows the second: sum of restart follow^j ECHO^(j+1)."""
    return restart * ECHO / (1 - (1 - restart) * ECHO)


def closeness_weights(
    row: Vector, source: int, own: Indices, degrees: Vector, restart: float, second_hop: float
) -> Vector:
    """Weights of the nodes in an embedding: friends 1, strangers by how close they seem.

    A stranger weighs `second_hop` times the square root of its excess, the row's value beyond
    what its degree explains, in units of the mass that a friend gets from the first hop.
    Without a measured second hop no stranger has an excess, and only the own list is left; a
    source without neighbours has no weights at all.

    Parameters
    ----------
    row : array of shape (n,)
        A row of PageRank, from `two_hop_row` or `prior_row`.
    source, own, degrees, restart
        As there.
    second_hop : float
        How much a stranger's closeness counts against a friend.
    """
    if len(own) == 0:
        return np.zeros(len(row))
    friend = restart * (1 - restart) / len(own)
    weights = np.empty(len(row))
    usual = _median(row / degrees)
    _kernels.closeness(row, degrees, usual, friend, second_hop, weights)
    weights[source] = 0.0
    weights[own] = 1.0
    return weights


def _median(values: Vector) -> float:
    """As numpy.median, which takes four times as long; `values` is overwritten."""
    middle = len(values) // 2
    values.partition(middle)
    if len(values) % 2:
        return float(values[middle])
    return float((values[:middle].max() + values[middle]) / 2)
