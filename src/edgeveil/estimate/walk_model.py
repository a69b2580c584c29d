"""A row of PageRank from one's own list, everybody's noisy degrees, and a noisy second hop.

The walk restarts with probability a = `restart` after every step, so the row of a source s is
the sum over hops j of a (1 - a)^j times the walk's distribution after j steps. Hop 0 and hop 1
are the recipient's own knowledge. Far hops forget where they came from: their distribution is
proportional to degree. The second hop is measured with noise and shrunk towards that prior; of
its departure from the prior, a share `ECHO` survives each further step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = [
    "ECHO",
    "best_degree_floor",
    "closeness_weights",
    "prior_row",
    "shrink",
    "two_hop_row",
]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

ECHO = 0.5
_OVERDISPERSION = 4.0  # of two-hop sums against independent edges; tuned on generated networks
_FLOOR_CANDIDATES = 41


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
        Hops that the own list tells: 1, or 0 where the list may not be used.
    """
    row = np.zeros(n)
    if known_hops and len(own) == 0:
        row[source] = 1.0
        return row
    row += (1 - restart) ** (known_hops + 1) * degrees / degrees.sum()
    row[source] += restart
    if known_hops:
        row[own] += restart * (1 - restart) / len(own)
    return row


def best_degree_floor(own_degrees: Vector, n: int, epsilon: float) -> float:
    """The floor D0 of the weights min(1 / d, 1 / D0) that promises the smallest error.

    The noise of a two-hop sum has variance 2 / (D0 epsilon)^2; the floor cuts the weight of
    neighbours with fewer than D0 friends, which costs sum (1/d - 1/D0)^2 d / n over them for a
    typical node, times an overdispersion. Both are functions of released degrees.
    """
    floors = np.unique(np.quantile(own_degrees, np.linspace(0, 1, _FLOOR_CANDIDATES)))
    cut = np.maximum(1 / own_degrees[None, :] - 1 / floors[:, None], 0.0)
    lost = _OVERDISPERSION / n * (cut**2 * own_degrees[None, :]).sum(axis=1)
    noise = 2 / (floors * epsilon) / (floors * epsilon)
    return float(floors[np.argmin(lost + noise)])


def shrink(noisy: Vector, scales: Vector, prior: Vector, grain: float) -> Vector:
    """Posterior means of two-hop sums: the noisy ones, pulled towards their prior.

    A sum's variance around its prior is taken as tau * prior * grain; tau is estimated from
    the noisy sums themselves, whose variance is that plus the known noise's.

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
    spread = prior * grain
    noise = 2 * scales**2
    surplus = (noisy - prior) ** 2 - noise
    # Weighted least squares of the surplus on the spread; the weight is about 1 / variance.
    weight = 1 / (noise + 6 * spread) ** 2
    tau = np.clip((weight * spread * surplus).sum() / (weight * spread**2).sum(), 0.0, 50.0)
    trust = tau * spread / (tau * spread + noise)
    return np.asarray(np.maximum(prior + trust * (noisy - prior), 0.0))


def two_hop_row(
    source: int, own: Indices, degrees: Vector, weights: Vector, sums: Vector, restart: float
) -> Vector:
    """The row with a measured second hop.

    Parameters
    ----------
    source, own, degrees, restart
        As for `prior_row`; `own` is not empty.
    weights : array of shape (n,)
        Weight of each node in the sums, about 1 / degree.
    sums : array of shape (n,)
        Estimated sum of the weights of the common neighbours with the source.
    """
    follow = 1 - restart
    by_degree = degrees / degrees.sum()
    # The floor on weights cuts some of the second hop's mass off; that part follows degrees.
    carried = min(float(weights[own] @ degrees[own]) / len(own), 1.0)
    rest = follow**3 + restart * follow**2 * (1 - carried)
    echo = restart * ECHO / (1 - follow * ECHO)  # sum over hops of restart follow^j ECHO^(j+1)
    seen = sums / sums.sum() if sums.sum() > 0 else by_degree
    row = restart * follow**2 * sums / len(own) + rest * ((1 - echo) * by_degree + echo * seen)
    row[own] += restart * follow / len(own)
    row[source] += restart
    return np.asarray(row)


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
    explained = degrees * np.median(row / degrees)
    friend = restart * (1 - restart) / len(own)
    excess = np.maximum(row - explained, 0.0) / friend
    excess[excess < 1e-12] = 0.0  # rounding
    weights = second_hop * np.sqrt(excess)
    weights[source] = 0.0
    weights[own] = 1.0
    return np.asarray(weights)
