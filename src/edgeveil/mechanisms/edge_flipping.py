"""EdgeFlipping: randomised response on every pair of nodes, then exact PageRank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil._internal.memory import total_memory
from edgeveil.errors import ParameterError
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    OnceForAll,
    Rows,
    Statistics,
)
from edgeveil.mechanisms.hard_pairs import Pair, single_pair
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.statistic import Bits, Noised

_BYTES_PER_PAIR = 64  # pair numbers, their sorted union, both ends, and the graph


class EdgeFlipping(OnceForAll):
    """The paper's baseline: keep every pair with probability e^eps / (1 + e^eps), else flip it.

    The flips are drawn once for all sources, so the price is epsilon for any number of rows. In
    the joint model each member's own edges are restored in its row; members who combine their rows
    learn at most epsilon about an edge that touches none of them. Proof:
    docs/theory/edge-flipping.md. Time and memory grow with the edges and the flipped pairs, about
    n^2 / (2 (1 + e^eps)): quadratic in n, but fewer than all pairs by the factor 1 + e^eps. Then
    exact PageRank per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release.
    model : {"joint", "public"}
        Who may see a row: only the member at its source, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        Bound on the L1 error of PageRank on the flipped graph.
    """

    name = "edge-flipping"
    when_to_use = (
        "the default for rankings where epsilon is large for the graph's size: it adds "
        "n / (1 + e^epsilon) false edges to a node, and beats the others where that is at most 4"
    )
    theorem = "docs/theory/edge-flipping.md"

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    tol: float = 1e-6

    @classmethod
    def paper(cls, epsilon: float, *, model: Model = "joint", **others: Any) -> Self:
        """The paper's baseline (its Section 6), which these defaults are: restart 0.15."""
        return cls(epsilon=epsilon, model=model, **others)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Refuse a node set whose flipped pairs would not fit into memory."""
        pairs = len(nodes) * (len(nodes) - 1) // 2
        flips = pairs / (1 + math.exp(min(self.epsilon, 700.0)))
        needed, available = flips * _BYTES_PER_PAIR, total_memory()
        if needed > available:
            raise ParameterError(
                f"edge-flipping at epsilon {self.epsilon:g} flips about {flips:.2g} of "
                f"{pairs:.2g} pairs of nodes, which takes {needed / 2**30:,.0f} GiB of memory; "
                f"this machine has {available / 2**30:,.0f} GiB"
            )

    def shared(self, graph: Graph) -> Statistics:
        """One bit for every pair of nodes."""
        n = graph.n_nodes
        u = np.repeat(np.arange(n), graph.degrees)
        upper = u < graph.indices
        # Sorted, because rows and neighbours are.
        ones = _pair_number(u[upper], graph.indices[upper].astype(np.int64), n)
        yield Bits(ones, n * (n - 1) // 2, self.epsilon)

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> Graph:
        """The flipped graph."""
        return Graph.from_edges(*_pair_ends(noised[0].values, len(nodes)), nodes)

    def estimate(self, noised: tuple[Noised, ...], shared: Graph, views: LocalViews) -> Rows:
        """PageRank on the flipped graph; in the joint model with the member's own edges restored.

        `shared` is the flipped graph, which is released, not the private one.
        """
        options = {"restart": self.restart, "tol": self.tol}
        if self.model == "public":
            return personalized_pagerank(shared, views.sources, **options)
        rows = np.empty((len(views.sources), len(views.nodes)))
        for i, source in enumerate(views.sources):
            own_view = _with_own_edges(shared, int(source), views.of(i))
            rows[i] = personalized_pagerank(own_view, [int(source)], **options)[0]
        return rows

    def hard_pairs(self) -> Iterator[Pair]:
        """Two graphs that differ in one bit."""
        yield single_pair(at_source=self.model == "public")

    @classmethod
    def tight_case(cls) -> tuple[EdgeFlipping, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), single_pair(at_source=False)


def _with_own_edges(flipped: Graph, source: int, friends: npt.NDArray[np.integer]) -> Graph:
    """The flipped graph in which the edges at `source` are the true ones."""
    u = np.repeat(np.arange(flipped.n_nodes), flipped.degrees)
    v = flipped.indices
    others = (u < v) & (u != source) & (v != source)
    return Graph.from_edges(
        np.concatenate([u[others], np.full(len(friends), source)]),
        np.concatenate([v[others], friends]),
        flipped.nodes,
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
    # The last row is empty and starts where the one before it ends: no pair is in it.
    return u, numbers - starts[u] + u + 1
