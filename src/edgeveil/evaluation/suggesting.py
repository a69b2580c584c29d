"""The main job, measured: how many hidden friends private lists find, beside what can be found.

A tenth of the edges is hidden, lists are made on the graph that is left, and hits@k is taken by
degree of the members (`edgeveil.evaluation.hits`). Beside the private lists stand popularity, the
usual scores without privacy, and the limit of all private lists. For the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.evaluation import hits as measures
from edgeveil.evaluation.hits import HiddenEdges
from edgeveil.evaluation.results import Result, estimate
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_of
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.privacy.noise import NoiseSource

Members = npt.NDArray[np.int64]
Found = dict[str, npt.NDArray[Any]]  # of a metric: one value for each member, or one for all
# One line of the measurement: its name, its epsilon, and how to measure a group of members.
Line = tuple[str, float | None, Callable[[Members], Found]]

LIMIT = "limit"
ALIKE = "most suggested, share of lists"
_BASELINES = {
    "popularity": measures.popularity,
    "common neighbours": measures.common_neighbours,
    "resource allocation": measures.resource_allocation,
    "pagerank": measures.pagerank,
}


def group_name(group: tuple[int, int]) -> str:
    """A degree group in words."""
    return f"{group[0]}-{group[1]} friends"


def default_mechanisms(
    epsilons: Iterable[float], k: int, *, directed: bool = False
) -> list[Mechanism]:
    """Lists of k places at each epsilon."""
    return [Suggest(epsilon=epsilon, top=k, directed=directed) for epsilon in epsilons]


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
    split = measures.hide_edges(graph, seed=seed)
    drawn = measures.members_by_degree(split, per_group=per_group, seed=seed)
    groups = {group_name(group): members for group, members in drawn.items() if len(members)}
    lines = list(_lines(split, mechanisms, k, seed))
    results = []
    for done, (name, epsilon, measure) in enumerate(lines):
        progress(done, len(lines))
        results += [
            Result.of(
                estimate(found),
                experiment="suggestions",
                dataset=dataset,
                mechanism=name,
                epsilon=epsilon,
                metric=metric,
                scope=group,
                n_sources=len(members),
                repeats=1,
            )
            for group, members in groups.items()
            for metric, found in measure(members).items()
        ]
    progress(len(lines), len(lines))
    return results


def _lines(
    split: HiddenEdges, mechanisms: Iterable[Mechanism], k: int, seed: int
) -> Iterator[Line]:
    """What is no private release, then every mechanism, and what no list at its epsilon exceeds."""
    for name, make in _BASELINES.items():
        if not (split.left.directed and name == "pagerank"):  # not offered
            yield name, None, partial(_of_score, split, make(split.left), k)
    limits: set[float] = set()
    for mechanism in mechanisms:
        epsilon = mechanism.guarantee(1).epsilon
        noise = NoiseSource.insecure(seed).derive(mechanism.name, f"{epsilon:g}")
        yield mechanism.name, epsilon, partial(_of_lists, split, mechanism, noise, k)
        if epsilon not in limits:
            limits.add(epsilon)
            yield LIMIT, epsilon, partial(_of_limit, split, epsilon, k)


def _of_score(split: HiddenEdges, score: measures.Scorer, k: int, members: Members) -> Found:
    return {f"hits@{k}": measures.hits(split, members, score, k)}


def _of_limit(split: HiddenEdges, epsilon: float, k: int, members: Members) -> Found:
    return {f"hits@{k}": measures.limit(split, members, epsilon, k)}


def _of_lists(
    split: HiddenEdges, mechanism: Mechanism, noise: NoiseSource, k: int, members: Members
) -> Found:
    """Hits of private lists, and how alike the lists are."""
    rows = rows_of(mechanism, split.left, members.tolist(), noise)[:, :k, 0]
    found = []
    for member, row in zip(members, rows, strict=True):
        hidden = split.hidden.neighbours(int(member))
        found.append(float(np.isin(hidden, row).sum()) / min(k, len(hidden)))
    counts = np.unique(rows[~np.isnan(rows)], return_counts=True)[1]
    return {
        f"hits@{k}": np.array(found),
        "distinct people": np.array([len(counts)]),
        ALIKE: np.array([counts.max(initial=0) / len(rows)]),
    }
