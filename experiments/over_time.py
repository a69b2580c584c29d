"""A year of weekly lists from one budget: hidden friends found week by week, by how it is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.evaluation.hits import (
    Group,
    HiddenEdges,
    Members,
    Vector,
    group_name,
    hide_edges,
    hits_of_lists,
    members_by_degree,
)
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.evaluation.over_time import (
    BASE,
    BASE_ONLY,
    POPULARITY,
    SERIES,
    born_until,
    hits_of_popularity,
    hits_of_series,
    simulate_series,
)
from edgeveil.graph.datasets import LabelledGraph, social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms import Suggest
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.series import WindowRule
from experiments.cells import Cells
from experiments.figures import BLACK, BLUE, GREEN, GREY, LARGE, ORANGE, PINK, VERMILION, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ABOVE", "END", "FOUR", "GROWN", "WEEKLY", "YEAR", "draw", "measure", "settings"]

FirstSeen = npt.NDArray[np.uint16]

_GROUPS: tuple[Group, ...] = ((20, 50), (50, 200))
_WEEKS = 52  # week w is snapshot w + 1
_EVERY = 4  # weeks of which the mean is "the year"
_FALLING_DUE = (25, 26, 51, 52)  # before and with the windows that open after half a year
_GROWTH = 0.5  # of the edges of the first snapshot are added within the year
_ANYWAY = 0.05  # chance of an edge without a common friend to be born, against one with one
CIRCLES, GROWN = "generated circles", "generated, grown"
WEEKLY, FOUR, END = "53 lists", "4 lists", "one list at the end"
YEAR, ABOVE = "year", "above base only"


def settings(quick: bool) -> dict[str, Any]:
    """Four histories of each network; 150 members of each degree group in each."""
    return {
        "datasets": ["Amherst", "Reed", "company L1"],
        "circles": [5000, 40],
        "grown": [3000, 60],
        "epsilons": [1.0] if quick else [0.5, 1.0, 2.0],
        "k": 20,
        "per_group": 40 if quick else 150,
        "histories": 1 if quick else 4,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """One history after the other; a member's values of several histories are averaged."""
    names = settings["datasets"] or list(datasets)
    networks: dict[str, Callable[[int], Graph]] = {
        name: partial(_born_at_random, datasets[name].graph) for name in names
    }
    if settings["circles"]:
        networks[CIRCLES] = partial(_born_closing, *settings["circles"])
    if settings["grown"]:
        networks[GROWN] = partial(_grown, *settings["grown"])
    results: list[Result] = []
    for name, make in networks.items():
        histories = [
            cells.get(f"{name} {i}", partial(_measure_one, make, settings, settings["seed"] + i))
            for i in range(settings["histories"])
        ]
        results += _results(name, histories, settings["k"])
    return results


# -- histories ----------------------------------------------------------------------------


def _born_at_random(graph: Graph, seed: int) -> Graph:
    """The graph with first_seen: two thirds of its edges in week 0, the others in any week."""
    u, v = _edges(graph)
    return _with_first_seen(graph, u, v, _random_first_seen(len(u), seed))


def _random_first_seen(count: int, seed: int) -> FirstSeen:
    rng = np.random.default_rng([seed, count])
    early = rng.random(count) < 1 / (1 + _GROWTH)
    return np.where(early, 1, rng.integers(2, _WEEKS + 2, count)).astype(np.uint16)


def _born_closing(n: int, average_degree: float, seed: int) -> Graph:
    """Circles of friends; who has common friends is joined earlier than others.

    An edge's chance to be the next one is in proportion to 0.05 and its ends' common friends.
    """
    graph = social_network(n, average_degree=average_degree, seed=1).graph
    u, v = _edges(graph)
    first_seen, rng = _random_first_seen(len(u), seed), np.random.default_rng([seed, n])
    counts = np.bincount(first_seen, minlength=_WEEKS + 2)
    waiting = first_seen > 1
    for snapshot in range(2, _WEEKS + 2):
        there = Graph.from_edges(u[~waiting], v[~waiting], graph.nodes).adjacency()
        left = np.flatnonzero(waiting)
        common = there[u[left]].multiply(there[v[left]]).sum(axis=1)
        weights = _ANYWAY + np.asarray(common).ravel()
        chosen = rng.choice(left, counts[snapshot], replace=False, p=weights / weights.sum())
        first_seen[chosen], waiting[chosen] = snapshot, False
    return _with_first_seen(graph, u, v, first_seen)


