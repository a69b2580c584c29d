"""What a mechanism asks of the graph, and the one step that makes it public.

A mechanism computes numbers of bounded sensitivity and hands them over as one of the classes
below; `randomise` adds the noise. Nothing else leaves a mechanism (`edgeveil.mechanisms.base`), so
the privacy of a release is the sum of what is said here, whatever the mechanism computes around
it. `without_noise` is the curator's view of the same numbers, and `largest_loss` what one outcome
tells about which of two graphs they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.privacy.noise import (
    Calibration,
    NoiseSource,
    add_laplace_to_rows,
    to_lattice,
)
from edgeveil.privacy.randomised_response import flipped_places

__all__ = [
    "AnyStatistic",
    "Bits",
    "Exact",
    "Noised",
    "Statistic",
    "largest_loss",
    "randomise",
    "without_noise",
]

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """Rows of numbers, each row with a proven sensitivity, before their Laplace noise.

    Attributes
    ----------
    values : array of shape (rows, width), C-contiguous, writeable
        Overwritten by `randomise`. What a mechanism still needs of it, it copies before.
    calibration : Calibration, or a tuple with one for each row
        The noise: it holds sensitivity, float error and epsilon of a row.
    spends : bool
        False if the values are the same on every graph (noise that a mechanism adds before its
        last step): then nothing is learnt from them.
    """

    values: Rows
    calibration: Calibration | tuple[Calibration, ...]
    spends: bool = True

    @property
    def epsilon(self) -> Fraction:
        """What one row tells at most about an edge."""
        return (
            max((Fraction(c.epsilon) for c in self._of_rows()), default=Fraction(0)) * self.spends
        )

    def _of_rows(self) -> tuple[Calibration, ...]:
        given = self.calibration
        return given if isinstance(given, tuple) else (given,) * len(self.values)


@dataclass(frozen=True)
class Bits:
    """A long row of bits, of which an edge changes one, before randomised response.

    Attributes
    ----------
    ones : array of int64
        Sorted places of the ones.
    total : int
        Number of bits (public).
    loss : float
        Epsilon for one bit.
    """

    ones: npt.NDArray[np.int64]
    total: int
    loss: float

    @property
    def epsilon(self) -> Fraction:
        """What all bits together tell at most about an edge."""
        return Fraction(repr(float(self.loss)))


@dataclass(frozen=True)
class Exact:
    """Numbers that get no noise. Only for a guarantee that promises nothing."""

    values: Rows


AnyStatistic = Statistic | Bits | Exact


@dataclass(frozen=True)
class Noised:
    """What became public of a statistic.

    Attributes
    ----------
    values : array
        Of a `Statistic` its rows with noise; of `Bits` the sorted places of the ones.
    scale : float
        Scale of the Laplace noise on each value (of the first row, if rows differ); 0 without.
    """

    values: npt.NDArray[Any]
    scale: float = 0.0


def randomise(statistic: AnyStatistic, noises: Sequence[NoiseSource]) -> Noised:
    """Add the noise: the only step from private numbers to public ones.

    Parameters
    ----------
    statistic : Statistic, Bits or Exact
        What to make public. The values of a `Statistic` are overwritten.
    noises : sequence of NoiseSource
        One for each row, or a single one for `Bits`; none may be used for anything else.
    """
    if isinstance(statistic, Exact):
        return Noised(statistic.values)
    if isinstance(statistic, Bits):
        flips = flipped_places(statistic.total, statistic.loss, noises[0])
        return Noised(np.setxor1d(statistic.ones, flips, assume_unique=True))
    rows, calibration = statistic.values, statistic.calibration
    if isinstance(calibration, tuple):
        if len(calibration) != len(rows):
            raise ParameterError(f"{len(rows)} rows need as many calibrations")
        for i, of_row in enumerate(calibration):
            add_laplace_to_rows(rows[i : i + 1], of_row, noises[i : i + 1])
        return Noised(rows, calibration[0].noise_scale if calibration else 0.0)
    add_laplace_to_rows(rows, calibration, noises)
    return Noised(rows, calibration.noise_scale)


def without_noise(statistic: AnyStatistic) -> Noised:
    """The same numbers as they are. Not private: for the curator's comparisons."""
    return Noised(statistic.ones if isinstance(statistic, Bits) else statistic.values)


def largest_loss(first: AnyStatistic, second: AnyStatistic) -> tuple[float, Noised]:
    """The largest log-ratio of the probabilities of one outcome, and an outcome that attains it.

    Exact: values lie on a lattice and the law of their noise is known, so no sampling is needed.
    For discrete Laplace noise of scale t the outcome z has log-ratio sum (|z - y| - |z - x|) / t,
    at most the L1 distance of x and y in steps over t, with equality where z lies on the far side
    of x as seen from y in every coordinate; z = x does.

    Parameters
    ----------
    first, second : statistics of one kind and shape
        The same question asked of two graphs.

    Returns
    -------
    loss : float
        ``inf`` if the two can be told apart for certain: other noise, or none.
    outcome : Noised
        What the first graph may have given, with that loss.
    """
    if isinstance(first, Bits) and isinstance(second, Bits):
        apart = len(np.setxor1d(first.ones, second.ones, assume_unique=True))
        same = first.total == second.total and first.loss == second.loss
        return (float(apart * first.epsilon) if same else float("inf")), Noised(first.ones)
    if isinstance(first, Exact) and isinstance(second, Exact):
        same = np.array_equal(first.values, second.values)
        return (0.0 if same else float("inf")), Noised(first.values)
    if not isinstance(first, Statistic) or not isinstance(second, Statistic):
        return float("inf"), without_noise(first)
    calibrations = first._of_rows()
    if calibrations != second._of_rows() or first.values.shape != second.values.shape:
        return float("inf"), without_noise(first)
    loss, outcome = Fraction(0), np.empty_like(first.values)
    for i, calibration in enumerate(calibrations):
        x, y = (to_lattice(s.values[i], calibration) for s in (first, second))
        steps = sum(abs(int(a) - int(b)) for a, b in zip(x, y, strict=True) if a != b)
        loss += Fraction(steps, calibration.scale)
        outcome[i] = x * 2.0**calibration.step_log2
    return float(loss), Noised(outcome, calibrations[0].noise_scale if calibrations else 0.0)
