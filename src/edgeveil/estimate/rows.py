"""Rows of `walk_model` for a block of recipients at once, in place, without Python's lock.

One row at a time, `walk_model` says what is computed here; degrees are those that each recipient
sees (`DegreeEstimates.seen_by`), without a copy of them for each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _kernels, _prior_kernels
from edgeveil.estimate import walk_model as model
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.own_lists import OwnLists

__all__ = [
    "STRANGERS",
    "complete_rows",
    "degree_floors",
    "exact_weights",
    "hashed_closeness",
    "over_degrees",
    "prior_rows",
    "two_hop_weights",
]

STRANGERS = 4  # that may be in an embedding for each friend

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]


def degree_floors(own: OwnLists, degrees: Vector, epsilon: float) -> Vector:
    """The floor of `walk_model.best_degree_floor` for each; 1 for a recipient without friends."""
    floors = np.ones(len(own.sources))
    _prior_kernels.degree_floors(
        own.lists,
        own.starts,
        degrees,
        len(degrees),
        epsilon,
        model.OVERDISPERSION,
        model.FLOOR_CANDIDATES,
        floors,
    )
    return floors


def exact_weights(weights: Vector, n: int | None = None) -> Vector:
    """Cut weights in [0, 1] down to so few bits that any sum of them is exact in float64.

    With n weights the step is 2^(L-52), L the bit length of n: a sum of at most n of them has
    at most 52 bits, and halving it adds one.

    Parameters
    ----------
    weights : array
        Weights of some nodes.
    n : int, optional
        Number of nodes; by default there is one weight for each.
    """
    step = 2.0 ** ((len(weights) if n is None else n).bit_length() - 52)
    return np.asarray(np.floor(np.clip(weights, 0.0, 1.0) / step) * step)


def two_hop_weights(own: OwnLists, degrees: Vector, epsilon: float) -> tuple[Vector, Vector]:
    """What a friend counts in two-hop sums, from released degrees alone.

    Returns
    -------
    floors : array of shape (m,)
        Of `degree_floors`.
    weights : array
        ``floor / degree``, at most 1, of each friend in ``own.lists``, exact: in units of
        1 / floor.
    """
    floors = degree_floors(own, degrees, epsilon)
    # Not the degrees that the recipient sees: the mean of 1 / degree over a friend's posterior
    # is 1 / the mean over anybody's.
    ratios = np.repeat(floors, np.diff(own.starts)) / degrees[own.lists]
    return floors, exact_weights(ratios, len(own.nodes))


def complete_rows(
    rows: Rows,
    own: OwnLists,
    weights: Vector,
    floors: Vector,
    known: DegreeEstimates,
    scale: float,
    restart: float,
) -> None:
    """Turn noisy two-hop sums into rows of PageRank.

    Parameters
    ----------
    rows : array of shape (m, n)
        Sums in units of 1 / floor, friends' halved, with Laplace noise. Overwritten.
    own : OwnLists
        A recipient without friends keeps all of its mass.
    weights : array
        Weight of each friend in ``own.lists`` in the sums, in the same units.
    floors : array of shape (m,)
        From `degree_floors`.
    known : DegreeEstimates
        What is known about the degrees.
    scale : float
        Scale of the noise.
    restart : float
        Restart probability.
    """
    _kernels.complete_rows(
        rows,
        own.sources,
        own.lists,
        own.starts,
        weights,
        floors,
        known.degrees,
        known.of_friends,
        known.extent,
        scale,
        restart,
        model.IN_COMMON,
        model.SPREAD_IN_COMMON,
        (model.ECHO, model.MOST_ECHO, model.HALF_ECHO),
        model.USUAL_TAU,
        model.MOST_TAU,
        model.DEGREE_STEPS,
        np.empty(rows.shape[1]),
    )


def prior_rows(
    rows: Rows, own: OwnLists, known: DegreeEstimates, restart: float, known_hops: int = 1
) -> None:
    """Write the rows of `walk_model.prior_row`."""
    _prior_kernels.prior_rows(
        rows,
        own.sources,
        own.lists,
        own.starts,
        known.degrees,
        known.of_friends,
        known.extent[0],
        restart,
        known_hops,
        model.IN_COMMON,
        model.echo_share(restart),
    )


def over_degrees(rows: Rows, own: OwnLists, known: DegreeEstimates) -> None:
    """Divide every score by the degree of its node as the recipient sees it, in place."""
    _prior_kernels.over_degrees(rows, own.lists, own.starts, known.degrees, known.of_friends)


def hashed_closeness(
    rows: Rows,
    own: OwnLists,
    known: DegreeEstimates,
    restart: float,
    second_hop: float,
    bucket: npt.NDArray[np.int64],
    sign: Vector,
    out: Rows,
) -> None:
    """Write sums of the nodes' weights by dimension: friends 1, strangers by how close they seem.

    A stranger weighs `second_hop` times the square root of its excess, the row's value beyond
    what its degree explains, in units of the mass that a friend gets from the first hop. Only the
    strangers with the largest excess count, `STRANGERS` for each friend: that of the others is
    mostly noise, and would fill every dimension. Without a measured second hop no stranger has an
    excess, and only the own list is left; a source without neighbours has no weights at all.

    Parameters
    ----------
    rows : array of shape (m, n)
        Rows of PageRank, from `complete_rows` or `prior_rows`.
    own, known, restart
        As there.
    second_hop : float
        How much a stranger's closeness counts against a friend.
    bucket, sign : array of shape (n,)
        Dimension and sign of every node.
    out : array of shape (m, dimensions)
        Where to write.
    """
    lifts = rows.copy()
    over_degrees(lifts, own, known)
    _prior_kernels.hashed_closeness(
        rows,
        _medians(lifts),
        own.sources,
        own.lists,
        own.starts,
        known.degrees,
        restart * (1 - restart),
        second_hop,
        STRANGERS,
        bucket,
        sign,
        out,
    )


def _medians(rows: Rows) -> Vector:
    """As numpy.median of each row, which takes four times as long; `rows` are overwritten."""
    middle = rows.shape[1] // 2
    rows.partition(middle, axis=1)
    if rows.shape[1] % 2:
        return np.array(rows[:, middle])
    return np.asarray((rows[:, :middle].max(axis=1) + rows[:, middle]) / 2)
