"""Figure 1: Recall@100 and NDCG@100 of private rankings against epsilon.

The paper's setting: joint model, sigma = 1e-6, R = 100, restart 0.15, prepush, sources of
degree >= 50, 100 repeats. Beside it, always: exact PageRank, the source's own list (epsilon 0),
edge flipping, a random order; and what the paper's algorithm comes down to at this sigma: the
capped flow without noise, and the own list followed by exact degrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from edgeveil.evaluation.contest import Contender, RandomOrder
from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.mechanisms import DPPushFlowCap, EdgeFlipping, NonPrivate, OwnNeighbours
from edgeveil.mechanisms.base import Mechanism
from experiments.baselines import PAPER_FLOW, CapWithoutNoise, OwnListWithDegrees
from experiments.cells import Cells
from experiments.contests import measure_contests
from experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    VERMILION,
    draw_panel,
    legend_below,
    select,
)
from experiments.flipped_walk import flipped_rows
from experiments.rows import repeated_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_PRIVATE, _FLIPPING = "push-flow-cap", "edge flipping"


def settings(quick: bool) -> dict[str, Any]:
    """Full: all sources, 100 repeats; edge flipping on fewer, for its cost."""
    return {
        "epsilons": [1.0, 2.0, 5.0] if quick else [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0],
        "min_degree": 50,
        "k": 100,
        "sources": 40 if quick else None,
        "repeats": 5 if quick else 100,
        "flipping_sources": 20 if quick else 256,
        "flipping_repeats": 1 if quick else 2,
        "sigma": 1e-6,
        **PAPER_FLOW,
        "seed": 0,
    }


def _contenders(settings: dict[str, Any]) -> Iterator[Contender]:
    flow = {name: settings[name] for name in ("sigma", *PAPER_FLOW)}
    fixed: dict[str, Mechanism] = {
        "non-private": NonPrivate(restart=settings["restart"]),
        "own neighbours": OwnNeighbours(restart=settings["restart"]),
        "random": RandomOrder(),
        "push-flow-cap without noise (not private)": CapWithoutNoise(**flow),
        "own list + exact degrees (not private)": OwnListWithDegrees(),
    }
    for label, mechanism in fixed.items():
        epsilon = 0.0 if label == "random" else mechanism.guarantee(1).epsilon  # it sees nothing
        yield Contender(label, mechanism, epsilon, settings["sources"], 1)
    for epsilon in settings["epsilons"]:
        private = DPPushFlowCap(epsilon=epsilon, **flow)
        many, repeats = settings["sources"], settings["repeats"]
        yield Contender(_PRIVATE, private, epsilon, many, repeats, repeated_rows)
    for epsilon in settings["epsilons"]:
        flipping = EdgeFlipping(epsilon=epsilon, restart=settings["restart"])
        few, repeats = settings["flipping_sources"], settings["flipping_repeats"]
        yield Contender(_FLIPPING, flipping, epsilon, few, repeats, flipped_rows)


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every contender on every data set."""
    return measure_contests("figure1", list(_contenders(settings)), datasets, settings, cells)


_CURVES = {
    _PRIVATE: (BLUE, "o", "push-flow-cap, joint (the paper's)"),
    _FLIPPING: (VERMILION, "s", "edge flipping, joint"),
}
_LEVELS = {
    "push-flow-cap without noise (not private)": (PINK, ":"),
    "own list + exact degrees (not private)": (GREEN, "--"),
    "own neighbours": (ORANGE, "-."),
    "random": (GREY, ":"),
}


_SCOPES = {"all": "all nodes", "non-neighbours": "non-neighbours", "lift": "lift"}


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
            here = select(results, dataset=dataset, metric=metric, scope=scope)
            draw_panel(axes, here, _CURVES, _LEVELS)
            name = metric.replace("recall", "Recall").replace("ndcg", "NDCG")
            axes.set_title(f"{dataset}: {_SCOPES[scope]}")
            axes.set_ylabel(name)
            axes.set_ylim(0, 1.02)
            axes.set_xlim(left=0)
    for axes in grid[-1]:
        axes.set_xlabel("epsilon")
    legend_below(
        figure,
        grid[0],
        columns=3,
        title="Exact PageRank (not private) is 1 in every panel. Shaded: 95 % intervals.",
    )
    return figure
