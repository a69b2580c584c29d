"""Hits over time: what a series of lists finds, snapshot by snapshot.

A tenth of the edges is hidden from all snapshots of a history. Lists are made as `refresh` makes
them, by the same step (`series.windows`) and rule, but without a ledger and with seeded noise; at
some snapshots the hidden friends on them are counted. The series is compared with popularity by
true degrees, and with "base only": one list with all of epsilon at the first snapshot (for members
that join later, when they have their first friend), from which only new friends are removed. For
the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, Lists, Popularity
from edgeveil.evaluation.hits import (
    ALL_GROUPS,
    Group,
    HiddenEdges,
    Members,
    Vector,
    group_name,
    group_sizes,
    hide_edges,
    hits,
    hits_of_lists,
    members_by_degree,
    popularity,
    with_entries,
)
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.graph.graph import Graph
from edgeveil.jobs.tasks import Task
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.run import rows_after, shared_numbers
from edgeveil.privacy.noise import NoiseSource
from edgeveil.series.history import History
from edgeveil.series.rule import WindowRule
from edgeveil.series.state import Shard
from edgeveil.series.windows import Drawn, next_window, open_windows

_NEVER = 1 << 16  # more snapshots, and more friends at once, than any history has
BASE_ONLY = WindowRule(first=1, patience=1, least=_NEVER, latest=_NEVER)
POPULARITY, BASE, SERIES = "popularity", "base only", "series"


class Listed(NamedTuple):
    """The lists of some members at a snapshot, and how many windows each has had."""

    snapshot: int
    lists: Lists
    windows: npt.NDArray[np.int64]


def born_until(graph: Graph, snapshot: int) -> Graph:
    """The edges that were seen up to a snapshot."""
    assert graph.first_seen is not None
    return with_entries(graph, graph.first_seen <= snapshot)


def _in_both_directions(graph: Graph) -> Graph:
    """The graph in which edges that do not count for others are unknown in both rows."""
    if graph.directed or graph.first_seen is None:
        return graph
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    turned = graph.first_seen[np.lexsort((rows, graph.indices))]
    return replace(graph, first_seen=np.maximum(graph.first_seen, turned))


def simulate_series(
    graph: Graph,
    members: Members,
    epsilon: float,
    rule: WindowRule,
    snapshots: Sequence[int],
    noise: NoiseSource,
    *,
    k: int = 20,
    n_first: int | None = None,
    candidates: Candidates | None = None,
) -> Iterator[Listed]:
    """The lists of a series at some snapshots, as `edgeveil.refresh` would have made them.

    Parameters
    ----------
    graph : Graph
        All edges with `first_seen`. What is made at a snapshot does not see later ones.
    members : array of int
        Members to make lists for. A list does not depend on the other members.
    epsilon : float
        Of the series.
    rule : WindowRule
        When a member's next window opens.
    snapshots : sequence of int
        At which lists are wanted, rising.
    noise : NoiseSource
        Of this series alone.
    k : int
        Length of a list.
    n_first : int, optional
        Nodes of the first snapshot, whose degrees are released; by default all.
    candidates : Candidates, optional
        Who may be suggested.
    """
    mechanism = Suggest(epsilon=epsilon, directed=graph.directed)
    shared = _first_degrees(mechanism, graph, n_first, noise.derive("shared"))
    is_member = np.isin(np.arange(graph.n_nodes), members)
    state = replace(Shard.empty(0, graph.n_nodes), charged=is_member)

    def draw(task: Task, due: Members) -> Drawn:
        window: Any = task.mechanism
        key = noise.derive("window", window.until)
        rows = rows_after(window, task.graph, shared, due.tolist(), key)
        return [(due, rows)]

    for until in range(1, snapshots[-1] + 1):
        today = born_until(graph, until)
        window = next_window(mechanism, state.last, until)
        due = rule.due(today, state.last, until)
        task = Task(mechanism=window, graph=today, shared=shared)
        state = open_windows(state, due, task, draw)
        if until in snapshots:
            windows = state.windows[members].astype(np.int64)
            views = local_views(today, members, "joint", mechanism.guarantee(1).known_edges)
            evidence = state.evidence.take(members)
            listed = mechanism.lists(evidence, shared, views, k, candidates, windows=windows)
            yield Listed(until, listed, windows)


def _first_degrees(
    mechanism: Suggest, graph: Graph, n_first: int | None, noise: NoiseSource
) -> Popularity:
    """The degrees released at the first snapshot; nodes that join later get the floor."""
    (numbers,) = shared_numbers(mechanism, born_until(graph, 1), noise)
    present = np.arange(graph.n_nodes) < (graph.n_nodes if n_first is None else n_first)
    return lists.fit_popularity(np.where(present, numbers.values[0], 0.0), numbers.scale)


def hits_of_series(
    split: HiddenEdges,
    members: Members,
    series: Iterator[Listed],
    k: int = 20,
) -> tuple[dict[int, Vector], npt.NDArray[np.int64]]:
    """hits@k of the members at each snapshot, and how many windows each has had in the end."""
    by_snapshot, windows = {}, np.zeros(len(members), dtype=np.int64)
    for listed in series:
        by_snapshot[listed.snapshot] = hits_of_lists(split.hidden, members, listed.lists, k)
        windows = listed.windows
    return by_snapshot, windows


def hits_of_popularity(
    split: HiddenEdges, members: Members, snapshots: Sequence[int], k: int = 20
) -> dict[int, Vector]:
    """hits@k of the true degrees at each snapshot, the same list for everybody."""
    by_snapshot = {}
    for snapshot in snapshots:
        then = HiddenEdges(born_until(split.left, snapshot), split.hidden)
        by_snapshot[snapshot] = hits(then, members, popularity(then.left), k)
    return by_snapshot


def measure_history(
    dataset: str,
    history: History,
    epsilons: Sequence[float],
    *,
    k: int = 20,
    n_snapshots: int = 5,
    groups: Sequence[Group] = ALL_GROUPS,
    per_group: int = 150,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """hits@k at the last snapshots of a history, by degree group of the members in the end.

    A tenth of the edges of the latest snapshot is hidden from all snapshots. Candidates are the
    nodes of the latest one. Friendships that have ended count as they do in a series: as common
    friends, and former friends are not suggested. Those that ended before the history started
    anew do not count.
    """
    if len(history) < 2:
        raise ParameterError(
            f"hits over time need a history of at least 2 snapshots, this one has {len(history)}"
        )
    snapshots = range(max(1, len(history) - n_snapshots + 1), len(history) + 1)
    split = hide_edges(_in_both_directions(history.graph), seed=seed, among=history.current)
    drawn = members_by_degree(split, groups=groups, per_group=per_group, seed=seed)
    by_group = {group: members for group, members in drawn.items() if len(members)}
    if not by_group:
        raise ParameterError("the history has too few edges to hide a tenth of them")
    members = np.unique(np.concatenate(list(by_group.values())))
    rows = {group: np.searchsorted(members, drawn) for group, drawn in by_group.items()}
    experiment = {"experiment": "over time", "dataset": dataset, "repeats": 1}
    results = group_sizes(split.left.degrees + split.hidden.degrees, by_group, experiment)

    def add(name: str, epsilon: float | None, by_snapshot: dict[int, Vector]) -> None:
        for group, index in rows.items():
            line = {"mechanism": name, "epsilon": epsilon, "scope": group_name(group), **experiment}
            results.extend(
                Result.of(
                    estimate(values[index]),
                    metric=f"hits@{k}, snapshot {snapshot}",
                    n_sources=len(index),
                    **line,
                )
                for snapshot, values in by_snapshot.items()
            )

    progress(0, 1 + 2 * len(epsilons))
    add(POPULARITY, None, hits_of_popularity(split, members, snapshots, k))
    candidates = Candidates(np.flatnonzero(history.present))
    for i, epsilon in enumerate(epsilons):
        rules = {BASE: BASE_ONLY, SERIES: WindowRule.for_epsilon(epsilon)}
        for j, (name, rule) in enumerate(rules.items()):
            progress(1 + 2 * i + j, 1 + 2 * len(epsilons))
            noise = NoiseSource.insecure(seed).derive(name, f"{epsilon:g}")
            series = simulate_series(
                *(split.left, members, epsilon, rule, snapshots, noise),
                k=k,
                n_first=history.snapshots[0].n_nodes,
                candidates=candidates,
            )
            add(name, epsilon, hits_of_series(split, members, series, k)[0])
    progress(1 + 2 * len(epsilons), 1 + 2 * len(epsilons))
    return results
