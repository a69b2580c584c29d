"""Hits: how many hidden friends are on a member's list of k.

Hide a tenth of the edges, rank all strangers of a member (neither itself nor a friend that is
left) on the graph that is left, and look for the hidden friends among the first k:
hits@k = found / min(k, hidden), one number for each member, averaged by degree of the members.
Private lists are compared with popularity (the same list for everybody), the usual scores without
privacy, and `limit`, an upper bound for private lists that use common friends and popularity
(docs/theory/limits.md). For the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.flat_rows import starts_of
from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Lists
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.evaluation.metrics import hits_at_k
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.graph import Graph
from edgeveil.jobs import release
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.privacy.noise import NoiseSource

Vector = npt.NDArray[np.float64]
Scorer = Callable[[int], Vector]
"""A member's index to the scores of all nodes; those of itself and its friends do not matter."""

Members = npt.NDArray[np.int64]
Metrics = dict[str, npt.NDArray[Any]]  # by metric: one value for each member, or one for all

Group = tuple[int, int | None]
"""Members by number of friends: from the first number up to but without the second (None: any)."""

DEGREE_GROUPS: tuple[Group, ...] = ((5, 20), (20, 50), (50, 200))
ALL_GROUPS: tuple[Group, ...] = ((0, 5), *DEGREE_GROUPS, (200, None), (0, None))

LIMIT = "limit"
SIZE = "members"
ALIKE = "most suggested, share of lists"
POPULAR = "mostly popular, share of lists"


@dataclass(frozen=True)
class HiddenEdges:
    """A graph without some of its edges, and those edges as a graph of their own."""

    left: Graph
    hidden: Graph


def hide_edges(
    graph: Graph,
    *,
    share: float = 0.1,
    seed: int = 0,
    among: npt.NDArray[np.bool_] | None = None,
) -> HiddenEdges:
    """Hide a random share of the edges; the node set, directions and `first_seen` stay.

    `among` says for every entry of ``graph.indices`` whether it may be hidden; by default all.
    """
    if not 0 < share < 1:
        raise ParameterError(f"share must be between 0 and 1, got {share}")
    u = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    v = graph.indices.astype(np.int64)
    once = (u < v) | graph.directed  # an undirected edge has two entries
    edges = np.flatnonzero(once if among is None else once & among)
    rng = np.random.default_rng(seed)
    hidden = np.zeros(len(u), dtype=np.bool_)
    hidden[edges[rng.choice(len(edges), round(share * len(edges)), replace=False)]] = True
    if not graph.directed:
        hidden |= hidden[np.lexsort((u, v))]  # the reverse of entry i is entry lexsort[i]
    return HiddenEdges(with_entries(graph, ~hidden), with_entries(graph, hidden))


def with_entries(graph: Graph, chosen: npt.NDArray[np.bool_]) -> Graph:
    """The graph with some of the entries of ``graph.indices``, on the same nodes."""
    return Graph(
        starts_of(chosen)[graph.indptr].astype(graph.indptr.dtype),
        graph.indices[chosen],
        graph.nodes,
        directed=graph.directed,
        first_seen=None if graph.first_seen is None else graph.first_seen[chosen],
    )


def strangers(graph: Graph, member: int) -> npt.NDArray[np.bool_]:
    """Which nodes are neither the member nor its friends."""
    unknown = np.ones(graph.n_nodes, dtype=np.bool_)
    unknown[member] = False
    unknown[graph.neighbours(member)] = False
    return unknown


def members_by_degree(
    split: HiddenEdges,
    *,
    groups: Sequence[Group] = DEGREE_GROUPS,
    per_group: int = 150,
    seed: int = 0,
) -> dict[Group, Members]:
    """Draw members that have a hidden friend, by their degree, hidden friends counted.

    Where a group has no more than `per_group` such members, all are taken. Which ones are drawn
    does not depend on the other groups.
    """
    hidden = split.hidden.degrees
    degrees = split.left.degrees + hidden
    drawn = {}
    for low, high in groups:
        rng = np.random.default_rng([seed, low, high or 0])
        fit = np.flatnonzero(_in_group(degrees, (low, high)) & (hidden > 0))
        drawn[low, high] = np.sort(rng.choice(fit, min(per_group, len(fit)), replace=False))
    return drawn


