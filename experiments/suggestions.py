"""What privacy costs: hidden friends that lists of 20 find, against epsilon, on five networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.evaluation.hits import (
    ALL_GROUPS,
    DEGREE_GROUPS,
    default_mechanisms,
    group_name,
    measure_suggestions,
)
from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.mechanisms import Suggest
from experiments.cells import Cells
from experiments.figures import BLACK, BLUE, GREEN, GREY, LARGE, ORANGE, select

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "in_percent", "measure", "settings"]

_HUBS = "BlogCatalog"  # hubs are everybody's friends there: a panel of its own
_STYLES = {
    group_name(group): style
    for group, style in zip(DEGREE_GROUPS, ((ORANGE, "s"), (BLUE, "^"), (GREEN, "o")), strict=True)
}
_WHOLE = "common neighbours"


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
        records = cells.get(name, partial(_measure_one, name, data, settings))
        results += [Result(**record) for record in records]
    return results


def _measure_one(name: str, data: LabelledGraph, settings: dict[str, Any]) -> list[dict[str, Any]]:
    results = measure_suggestions(
        name,
        data.graph,
        default_mechanisms(settings["epsilons"]),
        k=settings["k"],
        groups=ALL_GROUPS,
        per_group=settings["per_group"],
        seed=settings["seed"],
    )
    return [vars(result) for result in results]


def draw(results: list[Result]) -> Figure:
    """What lists find, in percent of what common friends find without privacy."""
    from matplotlib.figure import Figure

    metric = next(r.metric for r in results if r.metric.startswith("hits"))
    hits = [r for r in results if r.metric == metric]
    names = list(dict.fromkeys(r.dataset for r in hits))
    friends, hubs = [name for name in names if name != _HUBS], [_HUBS] * (_HUBS in names)
    panels = [
        (f"Friends have common friends\n({', '.join(friends)})", friends),
        (f"Hubs are everybody's friends\n({_HUBS})", hubs),
    ]
    panels = [(title, networks) for title, networks in panels if networks]
    figure = Figure(figsize=(4.3 * len(panels), 3.8), layout="constrained")
    row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, networks) in zip(row, panels, strict=True):
        _draw_networks(axes, hits, networks)
        axes.set_title(title, loc="left", fontsize=LARGE)
        axes.set_xlabel("epsilon (smaller is more private)", fontsize=LARGE, x=0.38)
        axes.tick_params(labelsize=LARGE)
    row[0].set_ylabel("hidden friends found\n(without privacy: 100)", fontsize=LARGE)
    return figure


def _draw_networks(axes: Axes, hits: Sequence[Result], networks: Sequence[str]) -> None:
    """One line per degree group, the mean of the networks; thin ones for each network."""
    epsilons = sorted({r.epsilon for r in hits if r.epsilon})
    first, last = epsilons[0], epsilons[-1]
    ends, popular = [(100.0, "without privacy", BLACK)], []
    for scope, (colour, mark) in _STYLES.items():
        lines = in_percent(hits, networks, scope, epsilons)
        if len(lines) > 1:
            axes.plot(epsilons, lines[:, :-1].T, color=colour, linewidth=0.7, alpha=0.35)
        if len(lines) > 0:
            *mean, level = lines.mean(axis=0)
            axes.plot(epsilons, mean, color=colour, marker=mark, markersize=4.5, linewidth=2.2)
            ends.append((mean[-1], scope, colour))
            popular.append(level)
    ends.append((float(np.mean(popular)), "popularity", GREY))
    axes.plot([first, last], [100, 100], color=BLACK, linewidth=1)
    axes.plot([first, last], [ends[-1][0]] * 2, color=GREY, linestyle=":", linewidth=2)
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlim(first * 0.9, last * 5.6)  # room for the names of the lines
    axes.set_ylim(0, 140)
    axes.grid(axis="x", visible=False)
    _label(axes, ends, last * 1.13)


def in_percent(
    hits: Sequence[Result], networks: Sequence[str], scope: str, epsilons: Sequence[float]
) -> npt.NDArray[np.float64]:
    """What lists at each epsilon and then popularity find, in percent of common neighbours.

    One line for each network with such members.
    """
    shares = []
    for network in networks:
        here = {
            (r.mechanism, r.epsilon): r.mean for r in select(hits, dataset=network, scope=scope)
        }
        if whole := here.get((_WHOLE, None)):
            means = [here[Suggest.name, e] for e in epsilons] + [here["popularity", None]]
            shares.append(100 * np.array(means) / whole)
    return np.array(shares)


def _label(axes: Axes, ends: Sequence[tuple[float, str, str]], x: float) -> None:
    """The name of each line near its end, as close as they may stand without overlap."""
    ends = sorted(ends)
    places = np.array([y for y, _, _ in ends])
    for _ in range(100):  # neighbours push each other apart
        short = np.maximum(0, 11 - np.diff(places)) / 2
        places[:-1] -= short
        places[1:] += short
    for y, (_, name, colour) in zip(places, ends, strict=True):
        axes.text(x, y, name, color=colour, va="center", fontsize=LARGE, fontweight="bold")
