"""Hits: how many hidden friends are on a member's list of k, by degree of the member.

Hide a tenth of the edges, rank all strangers of a member (neither itself nor a friend that is
left) on the graph that is left, and look for the hidden friends among the first k:
hits@k = found / min(k, hidden), one number for each member. Beside any score belong popularity
(the same list for everybody), the usual scores without privacy, and `limit`, the line that no
private list can cross which knows nothing but the edges (docs/theory/limits.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.evaluation.metrics import hits_at_k
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph

Vector = npt.NDArray[np.float64]
Scorer = Callable[[int], Vector]
"""A member's index to the scores of all nodes; those of itself and its friends do not matter."""

DEGREE_GROUPS = ((5, 20), (20, 50), (50, 200))


@dataclass(frozen=True)
class HiddenEdges:
    """A graph without some of its edges, and those edges as a graph of their own."""

    left: Graph
    hidden: Graph


def hide_edges(graph: Graph, *, share: float = 0.1, seed: int = 0) -> HiddenEdges:
    """Hide a random share of the edges; the node set and directions stay."""
    if not 0 < share < 1:
        raise ParameterError(f"share must be between 0 and 1, got {share}")
    u = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    v = graph.indices.astype(np.int64)
    once = (u < v) | graph.directed
    u, v = u[once], v[once]
    hidden = np.zeros(len(u), dtype=np.bool_)
    chosen = np.random.default_rng(seed).choice(len(u), round(share * len(u)), replace=False)
    hidden[chosen] = True
    return HiddenEdges(
        Graph.from_edges(u[~hidden], v[~hidden], graph.nodes, directed=graph.directed),
        Graph.from_edges(u[hidden], v[hidden], graph.nodes, directed=graph.directed),
    )


def strangers(graph: Graph, member: int) -> npt.NDArray[np.bool_]:
    """Which nodes are neither the member nor its friends."""
    open_ = np.ones(graph.n_nodes, dtype=np.bool_)
    open_[member] = False
    open_[graph.neighbours(member)] = False
    return open_


def members_by_degree(
    split: HiddenEdges,
    *,
    groups: Sequence[tuple[int, int]] = DEGREE_GROUPS,
    per_group: int = 150,
    seed: int = 0,
) -> dict[tuple[int, int], npt.NDArray[np.int64]]:
    """Draw members that have a hidden friend, by their degree, hidden friends counted.

    A group is its lowest degree and the degree from which on it ends; where it has no more than
    `per_group` members, all are taken.
    """
    rng = np.random.default_rng(seed)
    hidden = split.hidden.degrees
    degrees = split.left.degrees + hidden
    drawn = {}
    for low, high in groups:
        fit = np.flatnonzero((degrees >= low) & (degrees < high) & (hidden > 0))
        drawn[low, high] = np.sort(rng.choice(fit, min(per_group, len(fit)), replace=False))
    return drawn


def hits(split: HiddenEdges, members: Iterable[int], score: Scorer, k: int = 20) -> Vector:
    """hits@k of any score, for each member; equal scores count as in random order.

    Raises
    ------
    ParameterError
        If a member has no hidden friend.
    """
    found = []
    for member in members:
        unknown = strangers(split.left, member)
        hidden = np.zeros(split.left.n_nodes, dtype=np.bool_)
        hidden[split.hidden.neighbours(member)] = True
        count = int(hidden.sum())
        if count == 0:
            raise ParameterError("every member must have a hidden friend")
        right = hits_at_k(hidden[unknown], score(member)[unknown], k)[0]
        found.append(float(right) / min(k, count))
    return np.array(found)


# -- scores without privacy ----------------------------------------------------------------


def popularity(graph: Graph) -> Scorer:
    """The degree, directed the in-degree: the same list for everybody."""
    degrees = graph.in_degrees.astype(np.float64)
    return lambda member: degrees


def common_neighbours(graph: Graph) -> Scorer:
    """The number of common neighbours."""
    return _weighted(graph, np.ones(graph.n_nodes))


def resource_allocation(graph: Graph) -> Scorer:
    """The sum of 1 / degree over the common neighbours."""
    return _weighted(graph, 1 / np.maximum(graph.degrees, 1))


def pagerank(graph: Graph) -> Scorer:
    """Personalized PageRank."""
    return lambda member: personalized_pagerank(graph, [member], tol=1e-7)[0]


def _weighted(graph: Graph, weights: Vector) -> Scorer:
    adjacency = graph.adjacency().astype(np.float64)

    def score(member: int) -> Vector:
        own = graph.neighbours(member)
        return np.asarray(weights[own] @ adjacency[own])

    return score


# -- the limit ------------------------------------------------------------------------------


def limit_of(
    counts: npt.ArrayLike, epsilon: float, candidates: npt.ArrayLike, k: int = 20
) -> Vector:
    """Largest chance that an epsilon-private list of k holds somebody: min(1, e^(m epsilon) k/N).

    `counts` are numbers m of edges that tell this stranger from the others, `candidates` numbers
    N of strangers that are alike without those edges, this one among them.

    Examples
    --------
    >>> limit_of([0, 3, 9], 1.0, 10_000).round(4)
    array([0.002 , 0.0402, 1.    ])
    """
    room = np.log(k) - np.log(np.asarray(candidates, dtype=np.float64))
    return np.asarray(np.exp(np.minimum(np.asarray(counts) * epsilon + room, 0.0)))


def limit(split: HiddenEdges, members: Iterable[int], epsilon: float, k: int = 20) -> Vector:
    """The most hits@k that epsilon-private lists can expect which know nothing but the edges.

    Without the edges to its common friends with the member, a hidden friend is one of the
    strangers that share no friend with the member (theorem in docs/theory/limits.md).
    """
    score = common_neighbours(split.left)
    reached = []
    for member in members:
        counts = score(member)
        alike = int(np.count_nonzero(counts[strangers(split.left, member)] == 0))
        hidden = counts[split.hidden.neighbours(member)]
        bound = limit_of(hidden, epsilon, np.maximum(alike + (hidden > 0), 1), k)
        reached.append(min(float(bound.sum()) / min(k, len(hidden)), 1.0))
    return np.array(reached)