def _in_group(degrees: npt.NDArray[np.integer], group: Group) -> npt.NDArray[np.bool_]:
    low, high = group
    return (degrees >= low) & (degrees < (np.inf if high is None else high))


def hits(split: HiddenEdges, members: Iterable[int], score: Scorer, k: int = 20) -> Vector:
    """hits@k of any score, for each member; equal scores count as in random order.

    Raises
    ------
    ParameterError
        If a member has no hidden friend.
    """
    shares = []
    for member in members:
        unknown = strangers(split.left, member)
        hidden = np.zeros(split.left.n_nodes, dtype=np.bool_)
        hidden[split.hidden.neighbours(member)] = True
        count = int(hidden.sum())
        if count == 0:
            raise ParameterError("every member must have a hidden friend")
        right = hits_at_k(hidden[unknown], score(member)[unknown], k)[0]
        shares.append(float(right) / min(k, count))
    return np.array(shares)


def hits_of_lists(hidden: Graph, members: Iterable[int], lists: Lists, k: int = 20) -> Vector:
    """hits@k of lists, for each member."""
    shares = []
    for i, member in enumerate(members):
        friends = hidden.neighbours(int(member))
        listed = lists.nodes[lists.starts[i] : lists.starts[i + 1]]
        shares.append(float(np.isin(friends, listed).sum()) / min(k, len(friends)))
    return np.array(shares)


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
    common: npt.ArrayLike,
    epsilon: float,
    ahead: npt.ArrayLike,
    level: npt.ArrayLike,
    k: int = 20,
) -> Vector:
    """Largest probability that an epsilon-private list of k holds a node with m common friends.

    It is the probability to be among the first k e^(m epsilon) candidates, ordered by what is known
    besides common friends: `ahead` candidates come before this one, `level` (this one included)
    are equal and in random order.

    Examples
    --------
    >>> limit_of([0, 3, 9], 1.0, ahead=0, level=10_000).round(4)  # all are alike
    array([0.002 , 0.0402, 1.    ])
    >>> limit_of([0, 3], 1.0, ahead=300, level=1)  # the 301st by popularity
    array([0., 1.])
    """
    # Cut at e^50, more than there are candidates, so that it stays finite.
    length = k * np.exp(np.minimum(np.asarray(common) * epsilon, 50.0))
    return np.asarray(np.clip((length - np.asarray(ahead)) / np.asarray(level), 0.0, 1.0))


def limit(split: HiddenEdges, members: Iterable[int], epsilon: float, k: int = 20) -> Vector:
    """Bound on the mean hits@k of epsilon-private lists, for each member.

    A hidden friend can only be found if it is among the first k e^(m epsilon) strangers by
    popularity, where m is its number of common friends with the member. Its edges to these do not
    count for popularity, and strangers with common friends are left out of the order. This assumes
    that popularity is the best guide besides common friends. Theorem: docs/theory/limits.md.
    """
    score, degrees = common_neighbours(split.left), split.left.in_degrees
    reached = []
    for member in members:
        counts = score(member)
        others = np.sort(degrees[strangers(split.left, member) & (counts == 0)])
        hidden = split.hidden.neighbours(member)
        common = counts[hidden]
        own = degrees[hidden] - common
        first, last = (np.searchsorted(others, own, side) for side in ("left", "right"))
        # A hidden friend without common friends is among `others` already.
        bound = limit_of(common, epsilon, len(others) - last, last - first + (common > 0), k)
        reached.append(min(float(bound.sum()) / min(k, len(hidden)), 1.0))
    return np.array(reached)


# -- the measurement ------------------------------------------------------------------------


