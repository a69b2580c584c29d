"""Static figures through matplotlib (imported late): one look, colours for every kind of eye."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil.errors import EdgeveilError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "SKY",
    "VERMILION",
    "draw_to_files",
    "legend_below",
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
    # Text stays text and nothing depends on the day: small files that can be compared.
    "svg.fonttype": "none",
    "svg.hashsalt": "edgeveil",
}


def draw_to_files(stem: Path, draw: Callable[[], Figure]) -> None:
    """Draw a figure and write ``stem.svg`` and ``stem.png``.

    Raises
    ------
    EdgeveilError
        If matplotlib is not installed (``pip install 'edgeveil[evaluate]'``).
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise EdgeveilError("figures need matplotlib: pip install 'edgeveil[evaluate]'") from None
    with mpl.rc_context(_LOOK):  # type: ignore[arg-type]  # a Literal for every key
        figure = draw()
        figure.savefig(stem.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), bbox_inches="tight", dpi=130)


def legend_below(
    figure: Figure, panels: Iterable[Axes], *, columns: int, title: str | None = None
) -> None:
    """Finish a figure: one legend for all panels, each label once, under them."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="upper center",
        ncol=columns,
        bbox_to_anchor=(0.5, 0.0),
        title=title,
    )
    figure.tight_layout()
