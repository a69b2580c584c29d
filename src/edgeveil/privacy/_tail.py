"""Noisy rows, cut at a threshold, without drawing all of their noise.

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
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy import _sampler
from edgeveil.privacy._tail_counts import CountLaw, count_law, exact_positions
from edgeveil.privacy._tail_kernels import merge_rows, sample_positions
from edgeveil.privacy.noise import Calibration, NoiseRows, _check_streams, _split

Values = NDArray[np.float64]
Positions = NDArray[np.integer]
Integers = NDArray[np.int64]

DENSE_CHUNK = 1 << 16  # coordinates at a time
BATCH_WORDS = 1 << 18  # words at a time: two megabytes
_NO_SIGN = np.uint64(2**64 - 2)  # all bits of a draw's first word but its sign

# The time of a lazy row beyond the draws of its values, in draws: for itself, and for each zero
# that may reach the threshold.
ROW_COST = 300
EXCEEDANCE_COST = 4


class SparseRows(NamedTuple):
    """Sparse rows, one after the other: row i is at starts[i] : starts[i + 1]."""

    positions: Positions  # increasing within a row
    values: Values
    starts: Integers  # (rows + 1)

    def part(self, rows: slice) -> SparseRows:
        """Neighbouring rows."""
        begin, end = int(self.starts[rows.start]), int(self.starts[rows.stop])
        starts = self.starts[rows.start : rows.stop + 1] - begin
        return SparseRows(self.positions[begin:end], self.values[begin:end], starts)


def threshold_in_steps(threshold: float, calibration: Calibration) -> int:
    """The least number of steps that is at least the threshold."""
    return math.ceil(Fraction(threshold) / Fraction(2) ** calibration.step_log2)


def draw_tail(
    rows: tuple[Positions, Values, Integers],
    width: int,
    calibration: Calibration,
    threshold: float,
    noises: NoiseRows,
    *,
    densely: bool | None = None,
) -> SparseRows:
    """The noisy values that reach the threshold, and their positions.

    ``densely`` is for all rows; None: for each row the way that is faster. That depends on the
    row alone, so a row is the same whichever rows are drawn beside it.
    """
    sparse = SparseRows(
        np.ascontiguousarray(rows[0]),
        np.ascontiguousarray(rows[1], dtype=np.float64),
        np.asarray(rows[2], dtype=np.int64),
    )
    _check(sparse, width, calibration, threshold)
    lengths = np.diff(sparse.starts)
    _check_streams(noises, len(lengths))
    law = None
    if not densely:
        law = count_law(width, calibration.scale, threshold_in_steps(threshold, calibration))
    lazy, counts = np.zeros(len(lengths), dtype=np.bool_), np.zeros(len(lengths), dtype=np.int64)
    if law is not None:
        lazy = lengths + (EXCEEDANCE_COST * law.most + ROW_COST) <= width
        lazy |= densely is False
        counts = lazy * (2 * lengths + law.words)
    parts: list[SparseRows] = []
    for group in _groups(lazy, counts):
        part, streams = sparse.part(group), noises[group]
        if law is not None and lazy[group.start]:
            parts.append(_draw_lazily(part, law, calibration, threshold, streams))
        else:
            parts += _draw_densely(part, width, calibration, threshold, streams)
    return _joined(parts)


def _check(rows: SparseRows, width: int, calibration: Calibration, threshold: float) -> None:
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


def _joined(parts: list[SparseRows]) -> SparseRows:
    if len(parts) == 1:
        return parts[0]
    counts = [np.diff(part.starts) for part in parts]
    return SparseRows(
        np.concatenate([part.positions for part in parts] or [np.empty(0, dtype=np.int64)]),
        np.concatenate([part.values for part in parts] or [np.empty(0)]),
        np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
    )


@dataclass
class _JoinedStreams:
    """The words of some draws of several rows, one row after the other: a stream for `add_noise`.

    Attributes
    ----------
    words : array of uint64
        Two for each draw.
    noises : NoiseRows
        The rows' streams, for further bits.
    starts : array (rows + 1)
        The draws of row i are starts[i] : starts[i + 1].
    first : array (rows)
        Where in its own stream the words of a row's first draw are.
    """

    words: NDArray[np.uint64]
    noises: NoiseRows
    starts: Integers
    first: Integers
    position: int = 0

    def take(self, count: int) -> tuple[int, NDArray[np.uint64]]:
        """Position of the next word, and the next `count` words."""
        position, self.position = self.position, self.position + count
        return position, self.words[position : self.position]

    def further_bits(self, position: int) -> _sampler.Bits:
        """Bits for the draw whose words are at `position`: those that its row's stream gives."""
        draw = position // 2
        row = int(np.searchsorted(self.starts, draw, side="right")) - 1
        index = self.first[row] + 2 * (draw - self.starts[row])
        return self.noises.row(row).further_bits(int(index))


