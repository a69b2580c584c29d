"""A contest: several mechanisms over a range of epsilon on the same sources of one graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from edgeveil.evaluation.ranking import SCOPES, Measured, choose_sources, measure_ranking
from edgeveil.evaluation.results import Result
from edgeveil.evaluation.rows import Draw, repeated_rows
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.privacy.noise import NoiseSource

__all__ = ["Contender", "measure_contest"]

_BLOCK = 64  # sources measured together


@dataclass(frozen=True)
class Contender:
    """One mechanism at one epsilon.

    Attributes
    ----------
    label : str
        Its name in tables and figures.
    mechanism : Mechanism
        What is measured.
    epsilon : float
        Its privacy loss.
    sources : int or None
        How many sources at most; None for all.
    repeats : int
        Independent releases per source.
    cost : float
        Contenders with a higher one are measured later.
    draw : callable
        How its rows are made.
    """

    label: str
    mechanism: Mechanism
    epsilon: float
    sources: int | None
    repeats: int
    cost: float = 0.0
    draw: Draw = repeated_rows

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
    keep: Callable[[str, Callable[[], Any]], Any] = lambda cell, compute: compute(),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """Recall@k and NDCG@k of every contender in every scope, a block of sources at a time.

    Parameters
    ----------
    name, experiment : str
        The graph's name and the experiment's, in the results.
    graph : Graph
        The private graph.
    contenders : sequence of Contender
        Who takes part.
    k : int
        How many nodes count.
    min_degree : int
        Neighbours that a source must have.
    restart : float
        Of the exact PageRank that all are compared with.
    seed : int
        Chooses the sources and the noise.
    keep : callable
        Gives the value of a named cell, by computing it or from where it was kept.
    progress : callable
        Is told how many cells are done, of how many.
    """
    chosen = {
        limit: choose_sources(graph, min_degree=min_degree, limit=limit, seed=seed)
        for limit in {c.sources for c in contenders}
    }
    work = [
        (contender, chosen[contender.sources][start : start + _BLOCK], start)
        for start in range(0, max(map(len, chosen.values())), _BLOCK)
        for contender in contenders
        if start < len(chosen[contender.sources])
    ]
    work.sort(key=lambda item: item[0].cost)
    noise = NoiseSource.insecure(seed)
    truth = _Truth(graph, restart)
    parts: dict[str, list[dict[str, Any]]] = {}
    progress(0, len(work))
    for done, (contender, sources, start) in enumerate(work, 1):
        compute = partial(_part, contender, sources, k, truth, noise.derive(name, contender.cell))
        part = keep(f"{name} / {contender.cell} / {start}+{len(sources)}", compute)
        parts.setdefault(contender.cell, []).append(part)
        progress(done, len(work))
    return [
        Result.of(
            measured.estimate(metric, scope),
            experiment=experiment,
            dataset=name,
            mechanism=contender.label,
            epsilon=contender.epsilon,
            metric=metric,
            scope=scope,
            n_sources=len(chosen[contender.sources]),
            repeats=contender.repeats,
        )
        for contender in contenders
        for measured in [Measured.from_json(parts[contender.cell])]
        for metric in (f"recall@{k}", f"ndcg@{k}")
        for scope in SCOPES
    ]


def _part(
    contender: Contender, sources: list[int], k: int, truth: _Truth, noise: NoiseSource
) -> dict[str, Any]:
    """One contender on one block of sources."""
    return measure_ranking(
        truth.graph,
        contender.mechanism,
        sources,
        repeats=contender.repeats,
        noise=noise,
        k=k,
        exact=truth.of(sources),
        draw=contender.draw,
    ).as_json()


class _Truth:
    """Exact PageRank of the last block of sources: the next contender asks for the same."""

    def __init__(self, graph: Graph, restart: float) -> None:
        self.graph, self._restart = graph, restart
        self._asked: list[int] = []
        self._rows = np.empty((0, 0))

    def of(self, sources: list[int]) -> Any:
        if self._asked != sources:
            self._rows = personalized_pagerank(self.graph, sources, restart=self._restart)
            self._asked = list(sources)
        return self._rows
