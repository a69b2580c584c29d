"""One measured number with its interval: what every protocol of the evaluation gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from edgeveil.errors import ParameterError

_LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(
    by_source: npt.ArrayLike, by_repeat: npt.ArrayLike = (), *, shared: bool = False
) -> Estimate:
    """Mean over sources and repeats, with an interval that knows what was drawn together.

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
    """Variance of the mean, and its degrees of freedom; 0 where one value says nothing of it."""
    if len(values) < 2:
        return 0.0, 0
    return float(values.var(ddof=1)) / len(values), len(values) - 1


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number of an experiment. None of them is private: the curator's analysis.

    Attributes
    ----------
    experiment, dataset, mechanism : str
        What was measured.
    epsilon : float or None
        Privacy loss; ``inf`` without protection, None where it has no meaning.
    metric, scope : str
        The number's name, and over what it was taken; see `edgeveil.evaluation.ranking`.
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
        if not isinstance(value, Estimate):
            value = Estimate(value, value, value)
        return cls(mean=value.mean, low=value.low, high=value.high, **rest)
