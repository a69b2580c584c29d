"""The main job, measured: how many hidden friends private lists find, beside what can be found.

A tenth of the edges is hidden, lists are made on the graph that is left, and hits@k is taken by
degree of the members (`edgeveil.evaluation.hits`). Beside the private lists stand popularity, the
usual scores without privacy, and the limit of all private lists. For the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.evaluation import hits as measures
from edgeveil.evaluation.hits import DEGREE_GROUPS, HiddenEdges, Hits
from edgeveil.evaluation.results import Result, estimate
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_of
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.privacy.noise import NoiseSource

__all__ = ["BASELINES", "LIMIT", "group_name", "measure_suggestions"]

Members = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

BASELINES = {
    "popularity": measures.popularity,
    "common neighbours": measures.common_neighbours,
    "resource allocation": measures.resource_allocation,
    "pagerank": measures.pagerank,
}
LIMIT = "limit"


class _Line(NamedTuple):
    """One row of the measurement: its name, its epsilon, and how to measure one group."""

    name: str
    epsilon: float | None
    measure: Callable[[Members], dict[str, Hits | float]]


def group_name(group: tuple[int, int]) -> str:
    """A degree group in words."""
    return f"{group[0]}-{group[1]} friends"


def measure_suggestions(
    dataset: str,
    graph: Graph,
    mechanisms: Iterable[Mechanism],
    *,
    k: int = 20,
    per_group: int = 150,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> list[Result]:
    """hits@k of lists, by degree group.

    Parameters
    ----------
    dataset : str
        The graph's name in the results.
    graph : Graph
        The graph; a tenth of its edges is hidden.
    mechanisms : iterable of Mechanism
        Those that give suggestions, each at its own epsilon; lists must have at least k places.
    k : int
        How many suggestions count.
    per_group : int
        Members of each degree group.
    seed : int
        Decides what is hidden, who is asked for, and the noise.
    progress : callable
        Is told how many lines are done, of how many.
    """
    split = measures.hide_edges(graph, seed=seed)
    groups = measures.members_by_degree(split, per_group=per_group, seed=seed)
    lines = [*_baselines(split, k), *_private(split, mechanisms, k, seed)]
    results = []
    for done, line in enumerate(lines):
        progress(done, len(lines))
        for group in DEGREE_GROUPS:
            members = groups[group]
            if len(members) == 0:
                continue
            for metric, found in line.measure(members).items():
                value = estimate(found.by_member) if isinstance(found, Hits) else found
                results.append(
                    Result.of(
                        value,
                        experiment="suggestions",
                        dataset=dataset,
                        mechanism=line.name,
                        epsilon=line.epsilon,
                        metric=metric,
                        scope=group_name(group),
                        n_sources=len(members),
                        repeats=1,
                    )
                )
    progress(len(lines), len(lines))
    return results


def _baselines(split: HiddenEdges, k: int) -> Iterator[_Line]:
    """What is no private release: the same list for everybody, and scores without privacy."""
    for name, make in BASELINES.items():
        if split.left.directed and name == "pagerank":
            continue  # not offered
        score = make(split.left)

        def measure(members: Members, score: measures.Scorer = score) -> dict[str, Hits | float]:
            return {f"hits@{k}": measures.hits(split, members, score, k)}

        yield _Line(name, None, measure)


def _private(
    split: HiddenEdges, mechanisms: Iterable[Mechanism], k: int, seed: int
) -> Iterator[_Line]:
    """Lists of every mechanism, and what no list at that epsilon can exceed."""
    limits: set[float] = set()
    for mechanism in mechanisms:
        epsilon = mechanism.guarantee(1).epsilon

        def lists(
            members: Members, mechanism: Mechanism = mechanism, epsilon: float = epsilon
        ) -> dict[str, Hits | float]:
            noise = NoiseSource.insecure(seed).derive(mechanism.name, f"{epsilon:g}")
            rows = rows_of(mechanism, split.left, members.tolist(), noise)[:, :k, 0]
            named = [row[~np.isnan(row)].astype(np.int64) for row in rows]
            alike = measures.concentration(named)
            return {
                f"hits@{k}": Hits.of(
                    np.array([_found(split, m, n, k) for m, n in zip(members, named, strict=True)])
                ),
                "distinct people": float(alike.distinct),
                "most suggested, share of lists": alike.most,
            }

        yield _Line(mechanism.name, epsilon, lists)
        if epsilon not in limits:
            limits.add(epsilon)

            def bound(members: Members, epsilon: float = epsilon) -> dict[str, Hits | float]:
                return {f"hits@{k}": measures.limit(split, members, epsilon, k)}

            yield _Line(LIMIT, epsilon, bound)


def _found(split: HiddenEdges, member: int, named: Members, k: int) -> float:
    hidden = split.hidden.neighbours(int(member))
    return float(np.isin(hidden, named).sum()) / min(k, len(hidden))


def default_mechanisms(
    epsilons: Iterable[float], k: int, *, directed: bool = False
) -> list[Mechanism]:
    """Lists of k places at each epsilon."""
    return [Suggest(epsilon=epsilon, top=k, directed=directed) for epsilon in epsilons]