def group_name(group: Group) -> str:
    """A degree group in words.

    >>> [group_name(group) for group in ALL_GROUPS][::2]
    ['under 5 friends', '20-50 friends', '200+ friends']
    """
    low, high = group
    if high is None:
        return f"{low}+ friends" if low else "all members"
    return f"{low}-{high} friends" if low else f"under {high} friends"


def group_of(degree: int) -> str:
    """The name of the group that a member with this many friends is in.

    >>> group_of(19), group_of(20)
    ('5-20 friends', '20-50 friends')
    """
    return next(group_name(group) for group in ALL_GROUPS if _in_group(np.asarray(degree), group))


def default_mechanisms(epsilons: Iterable[float], *, directed: bool = False) -> list[Mechanism]:
    """Lists at each epsilon."""
    return [Suggest(epsilon=epsilon, directed=directed) for epsilon in epsilons]


def measure_suggestions(
    dataset: str,
    graph: Graph,
    mechanisms: Iterable[Mechanism],
    *,
    k: int = 20,
    groups: Sequence[Group] = DEGREE_GROUPS,
    per_group: int = 150,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """hits@k of lists, by degree group; a tenth of the graph's edges is hidden.

    The first results are the sizes of the groups (`SIZE`); groups in which no member has a hidden
    friend are left out. For lists of mechanisms there are also the number of different people on
    them, the share of lists with the most suggested one (`ALIKE`), and the share of lists that are
    mostly popular names (`POPULAR`). `seed` determines the hidden edges, the members and the noise;
    `progress` is called with the number of lines done and of all lines.
    """
    split = hide_edges(graph, seed=seed)
    drawn = members_by_degree(split, groups=groups, per_group=per_group, seed=seed)
    by_group = {group: members for group, members in drawn.items() if len(members)}
    lines = list(_lines(split, mechanisms, k, seed))
    experiment = {"experiment": "suggestions", "dataset": dataset, "repeats": 1}
    results = group_sizes(graph.degrees, by_group, experiment)
    for done, (name, epsilon, measure) in enumerate(lines):
        progress(done, len(lines))
        line = {"mechanism": name, "epsilon": epsilon, **experiment}
        for group, members in by_group.items():
            measured = measure(members)
            metrics = measured if isinstance(measured, dict) else {f"hits@{k}": measured}
            cell = {**line, "scope": group_name(group), "n_sources": len(members)}
            results += [
                Result.of(estimate(values), metric=metric, **cell)
                for metric, values in metrics.items()
            ]
    progress(len(lines), len(lines))
    return results


def group_sizes(
    degrees: npt.NDArray[np.integer], groups: Iterable[Group], experiment: dict[str, Any]
) -> list[Result]:
    """How many nodes each degree group has."""
    line = {"mechanism": "graph", "epsilon": None, "metric": SIZE, "n_sources": len(degrees)}
    return [
        Result.of(
            float(np.count_nonzero(_in_group(degrees, group))),
            scope=group_name(group),
            **line,
            **experiment,
        )
        for group in groups
    ]


def _lines(
    split: HiddenEdges, mechanisms: Iterable[Mechanism], k: int, seed: int
) -> Iterator[tuple[str, float | None, Callable[[Members], Vector | Metrics]]]:
    """Name, epsilon, and a function that measures a group of members.

    First the scores without privacy, then every mechanism, followed by the limit at its epsilon.
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
) -> Metrics:
    """hits@k of private lists, how similar the lists are, and which are mostly popular."""
    ids = split.left.nodes.take(members.tolist())
    suggestions: Any = release(split.left, mechanism, ids, k=k, noise=noise)
    counts = np.unique(suggestions.lists.nodes, return_counts=True)[1]
    return {
        f"hits@{k}": hits_of_lists(split.hidden, members, suggestions.lists, k),
        "distinct people": np.array([len(counts)]),
        ALIKE: np.array([counts.max(initial=0) / len(members)]),
        POPULAR: np.array([suggestions.mostly_popular(member) for member in ids], dtype=np.float64),
    }
