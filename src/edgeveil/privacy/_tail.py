"""Noisy rows of which only what reaches a threshold is kept, without drawing all of their noise.

A row of a tail is n coordinates, m of them given and the others zero. *Densely* all n get noise,
and what reaches the threshold is kept: the definition. *Lazily* only the m given values get a draw
each; for the zeros one samples how many exceed the threshold (a binomial count, `_tail_counts`),
then their positions and excesses. Both have the same distribution (docs/theory/lazy-noise.md), but
not the same bits.

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
Places = NDArray[np.int64]
Starts = NDArray[np.int64]
Found = tuple[Places, Values, Starts]

DENSE_CHUNK = 1 << 16  # coordinates at a time
BATCH_WORDS = 1 << 18  # words at a time: two megabytes

# Most values stay below the threshold, which the first word often shows (`_Sampler.stays_below`):
# making all lists of 5,000 members takes 145 us each instead of 171.
QUARTERS = 128  # gaps to the threshold are distinguished up to 32 noise scales, by quarters

# What a lazy row costs beyond the draws of its values, in draws: for itself and for each zero that
# exceeds the threshold.
ROW_COST = 300
EXCEEDANCE_COST = 4


def threshold_in_steps(at_least: float, calibration: Calibration) -> int:
    """The least number of steps whose float is at least ``at_least``."""
    a, k = _split(calibration.scale)[1], calibration.step_log2
    steps = math.ceil(Fraction(at_least) / Fraction(2) ** k)
    # Beyond 2**53 steps several numbers share a float: the first of those that reach it.
    least, most = steps - (1 << max(steps.bit_length() - 52, 1)), steps
    while most - least > 1:
        middle = (least + most) // 2
        if _sampler.lattice_sum(0.0, middle, a, k) >= at_least:
            most = middle
        else:
            least = middle
    return most


def draw_tail(
    rows: tuple[NDArray[np.integer], Values, Starts],
    width: int,
    calibration: Calibration,
    at_least: float,
    noises: NoiseRows,
    *,
    densely: bool | None = None,
) -> Found:
    """Where the noisy rows reach ``at_least``, with their noisy values: places, values, starts.

    ``densely`` is for all rows; None: for each row the way that is faster.
    """
    places, values = np.ascontiguousarray(rows[0]), np.ascontiguousarray(rows[1], dtype=np.float64)
    starts = np.asarray(rows[2], dtype=np.int64)
    _check_rows(starts, len(values), noises)
    if len(places) != len(values) or not math.isfinite(at_least):
        raise ParameterError("a tail needs a value for each place and a finite threshold")
    if width > calibration.coordinates:
        raise ParameterError("a tail has more coordinates than its noise is calibrated for")
    if not _increasing(places, starts, width):
        raise ParameterError("the places of a row must rise, from 0 to width - 1")
    lengths, law = np.diff(starts), None
    if not densely:
        law = count_law(width, calibration.scale, threshold_in_steps(at_least, calibration))
    if law is None:
        lazy = np.zeros(len(lengths), dtype=np.bool_)
    else:
        lazy = lengths + (EXCEEDANCE_COST * law.most + ROW_COST) <= width
        lazy |= densely is False
    found: list[Found] = []
    for run in _runs(lazy):
        begin, end = int(starts[run.start]), int(starts[run.stop])
        part = places[begin:end], values[begin:end], starts[run.start : run.stop + 1] - begin
        if law is not None and lazy[run.start]:
            found += _lazy_rows(*part, law, calibration, at_least, noises[run])
        else:
            found += _dense_rows(*part, width, calibration, at_least, noises[run])
    return _joined(found)


def _check_rows(starts: Starts, size: int, noises: NoiseRows) -> None:
    if starts[0] != 0 or starts[-1] != size or (np.diff(starts) < 0).any():
        raise ParameterError("starts must rise from 0 to the number of values")
    _check_streams(noises, len(starts) - 1)


def _increasing(places: NDArray[np.integer], starts: Starts, width: int) -> bool:
    """Whether positions increase strictly within every row, from 0 to width - 1."""
    if not len(places):
        return True
    increases = np.diff(places) > 0
    increases[starts[(starts > 0) & (starts < len(places))] - 1] = True  # from row to row
    return bool(increases.all() and places.min() >= 0 and places.max() < width)


def _runs(marks: NDArray[np.bool_]) -> Iterator[slice]:
    """Neighbouring rows that go the same way."""
    cuts = [0, *(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(marks)]
    for first, last in pairwise(cuts):
        if last > first:
            yield slice(first, last)


def _batches(words: NDArray[np.int64]) -> Iterator[slice]:
    """Neighbouring rows whose words fit into a batch; a longer row alone."""
    first, total = 0, 0
    for i, count in enumerate(words.tolist()):
        if i > first and total + count > BATCH_WORDS:
            yield slice(first, i)
            first, total = i, 0
        total += count
    if len(words):
        yield slice(first, len(words))


def _joined(found: list[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    counts = [np.diff(starts) for _, _, starts in found]
    return (
        np.concatenate([places for places, _, _ in found] or [np.empty(0, dtype=np.int64)]),
        np.concatenate([values for _, values, _ in found] or [np.empty(0)]),
        np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
    )


class _RowWords:
    """The first words of several rows, one row after the other, and later ones on request."""

    def __init__(self, noises: NoiseRows, counts: NDArray[np.int64]) -> None:
        self._noises = noises
        self.starts = np.concatenate(([0], np.cumsum(counts)))
        self.all = np.empty(self.starts[-1], dtype=np.uint64)
        # A cipher for each row. Counters of all rows for one call of the cipher, written by a
        # compiled loop, saved 3 of 11 microseconds a row: 1 % of making a list.
        for i, (start, end) in enumerate(pairwise(self.starts.tolist())):
            self.all[start:end] = noises.row(i).take(end - start)[1]

    def word(self, row: int, index: int) -> int:
        """Word ``index`` of a row, however far."""
        if index < self.starts[row + 1] - self.starts[row]:
            return int(self.all[self.starts[row] + index])
        _, pair = self._noises.row(row, index - index % 2).take(2)
        return int(pair[index % 2])

    def rare(self, row: int, index: int) -> _sampler.Bits:
        """Further bits for the decision whose words begin at ``index`` of a row."""
        return self._noises.row(row).further_bits(index)


class _Sampler:
    """A calibration as the loops take it, and the exact way for what they leave open."""

    def __init__(self, calibration: Calibration) -> None:
        T, a = self.T, self.a = _split(calibration.scale)
        k = self.step_log2 = calibration.step_log2
        mask, accept = np.uint64((1 << a) - 1), np.uint64(_sampler._accept_below(T, a))
        self.scale = float(T), mask, accept, _sampler.MARGIN
        self.lattice = 2.0**-k, 2.0**k, 2.0**a, 2.0**-a, _sampler._limit(k)

    def settle(
        self,
        values: Values,
        noisy: Values,
        undecided: NDArray[np.bool_],
        starts: Starts,
        words: _RowWords,
    ) -> None:
        """OUT ``noisy`` where undecided: drawn from the two words of a value, and more bits."""
        for j in np.flatnonzero(undecided).tolist():
            row = int(np.searchsorted(starts, j, side="right")) - 1
            at = 2 * (j - int(starts[row]))
            pair = words.word(row, at), words.word(row, at + 1)
            high, low, negative = _sampler.exact_draw(*pair, self.T, self.a, words.rare(row, at))
            drawn = (high << self.a) + low
            steps = -drawn if negative else drawn
            noisy[j] = _sampler.lattice_sum(float(values[j]), steps, self.a, self.step_log2)

    def stays_below(self, at_least: float) -> tuple[float, float, NDArray[np.int64], int]:
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
        return at_least, per_unit, np.array(low, dtype=np.int64), high

    def at_threshold(self, threshold: int, highs: Values, lows: Values) -> Values:
        """Threshold plus excesses of high * 2**a + low steps, as floats.

        Rounded as in `_sampler._fill_noisy`: a function of the sum alone.
        """
        _, step, block, per_block, _ = self.lattice
        high, low = divmod(threshold, 1 << self.a)
        below = float(low) + lows
        carry = np.floor(below * per_block)
        total = (float(high) + (highs + carry)) * block + (below - carry * block)
        return np.asarray(total * step + 0.0)


def _lazy_rows(
    places: NDArray[np.integer],
    values: Values,
    starts: Starts,
    law: CountLaw,
    calibration: Calibration,
    at_least: float,
    noises: NoiseRows,
) -> list[Found]:
    """The rows in batches, without drawing what cannot be seen."""
    sampler = _Sampler(calibration)
    counts = 2 * np.diff(starts) + law.words
    found = []
    for rows in _batches(counts):
        words = _RowWords(noises[rows], counts[rows])
        begin, end = starts[rows.start], starts[rows.stop]
        given = places[begin:end], values[begin:end], starts[rows.start : rows.stop + 1] - begin
        found.append(_lazy_batch(given, law, sampler, at_least, words))
    return found


def _lazy_batch(
    given: tuple[NDArray[np.integer], Values, Starts],
    law: CountLaw,
    sampler: _Sampler,
    at_least: float,
    words: _RowWords,
) -> Found:
    """Some rows, whose words are there."""
    places, values, starts = given
    noisy, undecided = np.empty(len(values)), np.empty(len(values), dtype=np.bool_)
    noise_rows(
        words.all, words.starts, values, starts, sampler.scale, sampler.lattice,
        sampler.stays_below(at_least), noisy, undecided,
    )  # fmt: skip
    sampler.settle(values, noisy, undecided, starts, words)
    zeros = _exceedances(law, sampler, words, 2 * np.diff(starts))
    most = int(np.count_nonzero(noisy >= at_least) + zeros.counts.sum())
    out_places, out_values = np.empty(most, dtype=np.int64), np.empty(most)
    out_starts = np.empty(len(starts), dtype=np.int64)
    merge_rows(places, noisy, starts, zeros, at_least, out_places, out_values, out_starts)
    used = out_starts[-1]
    return out_places[:used].copy(), out_values[:used].copy(), out_starts


class _Exceedances(NamedTuple):
    """Where rows of zeros exceed the threshold: row i at ``starts[i]``, ``counts[i]`` of them."""

    places: Places  # rising within a row
    values: Values  # noisy values
    starts: Starts
    counts: NDArray[np.int64]


def _exceedances(
    law: CountLaw, sampler: _Sampler, words: _RowWords, skip: NDArray[np.int64]
) -> _Exceedances:
    """Sample count, positions and excesses; their words begin at word ``skip`` of each row.

    By `draw_exceedances` where the words decide by a margin, else by the definition.
    """
    rows, room = len(skip), law.most
    places, excess = np.empty(rows * room, dtype=np.int64), np.zeros((2, rows * room))
    undecided = np.zeros(rows * room, dtype=np.bool_)
    counts, pairs = np.empty((2, rows), dtype=np.int64)
    last_word = (1 << 64) // law.n * law.n - 1
    draw_exceedances(
        words.all, words.starts[:-1] + skip, law.words,
        (law.first, law.limits, np.uint64(law.n), np.uint64(last_word)), sampler.scale,
        room, places, excess[0], excess[1], undecided, counts, pairs,
    )  # fmt: skip
    starts, block = np.arange(rows, dtype=np.int64) * room, 1 << sampler.a
    for at in np.flatnonzero(undecided).tolist():
        row, j = divmod(at, room)
        i = int(skip[row]) + int(pairs[row]) + 2 * j
        pair = words.word(row, i), words.word(row, i + 1)
        excess[:, at] = divmod(exact_excess(*pair, sampler.T, sampler.a, words.rare(row, i)), block)
    for row in np.flatnonzero(counts < 0).tolist():
        first = int(skip[row])
        exactly, drawn = exact_exceedances(
            law,
            sampler.T,
            sampler.a,
            lambda i, row=row, first=first: words.word(row, first + i),  # type: ignore[misc]
            lambda i, row=row, first=first: words.rare(row, first + i),  # type: ignore[misc]
        )
        starts[row], counts[row] = len(places), len(exactly)
        places = np.append(places, np.array(exactly, dtype=np.int64))
        parts = [divmod(steps - law.threshold, block) for steps in drawn]
        excess = np.append(excess, np.array(parts, dtype=np.float64).reshape(-1, 2).T, axis=1)
    return _Exceedances(places, sampler.at_threshold(law.threshold, *excess), starts, counts)


def _dense_rows(
    places: NDArray[np.integer],
    values: Values,
    starts: Starts,
    width: int,
    calibration: Calibration,
    at_least: float,
    noises: NoiseRows,
) -> Iterator[Found]:
    """Every row with all of its noise, some coordinates at a time."""
    T, a = _split(calibration.scale)
    for i in range(len(noises)):
        noise = noises.row(i)
        own, theirs = (x[starts[i] : starts[i + 1]] for x in (places, values))
        all_places, all_values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for first in range(0, width, DENSE_CHUNK):
            chunk = np.zeros(min(DENSE_CHUNK, width - first))
            part = slice(*np.searchsorted(own, (first, first + len(chunk))))
            chunk[own[part] - first] = theirs[part]
            noisy = _sampler.add_noise(chunk, T, a, calibration.step_log2, noise)
            kept = np.flatnonzero(noisy >= at_least)
            all_places.append(kept + first)
            all_values.append(noisy[kept])
        count = sum(map(len, all_places))
        yield np.concatenate(all_places), np.concatenate(all_values), np.array([0, count])
