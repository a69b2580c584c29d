"""Statistics of the graph, and the one step that makes them public.

A mechanism computes numbers of bounded sensitivity and returns them as one of the classes below;
`randomise` adds the noise. Nothing else leaves a mechanism (`edgeveil.mechanisms.base`), so the
epsilon of a release is the sum of the epsilons here, whatever else the mechanism computes.
`without_noise` gives the same numbers to the curator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import (
    Calibration,
    NoiseRows,
    NoiseSource,
    add_laplace_to_rows,
    check_rows,
    to_lattice,
)
from edgeveil.privacy.randomised_response import flipped_positions

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """Rows of numbers, each row with a proven sensitivity, before their Laplace noise.

    Attributes
    ----------
    values : array of shape (rows, width), C-contiguous, writeable
        Overwritten by `randomise` and then read-only: anything written there later would be
        released without noise. A mechanism that needs the exact values later copies them before.
    calibration : Calibration, or a tuple with one for each row
        The noise: sensitivity, float error and epsilon of a row.
    noise_only : bool
        For noise that a mechanism adds before its last step: the values are set to zero, so
        nothing is learned from them and epsilon is 0.
    rounds_of : str
        Statistics with the same name here are rounds of one: the calibration (sensitivity, error,
        coordinates) is about all of them together, whatever was released before each, so their
        epsilon counts once. They have the same noise. "": a statistic of its own.
    """

    values: Rows
    calibration: Calibration | tuple[Calibration, ...]
    noise_only: bool = False
    rounds_of: str = ""

    @property
    def epsilon(self) -> Fraction:
        """Privacy loss of one row."""
        if self.noise_only:
            return Fraction(0)
        each = self.calibration if isinstance(self.calibration, tuple) else (self.calibration,)
        return max((Fraction(c.epsilon) for c in each), default=Fraction(0))

    def of_rows(self) -> tuple[Calibration, ...]:
        """One calibration for each row."""
        each = self.calibration
        return each if isinstance(each, tuple) else (each,) * len(self.values)


@dataclass(frozen=True)
class Tail:
    """Long rows, mostly zero; only noisy values that reach a threshold are released.

    Row i is a vector of `width` numbers: its `values` at its `positions`, and 0 elsewhere. Every
    coordinate gets Laplace noise. Released are the positions whose noisy value is at least the
    `threshold`, with that value: post-processing of the whole noisy vector, so its guarantee
    holds. The vector is not drawn in full (docs/theory/lazy-noise.md), so time and memory depend
    on the number of positions; `densely` draws all noise of all rows, in a time that does not.
    The threshold may depend on released numbers, but not on the edges.
    """

    positions: npt.NDArray[np.integer]  # (starts[-1]) int32 or int64, increasing within a row
    values: Rows  # (starts[-1]) rounded to the lattice, as everywhere
    starts: npt.NDArray[np.int64]  # (rows + 1) row i is at starts[i] : starts[i + 1]
    width: int  # public
    calibration: Calibration  # for `width` coordinates
    threshold: float  # public
    densely: bool = False

    @property
    def epsilon(self) -> Fraction:
        """Privacy loss of one row."""
        return Fraction(self.calibration.epsilon)

    def same_public_part(self, other: Tail) -> bool:
        """Whether the two differ in private numbers only."""
        mine, theirs = ((len(t.starts), t.width, t.calibration, t.threshold) for t in (self, other))
        return mine == theirs


@dataclass(frozen=True)
class Bits:
    """A long row of bits before randomised response; an edge changes one of them."""

    ones: npt.NDArray[np.int64]  # sorted positions of the ones
    total: int  # number of bits (public)
    loss: float  # epsilon for one bit

    def __post_init__(self) -> None:
        # A position twice, or beyond the end, would be released as it is: nothing flips there
        ones = self.ones
        fits = isinstance(ones, np.ndarray) and ones.ndim == 1 and ones.dtype.kind in "iu"
        if fits and len(ones):
            fits = bool(ones[0] >= 0 and ones[-1] < self.total and (ones[1:] > ones[:-1]).all())
        if not fits:
            raise ParameterError("the positions of ones must increase, from 0 to total - 1")

    @property
    def epsilon(self) -> Fraction:
        """Privacy loss of all bits together."""
        return exact_epsilon(self.loss)


@dataclass(frozen=True)
class Exact:
    """Numbers that get no noise: only for a guarantee that protects nothing."""

    values: Rows


AnyStatistic = Statistic | Tail | Bits | Exact


@dataclass(frozen=True)
class Noised:
    """A released statistic: its values with noise; for `Bits` the positions of the ones.

    `scale` is that of the Laplace noise on each value (of the first row, if rows differ); 0
    without noise.
    """

    values: npt.NDArray[Any]
    scale: float = 0.0

    def for_reading(self) -> Noised:
        """A read-only view of the same numbers."""
        views: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                views[field.name] = value = value.view()
                value.flags.writeable = False
        return replace(self, **views)


@dataclass(frozen=True, kw_only=True)
class NoisedTail(Noised):
    """A released `Tail`: the noisy values that reach the threshold, and their positions."""

    positions: npt.NDArray[np.int64]  # increasing within a row
    starts: npt.NDArray[np.int64]  # (rows + 1) row i is at starts[i] : starts[i + 1]

    def of(self, i: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Positions and values of row i."""
        row = slice(self.starts[i], self.starts[i + 1])
        return self.positions[row], self.values[row]


