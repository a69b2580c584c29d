"""Rows of different lengths with noise, and rows of which only what reaches a threshold is drawn.

A row of a tail is n coordinates, m of them given and the others zero. *Densely* all n get noise,
and what reaches the threshold is kept: the definition. *Lazily* the zeros that reach the threshold
are drawn directly, as marks: how many (`_tail_marks`), where, and by how much they exceed it. So
are, in blocks, the noises of given values that would lift the largest of the small ones to it; a
value that is not small gets its own. All has the same distribution (docs/theory/lazy-noise.md), but
not the same bits.

A lazy row takes of its stream the words of its blocks, two for each value that is not small, and
those of the marks among all coordinates: one for their number, one for each place (more where words
repeat a place), two for each excess. A block whose words do not do goes on at a place of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler
from edgeveil.privacy._tail_kernels import BLOCK, draw_marks, merge_rows, noise_rows, rising
from edgeveil.privacy._tail_marks import MarkLaw, exact_excess, exact_marks, mark_law, value_law
from edgeveil.privacy.noise import Calibration, NoiseRows, _check_streams, _split

Values = NDArray[np.float64]
Places = NDArray[np.int64]
Starts = NDArray[np.int64]
Found = tuple[Places, Values, Starts]

DENSE_CHUNK = 1 << 16  # coordinates at a time
BATCH_WORDS = 1 << 18  # words at a time: two megabytes

FAR = 1 << 40  # words: no row has as many before this place

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
        sampler.settle(before, part, marks, begin - starts[rows.start], row_words, 0 * begin)


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
        skip: NDArray[np.int64],
    ) -> None:
        """OUT ``noisy`` where marked: drawn from the two words of a value, and more bits.

        The words of a row's values begin at its word ``skip``.
        """
        for j in np.flatnonzero(marks).tolist():
            row = int(np.searchsorted(starts, j, side="right")) - 1
            at = int(skip[row]) + 2 * (j - int(starts[row]))
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
    sampler = _Sampler(calibration)
    small = _Small(values, starts, law, sampler)
    counts = small.words + law.words
    room, found = _room(counts), []
    for rows in _batches(counts):
        words = _RowWords(noises[rows], counts[rows], room)
        given = places, values, starts[rows.start : rows.stop + 1]
        found.append(_lazy_batch(given, rows, law, sampler, small, at_least, words))
    return found


class _Small:
    """Which of the given values are small, and where in a row's stream the words for values lie.

    Attributes
    ----------
    law : MarkLaw or None
        Of a block of noises that lift the largest small value to the threshold; None: no value
        is small.
    edge : float
        Values up to here are small.
    blocks : array of shape (rows,)
        How many blocks of values a row has.
    beyond, starts : array of int
        Indices of the values that are not small, those of row i at ``starts[i] : starts[i + 1]``.
    skip, words : array of shape (rows,)
        The word of a row where those of its blocks end, and where those of all its values do.
    """

    def __init__(self, values: Values, starts: Starts, law: MarkLaw, sampler: _Sampler) -> None:
        found = value_law(BLOCK, law.scale, sampler.a, law.threshold)
        self.law, self.edge, self.blocks = None, math.nan, np.zeros(len(starts) - 1, np.int64)
        if found is not None:
            self.law, self.edge = found[1], float(found[0]) * 2.0**sampler.step_log2
            self.blocks = -(-np.diff(starts) // BLOCK)
        self.beyond = np.flatnonzero(~(values <= self.edge))  # NaN is not, and none is up to NaN
        self.starts = np.searchsorted(self.beyond, starts)
        self.skip = self.blocks * (self.law.words if self.law else 0)
        self.words = self.skip + 2 * np.diff(self.starts)


def _lazy_batch(
    given: tuple[NDArray[np.integer], Values, Starts],
    rows: slice,
    law: MarkLaw,
    sampler: _Sampler,
    small: _Small,
    at_least: float,
    words: _RowWords,
) -> Found:
    """Some of the rows, whose words are drawn; of these ``given`` has the starts."""
    size, skip = rows.stop - rows.start, small.skip[rows]
    begins = small.starts[rows.start : rows.stop + 1]
    beyond, begins = small.beyond[begins[0] : begins[-1]], begins - begins[0]
    values = given[1][beyond]
    noisy, open_values = np.empty(len(values)), np.empty(len(values), dtype=np.bool_)
    noise_rows(
        words.all, words.starts[:-1] + skip, values, begins, sampler.scale, sampler.lattice,
        noisy, open_values,
    )  # fmt: skip
    sampler.settle(values, noisy, open_values, begins, words, skip)
    blocks = np.concatenate(([0], np.cumsum(small.blocks[rows])))
    of_block, apart = np.repeat(np.arange(size), small.blocks[rows]), small.law or law
    first = (np.arange(blocks[-1]) - blocks[of_block]) * apart.words
    of_values = _Marks(apart, sampler, words, of_block, first, far=True)
    of_zeros = _Marks(law, sampler, words, np.arange(size), small.words[rows])
    most = int(np.count_nonzero(noisy >= at_least) + of_zeros.size + of_values.size)
    out_places, out_values = np.empty(most, dtype=np.int64), np.empty(most)
    out_starts = np.empty(size + 1, dtype=np.int64)
    reach = [float(x) for y in (law, apart) for x in divmod(y.threshold, 1 << sampler.a)]
    merge_rows(
        given, small.edge, of_zeros.found, of_values.found, blocks,
        (beyond, noisy, begins), tuple(reach), sampler.lattice, at_least,
        out_places, out_values, out_starts,
    )  # fmt: skip
    used = out_starts[-1]
    return out_places[:used].copy(), out_values[:used].copy(), out_starts


class _Marks:
    """The marks of some vectors of zeros: by `draw_marks`, and the exact way for the rest.

    The words of a vector begin at word ``first`` of its row. Beyond those that its law counts on
    it takes the next ones, or with ``far`` others at a place that only this vector has.
    """

    def __init__(
        self,
        law: MarkLaw,
        sampler: _Sampler,
        words: _RowWords,
        rows: NDArray[np.int64],
        first: NDArray[np.int64],
        *,
        far: bool = False,
    ) -> None:
        self._law, self._words, self._rows, self._first, self._far = law, words, rows, first, far
        count, room = len(rows), law.most
        places, excess = np.empty(count * room, dtype=np.int64), np.empty((2, count * room))
        undecided = np.zeros(count * room, dtype=np.bool_)
        counts, pairs = np.empty((2, count), dtype=np.int64)
        last_word = (1 << 64) // law.n * law.n - 1
        draw_marks(
            words.all, words.starts[rows] + first, law.words,
            (law.first, law.limits, np.uint64(law.n), np.uint64(last_word)), sampler.scale,
            room, places, excess[0], excess[1], undecided, counts, pairs,
        )  # fmt: skip
        starts, block = np.arange(count, dtype=np.int64) * room, 1 << sampler.a
        for at in np.flatnonzero(undecided).tolist():
            vector, j = divmod(at, room)
            i = int(pairs[vector]) + 2 * j
            pair = self._word(vector, i), self._word(vector, i + 1)
            exact = exact_excess(*pair, sampler.T, sampler.a, self._rare(vector, i))
            excess[:, at] = divmod(exact, block)
        for vector in np.flatnonzero(counts < 0).tolist():
            exactly, drawn = exact_marks(
                law, sampler.T, sampler.a, partial(self._word, vector), partial(self._rare, vector)
            )
            starts[vector], counts[vector] = len(places), len(exactly)
            places = np.append(places, np.array(exactly, dtype=np.int64))
            parts = [divmod(steps - law.threshold, block) for steps in drawn]
            excess = np.append(excess, np.array(parts, dtype=np.float64).reshape(-1, 2).T, axis=1)
        self.size = counts.sum()
        highs, lows = np.ascontiguousarray(excess)
        self.found = places, highs, lows, starts, counts

    def _place(self, vector: int, i: int) -> int:
        """Where in its row's stream word i of a vector is."""
        first = int(self._first[vector])
        if self._far and i >= self._law.words:
            return (first // self._law.words + 1) * FAR + i
        return first + i

    def _word(self, vector: int, i: int) -> int:
        return self._words.word(int(self._rows[vector]), self._place(vector, i))

    def _rare(self, vector: int, i: int) -> _sampler.Bits:
        return self._words.rare(int(self._rows[vector]), self._place(vector, i))


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
