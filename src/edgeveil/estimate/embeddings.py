"""Embeddings from one's own list, everybody's noisy degrees, and a noisy hashed second hop.

All of it is post-processing (docs/theory/two-hop-embedding.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.degrees import estimate_all
from edgeveil.estimate.rows import OwnLists
from edgeveil.hashing import NodeHash

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]

_CELLS, _PER_CELL = 24, 64  # cells of nodes of like degree: at most, and dimensions for each
_BY_CHANCE = 0.25  # places for each friend that stand out although they are noise alone
_MOST = 4  # places of the second hop for each friend
_LEAST = 0.01  # of the largest number: what is less is left out


class HashedDegrees(NamedTuple):
    """What the released degrees tell, the same for everybody.

    A hashed second hop in which nodes of like degree have like sums is a combination of the rows
    of `popular`.
    """

    degrees: Vector  # (n) without most of their noise
    popular: Rows  # (cells, dimension) rows of unit length at right angles


def learn(noisy: Vector, scale: float, node_hash: NodeHash) -> HashedDegrees:
    """Estimate the degrees from noisy ones, and hash them, cell by cell."""
    degrees = estimate_all(noisy, scale).degrees
    if len(degrees) == 0:
        return HashedDegrees(degrees, np.empty((0, node_hash.dimension)))
    cells = max(1, min(_CELLS, node_hash.dimension // _PER_CELL))
    low, high = math.log(degrees.min()), math.log(degrees.max())
    steps = (np.log(degrees) - low) * (cells / (high - low if high > low else 1.0))
    cell = np.minimum(steps.astype(np.int64), cells - 1)
    members = [np.flatnonzero(cell == c) for c in range(cells)]
    hashed = [node_hash.add_up(at, degrees[at]) for at in members if len(at)]
    return HashedDegrees(degrees, np.ascontiguousarray(np.linalg.qr(np.stack(hashed).T)[0].T))


def embed(
    noisy: Rows | None,
    scale: float,
    own: OwnLists,
    popular: Rows,
    node_hash: NodeHash,
    second_hop: float,
) -> Rows:
    """Friends with weight 1, what stands out of the second hop with less, unit length.

    `noisy` are hashed sums of strangers with Laplace noise of this scale, one row for each
    recipient; None if they were not measured. `second_hop` is the weight of the place that stands
    out most. A recipient without friends gets zeros.
    """
    out = np.zeros((len(own.sources), node_hash.dimension))
    for i, row in enumerate(out):
        friends = own.of(i)
        if len(friends) == 0:
            continue
        row += node_hash.add_up(friends)
        if noisy is not None:
            # Not by @, whose last bits hang on the number of threads.
            shares = np.einsum("cj,j->c", popular, noisy[i])
            beyond = noisy[i] - np.einsum("c,cj->j", shares, popular)
            row += second_hop * standing_out(beyond, scale, len(friends))
        row /= max(float(np.linalg.norm(row)), 1e-12)
    return out


def standing_out(sums: Vector, scale: float, friends: int) -> Vector:
    """The numbers that are too large for noise, their roots scaled to at most 1; 0 elsewhere.

    The threshold is where noise alone leaves some numbers for each friend; none counts that is
    below a hundredth of the largest. If clearly more reach it, two deviations, they are weighed
    by the share of those that are more than noise; else there is nothing to be seen, and all is
    0. So a small epsilon gives the own list.
    """
    by_chance, size = min(_BY_CHANCE * friends, len(sums) / 4), np.abs(sums)
    in_vain, largest = by_chance + 2 * math.sqrt(by_chance), float(size.max())
    least = max(scale * math.log(len(sums) / by_chance), _LEAST * largest)
    found = np.flatnonzero(size > least)
    weights, share = np.zeros(len(sums)), 1 - in_vain / max(len(found), 1)
    if share <= 0:
        return weights
    if len(found) > _MOST * friends:
        found = found[np.argsort(-size[found], kind="stable")[: _MOST * friends]]
    weights[found] = share * np.sign(sums[found]) * np.sqrt(size[found] / largest)
    return weights
