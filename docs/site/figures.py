"""Draw the pictures of the pages from committed results; ``./run docs --figures``.

Every picture names the file that it was drawn from and that file's SHA-256, so that a test can
tell when it is out of date.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["SOURCES", "digest", "draw_all"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"recall.svg": "results/beyond/results.csv"}
_BLUE, _GREEN, _ORANGE, _PURPLE, _GREY = "#2f5bd0", "#1a8a5a", "#d2691e", "#8a4fbf", "#777777"
_STYLE: Any = {
    "svg.hashsalt": "edgeveil",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}
Row = Mapping[str, str]


def digest(path: str) -> str:
    """SHA-256 of a file of the repository."""
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


def draw_all(folder: Path) -> None:
    """Draw every picture into `folder`."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE):
        _odds(folder / "odds.svg")
        _recall(folder / "recall.svg")


def _rows(name: str) -> list[Row]:
    with (ROOT / SOURCES[name]).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _save(figure: Any, path: Path) -> None:
    source = SOURCES.get(path.name)
    note = f"{source} sha256 {digest(source)}" if source else "arithmetic"
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None, "Source": note})


def _odds(path: Path) -> None:
    """What an attacker may come to believe about one edge, by epsilon and prior belief."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.6, 3.5))
    epsilons = [i / 50 for i in range(351)]
    for prior, colour, dash in ((0.5, _BLUE, "-"), (0.1, _GREEN, "--"), (0.01, _ORANGE, "-.")):
        beliefs = [_belief(prior, e) for e in epsilons]
        axes.plot(epsilons, beliefs, dash, color=colour, label=f"belief before: {prior:.0%}")
    for epsilon in (0.1, 1, 3):
        belief = _belief(0.5, epsilon)
        axes.plot([epsilon], [belief], "o", color=_BLUE)
        offset = (8, -13) if epsilon > 0.5 else (6, -14)
        axes.annotate(f"{belief:.1%}", (epsilon, belief), xytext=offset, textcoords="offset points")
    axes.set(
        xlabel="epsilon",
        ylabel="belief after, at most",
        ylim=(0, 1),
        xlim=(0, 7),
        title="What anyone can come to believe about one edge",
    )
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.02))
    _save(figure, path)
    plt.close(figure)


def _belief(prior: float, epsilon: float) -> float:
    """Bayes: the posterior if the evidence is as strong as epsilon allows."""
    return prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))


def _series(rows: list[Row], **wanted: str) -> tuple[list[float], list[float]]:
    """Epsilons and means of the rows that agree with `wanted`, by epsilon."""
    points = sorted(
        (float(row["epsilon"]), float(row["mean"]))
        for row in rows
        if all(row[key] == value for key, value in wanted.items())
    )
    return [e for e, _ in points], [m for _, m in points]


def _recall(path: Path) -> None:
    """Recall@100 against epsilon on both data sets, for three ways to ask."""
    from matplotlib import pyplot as plt

    rows = _rows(path.name)
    scopes = {
        "all": "all nodes",
        "non-neighbours": "non-neighbours",
        "lift": "beyond popularity (lift)",
    }
    lines = (
        ("two-hop", _BLUE, "o-", "TwoHop (default)"),
        ("degree-prior", _GREEN, "^--", "DegreePrior"),
        ("push-flow-cap (paper)", _ORANGE, "s-.", "DPPushFlowCap (paper)"),
        ("edge flipping", _PURPLE, "d-", "EdgeFlipping"),
    )
    figure, grid = plt.subplots(2, 3, figsize=(10, 5.6), sharex=True, sharey=True)
    for dataset, line in zip(("BlogCatalog", "POS"), grid, strict=True):
        for (scope, title), axes in zip(scopes.items(), line, strict=True):
            wanted = {"dataset": dataset, "metric": "recall@100", "scope": scope}
            for mechanism, colour, style, label in lines:
                axes.plot(
                    *_series(rows, mechanism=mechanism, **wanted),
                    style,
                    color=colour,
                    markersize=4,
                    label=label,
                )
            floor = _series(rows, mechanism="own neighbours", **wanted)[1]
            chance = _series(rows, mechanism="random", **wanted)[1]
            axes.axhline(floor[0], color=_GREY, label="own list (epsilon 0)")
            axes.axhline(chance[0], color=_GREY, linestyle=":", label="random")
            axes.set(xscale="log", ylim=(0, 1.02), title=f"{dataset}: {title}")
            axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    for axes in grid[-1]:
        axes.set_xlabel("epsilon")
    for axes in grid[:, 0]:
        axes.set_ylabel("Recall@100")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), ncol=3, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    _save(figure, path)
    plt.close(figure)
