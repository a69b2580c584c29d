"""Figure 1: Recall@100 and NDCG@100 of private rankings against epsilon.

The paper's setting: joint model, sigma = 1e-6, R = 100, restart 0.15, prepush, sources of
degree >= 50, 100 repeats. Beside it, always: exact PageRank, the source's own list (epsilon 0),
edge flipping, a random order; and what the paper's algorithm comes down to at this sigma: the
capped flow without noise, and the own list followed by exact degrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluate.baselines import CapWithoutNoise, OwnListWithDegrees, RandomOrder
from edgeveil.evaluate.figures import BLUE, GREEN, GREY, ORANGE, PINK, VERMILION
from edgeveil.evaluate.ranking import SCOPES, Measured, choose_sources, measure_ranking
from edgeveil.evaluate.results import Result
from edgeveil.evaluate.runs import Cells
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.mechanisms import DPPushFlowCap, EdgeFlipping, NonPrivate, OwnNeighbours
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_PRIVATE, _FLIPPING = "push-flow-cap", "edge flipping"
_BLOCK = 64  # sources in a cell


def settings(quick: bool) -> dict[str, Any]:
    """Full: all sources, 100 repeats; edge flipping on fewer, for its cost."""
    return {
        "epsilons": [1.0, 2.0, 5.0] if quick else [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0],
        "min_degree": 50,
        "k": 100,
        "sources": 40 if quick else None,
        "repeats": 5 if quick else 100,
        "flipping_sources": 20 if quick else 40,
        "flipping_repeats": 1 if quick else 2,
        "sigma": 1e-6,
        "rounds": 100,
        "restart": 0.15,
        "prepush": True,
        "bound": "paper",
        "seed": 0,
    }


@dataclass(frozen=True)
class _Contender:
    label: str
    mechanism: Mechanism
    epsilon: float
    sources: int | None
    repeats: int

    @property
    def cell(self) -> str:
        return f"{self.label} {self.epsilon:g}"


def _contenders(settings: dict[str, Any]) -> Iterator[_Contender]:
    flow = {name: settings[name] for name in ("sigma", "rounds", "restart", "prepush", "bound")}
    fixed: dict[str, Mechanism] = {
        "non-private": NonPrivate(restart=settings["restart"]),
        "own neighbours": OwnNeighbours(restart=settings["restart"]),
        "random": RandomOrder(),
        "push-flow-cap without noise (not private)": CapWithoutNoise(**flow),
        "own list + exact degrees (not private)": OwnListWithDegrees(),
    }
    for label, mechanism in fixed.items():
        epsilon = mechanism.guarantee(1).epsilon
        yield _Contender(label, mechanism, epsilon, settings["sources"], 1)
    for epsilon in settings["epsilons"]:
        private = DPPushFlowCap(epsilon=epsilon, **flow)
        yield _Contender(_PRIVATE, private, epsilon, settings["sources"], settings["repeats"])
    for epsilon in settings["epsilons"]:
        flipping = EdgeFlipping(epsilon=epsilon, restart=settings["restart"])
        few, repeats = settings["flipping_sources"], settings["flipping_repeats"]
        yield _Contender(_FLIPPING, flipping, epsilon, few, repeats)


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every contender on every data set, a block of sources at a time."""
    contenders = list(_contenders(settings))
    chosen = {
        (name, limit): choose_sources(
            data.graph, min_degree=settings["min_degree"], limit=limit, seed=settings["seed"]
        )
        for name, data in datasets.items()
        for limit in {c.sources for c in contenders}
    }
    work = [
        (name, contender, start)
        for name in datasets
        for start in range(0, max(len(s) for (d, _), s in chosen.items() if d == name), _BLOCK)
        for contender in contenders
        if start < len(chosen[name, contender.sources])
    ]
    work.sort(key=_by_cost)
    noise = NoiseSource.insecure(settings["seed"])
    parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    truth = _Truth()
    with cells.progress(len(work), "figure1"):
        for name, contender, start in work:
            sources = chosen[name, contender.sources][start : start + _BLOCK]
            compute = partial(
                _part,
                datasets[name].graph,
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
            experiment="figure1",
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


def _by_cost(work: tuple[str, _Contender, int]) -> float:
    """Edge flipping comes last, its cheap (large) epsilons first; all else stays in order."""
    _, contender, _ = work
    return 1 / contender.epsilon if contender.label == _FLIPPING else 0.0


def _part(
    graph: Graph,
    contender: _Contender,
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
        self._key: tuple[int, tuple[int, ...]] | None = None
        self._rows = np.empty((0, 0))

    def of(self, graph: Graph, sources: list[int], restart: float) -> Any:
        key = id(graph), tuple(sources)
        if key != self._key:
            self._rows = personalized_pagerank(graph, sources, restart=restart)
            self._key = key
        return self._rows


_LEVELS = {
    "push-flow-cap without noise (not private)": (PINK, ":"),
    "own list + exact degrees (not private)": (GREEN, "--"),
    "own neighbours": (ORANGE, "-."),
    "random": (GREY, ":"),
}


def draw(results: list[Result]) -> Figure:
    """Rows are data sets; the first two columns are the paper's panels."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    recall, ndcg = dict.fromkeys(r.metric for r in results)
    panels = [(recall, "all"), (ndcg, "all"), (recall, "non-neighbours"), (recall, "lift")]
    figure = Figure(figsize=(12, 2.9 * len(datasets)))
    grid = figure.subplots(len(datasets), len(panels), squeeze=False, sharex=True)
    for i, dataset in enumerate(datasets):
        for axes, (metric, scope) in zip(grid[i], panels, strict=True):
            here = [
                r for r in results if (r.dataset, r.metric, r.scope) == (dataset, metric, scope)
            ]
            _panel(axes, here)
            name = metric.replace("recall", "Recall").replace("ndcg", "NDCG")
            axes.set_title(f"{dataset}: {name}, {scope}")
            axes.set_ylim(0, 1.02)
            axes.set_xlim(left=0)
    for axes in grid[-1]:
        axes.set_xlabel("epsilon")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper center",
        ncol=3,
        bbox_to_anchor=(0.5, 0.0),
        title="Exact PageRank (non-private) is 1 in every panel. Shaded: 95 % intervals.",
    )
    figure.tight_layout()
    return figure


def _panel(axes: Axes, results: list[Result]) -> None:
    for label, colour, mark, name in (
        (_PRIVATE, BLUE, "o", "push-flow-cap, joint (the paper's)"),
        (_FLIPPING, VERMILION, "s", "edge flipping, joint"),
    ):
        line = sorted(
            (r.epsilon or 0.0, r.mean, r.low, r.high) for r in results if r.mechanism == label
        )
        x, mean, low, high = np.array(line).T
        axes.plot(x, mean, color=colour, marker=mark, markersize=4, label=name)
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    for label, (colour, style) in _LEVELS.items():
        level = next(r.mean for r in results if r.mechanism == label)
        axes.axhline(level, color=colour, linestyle=style, linewidth=1.5, label=label)
