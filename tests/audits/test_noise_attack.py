"""The low-bit attack on noise (Mironov 2012): it breaks float Laplace noise and fails on ours.

One coordinate, true value 0 against sigma. Near 0 a float draw has almost all low bits. But
sigma plus a draw near -sigma is a multiple of the spacing of floats near sigma/2. So the low bits
of an output near 0 tell which of the two it was, whatever epsilon was claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from edgeveil.privacy import _sampler
from edgeveil.privacy import noise as noise_module
from edgeveil.privacy.noise import Calibration, NoiseSource, add_laplace, calibrate

Sampler = Callable[[float, int, int], NDArray[np.float64]]  # value, size, seed

SIGMA = 0.3
CLAIMED = 0.01
TRIALS = 2_000_000
ALPHA = 1e-6  # chance that a certified figure is too large


def certified_epsilon(hits: int, hits_other: int, trials: int) -> float:
    """What Clopper-Pearson proves: P(event | one) / P(event | other) >= exp(this)."""
    if hits == 0:
        return 0.0
    least = stats.beta.ppf(ALPHA / 2, hits, trials - hits + 1)
    most = stats.beta.ppf(1 - ALPHA / 2, hits_other + 1, trials - hits_other)
    return float(math.log(least / most))


def low_bits(outputs: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many times an output can be doubled before it is a whole number: 0 ... 1100."""
    mantissa, exponent = np.frexp(outputs)
    whole = (mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole == 0, -1, 53 - exponent - trailing).astype(np.int64)


def attack(sample: Sampler, grid: int) -> float:
    """Largest certified epsilon over the events 'near 0, and a multiple of 2**-j or not'.

    The event and its direction are chosen on one sample and certified on a fresh one.
    """

    def events(value: float, seed: int) -> NDArray[np.int64]:
        outputs = sample(value, TRIALS, seed)
        near = outputs[np.abs(outputs) <= SIGMA / 4]
        counts = np.array([(low_bits(near) <= j).sum() for j in range(grid - 3, grid + 4)])
        signed_zero = ((outputs == 0) & np.signbit(outputs)).sum()
        return np.concatenate([counts, near.size - counts, [near.size, signed_zero]])

    zero, sigma = events(0.0, 1), events(SIGMA, 2)
    scores = [
        [certified_epsilon(x, y, TRIALS) for x, y in zip(world, other_world, strict=True)]
        for world, other_world in ((zero, sigma), (sigma, zero))
    ]
    direction, event = np.unravel_index(np.argmax(scores), np.shape(scores))
    zero, sigma = events(0.0, 3), events(SIGMA, 4)
    world, other_world = (zero, sigma) if direction == 0 else (sigma, zero)
    return certified_epsilon(int(world[event]), int(other_world[event]), TRIALS)


def float_laplace(value: float, size: int, seed: int) -> NDArray[np.float64]:
    return value + np.random.default_rng(seed).laplace(scale=SIGMA / CLAIMED, size=size)


def our_laplace(value: float, size: int, seed: int) -> NDArray[np.float64]:
    """Each draw is a vector of one coordinate of its own; drawn together to save time."""
    c = calibration()
    T, a = noise_module._split(c.scale)
    return _sampler.add_noise(
        np.full(size, value), T, a, c.step_log2, NoiseSource.insecure(seed).stream()
    )


def calibration() -> Calibration:
    return calibrate(coordinates=1, sensitivity=SIGMA, epsilon=CLAIMED)


def test_draws_do_not_depend_on_batches():
    noise = NoiseSource.insecure(5)
    one_by_one = [float(add_laplace(np.array([SIGMA]), calibration(), noise)[0]) for _ in range(50)]
    assert our_laplace(SIGMA, 50, 5).tolist() == one_by_one


def test_low_bits_break_float_laplace_noise():
    spacing = 54  # floats near sigma/2 = 0.15 are multiples of 2**-55
    certified = attack(float_laplace, spacing)
    assert certified > 5, f"claimed {CLAIMED}, certified {certified:.2f}"


def test_low_bits_tell_nothing_about_our_noise():
    certified = attack(our_laplace, -calibration().step_log2)
    assert certified <= CLAIMED, f"claimed {CLAIMED}, certified {certified:.2f}"
    # Nor in the place where the attack on floats looks.
    assert attack(our_laplace, 54) <= CLAIMED


@pytest.mark.parametrize("value", [0.0, SIGMA, -SIGMA / 3, 1e-17, 1e6])
def test_the_support_does_not_depend_on_the_value(value):
    c = calibration()
    steps = our_laplace(value, 200_000, 6) / 2.0**c.step_log2
    assert (steps == np.rint(steps)).all()
    # Every residue occurs, equally often: no coarser grid shows through.
    counts = np.bincount(steps.astype(np.int64) & 15, minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_zero_does_not_remember_the_sign_of_its_parts():
    """A value just below 0 rounds to -0.0; added to a noise of -0.0 the sign would survive."""
    c = calibrate(coordinates=100_000, sensitivity=2.0**-20, epsilon=1000.0)
    tiny = -0.3 * 2.0**c.step_log2
    outputs = [
        add_laplace(np.full(100_000, value), c, NoiseSource.insecure(7)) for value in (tiny, 0.0)
    ]
    assert outputs[0].tobytes() == outputs[1].tobytes()
    assert not any((np.signbit(x) & (x == 0)).any() for x in outputs)
