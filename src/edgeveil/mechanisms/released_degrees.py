"""Shared by three mechanisms: all degrees released once, and a recipient's noisy second hop.

Not a mechanism itself. `release_degrees` and `noisy_two_hop_rows` are the only two places where
these mechanisms touch private edges of others, each through `privacy.noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.degrees import DegreeEstimates, estimate_all
from edgeveil.estimate.doubt import RowDoubt, prior_doubt, two_hop_doubt
from edgeveil.estimate.rows import OwnLists, complete_rows, degree_floors, prior_rows
from edgeveil.estimate.walk_model import best_degree_floor
from edgeveil.flow.two_hop import exact_weights, two_hop_sums_of_lists
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Rows
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.noise import (
    Calibration,
    NoiseSource,
    add_laplace,
    add_laplace_to_rows,
    calibrate,
)

__all__ = [
    "ReleasedDegrees",
    "noisy_two_hop_rows",
    "release_degrees",
    "rows_together",
    "shared_part",
    "split_epsilon",
    "two_hop_row_doubt",
]

Vector = npt.NDArray[np.float64]

_DEGREE_EPSILON = 0.4
_GROUP_BYTES = 1 << 20  # half of a processor's own cache


@dataclass(frozen=True)
class ReleasedDegrees:
    """The graph, for the recipients' own lists, and what was released about all degrees."""

    graph: Graph
    known: DegreeEstimates

    @property
    def degrees(self) -> Vector:
        """Estimates of all degrees, for everybody."""
        return self.known.degrees

    def seen_by(self, source: int) -> DegreeEstimates:
        """What the owner of `source` makes of them, who knows its own list."""
        return self.known.seen_by(self.graph.neighbours(source))

    def own_lists(self, sources: Sequence[int]) -> OwnLists:
        """The lists of these sources, which only they themselves know."""
        lists = [self.graph.neighbours(source) for source in sources]
        starts = np.cumsum([0, *map(len, lists)])
        own = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
        return OwnLists(np.asarray(sources, dtype=np.int64), own, starts)

    def degrees_seen_by(self, source: int) -> Vector:
        """The degrees alone, as the owner of `source` sees them."""
        return self.known.degrees_seen_by(self.graph.neighbours(source))


def split_epsilon(epsilon: float, degree_epsilon: float | None) -> tuple[Fraction, Fraction]:
    """Epsilon of the shared degrees and of one recipient's second hop; they add up exactly.

    By default min(epsilon, 0.4 max(1, sqrt epsilon)) goes to the degrees: both parts grow with
    epsilon, so that more budget never makes either part worse.
    """
    check_epsilon(epsilon)
    whole = exact_epsilon(epsilon)
    if degree_epsilon is None:
        shared = exact_epsilon(_DEGREE_EPSILON * max(1.0, math.sqrt(epsilon)))
        return min(whole, shared), whole - min(whole, shared)
    try:
        too_much = check_epsilon(degree_epsilon) > epsilon
    except ParameterError:
        too_much = True
    if too_much:
        raise ParameterError(
            f"degree_epsilon must be a positive number, at most epsilon, got {degree_epsilon!r}"
        )
    return exact_epsilon(degree_epsilon), whole - exact_epsilon(degree_epsilon)


def shared_part(epsilon: float, degree_epsilon: float | None) -> float:
    """The shared part of epsilon as a float, not rounded up: k recipients learn no more."""
    shared = split_epsilon(epsilon, degree_epsilon)[0]
    nearest = float(shared)
    return nearest if exact_epsilon(nearest) <= shared else math.nextafter(nearest, 0.0)


def release_degrees(graph: Graph, epsilon: Fraction, noise: NoiseSource) -> ReleasedDegrees:
    """Release all degrees under Laplace noise of scale 2 / epsilon, and estimate them."""
    # One edge changes two degrees by one each; degrees are exact, so there is no float error.
    calibration = calibrate(coordinates=max(graph.n_nodes, 1), sensitivity=2, epsilon=epsilon)
    noisy = add_laplace(graph.degrees.astype(np.float64), calibration, noise)
    return ReleasedDegrees(graph, estimate_all(noisy, calibration.noise_scale))


def rows_together(n: int) -> int:
    """How many rows of n values go from one step to the next inside of the cache, at least 1."""
    return max(_GROUP_BYTES // (8 * max(n, 1)), 1)


def noisy_two_hop_rows(
    released: ReleasedDegrees,
    sources: Sequence[int],
    epsilon: Fraction,
    restart: float,
    noise: NoiseSource,
) -> Rows:
    """PageRank rows of sources from their own lists, the degrees and a noisy second hop.

    Every row's noise comes from a stream of its own, named by its source.
    """
    n = released.graph.n_nodes
    rows = np.empty((len(sources), n))
    if epsilon == 0:  # public, and what the recipients know
        if len(sources):
            prior_rows(rows, released.own_lists(sources), released.known, restart)
        return rows
    calibration, scale = _noise_of_sums(n, epsilon)
    together, room = rows_together(n), np.empty(n)
    for first in range(0, len(sources), together):
        some, group = sources[first : first + together], rows[first : first + together]
        own = released.own_lists(some)
        floors = degree_floors(own, released.degrees, float(epsilon))
        # In units of 1 / floor. Not `seen_by`: the mean of 1 / degree over a friend's posterior
        # is 1 / the mean over anybody's.
        weights = two_hop_sums_of_lists(
            released.graph, own.lists, own.starts, released.degrees, floors, group
        )
        streams = [noise.derive("row", int(source)) for source in some]
        add_laplace_to_rows(group, calibration, streams)
        complete_rows(group, own, weights, floors, released.known, scale, restart, room)
    return rows


def two_hop_row_doubt(
    released: ReleasedDegrees,
    source: int,
    epsilon: Fraction,
    restart: float,
    row: Vector,
    known: DegreeEstimates,
) -> RowDoubt:
    """How far the noise may have moved a row of `noisy_two_hop_rows`: post-processing of it.

    `known` is what the owner of `source` makes of the degrees, from `ReleasedDegrees.seen_by`.
    """
    graph, n = released.graph, released.graph.n_nodes
    own = graph.neighbours(source)
    if len(own) == 0:
        return RowDoubt(0.0, np.zeros(n))
    if epsilon == 0:
        return prior_doubt(own, known, restart, 1)
    degrees = released.degrees[own]
    floor = best_degree_floor(degrees, n, float(epsilon))
    weights = exact_weights(floor / degrees, n) / floor
    scale = _noise_of_sums(n, epsilon)[1] / floor
    scales = np.full(n, scale)
    scales[own] = 2 * scale
    return two_hop_doubt(row, source, own, known, weights, scales, restart)


@lru_cache(maxsize=16)  # exact arithmetic, the same for all rows of a release
def _noise_of_sums(n: int, epsilon: Fraction) -> tuple[Calibration, float]:
    """The noise of one recipient's two-hop sums, and its scale: from public parameters."""
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
    return calibration, calibration.noise_scale
