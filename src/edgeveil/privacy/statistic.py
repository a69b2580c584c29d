"""What a mechanism asks of the graph, and the one step that makes it public.

A mechanism computes numbers of bounded sensitivity and hands them over as one of the classes
below; `randomise` adds the noise. Nothing else leaves a mechanism (`edgeveil.mechanisms.base`), so
the privacy of a release is the sum of what is said here, whatever the mechanism computes around
it. `without_noise` is the curator's view of the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import Calibration, NoiseRows, NoiseSource, add_laplace_to_rows
from edgeveil.privacy.randomised_response import flipped_places

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """Rows of numbers, each row with a proven sensitivity, before their Laplace noise.

    Attributes
    ----------
    values : array of shape (rows, width), C-contiguous, writeable
        Overwritten by `randomise` and then read-only: what a mechanism wrote there afterwards would
        be released without noise. What it still needs of it, it copies before.
    calibration : Calibration, or a tuple with one for each row
        The noise: it holds sensitivity, float error and epsilon of a row.
    spends : bool
        False for noise alone, which a mechanism adds before its last step: the values are then
        zeros, whatever they were, and nothing is learnt from them.
    """

    values: Rows
    calibration: Calibration | tuple[Calibration, ...]
    spends: bool = True

    @property
    def epsilon(self) -> Fraction:
        """What one row tells at most about an edge."""
        if not self.spends:
            return Fraction(0)
        given = self.calibration if isinstance(self.calibration, tuple) else (self.calibration,)
        return max((Fraction(c.epsilon) for c in given), default=Fraction(0))

    def of_rows(self) -> tuple[Calibration, ...]:
        """One calibration for each row."""
        given = self.calibration
        return given if isinstance(given, tuple) else (given,) * len(self.values)


@dataclass(frozen=True)
class Tail:
    """Long rows, mostly zero, of which only what reaches a threshold after the noise is released.

    Row i is a vector of `width` numbers: its `values` at its `places`, and 0 elsewhere. Every one
    of them gets Laplace noise. Released are the places whose noisy value is at least `at_least`,
    with that value, and nothing else: a function of the whole noisy vector, so it has its
    guarantee. It is drawn without drawing the vector (docs/theory/lazy-noise.md), and then time
    and memory depend on the number of places; `densely` draws all noise of all rows, in a time
    that does not. The threshold must not hang on the edges, but may on what was noised before.
    """

    places: npt.NDArray[np.integer]  # (starts[-1]) int32 or int64, rising within a row
    values: Rows  # (starts[-1]) rounded to the lattice as everywhere
    starts: npt.NDArray[np.int64]  # (rows + 1) row i is at starts[i] : starts[i + 1]
    width: int  # public
    calibration: Calibration  # for `width` coordinates
    at_least: float  # public
    densely: bool = False

    @property
    def epsilon(self) -> Fraction:
        """What one row tells at most about an edge."""
        return Fraction(self.calibration.epsilon)

    def same_question(self, other: Tail) -> bool:
        """Whether both differ in private numbers only."""
        mine, theirs = ((len(t.starts), t.width, t.calibration, t.at_least) for t in (self, other))
        return mine == theirs


@dataclass(frozen=True)
class Bits:
    """A long row of bits, of which an edge changes one, before randomised response."""

    ones: npt.NDArray[np.int64]  # their sorted places
    total: int  # number of bits (public)
    loss: float  # epsilon for one bit

    @property
    def epsilon(self) -> Fraction:
        """What all bits together tell at most about an edge."""
        return exact_epsilon(self.loss)


@dataclass(frozen=True)
class Exact:
    """Numbers that get no noise. Only for a guarantee that promises nothing."""

    values: Rows


AnyStatistic = Statistic | Tail | Bits | Exact


@dataclass(frozen=True)
class Noised:
    """What became public of a statistic: its values with noise; of `Bits` the places of the ones.

    `scale` is that of the Laplace noise on each value (of the first row, if rows differ); 0
    without noise.
    """

    values: npt.NDArray[Any]
    scale: float = 0.0

    def for_reading(self) -> Noised:
        """The same numbers, which cannot be written to from here."""
        views: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                views[field.name] = value = value.view()
                value.flags.writeable = False
        return replace(self, **views)


@dataclass(frozen=True, kw_only=True)
class NoisedTail(Noised):
    """What became public of a `Tail`: the noisy values that reach the threshold, and where."""

    places: npt.NDArray[np.int64]  # rising within a row
    starts: npt.NDArray[np.int64]  # (rows + 1) row i is at starts[i] : starts[i + 1]

    def of(self, i: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Places and values of row i."""
        its = slice(self.starts[i], self.starts[i + 1])
        return self.places[its], self.values[its]


