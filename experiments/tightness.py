"""Appendix A: what one edge of a clique changes, against the bounds. No data, no noise.

A clique of D + 1 nodes (lazy alpha 1/2, as in the paper) loses an edge at the source, or one
elsewhere. The change of exact PageRank is measured by our solver and stands beside the paper's
closed form, with its errata corrected (docs/theory/errata.md, E1 and E2), and the bounds of
Theorem 3.2. The pair keeps the promise of minimum degree D - 1, which is what the bounds get.
The capped flow's change stands beside the sigma that it is capped to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.evaluation.measurements import Result
from edgeveil.flow import personalized_pagerank, push_flow_cap
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from experiments.cells import Cells
from experiments.figures import BLUE, GREY, ORANGE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edgeveil.graph.datasets import LabelledGraph

__all__ = ["draw", "measure", "settings"]

_ALPHA = 0.5  # of the lazy walk, as in the paper
_RESTART = 2 * _ALPHA / (1 + _ALPHA)
_PUBLIC, _JOINT = "L1 change, edge at the source", "L1 change, edge elsewhere"


def settings(quick: bool) -> dict[str, Any]:
    """Quick: smaller cliques."""
    return {
        "degrees": [3, 4, 8, 16, 32] if quick else [3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128],
        "sigma": 1e-3,
        "rounds": 100,
        "bound": "paper",
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Every clique, both edges."""
    results = []
    with cells.progress(len(settings["degrees"]), "tightness"):
        for degree in settings["degrees"]:
            changes = cells.get(f"clique {degree}", partial(_changes, degree, settings))
            results += [
                Result.of(
                    value,
                    experiment="tightness",
                    dataset=f"clique D={degree}",
                    mechanism=mechanism,
                    epsilon=None,
                    metric=metric,
                    scope="all",
                    n_sources=1,
                    repeats=1,
                    paper_value=paper,
                )
                for mechanism, metric, value, paper in changes
            ]
    return results


def _changes(degree: int, settings: dict[str, Any]) -> list[tuple[str, str, float, float | None]]:
    u, v = np.triu_indices(degree + 1, 1)
    clique = Graph.from_edges(u, v, NodeSet.range(degree + 1))
    exact = {_PUBLIC: _closed_form_at_source(degree), _JOINT: _closed_form_elsewhere(degree)}
    promise, sigma = degree - 1, settings["sigma"]
    bound = (1 - _ALPHA) / (_ALPHA * promise)
    bounds = {
        _PUBLIC: {"bound, as printed": 2 * bound, "bound, ours": bound},
        _JOINT: {"bound, as printed": 2 * bound / promise},
    }
    lines: list[tuple[str, str, float, float | None]] = []
    for metric, edge in ((_PUBLIC, (0, 1)), (_JOINT, (1, 2))):
        less = clique.with_edge_flipped(*edge)
        rows = [personalized_pagerank(g, [0], restart=_RESTART, tol=1e-12) for g in (clique, less)]
        change = float(np.abs(rows[0] - rows[1]).sum())
        lines.append(("exact PageRank", metric, change, exact[metric]))
        lines += [(name, metric, value, None) for name, value in bounds[metric].items()]
        flows = [
            push_flow_cap(
                graph,
                [0],
                sigma=sigma,
                model="public" if metric == _PUBLIC else "joint",
                restart=_RESTART,
                rounds=settings["rounds"],
                bound=settings["bound"],
            )
            for graph in (clique, less)
        ]
        moved = float(np.abs(flows[0] - flows[1]).sum())
        lines.append((f"push-flow-cap without noise, sigma={sigma:g}", metric, moved, None))
        lines.append((f"sigma={sigma:g}", metric, sigma, None))
    return lines


def _closed_form_at_source(d: int) -> float:
    """The L1 distance of p and p' of Appendix A."""
    source = abs((2 * d + 1) / (3 * d + 1) - (6 * d + 5) / (9 * d + 6))
    lost = abs(1 / (3 * d + 1) - 1 / (9 * d + 6))
    others = abs(1 / (3 * d + 1) - d / (3 * d**2 - d - 2))
    return source + lost + (d - 1) * others


def _closed_form_elsewhere(d: int) -> float:
    """The L1 distance of p and p'' of Appendix A."""
    below = 9 * d**3 - 7 * d - 2
    source = abs((2 * d + 1) / (3 * d + 1) - (6 * d**3 + d**2 - 5 * d) / below)
    ends = abs(1 / (3 * d + 1) - 1 / (3 * d + 2))
    others = abs(1 / (3 * d + 1) - (3 * d**2 - d) / below)
    return source + 2 * ends + (d - 2) * others


def draw(results: list[Result]) -> Figure:
    """Both changes against D, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6))
    degrees = sorted({int(r.dataset.partition("=")[2]) for r in results})
    ticks = [d for d in degrees if d & (d - 1) == 0 or d == degrees[0]]
    ticks = [t for t in ticks if t != 4 or 3 not in ticks]
    for axes, metric in zip(figure.subplots(1, 2), (_PUBLIC, _JOINT), strict=True):
        _panel(axes, [r for r in results if r.metric == metric])
        axes.set_title(metric)
        axes.set_xlabel("D (the clique has D + 1 nodes)")
        axes.set_xticks(ticks, [str(t) for t in ticks])
        axes.set_xticks([], minor=True)
        axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


def _panel(axes: Axes, results: list[Result]) -> None:
    styles = iter([(BLUE, "o-"), (VERMILION, "--"), (ORANGE, "-."), (GREY, ":")])
    mechanisms = list(dict.fromkeys(r.mechanism for r in results))
    for mechanism in mechanisms:
        if "sigma" in mechanism:
            continue
        line = [
            (int(r.dataset.partition("=")[2]), r.mean) for r in results if r.mechanism == mechanism
        ]
        x, y = np.array(line).T
        colour, style = next(styles)
        axes.loglog(x, y, style, color=colour, markersize=4, label=mechanism)
    paper = [
        (int(r.dataset.partition("=")[2]), r.paper_value)
        for r in results
        if r.paper_value is not None
    ]
    axes.loglog(
        *np.array(paper).T, "x", color="black", markersize=5, label="the paper's closed form"
    )
