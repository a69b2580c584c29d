"""Rows of different lengths with noise, and rows of which only what reaches a threshold is drawn.

A row of a tail is n coordinates, m of them given and the others zero. *Densely* all n get noise,
and what reaches the threshold is kept: the definition. *Lazily* the m get their noise, and the
zeros that reach the threshold are drawn directly: how many (`_tail_marks`), where, and by how much
they exceed it. Both have the same distribution (docs/theory/lazy-noise.md), but not the same bits.

A lazy row takes of its stream two words for each of the m, then one for the number of marks, one
for each place (more where words repeat a place), two for each excess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler
from edgeveil.privacy._tail_kernels import draw_rows, merge_rows, rising
from edgeveil.privacy._tail_marks import MarkLaw, exact_excess, exact_marks, mark_law
from edgeveil.privacy.noise import Calibration, NoiseRows, _check_streams, _split

Values = NDArray[np.float64]
Places = NDArray[np.int64]
Starts = NDArray[np.int64]
Found = tuple[Places, Values, Starts]

DENSE_CHUNK = 1 << 16  # coordinates at a time
BATCH_WORDS = 1 << 18  # words at a time: two megabytes

# What a lazy row costs beyond the draws of its values, in draws: for itself and for each mark.
ROW_COST = 300
MARK_COST = 4


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


def add_laplace_to_ragged(
    values: Values, starts: Starts, calibration: Calibration, noises: NoiseRows
) -> None:
    """INOUT ``values``: in each row what `add_laplace_to_rows` gives for it."""
    _check_rows(starts, len(values), noises)
    lengths = np.diff(starts)
    if lengths.max(initial=0) > calibration.coordinates:
        raise ParameterError("a row has more coordinates than its noise is calibrated for")
    if not values.flags.writeable or not values.flags.c_contiguous:
        raise ParameterError("values must be writeable and contiguous")
    sampler, room = _Sampler(calibration), _room(2 * lengths)
    for rows in _batches(2 * lengths):
        row_words = _RowWords(noises[rows], 2 * lengths[rows], room)
        part, begin = values[starts[rows.start] : starts[rows.stop]], starts[rows]
        before, marks = part.copy(), np.zeros(len(part), dtype=np.bool_)
        _sampler._fill_noisy(row_words.all, *sampler.scale, before, *sampler.lattice, part, marks)
        sampler.settle(before, part, marks, begin - starts[rows.start], row_words)


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
    if not rising(places, starts, width):
        raise ParameterError("the places of a row must rise, from 0 to width - 1")
    lengths, law = np.diff(starts), None
    if not densely:
        law = mark_law(width, calibration.scale, threshold_in_steps(at_least, calibration))
    if law is None:
        lazy = np.zeros(len(lengths), dtype=np.bool_)
    else:
        lazy = lengths + (MARK_COST * law.most + ROW_COST) <= width
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


def _room(words: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Room for the words of every batch, one after the other, and for their counters."""
    most = min(int(words.sum()), max(int(words.max(initial=0)), BATCH_WORDS))
    return np.empty((2, most + 2), dtype=np.uint64)


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
    """The first words of several rows, side by side, and further ones where they are needed."""

    def __init__(
        self, noises: NoiseRows, counts: NDArray[np.int64], room: NDArray[np.uint64]
    ) -> None:
        self._noises = noises
        self.starts = np.concatenate(([0], np.cumsum(counts)))
        noises.fill(self.starts, room[0, : self.starts[-1] + 2], room[1])
        self.all = room[0, : self.starts[-1]]

    def word(self, row: int, index: int) -> int:
        """Word ``index`` of a row, however far."""
        if index < self.starts[row + 1] - self.starts[row]:
            return int(self.all[self.starts[row] + index])
        pair = np.empty(4, dtype=np.uint64)
        self._noises.row(row, index - index % 2)._fill(pair)
        return int(pair[index % 2])

    def rare(self, row: int, index: int) -> _sampler.Bits:
        """Further bits for the decision whose words begin at ``index`` of a row."""
        return self._noises.row(row)._rare_bits(index)

    def behind(
        self, row: int, skip: int
    ) -> tuple[Callable[[int], int], Callable[[int], _sampler.Bits]]:
        """`word` and `rare` of a row, counted from its word ``skip`` on."""
        return (lambda i: self.word(row, skip + i)), (lambda i: self.rare(row, skip + i))


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
        marks: NDArray[np.bool_],
        starts: Starts,
        words: _RowWords,
    ) -> None:
        """OUT ``noisy`` where marked: drawn from the two words of a value, and more bits."""
        for j in np.flatnonzero(marks).tolist():
            row = int(np.searchsorted(starts, j, side="right")) - 1
            at = 2 * (j - int(starts[row]))
            pair = words.word(row, at), words.word(row, at + 1)
            high, low, negative = _sampler.exact_draw(*pair, self.T, self.a, words.rare(row, at))
            drawn = (high << self.a) + low
            noisy[j] = self.total(float(values[j]), -drawn if negative else drawn)

    def total(self, value: float, drawn: int) -> float:
        """The float for a value with so many steps of noise."""
        return _sampler.lattice_sum(value, drawn, self.a, self.step_log2)


