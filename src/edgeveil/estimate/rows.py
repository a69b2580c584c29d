"""Rows of PageRank from one's own list, everybody's noisy degrees, and a noisy second hop.

The walk restarts with probability a = `restart` after every step, so the row of a source s is
the sum over hops j of a (1 - a)^j times the walk's distribution after j steps. Hop 0 and hop 1
are the recipient's own knowledge, and so is what returns to s in the second hop and is spread
over its friends in the third. Far hops forget where they came from: their distribution is
proportional to degree. Friends of one person have friends in common more often than that, and
get `IN_COMMON` on top of it. The second hop is measured with noise and shrunk towards that
prior; of its departure from the prior a share survives each further step. That share is 0.5
where friends have no more in common than their degrees explain, and rises to 0.8 where they
have many times that: a walk that comes back to the circle it left stays in it.

Degrees are those that each recipient sees (`DegreeEstimates.seen_by`). In plain numpy, one row at
a time, the same is in tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _kernels
from edgeveil.estimate._kernels import IN_COMMON, echo_share
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.nodes import NodeSet

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]


class OwnLists(NamedTuple):
    """What each recipient of a block knows by itself, and the public nodes.

    A list is that of the recipient's neighbours; in a directed graph, of those whom it follows.
    There `followers` are those who follow each recipient, if it is taken to know them.
    """

    sources: npt.NDArray[np.int64]  # (m) the recipients
    lists: Indices  # the list of the first, sorted, then that of the next
    starts: npt.NDArray[np.int64]  # (m + 1) where each begins
    nodes: NodeSet
    followers: tuple[Indices, ...] = ()

    def of(self, i: int) -> Indices:
        """The list of recipient i."""
        return self.lists[self.starts[i] : self.starts[i + 1]]


def exact_weights(weights: Vector, n: int | None = None) -> Vector:
    """Cut weights in [0, 1] down to so few bits that any sum of them is exact in float64.

    With n nodes (by default as many as weights) the step is 2^(L-52), L the bit length of n: a
    sum of at most n weights has at most 52 bits, and halving it adds one.
    """
    step = 2.0 ** ((len(weights) if n is None else n).bit_length() - 52)
    return np.asarray(np.floor(np.clip(weights, 0.0, 1.0) / step) * step)


def two_hop_weights(own: OwnLists, degrees: Vector, epsilon: float) -> tuple[Vector, Vector]:
    """What a friend counts in two-hop sums, from released degrees alone: floors and weights.

    A recipient's floor is the D0 of the weights min(1 / d, 1 / D0) that promises the smallest
    error; 1 without friends. The noise of a two-hop sum has variance 2 / (D0 epsilon)^2; the floor
    cuts the weight of neighbours with fewer than D0 friends, which costs sum (1/d - 1/D0)^2 d / n
    over them for a typical node, times an overdispersion. The weight of each friend in
    ``own.lists`` is in units of 1 / floor: floor / degree, at most 1, exact.
    """
    floors = np.ones(len(own.sources))
    _kernels.degree_floors(own.lists, own.starts, degrees, epsilon, floors)
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
    """Turn noisy two-hop sums into rows of PageRank, in place, without Python's lock.

    The sums are in units of 1 / floor, friends' halved, with Laplace noise of this scale. A
    recipient without friends keeps all of its mass.
    """
    lists, room = (own.sources, own.lists, own.starts), np.empty(rows.shape[1])
    degrees = known.degrees, known.of_friends, known.extent
    _kernels.complete_rows(rows, *lists, weights, floors, *degrees, scale, restart, room)


def prior_rows(own: OwnLists, known: DegreeEstimates, restart: float, known_hops: int = 1) -> Rows:
    """Rows if nothing is known beyond the own lists: all further hops follow the degrees.

    `known_hops` is how many hops the lists tell: 1, or 0 where they may not be used (then they
    are empty). A recipient without friends keeps all of its mass.
    """
    rows = np.zeros((len(own.sources), len(known.degrees)))
    for i, (row, source) in enumerate(zip(rows, own.sources, strict=True)):
        friends = own.of(i)
        if known_hops and len(friends) == 0:
            row[source] = 1.0
            continue
        degrees = known.degrees_seen_by(friends)
        to_friends, far = prior_shares(degrees[friends], restart, known_hops)
        np.multiply(degrees, far / degrees.sum(), out=row)
        row[friends] += to_friends / max(len(friends), 1)
        row[source] += restart
    return rows


def prior_shares(of_friends: Vector, restart: float, known_hops: int) -> tuple[float, float]:
    """How `prior_rows` shares a row out: mass that is known to go to friends, mass by degree."""
    follow = 1 - restart
    if not known_hops:
        return 0.0, follow
    back = float(np.mean(1 / of_friends))  # of the second hop, at the source
    known = restart * follow * (1 + follow**2 * back)
    # As much as `complete_rows` would give them for these sums.
    known += IN_COMMON * (restart * follow**2 + follow**3 * echo_share(1.0, restart))
    return min(known, follow), max(follow - known, 0.0)


def over_degrees(rows: Rows, own: OwnLists, known: DegreeEstimates) -> None:
    """Divide every score by the degree of its node as the recipient sees it, in place."""
    for i, row in enumerate(rows):
        row /= known.degrees_seen_by(own.of(i))