def _grown(n: int, average_degree: float, seed: int) -> Graph:
    """A network that grows edge by edge: nine of ten edges close a triangle.

    Of the others most join two who live near each other, the rest anybody. Who begins an edge is
    drawn by weight, so that degrees differ. The last third is born week by week.
    """
    rng, count = np.random.default_rng([seed, n, 1]), round(n * average_degree / 2)
    weights = np.cumsum(np.minimum(rng.pareto(2.0, n) + 1, 15))
    friends: list[list[int]] = [[] for _ in range(n)]
    seen, edges = set[tuple[int, int]](), list[tuple[int, int]]()

    def anybody() -> int:
        return int(np.searchsorted(weights, rng.random() * weights[-1]))

    while len(edges) < count:
        node, kind = anybody(), rng.random()
        if kind < 0.9 and friends[node]:
            theirs = friends[friends[node][rng.integers(len(friends[node]))]]
            other = theirs[rng.integers(len(theirs))]
        elif kind < 0.97:
            other = (node + round(rng.normal(0, 30))) % n  # nodes live on a ring
        else:
            other = anybody()
        edge = min(node, other), max(node, other)
        if node != other and edge not in seen:
            seen.add(edge)
            edges.append(edge)
            friends[node].append(other)
            friends[other].append(node)
    u, v = np.array(edges).T
    first = count / (1 + _GROWTH)
    late = np.ceil(_WEEKS * (np.arange(count) - first) / (count - first))
    first_seen = (1 + np.maximum(late, 0)).astype(np.uint16)
    return _with_first_seen(Graph.from_edges(u, v, NodeSet.range(n)), u, v, first_seen)


