"""The appendix's study of sigma: how accuracy depends on the sensitivity and on epsilon.

Three metrics over all nodes: L1 similarity 1 - |p - p^|_1 (it is negative where the noise is
larger than the result), Recall@100 and Spearman's rank correlation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from edgeveil.evaluation.contest import choose_sources
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.evaluation.metrics import top_k_metrics
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import DPPushFlowCap
from edgeveil.mechanisms.base import Rows
from edgeveil.privacy.noise import NoiseSource
from experiments.baselines import PAPER_FLOW
from experiments.cells import Cells
from experiments.rows import repeated_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_METRICS = ("L1 similarity", "recall@100", "spearman")


def settings(quick: bool) -> dict[str, Any]:
    """Quick: fewer sigmas, sources and repeats."""
    return {
        "sigmas": [1e-8, 1e-6, 1e-4, 1e-2]
        if quick
        else [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "epsilons": [0.1, 1.0, 5.0] if quick else [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0],
        "min_degree": 50,
        "sources": 20 if quick else 60,
        "repeats": 2 if quick else 5,
        **PAPER_FLOW,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every pair of sigma and epsilon, on the same sources."""
    results = []
    flow = {name: settings[name] for name in PAPER_FLOW}
    noise = NoiseSource.insecure(settings["seed"])
    pairs = [(s, e) for s in settings["sigmas"] for e in settings["epsilons"]]
    with cells.progress(len(pairs) * len(datasets), "sigma"):
        for name, data in datasets.items():
            graph = data.graph
            sources = choose_sources(
                graph,
                min_degree=settings["min_degree"],
                limit=settings["sources"],
                seed=settings["seed"],
            )
            exact = personalized_pagerank(graph, sources, restart=settings["restart"])
            for sigma, epsilon in pairs:
                mechanism = DPPushFlowCap(epsilon=epsilon, sigma=sigma, **flow)
                cell = f"{name} / {sigma:g} / {epsilon:g}"
                means = cells.get(
                    cell,
                    partial(
                        _means,
                        graph,
                        mechanism,
                        sources,
                        exact,
                        settings["repeats"],
                        noise.derive(cell),
                    ),
                )
                results += [
                    Result.of(
                        estimate(means[metric]),
                        experiment="sigma",
                        dataset=name,
                        mechanism=f"push-flow-cap sigma={sigma:g}",
                        epsilon=epsilon,
                        metric=metric,
                        scope="all",
                        n_sources=len(sources),
                        repeats=settings["repeats"],
                    )
                    for metric in _METRICS
                ]
    return results


def _means(
    graph: Graph,
    mechanism: DPPushFlowCap,
    sources: Sequence[int],
    exact: Rows,
    repeats: int,
    noise: NoiseSource,
) -> dict[str, list[float]]:
    """Mean over repeats, per source and metric."""
    total = {metric: np.zeros(len(sources)) for metric in _METRICS}
    for rows, _ in repeated_rows(graph, mechanism, sources, repeats, noise):
        for i, (truth, row) in enumerate(zip(exact, rows, strict=True)):
            total["L1 similarity"][i] += 1 - np.abs(row - truth).sum()
            total["recall@100"][i] += top_k_metrics(truth, row, 100)[0][0]
            total["spearman"][i] += float(spearmanr(truth, row).statistic)
    return {metric: (sums / repeats).tolist() for metric, sums in total.items()}


def _power(sigma: str) -> str:
    return f"$10^{{{round(math.log10(float(sigma)))}}}$"


def draw(results: list[Result]) -> Figure:
    """Heat maps as in the paper; L1 similarity is shown from 0."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    mechanisms = list(dict.fromkeys(r.mechanism for r in results))
    epsilons = sorted({r.epsilon or 0.0 for r in results})
    at = {(r.dataset, r.metric, r.epsilon, r.mechanism): r.mean for r in results}
    figure = Figure(figsize=(12, 0.9 + 0.36 * len(epsilons) * len(datasets) + 0.7 * len(datasets)))
    grid = figure.subplots(len(datasets), len(_METRICS), squeeze=False)
    for line, dataset in zip(grid, datasets, strict=True):
        for axes, metric in zip(line, _METRICS, strict=True):
            values = np.array([[at[dataset, metric, e, m] for m in mechanisms] for e in epsilons])
            shown = np.clip(values, 0, 1)
            axes.imshow(shown, vmin=0, vmax=1, cmap="cividis", aspect="auto", origin="lower")
            axes.grid(visible=False)
            for (i, j), value in np.ndenumerate(shown):
                text = f"{value:.2f}" if values[i, j] >= 0 else "< 0"
                colour = "black" if value > 0.6 else "white"
                axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=7)
            axes.set_xticks(
                range(len(mechanisms)), [_power(m.partition("=")[2]) for m in mechanisms]
            )
            axes.set_yticks(range(len(epsilons)), [f"{e:g}" for e in epsilons])
            axes.set_title(f"{dataset}: {metric[0].upper()}{metric[1:]}")
    for axes in grid[-1]:
        axes.set_xlabel("sigma")
    for line in grid:
        line[0].set_ylabel("epsilon")
    figure.tight_layout()
    return figure