def total_epsilon(statistics: Iterable[AnyStatistic]) -> Fraction:
    """What all of these together tell at most about an edge: the sum."""
    total = Fraction(0)
    for statistic in statistics:
        if isinstance(statistic, Exact):
            raise ParameterError("numbers without noise have no epsilon")
        total += statistic.epsilon
    return total


def randomise(
    statistic: AnyStatistic, noise: NoiseSource, names: Sequence[int] | npt.NDArray[Any] = (0,)
) -> Noised:
    """Add the noise: the only step from private numbers to public ones.

    Parameters
    ----------
    statistic : Statistic, Tail, Bits or Exact
        What to make public. The values of a `Statistic` are overwritten.
    noise : NoiseSource
        Used for nothing else: another statistic with the same rows would get the same noise.
    names : sequence of int
        A name for each row, which with `noise` decides what it gets. Not used for `Bits`.
    """
    if isinstance(statistic, Exact):
        return Noised(statistic.values)
    if isinstance(statistic, Bits):
        flips = flipped_places(statistic.total, statistic.loss, noise)
        return Noised(np.setxor1d(statistic.ones, flips, assume_unique=True))
    noises = noise.rows(names)
    if isinstance(statistic, Tail):
        return _randomise_tail(statistic, noises)
    rows, calibration = statistic.values, statistic.calibration
    if not statistic.spends:
        rows[:] = 0.0
    if isinstance(calibration, tuple):
        if len(calibration) != len(rows):
            raise ParameterError(f"{len(rows)} rows need as many calibrations")
        for i, of_row in enumerate(calibration):
            add_laplace_to_rows(rows[i : i + 1], of_row, noises[i : i + 1])
        return Noised(_taken(rows), calibration[0].noise_scale if calibration else 0.0)
    add_laplace_to_rows(rows, calibration, noises)
    return Noised(_taken(rows), calibration.noise_scale)


def _taken(values: Rows) -> Rows:
    """The same memory; whoever asked cannot write to it any more, nor to what it is a view of."""
    ours = values.view()
    theirs: Any = values
    while isinstance(theirs, np.ndarray):
        theirs.flags.writeable = False
        theirs = theirs.base
    return ours


def _randomise_tail(statistic: Tail, noises: NoiseRows) -> Noised:
    """What reaches the threshold of a tail after the noise."""
    from edgeveil.privacy import _tail  # imported here: it loads the compiler

    places, noisy, begins = _tail.draw_tail(
        (statistic.places, statistic.values, statistic.starts),
        statistic.width,
        statistic.calibration,
        statistic.at_least,
        noises,
        densely=statistic.densely or None,
    )
    scale = statistic.calibration.noise_scale
    return NoisedTail(values=noisy, scale=scale, places=places, starts=begins)


def without_noise(statistic: AnyStatistic) -> Noised:
    """The same numbers as they are. Not private: for the curator's comparisons."""
    if isinstance(statistic, Tail):
        kept = statistic.values >= statistic.at_least
        before = np.concatenate(([0], np.cumsum(kept)))
        return NoisedTail(
            values=statistic.values[kept],
            places=statistic.places[kept].astype(np.int64),
            starts=before[statistic.starts],
        )
    return Noised(statistic.ones if isinstance(statistic, Bits) else statistic.values)