def _edges(graph: Graph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every edge once."""
    u, v = np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.indices.astype(np.int64)
    return u[u < v], v[u < v]


def _with_first_seen(
    graph: Graph, u: npt.NDArray[np.int64], v: npt.NDArray[np.int64], first_seen: FirstSeen
) -> Graph:
    """The graph with when every edge (u, v) was first seen, at both of its entries."""
    order = np.lexsort((np.concatenate([v, u]), np.concatenate([u, v])))
    return replace(graph, first_seen=np.concatenate([first_seen, first_seen])[order])


# -- what is measured ----------------------------------------------------------------------


def _measured() -> list[int]:
    """The snapshots at which lists are looked at."""
    return sorted({week + 1 for week in (*range(0, _WEEKS + 1, _EVERY), *_FALLING_DUE)})


def _measure_one(make: Callable[[int], Graph], settings: dict[str, Any], seed: int) -> Any:
    """Of one history: who was asked, and for each line and snapshot everybody's hits."""
    split = hide_edges(make(seed), seed=seed)
    drawn = members_by_degree(split, groups=_GROUPS, per_group=settings["per_group"], seed=seed)
    members = np.concatenate(list(drawn.values()))
    lines = [
        {
            "mechanism": name,
            "epsilon": epsilon,
            "hits": {snapshot - 1: values.tolist() for snapshot, values in by_snapshot.items()},
            "windows": None if windows is None else windows.tolist(),
        }
        for name, epsilon, by_snapshot, windows in _lines(split, members, settings, seed)
    ]
    groups = {group_name(group): its.tolist() for group, its in drawn.items()}
    return {"groups": groups, "lines": lines}


Line = tuple[str, float | None, dict[int, Vector], npt.NDArray[np.int64] | None]


def _lines(
    split: HiddenEdges, members: Members, settings: dict[str, Any], seed: int
) -> Iterator[Line]:
    k, at = settings["k"], _measured()
    yield POPULARITY, None, hits_of_popularity(split, members, at, k), None
    for epsilon in settings["epsilons"]:
        noise = NoiseSource.insecure(seed).derive("over time", f"{epsilon:g}")
        # Every list of a split budget pays for its own degrees.
        weekly, quarters = [*range(1, _WEEKS + 2)], [1, 14, 27, 40]
        for name, begins in ((WEEKLY, weekly), (FOUR, quarters), (END, [_WEEKS + 1])):
            mechanism = Suggest(epsilon=epsilon / len(begins))
            key = noise.derive(name)
            yield name, epsilon, _split_hits(split, members, mechanism, begins, at, key, k), None
        for name, rule in ((BASE, BASE_ONLY), (SERIES, WindowRule.for_epsilon(epsilon))):
            # The same noise for both: the first window of most members is the same one.
            key = noise.derive(SERIES)
            series = simulate_series(split.left, members, epsilon, rule, at, key, k=k)
            yield name, epsilon, *hits_of_series(split, members, series, k)


def _split_hits(
    split: HiddenEdges,
    members: Members,
    mechanism: Suggest,
    begins: Sequence[int],
    at: Sequence[int],
    noise: NoiseSource,
    k: int,
) -> dict[int, Vector]:
    """Hits of lists that are made anew at some snapshots, and rid of new friends in between."""
    by_snapshot, drawn = {}, dict[int, Any]()
    for snapshot in at:
        begin = max((b for b in begins if b <= snapshot), default=None)
        if begin is None:
            continue
        if begin not in drawn:
            then, key = born_until(split.left, begin), noise.derive("list", begin)
            shared = shared_part(mechanism, then, key.derive("shared"))
            rows = rows_after(mechanism, then, shared, members.tolist(), key.derive("rows"))
            drawn[begin] = rows, shared
        rows, shared = drawn[begin]
        views = local_views(born_until(split.left, snapshot), members, "joint")
        lists = mechanism.lists(rows, shared, views, k)
        by_snapshot[snapshot] = hits_of_lists(split.hidden, members, lists, k)
    return by_snapshot


# -- results -------------------------------------------------------------------------------


def _results(dataset: str, histories: Sequence[Any], k: int) -> list[Result]:
    """Means over members by degree group: week by week, over the year, and above base only."""
    results = list[Result]()
    by_line: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for history in histories:
        for line in history["lines"]:
            by_line.setdefault((line["mechanism"], line["epsilon"]), []).append(line)
    for scope in histories[0]["groups"]:
        members, parts = _members(histories, scope)
        if not len(members):
            continue
        for (name, epsilon), lines in by_line.items():
            facts = {
                "experiment": "time",
                "dataset": dataset,
                "mechanism": name,
                "epsilon": epsilon,
                "scope": scope,
                "n_sources": len(np.unique(members)),
                "repeats": len(histories),
            }
            values = _by_metric(lines, parts, k)
            if name == SERIES:
                base = _by_metric(by_line[BASE, epsilon], parts, k)
                metrics = [f"hits@{k}, {when}" for when in (YEAR, "week 51", "week 52")]
                values |= {
                    f"{metric}, {ABOVE}": values[metric] - base[metric] for metric in metrics
                }
            results += [
                Result.of(estimate(_by_member(members, per_member)), metric=metric, **facts)
                for metric, per_member in values.items()
            ]
    return results


def _members(histories: Sequence[Any], scope: str) -> tuple[Members, list[slice]]:
    """The members of a group in all histories, and where they stand in each history's values."""
    members, parts = [], []
    for history in histories:
        before = 0
        for group, group_members in history["groups"].items():
            if group == scope:
                members += group_members
                parts.append(slice(before, before + len(group_members)))
            before += len(group_members)
    return np.array(members), parts


def _by_metric(
    lines: Sequence[dict[str, Any]], parts: Sequence[slice], k: int
) -> dict[str, Vector]:
    def joined(of_line: Callable[[dict[str, Any]], Any]) -> Vector:
        pieces = [of_line(line)[part] for line, part in zip(lines, parts, strict=True)]
        return np.concatenate([np.array(piece, dtype=np.float64) for piece in pieces])

    def at(week: str) -> Vector:
        return joined(lambda line: line["hits"][week])

    weeks = list(lines[0]["hits"])
    values = {f"hits@{k}, week {week}": at(week) for week in weeks}
    if len(weeks) > 1:
        regular = [f"hits@{k}, week {week}" for week in range(0, _WEEKS + 1, _EVERY)]
        values[f"hits@{k}, {YEAR}"] = np.mean([values[metric] for metric in regular], axis=0)
    if lines[0]["windows"] is not None:
        values["windows"] = joined(lambda line: line["windows"])
    return values


def _by_member(members: Members, values: Vector) -> Vector:
    """One value for each member: the mean over the histories in which it was asked."""
    which, where = np.unique(members, return_inverse=True)
    return np.bincount(where, values, minlength=len(which)) / np.bincount(where)


# -- the figure ----------------------------------------------------------------------------


def draw(results: list[Result]) -> Figure:
    """Left what each use of the budget finds; right the series against base only, by network."""
    from matplotlib.figure import Figure

    epsilon = 1.0
    here = [r for r in results if r.epsilon in (epsilon, None)]
    networks = list(dict.fromkeys(r.dataset for r in here))
    given = [name for name in networks if name not in (CIRCLES, GROWN)] or networks
    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    ends = []
    for name, (colour, width, words) in _STYLES.items():
        line = _course(here, name, given)
        if len(line) > 1:
            style = ":" if name == POPULARITY else "-"
            left.plot(*line.T, color=colour, linewidth=width, linestyle=style)
        else:
            left.plot(*line.T, color=colour, marker="*", markersize=11)
        ends.append((line[-1, 1], words, colour))
    left.set_title(f"Epsilon {epsilon:g} for a whole year\n({', '.join(given)})")
    left.set_ylabel("hidden friends found, %", fontsize=LARGE)
    left.set_ylim(0, 1.14 * max(y for y, _, _ in ends))  # room for the highest name
    ends_right = []
    for name, colour in zip(networks, (BLUE, GREEN, ORANGE, PINK, VERMILION), strict=False):
        line, base = (_course(here, which, [name]) for which in (SERIES, BASE))
        line[:, 1] -= base[:, 1]
        right.plot(*line.T, color=colour, linewidth=2)
        ends_right.append((line[-1, 1], name, colour))
    right.plot([0, _WEEKS], [0, 0], color=BLACK, linewidth=1)
    ends_right.append((0.0, "one list at\nthe start", BLACK))
    right.set_title("Series minus one list at the start\n(percentage points, by network)")
    right.yaxis.set_major_formatter(lambda y, _: f"{y:+.0f}" if y else "0")
    right.yaxis.get_major_locator().set_params(integer=True)
    for axes, names in ((left, ends), (right, ends_right)):
        axes.set_xlim(0, 108)  # room for the names of the lines
        axes.set_xticks(range(0, 53, 13))
        axes.set_xlabel("week", x=26 / 108, fontsize=LARGE)
        axes.tick_params(labelsize=LARGE)
        axes.grid(axis="x", visible=False)
        axes.title.set(horizontalalignment="left", x=0, fontsize=LARGE)
        _label(axes, names)
    return figure


_STYLES = {
    END: (BLACK, 0.0, "one list on\nthe last day"),
    SERIES: (BLUE, 3.0, "series"),
    BASE: (ORANGE, 2.2, "one list at\nthe start"),
    FOUR: (GREEN, 1.6, "split: 4 lists"),
    WEEKLY: (VERMILION, 1.6, "split: 53 lists"),
    POPULARITY: (GREY, 2.0, "popularity"),
}


def _course(
    results: Sequence[Result], mechanism: str, networks: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Week and percent of hidden friends found, the mean over networks and degree groups."""
    by_week: dict[int, list[float]] = {}
    for r in select(results, mechanism=mechanism):
        week = re.fullmatch(r"hits@\d+, week (\d+)", r.metric)
        if week and r.dataset in networks:
            by_week.setdefault(int(week[1]), []).append(r.mean)
    return np.array([(week, 100 * np.mean(means)) for week, means in sorted(by_week.items())])


def _label(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """The name of each line near its end, as close as they may stand without overlap."""
    ends = sorted(ends)
    places = np.array([y for y, _, _ in ends])
    low, high = axes.get_ylim()
    heights = np.array([0.08 * (high - low) * (1 + words.count("\n")) for _, words, _ in ends])
    room = (heights[:-1] + heights[1:]) / 2
    for _ in range(200):  # neighbours push each other apart
        short = np.maximum(0, room - np.diff(places)) / 2
        places[:-1] -= short
        places[1:] += short
    for y, (_, words, colour) in zip(places, ends, strict=True):
        axes.text(54, y, words, color=colour, va="center", fontsize=LARGE, fontweight="bold")