def total_epsilon(statistics: Iterable[AnyStatistic]) -> Fraction:
    """Privacy loss of all of these together: the sum; rounds of one statistic count once."""
    total, begun = Fraction(0), dict[str, tuple[Any, int]]()
    for statistic in statistics:
        if isinstance(statistic, Exact):
            raise ParameterError("numbers without noise have no epsilon")
        if isinstance(statistic, Statistic) and statistic.rounds_of and not statistic.noise_only:
            counted = statistic.rounds_of in begun
            noise, before = begun.get(statistic.rounds_of, (statistic.calibration, 0))
            if noise != statistic.calibration:
                raise ParameterError("the rounds of one statistic must have the same noise")
            width = before + statistic.values.shape[1]
            begun[statistic.rounds_of] = noise, width
            # Every coordinate of every round is rounded to the lattice, unless it is whole
            calibrations = noise if isinstance(noise, tuple) else (noise,)
            if any(not c.whole and width > c.coordinates for c in calibrations):
                raise ParameterError(
                    "the noise of rounds is calibrated for too few coordinates: those of all "
                    f"rounds count together, {width} so far"
                )
            if counted:
                continue
        total += statistic.epsilon
    return total


def digest_of(numbers: AnyStatistic | Noised) -> str:
    """SHA-256 of all numbers and of their calibration. Keep it private."""
    digest = hashlib.sha256(type(numbers).__name__.encode())
    for field in fields(numbers):
        value = getattr(numbers, field.name)
        if isinstance(value, np.ndarray):
            digest.update(f"{field.name} {value.dtype.str} {value.shape} ".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(f"{field.name} {value!r} ".encode())
    return digest.hexdigest()


def randomise(
    statistic: AnyStatistic, noise: NoiseSource, names: Sequence[int] | npt.NDArray[Any] = (0,)
) -> Noised:
    """Add the noise: the only step from private numbers to public ones.

    Parameters
    ----------
    statistic : Statistic, Tail, Bits or Exact
        The values of a `Statistic` are overwritten.
    noise : NoiseSource
        Used for nothing else: another statistic with the same rows would get the same noise.
    names : sequence of int
        A name for each row; a row's noise is a function of `noise` and its name. Not used for
        `Bits`.
    """
    if isinstance(statistic, Exact):
        return Noised(statistic.values)
    if isinstance(statistic, Bits):
        flips = flipped_positions(statistic.total, statistic.loss, noise)
        return Noised(np.setxor1d(statistic.ones, flips, assume_unique=True))
    noises = noise.rows(names)
    if isinstance(statistic, Tail):
        return _randomise_tail(statistic, noises)
    rows, calibration = statistic.values, statistic.calibration
    if statistic.noise_only:
        rows[:] = 0.0
    if isinstance(calibration, tuple):
        if len(calibration) != len(rows):
            raise ParameterError(f"{len(rows)} rows need as many calibrations")
        for i, of_row in enumerate(calibration):
            add_laplace_to_rows(rows[i : i + 1], of_row, noises[i : i + 1])
        return Noised(_read_only(rows), calibration[0].noise_scale if calibration else 0.0)
    add_laplace_to_rows(rows, calibration, noises)
    return Noised(_read_only(rows), calibration.noise_scale)


def randomise_bound(
    statistic: AnyStatistic, noise: NoiseSource, names: Sequence[int] | npt.NDArray[Any]
) -> Noised:
    """`randomise`, with noise that depends on the very numbers of each row as well.

    Other numbers never get the same noise, whatever computed them; parameters as for `randomise`.
    The numbers are those on the lattice, to which the noise is added.
    """
    if isinstance(statistic, Bits | Exact):  # for all rows
        return randomise(statistic, noise.derive("numbers", digest_of(statistic)))
    if isinstance(statistic, Statistic):
        check_rows(statistic.values)
    count = len(statistic.starts) - 1 if isinstance(statistic, Tail) else len(statistic.values)
    if count != len(names):
        raise ParameterError(f"{count} rows need as many names")
    parts = list[Any]()
    for row, name in zip(_single_rows(statistic), names, strict=True):
        with np.errstate(all="ignore"):  # a warning would reveal a number
            on_lattice = to_lattice(row.values, row.calibration) + 0.0  # -0.0 is the same number
        numbers = digest_of(replace(row, values=on_lattice))
        parts.append(randomise(row, noise.derive("numbers", numbers), [int(name)]))
    values, scale = np.concatenate([part.values for part in parts]), parts[0].scale
    if isinstance(statistic, Statistic):
        statistic.values[:] = values  # as in `randomise`: no private number is left in them
        return Noised(_read_only(statistic.values), scale)
    return NoisedTail(
        values=values,
        scale=scale,
        positions=np.concatenate([part.positions for part in parts]),
        starts=np.cumsum([0, *(len(part.values) for part in parts)]),
    )


def _single_rows(statistic: Statistic | Tail) -> Iterator[Any]:
    """Each row as a statistic of its own."""
    if isinstance(statistic, Tail):
        starts, count = statistic.starts, len(statistic.values)
        if starts[0] != 0 or starts[-1] != count:  # the rest is checked row by row
            raise ParameterError("starts must rise from 0 to the number of values")
        for first, last in pairwise(starts):
            yield replace(
                statistic,
                positions=statistic.positions[first:last].astype(np.int64),  # one digest, any type
                values=statistic.values[first:last].astype(np.float64),
                starts=np.array([0, last - first]),
            )
        return
    calibrations = statistic.of_rows()
    if len(calibrations) != len(statistic.values):
        raise ParameterError(f"{len(statistic.values)} rows need as many calibrations")
    for i, calibration in enumerate(calibrations):
        values = statistic.values[i : i + 1].copy()
        if statistic.noise_only:
            values[:] = 0.0
        yield replace(statistic, values=values, calibration=calibration)


def _read_only(values: Rows) -> Rows:
    """The same memory; the array, and those that it is a view of, become read-only."""
    released = values.view()
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner.flags.writeable = False
        owner = owner.base
    return released


def _randomise_tail(statistic: Tail, noises: NoiseRows) -> Noised:
    """What reaches the threshold of a tail after the noise."""
    from edgeveil.privacy import _tail  # imported here: it loads the compiler

    positions, noisy, starts = _tail.draw_tail(
        (statistic.positions, statistic.values, statistic.starts),
        statistic.width,
        statistic.calibration,
        statistic.threshold,
        noises,
        densely=statistic.densely or None,
    )
    return NoisedTail(
        values=noisy,
        scale=statistic.calibration.noise_scale,
        positions=positions.astype(np.int64, copy=False),
        starts=starts,
    )


def without_noise(statistic: AnyStatistic) -> Noised:
    """The exact numbers. Not private: for the curator only."""
    if isinstance(statistic, Tail):
        kept = statistic.values >= statistic.threshold
        before = np.concatenate(([0], np.cumsum(kept)))
        return NoisedTail(
            values=statistic.values[kept],
            positions=statistic.positions[kept].astype(np.int64),
            starts=before[statistic.starts],
        )
    return Noised(statistic.ones if isinstance(statistic, Bits) else statistic.values)
