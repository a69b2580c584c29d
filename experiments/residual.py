"""The appendix's study of the residual: how much flow the caps hold back, joint and public.

The total residual is 1 minus the sum of a row without noise. No epsilon: nothing is released.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.evaluation.contest import choose_sources
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.flow import push_flow_cap
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.graph.graph import Graph
from experiments.cells import Cells
from experiments.figures import BLUE, ORANGE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_KINDS: dict[str, dict[str, Any]] = {
    "public": {"model": "public", "prepush": False},
    "joint": {"model": "joint", "prepush": False},
    "joint with prepush": {"model": "joint", "prepush": True},
}


def settings(quick: bool) -> dict[str, Any]:
    """Quick: fewer sigmas and sources."""
    exponents = range(-9, 1, 2 if quick else 1)
    return {
        "sigmas": [10.0**e for e in exponents],
        "min_degree": 50,
        "sources": 16 if quick else 100,
        "rounds": 100,
        "restart": 0.15,
        "bound": "paper",
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every sigma and model, on the same sources."""
    results = []
    size = len(datasets) * len(_KINDS) * len(settings["sigmas"])
    with cells.progress(size, "residual"):
        for name, data in datasets.items():
            sources = choose_sources(
                data.graph,
                min_degree=settings["min_degree"],
                limit=settings["sources"],
                seed=settings["seed"],
            )
            for kind, options in _KINDS.items():
                for sigma in settings["sigmas"]:
                    flow = {name: settings[name] for name in ("rounds", "restart", "bound")}
                    compute = partial(_left, data.graph, sources, sigma=sigma, **options, **flow)
                    results.append(
                        Result.of(
                            estimate(cells.get(f"{name} / {kind} / {sigma:g}", compute)),
                            experiment="residual",
                            dataset=name,
                            mechanism=f"push-flow-cap without noise, {kind}, sigma={sigma:g}",
                            epsilon=None,
                            metric="residual mass",
                            scope="all",
                            n_sources=len(sources),
                            repeats=1,
                        )
                    )
    return results


def _left(graph: Graph, sources: list[int], **flow: Any) -> list[float]:
    return [float(v) for v in 1 - push_flow_cap(graph, sources, **flow).sum(axis=1)]


def draw(results: list[Result]) -> Figure:
    """Residual over sigma, a panel per data set."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    figure = Figure(figsize=(4.8 * len(datasets), 3.2))
    grid = figure.subplots(1, len(datasets), squeeze=False, sharey=True)[0]
    looks = dict(zip(_KINDS, ((VERMILION, "s"), (BLUE, "o"), (ORANGE, "^")), strict=True))
    for axes, dataset in zip(grid, datasets, strict=True):
        for kind, (colour, mark) in looks.items():
            line = [
                (float(r.mechanism.partition("sigma=")[2]), r.mean, r.low, r.high)
                for r in results
                if r.dataset == dataset and f", {kind}, " in r.mechanism
            ]
            x, mean, low, high = np.array(sorted(line)).T
            axes.plot(x, mean, color=colour, marker=mark, markersize=4, label=kind)
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xscale("log")
        axes.set_xlabel("sigma")
        axes.set_title(f"{dataset}: flow never pushed")
        axes.set_ylim(0, 1.02)
    grid[0].set_ylabel("residual mass")
    grid[0].legend(loc="lower left")
    figure.tight_layout()
    return figure
