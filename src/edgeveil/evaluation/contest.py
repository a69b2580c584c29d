"""The ranking protocol: how close a mechanism's rows come to exact PageRank.

Repeat r of a measurement is the release that
``edgeveil.release(graph, mechanism, sources, noise=noise.derive("repeat", r))`` would give.

Scopes (what is ranked):

all             every node, the source included, as in the paper
non-neighbours  neither the source nor its neighbours: what a recommender would show
lift            non-neighbours of degree >= 20, exact values divided by exact degrees: what is
                left when popularity is taken out. Scores are divided by degrees released at the
                mechanism's own epsilon: those of its release (the learnt `degrees`, those of the
                flipped graph), or, where it releases none, d + Laplace(2 / epsilon) beside it.
                The price of the latter, another epsilon, is not counted, so that a mechanism
                does not lose because it releases no degrees. True degrees where nothing is
                protected; none where epsilon is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.evaluation.hits import strangers
from edgeveil.evaluation.measurements import Estimate, Result, estimate
from edgeveil.evaluation.metrics import top_k_metrics
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import LocalViews, Mechanism, Rows, Statistics
from edgeveil.mechanisms.baselines import NonPrivate
from edgeveil.mechanisms.run import rows_after, shared_numbers, shared_part
from edgeveil.mechanisms.two_hop import DegreePrior
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import Exact

SCOPES = ("all", "non-neighbours", "lift")
_LIFT_DEGREE = 20
_BATCH = 20  # repeats scored together
_BLOCK = 64  # sources measured together

Scores = dict[tuple[str, str], npt.NDArray[np.float64]]
Vector = npt.NDArray[np.float64]
# OutputKind, for each of several releases, its rows and what all of its sources share.
Draw = Callable[[Graph, Any, Sequence[int], int, NoiseSource], Iterator[tuple[Rows, Any]]]


class RandomOrder(NonPrivate):
    """All scores equal. The metrics count ties at their expected value: a random order's."""

    name = "random"
    when_to_use = "to compare with"

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """Zeros."""
        yield Exact(np.zeros((len(views.sources), graph.n_nodes)))


def choose_sources(
    graph: Graph, *, min_degree: int = 50, limit: int | None = None, seed: int = 0
) -> list[int]:
    """Indices of the nodes of degree >= `min_degree`, in random order: the first `limit`.

    A larger choice begins with a smaller one of the same seed.
    """
    eligible = np.flatnonzero(graph.degrees >= min_degree)
    if not len(eligible):
        raise ParameterError("no node has the degree that a source needs; lower min_degree")
    return [int(v) for v in np.random.default_rng(seed).permutation(eligible)[:limit]]


def releases(
    graph: Graph, mechanism: Mechanism, sources: Sequence[int], repeats: int, noise: NoiseSource
) -> Iterator[tuple[Rows, Any]]:
    """Rows of each repeat, and what its sources share."""
    for repeat in range(repeats):
        stream = noise.derive("repeat", repeat)
        shared = shared_part(mechanism, graph, stream.derive("shared"))
        yield rows_after(mechanism, graph, shared, sources, stream.derive("rows")), shared


@dataclass(frozen=True)
class RankingScores:
    """One mechanism's metrics, by (metric, scope): an array (sources, repeats).

    `shared`: whether a repeat's noise was drawn once for all sources.
    """

    scores: Scores
    shared: bool

    def estimate(self, metric: str, scope: str) -> Estimate:
        """Mean and 95 % interval."""
        values = self.scores[metric, scope]
        return estimate(values.mean(axis=1), values.mean(axis=0), shared=self.shared)

    @classmethod
    def joined(cls, parts: Sequence[RankingScores]) -> RankingScores:
        """Put the blocks of sources of one measurement together."""
        keys, scores = parts[0].scores, [part.scores for part in parts]
        return cls({key: np.concatenate([s[key] for s in scores]) for key in keys}, parts[0].shared)


def measure_ranking(
    graph: Graph,
    mechanism: Mechanism,
    sources: Sequence[int],
    *,
    repeats: int,
    noise: NoiseSource,
    k: int = 100,
    exact: Rows | None = None,
    draw: Draw = releases,
) -> RankingScores:
    """Recall@k and NDCG@k of a mechanism in every scope, from independent releases.

    `exact` is the PageRank of the sources, if it is known already; `draw` makes the rows, where
    there is a faster way for this mechanism.
    """
    if mechanism.output != "scores":
        raise ParameterError("only a mechanism that gives scores has a ranking")
    if exact is None:
        exact = personalized_pagerank(graph, sources)
    metrics = (f"recall@{k}", f"ndcg@{k}")
    cells: Scores = {
        (metric, scope): np.empty((len(sources), repeats)) for metric in metrics for scope in SCOPES
    }
    shared, done = False, 0
    drawn = draw(graph, mechanism, sources, repeats, noise)
    # In batches: large enough for fast metrics, small enough for memory.
    while batch := list(islice(drawn, _BATCH)):
        shared = shared or any(common is not None for _, common in batch)
        degrees = [
            _released_degrees(graph, mechanism, common, noise.derive("degrees", done + i))
            for i, (_, common) in enumerate(batch)
        ]
        for i, (source, truth) in enumerate(zip(sources, exact, strict=True)):
            scores = np.stack([rows[i] for rows, _ in batch])
            for scope, top in _by_scope(graph, source, truth, scores, degrees, k).items():
                for metric, values in zip(metrics, top, strict=True):
                    cells[metric, scope][i, done : done + len(batch)] = values
        done += len(batch)
    return RankingScores(cells, shared)


