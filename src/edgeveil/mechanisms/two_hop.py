"""TwoHop: shared noisy degrees, and for each recipient a noisy count of the second hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from edgeveil.estimate.rows import over_degrees
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows, check_score
from edgeveil.mechanisms.released_degrees import (
    ReleasedDegrees,
    noisy_two_hop_rows,
    release_degrees,
    shared_part,
    split_epsilon,
    two_hop_row_doubt,
)
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource

__all__ = ["TwoHop"]


@dataclass(frozen=True, kw_only=True)
class TwoHop:
    """Noisy degrees for everybody, plus each recipient's two-hop sums with noise of their own.

    With public weights w_u = min(1 / d_u, 1 / D0) from the released degrees, the sum of w_u
    over the common neighbours u of s and v is linear in the edges: an edge moves one sum of a
    stranger, or two sums of friends, by at most 1 / D0. So noise of scale 1 / (D0 epsilon) on
    strangers and twice that on friends protects every edge elsewhere. Everything after that is
    post-processing. Joint model only. Proof: docs/theory/two-hop.md. Cost per source: its
    two-hop neighbourhood and n draws.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one recipient, both parts together.
    degree_epsilon : float, optional
        What of it goes to the shared degrees; by default min(epsilon, 0.4 max(1, sqrt epsilon)).
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "two-hop"
    columns: ClassVar[Columns] = "nodes"

    epsilon: float
    degree_epsilon: float | None = None
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        split_epsilon(self.epsilon, self.degree_epsilon)
        check_restart(self.restart)
        check_score(self.score)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon to each recipient, of which the degrees' part is shared by all."""
        return Guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_sources=n_sources,
            theorem="docs/theory/two-hop.md",
            shared_epsilon=shared_part(self.epsilon, self.degree_epsilon),
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> ReleasedDegrees:
        """Release the degrees, once for all sources."""
        return release_degrees(graph, split_epsilon(self.epsilon, self.degree_epsilon)[0], noise)

    def rows(self, prepared: ReleasedDegrees, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Noisy two-hop sums, shrunk to the prior and completed to a row."""
        epsilon = split_epsilon(self.epsilon, self.degree_epsilon)[1]
        rows = noisy_two_hop_rows(prepared, sources, epsilon, self.restart, noise)
        if self.score == "lift":
            over_degrees(rows, prepared.own_lists(sources), prepared.known)
        return rows

    def uncertainty(self, prepared: ReleasedDegrees, sources: Sequence[int], rows: Rows) -> Rows:
        """Around the score that the same formula gives for the true sums and degrees.

        With the same public weights. It covers the noise on both and what pulling them towards
        their priors did, for 95 % of the nodes, over the noise and the nodes
        (docs/theory/two-hop.md). What hops beyond the second do is not in it, nor, where
        epsilon is too small to measure it, what the second does.
        """
        epsilon = split_epsilon(self.epsilon, self.degree_epsilon)[1]
        lift = self.score == "lift"
        out = np.empty_like(rows)
        for doubt, scores, source in zip(out, rows, sources, strict=True):
            known = prepared.seen_by(source)
            row = scores * known.degrees if lift else scores
            about = two_hop_row_doubt(prepared, int(source), epsilon, self.restart, row, known)
            doubt[:] = about.of_lift(row, known) if lift else about.of_pagerank(known)
        return out
