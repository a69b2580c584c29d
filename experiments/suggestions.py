"""What privacy costs: hidden friends that lists of 20 find, against epsilon, on five networks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.hits import (
    DEGREE_GROUPS,
    LIMIT,
    default_mechanisms,
    group_name,
    measure_suggestions,
)
from edgeveil.evaluation.results import Result
from edgeveil.mechanisms import Suggest
from experiments.cells import Cells
from experiments.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    draw_panel,
    legend_below,
    select,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_CURVES = {
    Suggest.name: (GREEN, "o", "private lists (edgeveil)"),
    LIMIT: (BLACK, "", "limit of private lists that see edges only"),
}
_LEVELS = {
    "popularity": (GREY, ":"),
    "common neighbours": (BLUE, "--"),
    "resource allocation": (ORANGE, "--"),
    "pagerank": (SKY, "--"),
}
_SHOWN = DEGREE_GROUPS[1:]  # the smallest group stands in the table


def settings(quick: bool) -> dict[str, Any]:
    """A tenth of the edges hidden; 150 members of each degree group."""
    return {
        "epsilons": [0.5, 1.0, 2.0] if quick else [0.25, 0.5, 1.0, 2.0, 4.0],
        "k": 20,
        "per_group": 40 if quick else 150,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """One network after the other."""
    results: list[Result] = []
    for name, data in datasets.items():
        found = cells.get(name, partial(_measure_one, name, data, settings))
        results += [Result(**record) for record in found]
    return results


def _measure_one(name: str, data: LabelledGraph, settings: dict[str, Any]) -> list[dict[str, Any]]:
    mechanisms = default_mechanisms(settings["epsilons"], settings["k"])
    results = measure_suggestions(
        name,
        data.graph,
        mechanisms,
        k=settings["k"],
        per_group=settings["per_group"],
        seed=settings["seed"],
    )
    return [vars(result) for result in results]


def draw(results: list[Result]) -> Figure:
    """Columns are networks, rows degree groups."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    metric = next(r.metric for r in results if r.metric.startswith("hits"))
    figure = Figure(figsize=(2.7 * len(datasets), 5.2))
    grid = figure.subplots(len(_SHOWN), len(datasets), squeeze=False, sharex=True)
    for axes_of_group, group in zip(grid, _SHOWN, strict=True):
        for axes, dataset in zip(axes_of_group, datasets, strict=True):
            here = select(results, dataset=dataset, metric=metric, scope=group_name(group))
            if not here:
                axes.set_visible(False)
                continue
            draw_panel(axes, here, _CURVES, _LEVELS)
            shown = [r.high for r in here if r.mechanism != LIMIT]
            axes.set_ylim(0, 1.15 * max(shown))
            axes.set_title(f"{dataset}, {group_name(group)}")
            axes.set_xscale("log")
            ticks = sorted({r.epsilon for r in here if r.epsilon})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
    for axes in grid[-1]:
        axes.set_xlabel("epsilon")
    for axes in grid[:, 0]:
        axes.set_ylabel(metric)
    legend_below(
        figure,
        grid[0],
        columns=3,
        title="Hidden friends among 20 suggestions. Dashed: without privacy. Dotted: the same list "
        "for everybody. Shaded: 95 % intervals.",
    )
    return figure
