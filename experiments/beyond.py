"""Beyond the paper: our mechanisms and the paper's on the same sources, at the same epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from edgeveil.evaluation.contest import Contender, RandomOrder
from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.mechanisms import (
    DegreePrior,
    DPPushFlowCap,
    EdgeFlipping,
    Mechanism,
    NonPrivate,
    OwnNeighbours,
    TwoHop,
)
from experiments.cells import Cells
from experiments.contests import measure_contests
from experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    draw_panel,
    legend_below,
    log_epsilons,
    select,
)
from experiments.flipped_walk import flipped_rows
from experiments.forward_cap import DPForwardCap
from experiments.graph_diffusion import GraphDiffusion
from experiments.rows import repeated_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_CURVES = {
    "two-hop": (GREEN, "o", "two-hop (recommended)"),
    "degree-prior": (ORANGE, "^", "degree prior"),
    "forward-cap": (SKY, "v", "forward cap, tight constant, fixed point"),
    "push-flow-cap (paper)": (BLUE, "D", "push-flow-cap (the paper's)"),
    "graph-diffusion": (PINK, "P", "graph diffusion (Wei et al. 2024, our guarantee)"),
    "edge flipping": (VERMILION, "s", "edge flipping"),
}
_LEVELS = {"own neighbours": (GREY, "-."), "random": (GREY, ":")}


def settings(quick: bool) -> dict[str, Any]:
    """Joint model; the paper's parameters for the paper's mechanism, defaults for the others."""
    return {
        "epsilons": [0.1, 1.0, 5.0] if quick else [0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 3.0, 5.0, 10.0],
        "min_degree": 50,
        "k": 100,
        "sources": 40 if quick else 200,
        "repeats": 2 if quick else 10,
        "slow_sources": 8 if quick else 40,
        "slow_repeats": 1,
        "sigma": 1e-6,
        "restart": 0.15,
        "seed": 0,
    }


def _contenders(settings: dict[str, Any]) -> Iterator[Contender]:
    restart, sigma = settings["restart"], settings["sigma"]
    many, repeats = settings["sources"], settings["repeats"]
    few, once = settings["slow_sources"], settings["slow_repeats"]
    levels: dict[str, Mechanism] = {
        "non-private": NonPrivate(restart=restart),
        "own neighbours": OwnNeighbours(restart=restart),
        "random": RandomOrder(),
    }
    for label, fixed in levels.items():
        needed = 0.0 if label == "random" else fixed.guarantee(1).epsilon  # it sees nothing
        yield Contender(label, fixed, needed, many, 1)
    for epsilon in settings["epsilons"]:
        fast: dict[str, Mechanism] = {
            "two-hop": TwoHop(epsilon=epsilon, restart=restart),
            "degree-prior": DegreePrior(epsilon=epsilon, restart=restart),
            "forward-cap": DPForwardCap(epsilon=epsilon, sigma=sigma, restart=restart),
            "push-flow-cap (paper)": DPPushFlowCap.paper(epsilon, sigma=sigma, restart=restart),
        }
        slow: dict[str, Mechanism] = {
            "graph-diffusion": GraphDiffusion(epsilon=epsilon, restart=restart),
            "edge flipping": EdgeFlipping(epsilon=epsilon, restart=restart),
        }
        for label, mechanism in fast.items():
            yield Contender(label, mechanism, epsilon, many, repeats, repeated_rows)
        for label, mechanism in slow.items():
            draw = flipped_rows if label == "edge flipping" else repeated_rows
            yield Contender(label, mechanism, epsilon, few, once, draw)


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every contender on every data set."""
    return measure_contests("beyond", list(_contenders(settings)), datasets, settings, cells)


def draw(results: list[Result]) -> Figure:
    """Rows are data sets, columns what is ranked."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    recall = next(r.metric for r in results if r.metric.startswith("recall"))
    scopes = {
        "all": "all nodes",
        "non-neighbours": "non-neighbours",
        "lift": "beyond popularity (lift)",
    }
    figure = Figure(figsize=(11, 3.1 * len(datasets)))
    grid = figure.subplots(len(datasets), len(scopes), squeeze=False, sharex=True)
    for i, dataset in enumerate(datasets):
        for axes, (scope, words) in zip(grid[i], scopes.items(), strict=True):
            here = select(results, dataset=dataset, metric=recall, scope=scope)
            draw_panel(axes, here, _CURVES, _LEVELS)
            axes.set_title(f"{dataset}: {words}")
            axes.set_ylim(0, 1.02)
            log_epsilons(axes)
            axes.label_outer()
        grid[i][0].set_ylabel(recall.replace("recall", "Recall"))
    legend_below(
        figure,
        grid[0],
        columns=3,
        title="Exact PageRank (not private) is 1 in every panel. Shaded: 95 % intervals.",
    )
    return figure
