"""Noise on several rows in one call: the same bits as row by row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.privacy import _key_stream, _sampler
from edgeveil.privacy.noise import (
    Calibration,
    NoiseSource,
    add_laplace,
    add_laplace_to_rows,
    calibrate,
)

LARGE = _sampler.ROWS_CHUNK


def streams(count, seed=5):
    noise = NoiseSource.insecure(seed)
    return [noise.derive("row", i) for i in range(count)]


def values_of(m, n):
    rng = np.random.default_rng(m + n)
    rows = rng.exponential(3, (m, n)) * rng.choice([-1e6, 0.0, 1.0, 1e9], (m, n))
    if n > 3:
        rows[:, 1], rows[:, 2] = np.nan, -np.inf
    return rows


def one_by_one(rows, calibration, noises):
    return np.array([add_laplace(r, calibration, s) for r, s in zip(rows, noises, strict=True)])


@pytest.mark.parametrize(
    ("m", "n"),
    [
        (1, 1),
        (5, 7),
        (300, 400),  # several rows to a chunk, the last one shorter
        (3, LARGE // 2),
        (3, LARGE // 2 + 1),
        (2, LARGE),
        (2, LARGE + 1),
        (3, 3 * LARGE // 2 + 5),  # chunks that hold the end of one row and the start of the next
    ],
)
@pytest.mark.parametrize("epsilon", [0.7, 1e-9])
def test_rows_are_those_of_single_calls(m, n, epsilon):
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
    rows = values_of(m, n)
    wanted = one_by_one(rows, calibration, streams(m))
    add_laplace_to_rows(rows, calibration, streams(m))
    np.testing.assert_array_equal(rows.view(np.uint64), wanted.view(np.uint64))


def test_they_go_on_where_a_stream_is():
    calibration = calibrate(coordinates=50, sensitivity=1, epsilon=1)
    rows, used, other = values_of(4, 50), streams(4), streams(4)
    for i in range(4):
        used[i].words(6 * i)
        other[i].words(6 * i)
    wanted = [one_by_one(rows, calibration, other) for _ in range(2)]
    for i in range(2):
        found = rows.copy()
        add_laplace_to_rows(found, calibration, used)
        np.testing.assert_array_equal(found, wanted[i])


@pytest.mark.parametrize("a", [0, 3])
@pytest.mark.parametrize("used", [0, 4])
def test_what_two_words_do_not_decide_is_drawn_from_the_rows_own_stream(a, used, monkeypatch):
    """With so wide a margin that most draws go the exact way, whatever the chunks are."""
    scale = (1000 if a == 0 else (1 << 24) + 1) << a
    calibration = Calibration(
        step_log2=-6, scale=scale, epsilon=1.0, coordinates=70, sensitivity=Fraction(1, 1000)
    )
    rows = values_of(6, 70)
    noises = [streams(6) for _ in range(3)]
    for source in (source for each in noises for source in each):
        source.words(used)
    wanted = one_by_one(rows, calibration, noises[0])
    monkeypatch.setattr(_sampler, "MARGIN", 0.5)
    for i, chunk in enumerate((1 << 16, 33)):
        monkeypatch.setattr(_sampler, "ROWS_CHUNK", chunk)
        found = rows.copy()
        add_laplace_to_rows(found, calibration, noises[i + 1])
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("used", [0, 4])
@pytest.mark.parametrize("chunk", [1 << 16, 33])
def test_further_bits_hang_on_the_place_in_the_rows_own_stream(used, chunk, monkeypatch):
    """At scale 1 every fourth draw is -0, which is drawn again from further bits."""
    calibration = Calibration(
        step_log2=0, scale=1, epsilon=100.0, coordinates=70, sensitivity=Fraction(1)
    )
    rows = np.zeros((6, 70))
    one, other = streams(6), streams(6)
    for source in (*one, *other):
        source.words(used)
    wanted = one_by_one(rows, calibration, one)
    monkeypatch.setattr(_sampler, "ROWS_CHUNK", chunk)
    add_laplace_to_rows(rows, calibration, other)
    np.testing.assert_array_equal(rows, wanted)


def test_a_long_piece_is_drawn_in_several_calls():
    count = 2 * _key_stream.FILL_WORDS + 6
    both, words = _key_stream.InTurn(streams(2), count), np.empty(2 * count + 2, dtype=np.uint64)
    assert both._fill(words) == 0
    wanted = np.concatenate([source.words(count) for source in streams(2)])
    np.testing.assert_array_equal(words[:-2], wanted)


def test_nothing_to_draw():
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    for shape in ((0, 3), (2, 0)):
        used = streams(shape[0])
        add_laplace_to_rows(np.empty(shape), calibration, used)
        for stream, untouched in zip(used, streams(shape[0]), strict=True):
            np.testing.assert_array_equal(stream.words(2), untouched.words(2))


@pytest.mark.parametrize(
    ("rows", "noises", "message"),
    [
        (np.zeros(3), 1, "contiguous table of float64"),
        (np.zeros((2, 3), dtype=np.float32), 2, "contiguous table of float64"),
        (np.zeros((3, 2)).T, 2, "contiguous table of float64"),
        (np.broadcast_to(0.0, (1, 3)), 1, "contiguous table of float64"),
        ([[0.0]], 1, "contiguous table of float64"),
        (np.zeros((2, 3)), 1, "2 rows need as many noise sources, one for each"),
        (np.zeros((2, 4)), 2, "calibrated for 3 coordinates, got rows of 4 values"),
    ],
)
def test_wrong_arguments_are_refused(rows, noises, message):
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError, match=message):
        add_laplace_to_rows(rows, calibration, streams(noises))


def test_wrong_calibration_or_source_is_refused():
    rows = np.zeros((1, 3))
    with pytest.raises(ParameterError, match="calibration must come from"):
        add_laplace_to_rows(rows, 1.0, streams(1))
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError, match="must be a NoiseSource"):
        add_laplace_to_rows(rows, calibration, [np.random.default_rng(0)])
    assert not rows.any()


def test_one_source_for_two_rows_is_refused():
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    (stream,) = streams(1)
    rows = np.zeros((2, 3))
    with pytest.raises(ParameterError, match="one for each"):
        add_laplace_to_rows(rows, calibration, [stream, stream])
    assert not rows.any()


def test_a_source_that_somebody_else_draws_from_is_noticed(monkeypatch):
    monkeypatch.setattr(_sampler, "ROWS_CHUNK", 33)
    calibration = calibrate(coordinates=70, sensitivity=1, epsilon=1)
    noises = streams(1)
    original = NoiseSource._fill

    def fill_and_draw(self, words):
        if words.size > 2:
            monkeypatch.setattr(NoiseSource, "_fill", original)
            try:
                return original(self, words)
            finally:
                self.words(2)
        return original(self, words)

    monkeypatch.setattr(NoiseSource, "_fill", fill_and_draw)
    with pytest.raises(ParameterError, match="while it was in use"):
        add_laplace_to_rows(np.zeros((1, 70)), calibration, noises)
