"""EdgeFlipping: randomised response on every pair of nodes, then exact PageRank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.flow.walk import check_restart, check_tol
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows, check_model
from edgeveil.privacy.epsilon import check_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.randomised_response import flipped_places

__all__ = ["EdgeFlipping"]


@dataclass(frozen=True, kw_only=True)
class EdgeFlipping:
    """The paper's baseline: keep every pair with probability e^eps / (1 + e^eps), else flip it.

    The flips are drawn once for all sources and cost epsilon once. In the joint model each
    source's own edges are put back for its owner; whatever a coalition pools, it learns at
    most epsilon about an edge that touches none of its members. Proof:
    docs/theory/edge-flipping.md. Cost: time and memory go with the number of flipped pairs,
    about n^2 / (2 (1 + e^eps)), never with n^2; then exact PageRank per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        L1 error of the PageRank on the flipped graph.
    """

    name: ClassVar[str] = "edge-flipping"
    columns: ClassVar[Columns] = "nodes"

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_model(self.model)
        check_restart(self.restart)
        check_tol(self.tol)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon, once for everything."""
        return Guarantee(
            epsilon=self.epsilon,
            model=self.model,
            n_sources=n_sources,
            theorem="docs/theory/edge-flipping.md",
            pooling="shared",
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> _Flipped:
        """Flip the pairs, once for all sources."""
        n = graph.n_nodes
        pairs = n * (n - 1) // 2
        flips = flipped_places(pairs, self.epsilon, noise)
        u = np.repeat(np.arange(n), graph.degrees)
        upper = u < graph.indices
        edges = _pair_number(u[upper], graph.indices[upper].astype(np.int64), n)
        # Sorted, because rows and neighbours are.
        kept = np.setxor1d(edges, flips, assume_unique=True)
        ends = _pair_ends(kept, n)
        return _Flipped(original=graph, flipped=Graph.from_edges(*ends, graph.nodes))

    def rows(self, prepared: _Flipped, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """PageRank on the flipped graph; in the joint model with the source's own edges back."""
        options = {"restart": self.restart, "tol": self.tol}
        if self.model == "public":
            return personalized_pagerank(prepared.flipped, sources, **options)
        rows = np.empty((len(sources), prepared.original.n_nodes))
        for i, source in enumerate(sources):
            rows[i] = personalized_pagerank(prepared.as_seen_by(source), [source], **options)[0]
        return rows


@dataclass(frozen=True)
class _Flipped:
    """The flipped graph, and the original for the edges at a source."""

    original: Graph
    flipped: Graph

    def as_seen_by(self, source: int) -> Graph:
        """The flipped graph in which the edges at `source` are the true ones."""
        n = self.flipped.n_nodes
        u = np.repeat(np.arange(n), self.flipped.degrees)
        v = self.flipped.indices
        others = (u < v) & (u != source) & (v != source)
        own = self.original.neighbours(source)
        return Graph.from_edges(
            np.concatenate([u[others], np.full(len(own), source)]),
            np.concatenate([v[others], own]),
            self.flipped.nodes,
        )


def _row_starts(n: int) -> npt.NDArray[np.int64]:
    """Number of the first pair of every row: pairs (0,1), (0,2), ..., (1,2), ... in order."""
    u = np.arange(n, dtype=np.int64)
    return u * (n - 1) - u * (u - 1) // 2


def _pair_number(u: npt.NDArray[Any], v: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    """Number of the pair (u, v), u < v."""
    return np.asarray(_row_starts(n)[u] + v - u - 1)


def _pair_ends(
    numbers: npt.NDArray[np.int64], n: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ends u < v of the numbered pairs."""
    starts = _row_starts(n)
    u = np.searchsorted(starts, numbers, side="right") - 1
    # The last row is empty and starts where the one before it ends; its number is never meant.
    return u, numbers - starts[u] + u + 1