def _lazy_rows(
    places: NDArray[np.integer],
    values: Values,
    starts: Starts,
    law: MarkLaw,
    calibration: Calibration,
    at_least: float,
    noises: NoiseRows,
) -> list[Found]:
    """The rows in batches, without drawing what cannot be seen."""
    sampler, lengths = _Sampler(calibration), np.diff(starts)
    counts = 2 * lengths + law.words
    room, found = _room(counts), []
    for rows in _batches(counts):
        part = slice(int(starts[rows.start]), int(starts[rows.stop]))
        begins = starts[rows.start : rows.stop + 1] - starts[rows.start]
        words = _RowWords(noises[rows], counts[rows], room)
        found.append(_lazy_batch(places[part], values[part], begins, law, sampler, at_least, words))
    return found


def _lazy_batch(
    places: NDArray[np.integer],
    values: Values,
    starts: Starts,
    law: MarkLaw,
    sampler: _Sampler,
    at_least: float,
    words: _RowWords,
) -> Found:
    """Rows whose words are drawn."""
    size, room = len(starts) - 1, law.most
    noisy, open_values = np.empty(len(values)), np.empty(len(values), dtype=np.bool_)
    marks = _Marks(size, room)
    high, low = divmod(law.threshold, 1 << sampler.a)
    last_word = (1 << 64) // law.n * law.n - 1
    draw_rows(
        words.all, words.starts, values, starts, sampler.scale, sampler.lattice,
        (law.first, law.limits, np.uint64(law.n), np.uint64(last_word)), (float(high), float(low)),
        noisy, open_values,
        room, marks.places, marks.totals, marks.open_totals, marks.counts, marks.pairs,
    )  # fmt: skip
    sampler.settle(values, noisy, open_values, starts, words)
    marks.settle(law, sampler, words, 2 * np.diff(starts))
    most = int(np.count_nonzero(noisy >= at_least) + marks.counts.sum())
    out_places, out_values = np.empty(most, dtype=np.int64), np.empty(most)
    out_starts = np.empty(size + 1, dtype=np.int64)
    merge_rows(
        places, noisy, starts, at_least,
        marks.places, marks.totals, marks.starts, marks.counts,
        out_places, out_values, out_starts,
    )  # fmt: skip
    used = out_starts[-1]
    return out_places[:used].copy(), out_values[:used].copy(), out_starts


class _Marks:
    """The marks of several rows, as `draw_rows` writes them, and the exact way for the rest."""

    def __init__(self, rows: int, room: int) -> None:
        self._room = room
        self.places, self.totals = np.empty(rows * room, dtype=np.int64), np.empty(rows * room)
        self.open_totals = np.zeros(rows * room, dtype=np.bool_)
        self.counts, self.pairs = np.empty((2, rows), dtype=np.int64)
        self.starts = np.arange(rows, dtype=np.int64) * room

    def settle(
        self, law: MarkLaw, sampler: _Sampler, words: _RowWords, skip: NDArray[np.int64]
    ) -> None:
        """Decide what the loops left open; a row's marks begin at its word ``skip``."""
        for at in np.flatnonzero(self.open_totals).tolist():
            row, j = divmod(at, self._room)
            word, rare = words.behind(row, int(skip[row]))
            i = int(self.pairs[row]) + 2 * j
            excess = exact_excess(word(i), word(i + 1), sampler.T, sampler.a, rare(i))
            self.totals[at] = sampler.total(0.0, law.threshold + excess)
        for row in np.flatnonzero(self.counts < 0).tolist():
            behind = words.behind(row, int(skip[row]))
            places, drawn = exact_marks(law, sampler.T, sampler.a, *behind)
            self.starts[row], self.counts[row] = len(self.places), len(places)
            self.places = np.append(self.places, np.array(places, dtype=np.int64))
            totals = np.array([sampler.total(0.0, steps) for steps in drawn])
            self.totals = np.append(self.totals, totals)


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