def _add_noise(values: Values, calibration: Calibration, words: _sampler.Stream) -> Values:
    T, a = _split(calibration.scale)
    return _sampler.add_noise(values, T, a, calibration.step_log2, words)


def _draw_lazily(
    rows: SparseRows, law: CountLaw, calibration: Calibration, threshold: float, noises: NoiseRows
) -> SparseRows:
    """Noise for the given values; count, positions and excesses for the zeros."""
    positions, values, starts = rows
    own = np.empty(2 * len(values), dtype=np.uint64)
    for_zeros = np.empty((len(noises), law.words), dtype=np.uint64)
    for i, (start, end) in enumerate(pairwise((2 * starts).tolist())):
        words = noises.row(i).take(end - start + law.words)[1]
        own[start:end], for_zeros[i] = words[: end - start], words[end - start :]
    stream = _JoinedStreams(own, noises, starts, np.zeros(len(noises), dtype=np.int64))
    noisy = _add_noise(values, calibration, stream)
    zeros = _exceedances(law, calibration, for_zeros, 2 * np.diff(starts), noises)
    most = int(np.count_nonzero(noisy >= threshold) + len(zeros.values))
    merged = SparseRows(np.empty(most, dtype=np.int64), np.empty(most), np.empty_like(starts))
    merge_rows(positions, noisy, starts, zeros, threshold, merged)
    used = merged.starts[-1]
    return SparseRows(merged.positions[:used].copy(), merged.values[:used].copy(), merged.starts)


def _exceedances(
    law: CountLaw,
    calibration: Calibration,
    words: NDArray[np.uint64],
    skip: Integers,
    noises: NoiseRows,
) -> SparseRows:
    """Sample count, positions and excesses of the zeros that reach the threshold.

    `words` (rows, law.words) are those of each row's stream from word ``skip`` on. Where they are
    too few, or do not decide the count, `exact_positions` reads on in the stream.
    """
    positions = np.empty((len(words), law.most), dtype=np.int64)
    counts, used = np.empty((2, len(words)), dtype=np.int64)
    sample_positions(words, law.for_loops(), positions, counts, used)
    of_rows = [row[:count] for row, count in zip(positions, counts.tolist(), strict=True)]
    pairs = [
        row[first : first + 2 * max(count, 0)]
        for row, first, count in zip(words, used.tolist(), counts.tolist(), strict=True)
    ]
    for i in np.flatnonzero(counts < 0).tolist():
        begin = int(skip[i])
        exact, used[i] = exact_positions(law, noises, i, begin)
        of_rows[i] = np.array(exact, dtype=np.int64)
        after = range(begin + int(used[i]), begin + int(used[i]) + 2 * len(exact))
        pairs[i] = np.array([noises.word(i, index) for index in after], dtype=np.uint64)
    starts = np.cumsum([0, *map(len, of_rows)])
    own = np.concatenate(pairs)
    own[::2] &= _NO_SIGN  # an excess is a draw without its sign
    drawn = _JoinedStreams(own, noises, starts, skip + used)
    # Exact: the threshold has less than 53 bits (`count_law`).
    at_threshold = np.full(starts[-1], float(law.threshold) * 2.0**calibration.step_log2)
    return SparseRows(np.concatenate(of_rows), _add_noise(at_threshold, calibration, drawn), starts)


def _draw_densely(
    rows: SparseRows, width: int, calibration: Calibration, threshold: float, noises: NoiseRows
) -> Iterator[SparseRows]:
    """Each row with all of its noise, some coordinates at a time."""
    for i in range(len(noises)):
        stream, sparse = noises.row(i), rows.part(slice(i, i + 1))
        chunks = []
        for first in range(0, width, DENSE_CHUNK):
            chunk = np.zeros(min(DENSE_CHUNK, width - first))
            within = slice(*np.searchsorted(sparse.positions, (first, first + len(chunk))))
            chunk[sparse.positions[within] - first] = sparse.values[within]
            noisy = _add_noise(chunk, calibration, stream)
            kept = np.flatnonzero(noisy >= threshold)
            chunks.append(SparseRows(kept + first, noisy[kept], np.array([0, len(kept)])))
        positions, values, _ = _joined(chunks)
        yield SparseRows(positions, values, np.array([0, len(values)]))
