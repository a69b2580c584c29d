"""A contest: several mechanisms over a range of epsilon on the same sources, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.ranking import SCOPES, Measured, choose_sources, measure_ranking
from edgeveil.evaluation.results import Result
from edgeveil.evaluation.runs import Cells
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Contender", "draw_curve", "draw_level", "measure_contest"]

_BLOCK = 64  # sources in a cell


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
    """

    label: str
    mechanism: Mechanism
    epsilon: float
    sources: int | None
    repeats: int
    cost: float = 0.0

    @property
    def cell(self) -> str:
        """Its part of a cell's name."""
        return f"{self.label} {self.epsilon:g}"


def measure_contest(
    experiment: str,
    contenders: Sequence[Contender],
    datasets: Mapping[str, LabelledGraph | Graph],
    settings: dict[str, Any],
    cells: Cells,
) -> list[Result]:
    """Every contender on every data set, a block of sources at a time.

    Parameters
    ----------
    experiment : str
        Its name in the results.
    contenders : sequence of Contender
        Who takes part.
    datasets : mapping
        Graphs by name, labelled or not.
    settings : dict
        ``min_degree``, ``seed``, ``k`` and ``restart`` are used.
    cells : Cells
        Keeps what is finished.
    """
    graphs = {
        name: data if isinstance(data, Graph) else data.graph for name, data in datasets.items()
    }
    chosen = {
        (name, limit): choose_sources(
            graph, min_degree=settings["min_degree"], limit=limit, seed=settings["seed"]
        )
        for name, graph in graphs.items()
        for limit in {c.sources for c in contenders}
    }
    work = [
        (name, contender, start)
        for name in datasets
        for start in range(0, max(len(s) for (d, _), s in chosen.items() if d == name), _BLOCK)
        for contender in contenders
        if start < len(chosen[name, contender.sources])
    ]
    work.sort(key=lambda item: item[1].cost)
    noise = NoiseSource.insecure(settings["seed"])
    parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    truth = _Truth()
    with cells.progress(len(work), experiment):
        for name, contender, start in work:
            sources = chosen[name, contender.sources][start : start + _BLOCK]
            compute = partial(
                _part,
                graphs[name],
                contender,
                sources,
                settings,
                truth,
                noise.derive(name, contender.cell),
            )
            part = cells.get(f"{name} / {contender.cell} / {start}+{len(sources)}", compute)
            parts.setdefault((name, contender.cell), []).append(part)
    return [
        Result.of(
            measured.estimate(metric, scope),
            experiment=experiment,
            dataset=name,
            mechanism=contender.label,
            epsilon=contender.epsilon,
            metric=metric,
            scope=scope,
            n_sources=len(chosen[name, contender.sources]),
            repeats=contender.repeats,
        )
        for name in datasets
        for contender in contenders
        for measured in [Measured.from_json(parts[name, contender.cell])]
        for metric in (f"recall@{settings['k']}", f"ndcg@{settings['k']}")
        for scope in SCOPES
    ]


def _part(
    graph: Graph,
    contender: Contender,
    sources: list[int],
    settings: dict[str, Any],
    truth: _Truth,
    noise: NoiseSource,
) -> dict[str, Any]:
    """One contender on one block of sources."""
    return measure_ranking(
        graph,
        contender.mechanism,
        sources,
        repeats=contender.repeats,
        noise=noise,
        k=settings["k"],
        exact=truth.of(graph, sources, settings["restart"]),
    ).as_json()


class _Truth:
    """Exact PageRank of the last block of sources: the next contender asks for the same."""

    def __init__(self) -> None:
        self._asked: tuple[Graph, list[int]] | None = None
        self._rows = np.empty((0, 0))

    def of(self, graph: Graph, sources: list[int], restart: float) -> Any:
        if self._asked is None or self._asked[0] is not graph or self._asked[1] != sources:
            self._rows = personalized_pagerank(graph, sources, restart=restart)
            self._asked = graph, list(sources)
        return self._rows


def draw_curve(
    axes: Axes, results: Sequence[Result], mechanism: str, colour: str, mark: str, name: str
) -> None:
    """One mechanism against epsilon, with its 95 % interval."""
    line = sorted(
        (r.epsilon or 0.0, r.mean, r.low, r.high) for r in results if r.mechanism == mechanism
    )
    if not line:
        return
    x, mean, low, high = np.array(line).T
    axes.plot(x, mean, color=colour, marker=mark, markersize=4, label=name)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def draw_level(
    axes: Axes, results: Sequence[Result], mechanism: str, colour: str, style: str
) -> None:
    """A mechanism without an epsilon to vary."""
    level = next(r.mean for r in results if r.mechanism == mechanism)
    axes.axhline(level, color=colour, linestyle=style, linewidth=1.5, label=mechanism)
