"""The main job, measured: hits, how many hidden friends are on a member's list of k.

Hide a tenth of the edges, rank all strangers of a member (neither itself nor a friend that is
left) on the graph that is left, and look for the hidden friends among the first k:
hits@k = found / min(k, hidden), one number for each member, taken by degree of the members.
Beside private lists belong popularity (the same list for everybody), the usual scores without
privacy, and `limit`, the line that no private list can cross which knows nothing but the edges
(docs/theory/limits.md). For the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.engine import release
from edgeveil.errors import ParameterError
from edgeveil.evaluation.metrics import hits_at_k
from edgeveil.evaluation.results import Result, estimate
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.privacy.noise import NoiseSource

Vector = npt.NDArray[np.float64]
Scorer = Callable[[int], Vector]
"""A member's index to the scores of all nodes; those of itself and its friends do not matter."""

Members = npt.NDArray[np.int64]
Found = dict[str, npt.NDArray[Any]]  # of a metric: one value for each member, or one for all

DEGREE_GROUPS = ((5, 20), (20, 50), (50, 200))
LIMIT = "limit"
ALIKE = "most suggested, share of lists"


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
) -> dict[tuple[int, int], Members]:
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


# -- the measurement ------------------------------------------------------------------------


def group_name(group: tuple[int, int]) -> str:
    """A degree group in words."""
    return f"{group[0]}-{group[1]} friends"


def default_mechanisms(
    epsilons: Iterable[float], k: int, *, directed: bool = False
) -> list[Mechanism]:
    """Lists at each epsilon."""
    return [Suggest(epsilon=epsilon, directed=directed) for epsilon in epsilons]


def measure_suggestions(
    dataset: str,
    graph: Graph,
    mechanisms: Iterable[Mechanism],
    *,
    k: int = 20,
    per_group: int = 150,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """hits@k of lists, by degree group; a tenth of the graph's edges is hidden.

    Mechanisms give suggestions, of at least k places, each at its own epsilon. `seed` decides
    what is hidden, who is asked for, and the noise; `progress` is told how many lines are done,
    of how many.
    """
    split = hide_edges(graph, seed=seed)
    drawn = members_by_degree(split, per_group=per_group, seed=seed)
    groups = {group_name(group): members for group, members in drawn.items() if len(members)}
    lines = list(_lines(split, mechanisms, k, seed))
    results = []
    for done, (name, epsilon, measure) in enumerate(lines):
        progress(done, len(lines))
        line = {"dataset": dataset, "mechanism": name, "epsilon": epsilon, "repeats": 1}
        for scope, members in groups.items():
            found = measure(members)
            about = {**line, "scope": scope, "n_sources": len(members)}
            results += [
                Result.of(estimate(values), experiment="suggestions", metric=metric, **about)
                for metric, values in (
                    found if isinstance(found, dict) else {f"hits@{k}": found}
                ).items()
            ]
    progress(len(lines), len(lines))
    return results


def _lines(
    split: HiddenEdges, mechanisms: Iterable[Mechanism], k: int, seed: int
) -> Iterator[tuple[str, float | None, Callable[[Members], Vector | Found]]]:
    """Name, epsilon and how to measure a group of members.

    First what is no private release, then every mechanism, and what no list at its epsilon
    exceeds.
    """
    baselines = {
        "popularity": popularity,
        "common neighbours": common_neighbours,
        "resource allocation": resource_allocation,
        "pagerank": pagerank,
    }
    for name, make in baselines.items():
        if not (split.left.directed and name == "pagerank"):  # not offered
            yield name, None, partial(hits, split, score=make(split.left), k=k)
    limits: set[float] = set()
    for mechanism in mechanisms:
        epsilon = mechanism.guarantee(1).epsilon
        noise = NoiseSource.insecure(seed).derive(mechanism.name, f"{epsilon:g}")
        yield mechanism.name, epsilon, partial(_of_lists, split, mechanism, noise, k)
        if epsilon not in limits:
            limits.add(epsilon)
            yield LIMIT, epsilon, partial(limit, split, epsilon=epsilon, k=k)


def _of_lists(
    split: HiddenEdges, mechanism: Mechanism, noise: NoiseSource, k: int, members: Members
) -> Found:
    """Hits of private lists, and how alike the lists are."""
    made: Any = release(
        split.left, mechanism, split.left.nodes.take(members.tolist()), k=k, noise=noise
    )
    starts, nodes = made.lists.starts, made.lists.nodes
    found = []
    for i, member in enumerate(members):
        hidden = split.hidden.neighbours(int(member))
        listed = nodes[starts[i] : starts[i + 1]]
        found.append(float(np.isin(hidden, listed).sum()) / min(k, len(hidden)))
    counts = np.unique(nodes, return_counts=True)[1]
    return {
        f"hits@{k}": np.array(found),
        "distinct people": np.array([len(counts)]),
        ALIKE: np.array([counts.max(initial=0) / len(members)]),
    }
