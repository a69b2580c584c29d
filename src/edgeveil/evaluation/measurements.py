"""One measured number with its interval, what every protocol gives; and a figure of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from edgeveil.errors import EdgeveilError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVEL = 0.95
_ACROSS = 3  # panels in a row of the figure
# Okabe and Ito's colours, which most colour-blind people can tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


class Estimate(NamedTuple):
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(
    by_source: npt.ArrayLike, by_repeat: npt.ArrayLike = (), *, shared: bool = False
) -> Estimate:
    """Mean over sources and repeats, with a 95 % interval.

    All repeats of one source share that source's difficulty, so the source is the unit: the
    interval is that of the mean of the source means (Student's t). Where a repeat's noise is
    also `shared` by all sources (edge flipping), the variance of the repeat means is added, with
    Satterthwaite's degrees of freedom for the sum; that counts the noise of single rows twice,
    which errs on the wide side.
    """
    sources = np.asarray(by_source, dtype=np.float64)
    if sources.ndim != 1 or len(sources) == 0:
        raise ParameterError("an estimate needs at least one source")
    mean = float(sources.mean())
    parts = [_of_mean(sources)]
    if shared:
        parts.append(_of_mean(np.asarray(by_repeat, dtype=np.float64)))
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return Estimate(mean, mean, mean)
    free = variance**2 / sum(part**2 / degrees for part, degrees in parts if part > 0)
    half = float(stdtrit(free, (1 + _LEVEL) / 2)) * math.sqrt(variance)
    return Estimate(mean, mean - half, mean + half)


def _of_mean(values: npt.NDArray[np.float64]) -> tuple[float, int]:
    """Variance of the mean, and its degrees of freedom; 0 and 0 for a single value."""
    if len(values) < 2:
        return 0.0, 0
    return float(values.var(ddof=1)) / len(values), len(values) - 1


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number of an experiment, from the exact graph: for the curator only.

    Attributes
    ----------
    experiment, dataset, mechanism : str
        What was measured.
    epsilon : float or None
        Privacy loss; ``inf`` without protection, None where it has no meaning.
    metric, scope : str
        The number's name, and over what it was taken; see `edgeveil.evaluation.contest`.
    mean, low, high : float
        The number and its 95 % interval.
    n_sources, repeats : int
        How many sources (or nodes) and how many independent repeats.
    paper_value : float or None
        What the paper says, where it says a number.
    """

    experiment: str
    dataset: str
    mechanism: str
    epsilon: float | None
    metric: str
    scope: str
    mean: float
    low: float
    high: float
    n_sources: int
    repeats: int
    paper_value: float | None = None

    @classmethod
    def of(cls, value: Estimate | float, **rest: Any) -> Result:
        """Fill mean, low and high from an estimate, or from a number that has no spread."""
        spread = value if isinstance(value, Estimate) else Estimate(value, value, value)
        return cls(**spread._asdict(), **rest)


def load_matplotlib() -> Any:
    """Import matplotlib, or say how to install it."""
    try:
        # In a notebook this also makes figures show themselves.
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise EdgeveilError(
            "figures need matplotlib: pip install 'edgeveil[plot]'; the numbers are in .rows() "
            "and .to_polars()"
        ) from error
    return plt


def draw_panels(results: Sequence[Result], panels: Sequence[tuple[str, str]], title: str) -> Figure:
    """One panel for each (metric, scope), with 95 % intervals; dashed where there is no epsilon."""
    load_matplotlib()
    from matplotlib.figure import Figure

    names = dict.fromkeys(r.mechanism for r in results if (r.metric, r.scope) in panels)
    style = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // _ACROSS)
    figure = Figure(figsize=(1.5 + 3.2 * across, 0.6 + 3 * down), layout="constrained")
    places = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in places[len(panels) :]:
        axes.remove()
    for axes, (metric, scope) in zip(places, panels, strict=False):
        rows = [r for r in results if (r.metric, r.scope) == (metric, scope)]
        for name, colour in style.items():
            tried = []
            for r in sorted((r for r in rows if r.mechanism == name), key=lambda r: r.epsilon or 0):
                if r.epsilon and not math.isinf(r.epsilon):
                    tried.append(r)
                else:
                    axes.axhline(r.mean, color=colour, linestyle="--", linewidth=1, label=name)
            if tried:
                at = [r.epsilon for r in tried]
                axes.plot(at, [r.mean for r in tried], color=colour, marker="o", ms=4, label=name)
                low, high = [r.low for r in tried], [r.high for r in tried]
                axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(title=f"{metric}, {scope}", xlabel="epsilon", ylim=(0, 1.02))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    figure.suptitle(f"{title} (for the curator only, not private)", fontsize="medium")
    return figure
