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

Degrees are those that each member sees (`DegreeEstimates.seen_by`). The same model in plain numpy,
one row at a time, is in tests/unit/estimate/plain_walk_model.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _kernels
from edgeveil.estimate._kernels import CLOSURE_EXCESS, persistent_share
from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.nodes import NodeSet

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]


class OwnLists(NamedTuple):
    """The neighbour lists of a block of sources, which their members know, and the public nodes.

    In a directed graph a list has those whom the member follows; `followers` has the followers of
    each member, if members are assumed to know them.
    """

    sources: npt.NDArray[np.int64]  # (m)
    lists: Indices  # all lists concatenated, each sorted
    starts: npt.NDArray[np.int64]  # (m + 1) where each begins
    nodes: NodeSet
    followers: tuple[Indices, ...] = ()
    births: npt.NDArray[np.uint16] | None = None  # of the edges to `lists`, in a graph with births

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


def two_hop_weights(own: OwnLists, degrees: Vector, epsilon: float) -> tuple[Vector, Vector]:
    """Floors of the sources and weights of friends in two-hop sums, from released degrees alone.

    A source's floor is the D0 of the weights min(1 / d, 1 / D0) with the smallest estimated mean
    squared error; 1 without friends. The noise of a two-hop sum has variance 2 / (D0 epsilon)^2.
    The floor cuts the weight of neighbours with fewer than D0 friends: its squared bias is
    sum (1/d - 1/D0)^2 d / n over them for a typical node, times an overdispersion. The weight of
    each friend in ``own.lists`` is in units of 1 / floor: floor / degree, at most 1, exact.
    """
    floors = np.ones(len(own.sources))
    _kernels.degree_floors(own.lists, own.starts, degrees, epsilon, floors)
    # Not the degrees that the member sees: the posterior mean of 1 / d for a friend, whose
    # posterior is weighted by d, is 1 / E[d].
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
    """Turn noisy two-hop sums into rows of PageRank, in place; releases the GIL.

    The sums are in units of 1 / floor, friends' halved, with Laplace noise of this scale. A
    source without friends keeps all of its mass.
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
        np.empty(rows.shape[1]),
    )


def prior_rows(own: OwnLists, known: DegreeEstimates, restart: float, known_hops: int = 1) -> Rows:
    """Rows without a second hop: all hops that the lists do not tell follow the degrees.

    `known_hops` is how many hops the lists tell: 1, or 0 in the public model, where they are
    empty. A source without friends keeps all of its mass.
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
    """How `prior_rows` splits a row: mass that is known to be on friends, mass by degree."""
    follow = 1 - restart
    if not known_hops:
        return 0.0, follow
    back = float(np.mean(1 / of_friends))  # the part of the second hop that returns to the source
    known = restart * follow * (1 + follow**2 * back)
    # The excess that `complete_rows` gives to friends at the prior mean.
    known += CLOSURE_EXCESS * (restart * follow**2 + follow**3 * persistent_share(1.0, restart))
    return min(known, follow), max(follow - known, 0.0)


def over_degrees(rows: Rows, own: OwnLists, known: DegreeEstimates) -> None:
    """Divide every score by the degree of its node as the member sees it, in place."""
    for i, row in enumerate(rows):
        row /= known.degrees_seen_by(own.of(i))