def _released_degrees(
    graph: Graph, mechanism: Mechanism, shared: Any, noise: NoiseSource
) -> Vector | None:
    """Degrees to divide by: of the release, noised at its epsilon, or true if all is public."""
    epsilon = mechanism.guarantee(1).epsilon
    if math.isinf(epsilon):
        return graph.degrees.astype(np.float64)
    released = getattr(shared, "degrees", None)
    if released is not None:
        return np.asarray(released, np.float64)
    if epsilon == 0:
        return None
    (noised,) = shared_numbers(DegreePrior(epsilon=epsilon), graph, noise)
    return np.asarray(noised.values[0])


def _by_scope(
    graph: Graph, source: int, exact: Vector, scores: Rows, degrees: Sequence[Vector | None], k: int
) -> dict[str, tuple[Vector, Vector]]:
    """Recall and NDCG of several rows of one source; `degrees` are those released with each."""
    others = np.flatnonzero(strangers(graph, source))
    lift = others[graph.degrees[others] >= _LIFT_DEGREE]
    # Every candidate is known to have this degree: noise must not go below it.
    weights = [
        np.ones(len(lift)) if d is None else np.maximum(d[lift], _LIFT_DEGREE) for d in degrees
    ]
    lifted = scores[:, lift] / np.stack(weights)
    return {
        "all": top_k_metrics(exact, scores, k),
        "non-neighbours": top_k_metrics(exact[others], scores[:, others], k),
        "lift": top_k_metrics(exact[lift] / graph.degrees[lift], lifted, k),
    }


@dataclass(frozen=True)
class Contender:
    """One mechanism at one epsilon, under its name in tables and figures.

    At most `sources` are ranked for (None: all), each `repeats` times; `draw` makes the rows.
    """

    label: str
    mechanism: Mechanism
    epsilon: float
    sources: int | None
    repeats: int
    draw: Draw = releases

    @property
    def cell(self) -> str:
        """Its part of a cell's name."""
        return f"{self.label} {self.epsilon:g}"


def measure_contest(
    name: str,
    graph: Graph,
    contenders: Sequence[Contender],
    *,
    experiment: str = "ranking",
    k: int = 100,
    min_degree: int = 50,
    restart: float = 0.15,
    seed: int = 0,
    keep: Callable[[str, Callable[[], RankingScores]], RankingScores] = lambda cell, compute: (
        compute()
    ),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """Recall@k and NDCG@k of every contender in every scope, a block of sources at a time.

    Sources have at least `min_degree` neighbours; `seed` chooses them and the noise. `restart` is
    that of the exact PageRank. `keep` gives the value of a named cell, by computing it or from
    where it was kept; `progress` is called with the number of cells done and of all cells.
    """
    limits = [contender.sources for contender in contenders]
    most = None if None in limits else max(limit or 0 for limit in limits)
    everybody = choose_sources(graph, min_degree=min_degree, limit=most, seed=seed)
    chosen = {contender.cell: everybody[: contender.sources] for contender in contenders}
    total = sum(-(-len(sources) // _BLOCK) for sources in chosen.values())
    parts: dict[str, list[RankingScores]] = {contender.cell: [] for contender in contenders}
    progress(0, total)
    for start in range(0, len(everybody), _BLOCK):
        block = everybody[start : start + _BLOCK]
        exact = personalized_pagerank(graph, block, restart=restart)
        for contender in contenders:
            sources = chosen[contender.cell][start : start + _BLOCK]
            if not sources:
                continue
            compute = partial(
                measure_ranking,
                graph,
                contender.mechanism,
                sources,
                repeats=contender.repeats,
                noise=NoiseSource.insecure(seed).derive(name, contender.cell),
                k=k,
                exact=exact[: len(sources)],
                draw=contender.draw,
            )
            cell = f"{name} / {contender.cell} / {start}+{len(sources)}"
            parts[contender.cell].append(keep(cell, compute))
            progress(sum(map(len, parts.values())), total)
    return [
        Result.of(
            measured.estimate(metric, scope),
            experiment=experiment,
            dataset=name,
            mechanism=contender.label,
            epsilon=contender.epsilon,
            metric=metric,
            scope=scope,
            n_sources=len(chosen[contender.cell]),
            repeats=contender.repeats,
        )
        for contender in contenders
        for measured in [RankingScores.joined(parts[contender.cell])]
        for metric in (f"recall@{k}", f"ndcg@{k}")
        for scope in SCOPES
    ]
