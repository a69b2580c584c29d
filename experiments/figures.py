"""Static figures through matplotlib (imported late): one look, colours for every kind of eye."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.evaluation.measurements import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "LARGE",
    "ORANGE",
    "PINK",
    "SKY",
    "VERMILION",
    "draw_panel",
    "draw_to_file",
    "legend_below",
    "log_epsilons",
    "select",
]

# Okabe and Ito's palette: told apart with every common colour vision deficiency.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#777777"

_LOOK: dict[str, Any] = {
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.facecolor": "white",
    "font.size": 9,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "savefig.facecolor": "white",
}


LARGE = 12  # size of text that is read on a phone, where a figure is as wide as the screen


def draw_to_file(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a figure and write it to a PNG file."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):  # type: ignore[arg-type]  # a Literal for every key
        # Nothing in the file depends on the day or the version: it can be compared.
        draw().savefig(path, bbox_inches="tight", dpi=130, metadata={"Software": None})


def legend_below(
    figure: Figure, panels: Iterable[Axes], *, columns: int, title: str | None = None
) -> None:
    """Finish a figure: one legend for all panels, each label once, under them."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="upper center",
        ncol=columns,
        bbox_to_anchor=(0.5, 0.0),
        title=title,
    )
    figure.tight_layout()


def draw_panel(
    axes: Axes,
    results: Sequence[Result],
    curves: Mapping[str, tuple[str, str, str]],
    levels: Mapping[str, tuple[str, str]],
) -> None:
    """Mechanisms against epsilon (colour, mark, name), then those without one (colour, style).

    Shaded: 95 % intervals. Crosses in a curve's colour: what the paper prints for it. Curves with
    the same printed values (the paper does not say which of them it means) get them once.
    """
    printed: list[list[float]] = []
    for mechanism, (colour, mark, name) in curves.items():
        line = sorted(
            (r.epsilon or 0.0, r.mean, r.low, r.high, r.paper_value or np.nan)
            for r in results
            if r.mechanism == mechanism
        )
        if not line:
            continue
        x, mean, low, high, paper = np.array(line).T
        axes.plot(x, mean, color=colour, marker=mark, markersize=4, label=name)
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        if not np.isnan(paper).all() and paper.tolist() not in printed:
            printed.append(paper.tolist())
            words = f"printed in the paper: {name.partition(',')[0]}"
            axes.plot(x, paper, "x", color=colour, markersize=6, label=words)
    for mechanism, (colour, style) in levels.items():
        level = next(r.mean for r in results if r.mechanism == mechanism)
        axes.axhline(level, color=colour, linestyle=style, linewidth=1.5, label=mechanism)


def log_epsilons(axes: Axes) -> None:
    """A logarithmic axis of epsilons, labelled 0.1, 1, 10."""
    axes.set_xscale("log")
    axes.set_xlabel("epsilon")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")


def select(results: Sequence[Result], **wanted: object) -> list[Result]:
    """The results with these attributes."""
    return [r for r in results if all(getattr(r, k) == v for k, v in wanted.items())]
