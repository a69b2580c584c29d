"""The streams of many rows, and noise on several rows in one call."""

from __future__ import annotations

import copy
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from edgeveil.errors import ParameterError
from edgeveil.privacy import _key_stream, _sampler
from edgeveil.privacy.noise import (
    Calibration,
    NoiseSource,
    add_laplace_to_rows,
    calibrate,
)
from tests.seam import noisy_row

SECRET = bytes(range(32))


def streams(names, seed=5):
    return NoiseSource.insecure(seed).rows(names)


def filled(noises, counts):
    """The first words of every row."""
    return [noises.row(i).take(count)[1] for i, count in enumerate(counts)]


def one_by_one(noises, i, place, count):
    position, words = noises.row(i, place).take(count)
    assert position == place
    return words


# --- streams ---------------------------------------------------------------------------------


def test_the_block_of_a_row_is_the_cipher_of_its_name_and_number():
    """Known answers: by the cipher itself, block after block, under the key's definition."""
    noises = NoiseSource.from_secret(SECRET).rows([7, -2, 2**62])
    key = _key_stream._tagged(SECRET, b"edgeveil/noise/rows/1:")
    for name, words in zip(noises.names.tolist(), filled(noises, [6, 4, 2]), strict=True):
        cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
        blocks = [
            cipher.update(name.to_bytes(8, "big", signed=True) + b.to_bytes(8, "big"))
            for b in range(len(words) // 2)
        ]
        np.testing.assert_array_equal(words, np.frombuffer(b"".join(blocks), dtype="<u8"))


def test_the_cipher_is_that_of_the_standard():
    """FIPS 197, appendix C.3."""
    cipher = Cipher(algorithms.AES256(SECRET), modes.ECB()).encryptor()
    block = cipher.update(bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert block.hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_row_words_do_not_depend_on_batch_or_pieces():
    names, counts = [3, 900, 4, 0], [40, 2, 0, 100_000]
    together = filled(streams(names), counts)
    for i, words in enumerate(together):
        np.testing.assert_array_equal(
            filled(streams(names)[i : i + 1], counts[i : i + 1])[0], words
        )
        pieces = [
            one_by_one(streams(names), i, place, min(1000, counts[i] - place))
            for place in range(0, counts[i], 1000)
        ]
        np.testing.assert_array_equal(np.concatenate([np.empty(0, np.uint64), *pieces]), words)


def test_no_two_rows_sources_or_streams_share_words():
    noise = NoiseSource.insecure(5)
    some = filled(noise.rows(range(-300, 300)), [8] * 600)
    some += filled(noise.derive("stage", 1).rows(range(300)), [8] * 300)
    some += [noise.words(8), noise.derive("row", 0).words(8)]
    every = np.concatenate(some)
    assert len(np.unique(every)) == len(every)


def test_further_bits_hang_on_row_and_place():
    bits = {
        (name, place, seed): streams([name], seed).row(0).further_bits(place)(64)
        for name in (1, 2) for place in (0, 2) for seed in (5, 6)
    }  # fmt: skip
    assert len(set(bits.values())) == 8
    assert streams([9, 2]).row(1).further_bits(2)(64) == bits[2, 2, 5]


def test_streams_cannot_be_pickled_or_copied():
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        for stream in (streams([1]), streams([1]).row(0)):
            with pytest.raises(TypeError, match="draw the same noise"):
                attempt(stream)


@pytest.mark.parametrize("names", [[0.2, 0.7], [True, False], ["1", "2"], [2**63, -1]])
def test_names_are_whole_numbers_so_that_no_two_become_one(names):
    with pytest.raises(ParameterError, match="whole numbers"):
        streams(names)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_streams_of_before_a_fork_are_refused_after_it(monkeypatch):
    noises = streams([1])
    row = noises.row(0)
    monkeypatch.setattr(_key_stream, "_forks", _key_stream._forks + 1)
    for draw in (
        lambda: filled(noises, [2]),
        lambda: noises.row(0),
        lambda: noises[:1].row(0),
        lambda: row.take(2),
        lambda: row.further_bits(0),
    ):
        with pytest.raises(ParameterError, match="before the process forked"):
            draw()


# --- noise -----------------------------------------------------------------------------------


def values_of(m, n):
    rng = np.random.default_rng(m + n)
    rows = rng.exponential(3, (m, n)) * rng.choice([-1e6, 0.0, 1.0, 1e9], (m, n))
    if n > 3:
        rows[:, 1], rows[:, 2] = np.nan, -np.inf
    return rows


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 7), (300, 400), (3, _sampler.CHUNK + 1)])
@pytest.mark.parametrize("epsilon", [0.7, 1e-9])
def test_rows_are_those_of_single_calls(m, n, epsilon):
    calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
    rows, noises = values_of(m, n), streams(range(m))
    wanted = np.array([noisy_row(row, calibration, noises, i) for i, row in enumerate(rows)])
    add_laplace_to_rows(rows, calibration, noises)
    np.testing.assert_array_equal(rows.view(np.uint64), wanted.view(np.uint64))


def test_further_bits_do_not_hang_on_the_chunks(monkeypatch):
    """At scale 1 every fourth draw is -0, which is drawn again from further bits."""
    calibration = Calibration(
        step_log2=0, scale=1, epsilon=100.0, coordinates=70, sensitivity=Fraction(1)
    )
    noised = []
    for chunk in (1 << 14, 33):
        monkeypatch.setattr(_sampler, "CHUNK", chunk)
        rows = np.zeros((6, 70))
        add_laplace_to_rows(rows, calibration, streams(range(6)))
        noised.append(rows)
    np.testing.assert_array_equal(*noised)


def test_rows_without_values_are_accepted():
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    for shape in ((0, 3), (2, 0)):
        add_laplace_to_rows(np.empty(shape), calibration, streams(range(shape[0])))


@pytest.mark.parametrize(
    ("rows", "noises", "message"),
    [
        (np.zeros(3), 1, "contiguous table of float64"),
        (np.zeros((2, 3), dtype=np.float32), 2, "contiguous table of float64"),
        (np.zeros((3, 2)).T, 2, "contiguous table of float64"),
        (np.broadcast_to(0.0, (1, 3)), 1, "contiguous table of float64"),
        ([[0.0]], 1, "contiguous table of float64"),
        (np.zeros((2, 3)), 1, "2 rows need as many streams"),
        (np.zeros((2, 4)), 2, "calibrated for 3 coordinates, got rows of 4 values"),
    ],
)
def test_wrong_arguments_are_refused(rows, noises, message):
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError, match=message):
        add_laplace_to_rows(rows, calibration, streams(range(noises)))


def test_wrong_calibration_or_source_is_refused():
    rows = np.zeros((1, 3))
    with pytest.raises(ParameterError, match="calibration must come from"):
        add_laplace_to_rows(rows, 1.0, streams([1]))
    calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    for noises in ([np.random.default_rng(0)], [NoiseSource.insecure(1)]):
        with pytest.raises(ParameterError, match="as many streams"):
            add_laplace_to_rows(rows, calibration, noises)
    assert not rows.any()
