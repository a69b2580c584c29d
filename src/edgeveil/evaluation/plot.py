"""The figure of an evaluation: accuracy against epsilon, one panel for each kind of accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgeveil.errors import EdgeveilError
from edgeveil.evaluation.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which most colour-blind people can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def load_matplotlib() -> Any:
    """The library, or a sentence on how to get it."""
    try:
        # In a notebook this also makes figures show themselves.
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise EdgeveilError(
            "figures need matplotlib: pip install 'edgeveil[plot]'; the numbers are in .rows() "
            "and .to_polars()"
        ) from error
    return plt


def draw(results: Sequence[Result], panels: Sequence[tuple[str, str]], title: str) -> Figure:
    """One panel for each (metric, scope), with 95 % intervals; dashed where there is no epsilon."""
    load_matplotlib()
    from matplotlib.figure import Figure

    names = dict.fromkeys(r.mechanism for r in results if (r.metric, r.scope) in panels)
    style = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    figure = Figure(figsize=(1.5 + 3.2 * len(panels), 3.6), layout="constrained")
    for axes, (metric, scope) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        for name, colour in style.items():
            found = [
                r for r in results if (r.mechanism, r.metric, r.scope) == (name, metric, scope)
            ]
            tried = sorted((r for r in found if _has_epsilon(r)), key=lambda r: r.epsilon or 0.0)
            for level in (r for r in found if not _has_epsilon(r)):
                axes.axhline(level.mean, color=colour, linestyle="--", linewidth=1, label=name)
            if tried:
                at = [r.epsilon for r in tried]
                axes.plot(at, [r.mean for r in tried], color=colour, marker="o", ms=4, label=name)
                low, high = [r.low for r in tried], [r.high for r in tried]
                axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(title=f"{metric}, {scope}", xlabel="epsilon", ylim=(0, 1.02))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    figure.suptitle(f"{title} (for the curator, not private)", fontsize="medium")
    return figure


def _has_epsilon(result: Result) -> bool:
    return bool(result.epsilon) and not math.isinf(result.epsilon or 0.0)
