"""Noisy rows of which only what reaches a threshold is kept, without drawing all of their noise.

A row has n coordinates, m of them given and the others zero. *Densely* all n get noise, and what
reaches the threshold is kept: the definition. *Lazily* only the m given values get a draw each;
for the zeros, sample how many reach the threshold (a binomial count, `_tail_counts`), then their
positions and excesses. Both have the same distribution (docs/theory/lazy-noise.md), but not the
same bits.

A lazy row takes from its stream two words for each given value, then one for the count, one for
each position (more where positions repeat), and two for each excess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler
from edgeveil.privacy._tail_counts import CountLaw, count_law, exact_exceedances, exact_excess
from edgeveil.privacy._tail_kernels import draw_exceedances, merge_rows, noise_rows
from edgeveil.privacy.noise import Calibration, NoiseRows, _check_streams, _split

Values = NDArray[np.float64]
Positions = NDArray[np.integer]
Integers = NDArray[np.int64]

DENSE_CHUNK = 1 << 16  # coordinates at a time
BATCH_WORDS = 1 << 18  # words at a time: two megabytes

# Most values stay below the threshold, which the first word often shows (`_Sampler.stays_below`):
# making all lists of 5,000 members takes 145 us each instead of 171.
QUARTERS = 128  # gaps to the threshold are distinguished up to 32 noise scales, by quarters

# The time of a lazy row beyond the draws of its values, in draws: for itself, and for each zero
# that may reach the threshold.
ROW_COST = 300
EXCEEDANCE_COST = 4


class Rows(NamedTuple):
    """Sparse rows, one after the other: row i is at starts[i] : starts[i + 1]."""

    positions: Positions  # increasing within a row
    values: Values
    starts: Integers  # (rows + 1)

    def part(self, rows: slice) -> Rows:
        """Neighbouring rows."""
        begin, end = int(self.starts[rows.start]), int(self.starts[rows.stop])
        starts = self.starts[rows.start : rows.stop + 1] - begin
        return Rows(self.positions[begin:end], self.values[begin:end], starts)


def threshold_in_steps(threshold: float, calibration: Calibration) -> int:
    """The least number of steps whose float is at least the threshold."""
    a, k = _split(calibration.scale)[1], calibration.step_log2
    steps = math.ceil(Fraction(threshold) / Fraction(2) ** k)
    # Beyond 2**53 steps several numbers share a float: search for the first that reaches it.
    least, most = steps - (1 << max(steps.bit_length() - 52, 1)), steps
    while most - least > 1:
        middle = (least + most) // 2
        if _sampler.lattice_sum(0.0, middle, a, k) >= threshold:
            most = middle
        else:
            least = middle
    return most


def draw_tail(
    rows: tuple[Positions, Values, Integers],
    width: int,
    calibration: Calibration,
    threshold: float,
    noises: NoiseRows,
    *,
    densely: bool | None = None,
) -> Rows:
    """The noisy values that reach the threshold, and their positions.

    ``densely`` is for all rows; None: for each row the way that is faster. That depends on the
    row alone, so a row is the same whichever rows are drawn beside it.
    """
    given = Rows(
        np.ascontiguousarray(rows[0]),
        np.ascontiguousarray(rows[1], dtype=np.float64),
        np.asarray(rows[2], dtype=np.int64),
    )
    _check(given, width, calibration, threshold)
    lengths = np.diff(given.starts)
    _check_streams(noises, len(lengths))
    law = None
    if not densely:
        law = count_law(width, calibration.scale, threshold_in_steps(threshold, calibration))
    lazy, counts = np.zeros(len(lengths), dtype=np.bool_), np.zeros(len(lengths), dtype=np.int64)
    if law is not None:
        lazy = lengths + (EXCEEDANCE_COST * law.most + ROW_COST) <= width
        lazy |= densely is False
        counts = lazy * (2 * lengths + law.words)
    sampler, found = _Sampler(calibration), list[Rows]()
    for group in _groups(lazy, counts):
        part, streams = given.part(group), noises[group]
        if law is not None and lazy[group.start]:
            words = _RowWords(streams, counts[group])
            found.append(_draw_lazily(part, law, sampler, threshold, words))
        else:
            found += _draw_densely(part, width, sampler, threshold, streams)
    return _joined(found)


def _check(rows: Rows, width: int, calibration: Calibration, threshold: float) -> None:
    positions, values, starts = rows
    if starts[0] != 0 or starts[-1] != len(values) or (np.diff(starts) < 0).any():
        raise ParameterError("starts must rise from 0 to the number of values")
    if len(positions) != len(values) or not math.isfinite(threshold):
        raise ParameterError("a tail needs a value for each position and a finite threshold")
    if width > calibration.coordinates:
        raise ParameterError("a tail has more coordinates than its noise is calibrated for")
    if len(positions):
        increases = np.diff(positions) > 0
        increases[starts[(starts > 0) & (starts < len(positions))] - 1] = True  # from row to row
        if not (increases.all() and positions.min() >= 0 and positions.max() < width):
            raise ParameterError("the positions of a row must increase, from 0 to width - 1")


def _groups(lazy: NDArray[np.bool_], words: Integers) -> Iterator[slice]:
    """Neighbouring rows, all lazy or all dense, whose words fit into a batch."""
    first, total, before = 0, 0, None
    for i, (way, count) in enumerate(zip(lazy.tolist(), words.tolist(), strict=True)):
        if i > first and (way != before or total + count > BATCH_WORDS):
            yield slice(first, i)
            first, total = i, 0
        total, before = total + count, way
    if len(words):
        yield slice(first, len(words))


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    counts = [np.diff(part.starts) for part in parts]
    return Rows(
        np.concatenate([part.positions for part in parts] or [np.empty(0, dtype=np.int64)]),
        np.concatenate([part.values for part in parts] or [np.empty(0)]),
        np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
    )


class _RowWords:
    """The first words of several rows, one row after the other, and later ones on request."""

    def __init__(self, noises: NoiseRows, counts: Integers) -> None:
        self._noises = noises
        self.starts = np.concatenate(([0], np.cumsum(counts)))
        self.all = np.empty(self.starts[-1], dtype=np.uint64)
        # A cipher for each row. Counters of all rows for one call of the cipher, written by a
        # compiled loop, would save 5 us of a list's 145.
        for i, (start, end) in enumerate(pairwise(self.starts.tolist())):
            self.all[start:end] = noises.row(i).take(end - start)[1]

    def word(self, row: int, index: int) -> int:
        """Word ``index`` of a row, however far."""
        if index < self.starts[row + 1] - self.starts[row]:
            return int(self.all[self.starts[row] + index])
        _, pair = self._noises.row(row, index - index % 2).take(2)
        return int(pair[index % 2])

    def further_bits(self, row: int, index: int) -> _sampler.Bits:
        """Further bits for the decision whose words begin at ``index`` of a row."""
        return self._noises.row(row).further_bits(index)


class _Sampler:
    """A calibration in the form that compiled loops take, and exact draws where they cannot decide.

    Attributes
    ----------
    scale, lattice : tuple
        As for `_sampler._fill_noisy`.
    """

    def __init__(self, calibration: Calibration) -> None:
        self.T, self.a = _split(calibration.scale)
        self.step_log2 = calibration.step_log2
        self.scale = _sampler.scale_of(self.T, self.a, _sampler.MARGIN)
        self.lattice = _sampler.lattice_of(self.a, self.step_log2)

    def draw_undecided(
        self, rows: Rows, noisy: Values, undecided: NDArray[np.bool_], words: _RowWords
    ) -> None:
        """OUT ``noisy`` where undecided: drawn from the two words of a value, and more bits."""
        for j in np.flatnonzero(undecided).tolist():
            row = int(np.searchsorted(rows.starts, j, side="right")) - 1
            at = 2 * (j - int(rows.starts[row]))
            pair, bits = (words.word(row, at), words.word(row, at + 1)), words.further_bits(row, at)
            high, low, negative = _sampler.exact_draw(*pair, self.T, self.a, bits)
            steps = (high << self.a) + low
            noisy[j] = _sampler.lattice_sum(
                float(rows.values[j]), -steps if negative else steps, self.a, self.step_log2
            )

    def stays_below(self, threshold: float) -> tuple[float, float, Integers, int]:
        """When a value's first word shows that it stays below the threshold; for `noise_rows`.

        Threshold and quarters of t per unit, a table `low`, and `high`. If the gap from a value to
        the threshold is at least (i + 1) quarters of t, and the first 52 bits of its first word lie
        strictly between low[i] and high, then U > e^(-i/4), so that its noise is below the gap, and
        U < e^(-1/T), so that it is no negative zero, which would be drawn again
        (docs/theory/lazy-noise.md, Lemma 2).
        """
        bits = 1 << _sampler.PREFIX_BITS
        low = [int(math.exp(-i / 4) * bits) + 2 for i in range(QUARTERS)]  # rounded up for certain
        high = int(math.exp(-1 / self.T) * bits * (1 - 2.0**-50)) - 2
        if self.T < 4:  # rounding a value to the lattice may then matter: work all of them out
            high = 0
        per_unit = 4 / (float(self.T << self.a) * 2.0**self.step_log2)
        return threshold, per_unit, np.array(low, dtype=np.int64), high

    def add_excess(self, threshold: int, highs: Values, lows: Values) -> Values:
        """The threshold, in steps, plus excesses of high * 2**a + low steps, as floats.

        Rounded as in `_sampler._fill_noisy`: a function of the sum alone.
        """
        _, step, block, per_block, _ = self.lattice
        high, low = divmod(threshold, 1 << self.a)
        below = float(low) + lows
        carry = np.floor(below * per_block)
        total = (float(high) + (highs + carry)) * block + (below - carry * block)
        return np.asarray(total * step + 0.0)


def _draw_lazily(
    rows: Rows, law: CountLaw, sampler: _Sampler, threshold: float, words: _RowWords
) -> Rows:
    """Noise for the given values; count, positions and excesses for the zeros."""
    positions, values, starts = rows
    noisy, undecided = np.empty(len(values)), np.empty(len(values), dtype=np.bool_)
    below = sampler.stays_below(threshold)
    scale, lattice = sampler.scale, sampler.lattice
    noise_rows(words.all, words.starts, values, starts, scale, lattice, below, noisy, undecided)
    sampler.draw_undecided(rows, noisy, undecided, words)
    zeros = _exceedances(law, sampler, words, 2 * np.diff(starts))
    most = int(np.count_nonzero(noisy >= threshold) + zeros.counts.sum())
    found = Rows(np.empty(most, dtype=np.int64), np.empty(most), np.empty_like(starts))
    merge_rows(positions, noisy, starts, zeros, threshold, found)
    used = found.starts[-1]
    return Rows(found.positions[:used].copy(), found.values[:used].copy(), found.starts)


class _Exceedances(NamedTuple):
    """Where zeros reach the threshold: those of row i are ``counts[i]``, from ``starts[i]`` on."""

    positions: Integers  # increasing within a row
    values: Values  # noisy values
    starts: Integers
    counts: Integers


def _exceedances(
    law: CountLaw, sampler: _Sampler, words: _RowWords, skip: Integers
) -> _Exceedances:
    """Sample count, positions and excesses; their words begin at word ``skip`` of each row.

    By `draw_exceedances` where the words decide by a margin, else by the definition.
    """
    rows, room = len(skip), law.most
    positions, excess = np.empty(rows * room, dtype=np.int64), np.zeros((2, rows * room))
    undecided = np.zeros(rows * room, dtype=np.bool_)
    counts, pairs = np.empty((2, rows), dtype=np.int64)
    begins = words.starts[:-1] + skip
    found = positions, excess, undecided, counts, pairs
    draw_exceedances(words.all, begins, law.words, law.for_loops(), sampler.scale, room, found)
    starts, block = np.arange(rows, dtype=np.int64) * room, 1 << sampler.a
    for at in np.flatnonzero(undecided).tolist():
        row, j = divmod(at, room)
        i = int(skip[row]) + int(pairs[row]) + 2 * j
        pair, bits = (words.word(row, i), words.word(row, i + 1)), words.further_bits(row, i)
        excess[:, at] = divmod(exact_excess(*pair, sampler.T, sampler.a, bits), block)
    for row in np.flatnonzero(counts < 0).tolist():
        first = int(skip[row])
        exact, drawn = exact_exceedances(
            law,
            sampler.T,
            sampler.a,
            lambda i, row=row, first=first: words.word(row, first + i),  # type: ignore[misc]
            lambda i, row=row, first=first: words.further_bits(row, first + i),  # type: ignore[misc]
        )
        starts[row], counts[row] = len(positions), len(exact)
        positions = np.append(positions, np.array(exact, dtype=np.int64))
        parts = [divmod(steps - law.threshold, block) for steps in drawn]
        excess = np.append(excess, np.array(parts, dtype=np.float64).reshape(-1, 2).T, axis=1)
    return _Exceedances(positions, sampler.add_excess(law.threshold, *excess), starts, counts)


def _draw_densely(
    rows: Rows, width: int, sampler: _Sampler, threshold: float, noises: NoiseRows
) -> Iterator[Rows]:
    """Each row with all of its noise, some coordinates at a time."""
    for i in range(len(noises)):
        stream, given = noises.row(i), rows.part(slice(i, i + 1))
        found = []
        for first in range(0, width, DENSE_CHUNK):
            chunk = np.zeros(min(DENSE_CHUNK, width - first))
            here = slice(*np.searchsorted(given.positions, (first, first + len(chunk))))
            chunk[given.positions[here] - first] = given.values[here]
            noisy = _sampler.add_noise(chunk, sampler.T, sampler.a, sampler.step_log2, stream)
            kept = np.flatnonzero(noisy >= threshold)
            found.append(Rows(kept + first, noisy[kept], np.array([0, len(kept)])))
        positions, values, _ = _joined(found)
        yield Rows(positions, values, np.array([0, len(values)]))
