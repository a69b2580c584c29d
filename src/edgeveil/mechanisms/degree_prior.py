"""DegreePrior: everybody's noisy degrees, once, and each recipient's own list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.degrees import DegreeEstimates
from edgeveil.estimate.doubt import RowDoubt, prior_doubt
from edgeveil.estimate.rows import OwnLists, over_degrees, prior_rows
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows, check_model, check_score
from edgeveil.mechanisms.released_degrees import ReleasedDegrees, release_degrees
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import NoiseSource

__all__ = ["DegreePrior"]


@dataclass(frozen=True, kw_only=True)
class DegreePrior:
    """One shared release of all degrees with Laplace noise of scale 2 / epsilon.

    Each recipient combines it with its own neighbour list: hops 0 and 1 of the walk exactly,
    all further hops by degree. The noise is drawn once for everybody and the rest is the
    recipient's own data, so any coalition learns at most epsilon about the edges of others.
    In the public model the own list is left out. Neighbouring graphs differ in one edge (joint:
    not at the source). Proof: docs/theory/degree-prior.md. Cost: n draws once, then
    O(n) per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release, for any number of sources.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "degree-prior"
    columns: ClassVar[Columns] = "nodes"

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_model(self.model)
        check_restart(self.restart)
        check_score(self.score)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=self.model,
            n_sources=n_sources,
            theorem="docs/theory/degree-prior.md",
            pooling="shared",
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> ReleasedDegrees:
        """Release the degrees, once for all sources."""
        return release_degrees(graph, exact_epsilon(self.epsilon), noise)

    def rows(self, prepared: ReleasedDegrees, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Own list and released degrees; no further noise."""
        rows = np.empty((len(sources), prepared.graph.n_nodes))
        if len(sources) == 0:
            return rows
        if self.model == "joint":
            own = prepared.own_lists(sources)
        else:  # the lists must not be looked at
            at, starts = np.asarray(sources, dtype=np.int64), np.zeros(len(rows) + 1, np.int64)
            own = OwnLists(at, np.empty(0, dtype=np.int64), starts)
        prior_rows(rows, own, prepared.known, self.restart, int(self.model == "joint"))
        if self.score == "lift":
            over_degrees(rows, own, prepared.known)
        return rows

    def uncertainty(self, prepared: ReleasedDegrees, sources: Sequence[int], rows: Rows) -> Rows:
        """Around the score that the same formula gives for the true degrees.

        It covers the noise on the degrees and what estimating them did, for 95 % of the nodes,
        over the noise and the nodes (docs/theory/degree-prior.md). That far hops do not follow
        the degrees exactly is not in it.
        """
        out = np.empty_like(rows)
        for doubt, scores, source in zip(out, rows, sources, strict=True):
            own, known = self._view(prepared, source)
            hops = int(self.model == "joint")
            if hops and len(own) == 0:
                about = RowDoubt(0.0, np.zeros_like(scores))
            else:
                about = prior_doubt(own, known, self.restart, hops)
            if self.score == "lift":
                doubt[:] = about.of_lift(scores * known.degrees, known)
            else:
                doubt[:] = about.of_pagerank(known)
        return out

    def _view(
        self, prepared: ReleasedDegrees, source: int
    ) -> tuple[npt.NDArray[np.integer], DegreeEstimates]:
        """The own list, which in the public model must not be looked at, and the degrees."""
        if self.model == "public":
            return np.empty(0, dtype=np.int64), prepared.known
        return prepared.graph.neighbours(source), prepared.seen_by(source)
