"""The only place where noise is calibrated and drawn.

A vector is rounded to a lattice of step 2**k and gets exact discrete Laplace noise on that
lattice; calibration is exact rational arithmetic, rounded towards more noise. Statement and
proof: docs/theory/noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeveil._internal.checks import check_int
from edgeveil.errors import ParameterError
from edgeveil.privacy._key_stream import NoiseKey, NoiseRows, NoiseSource

__all__ = [
    "Calibration",
    "NoiseKey",
    "NoiseRows",
    "NoiseSource",
    "add_laplace",
    "add_laplace_to_rows",
    "calibrate",
    "calibrate_whole",
    "discrete_laplace",
    "to_lattice",
]

# The noise scale in steps is T * 2**a with T < 2**25 and a <= 40 (the sampler's word layout).
T_BITS = 25
MAX_SCALE = (2**T_BITS - 1) << 40
# Draws at this scale stay below 2**62, except with probability exp(-128).
MAX_INTEGER_SCALE = 2**55
# Rounding to the lattice may add this share of the sensitivity.
ROUNDING_SHARE = Fraction(1, 2**11)
# A step and its inverse are well within the range of floats.
MAX_STEP_LOG2 = 900


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How much noise a vector gets. Made by `calibrate`; checks itself, exactly, when made.

    Attributes
    ----------
    step_log2 : int
        The lattice: multiples of ``2**step_log2``.
    scale : int
        t in steps: P(Z = z) is proportional to exp(-|z| / t).
    epsilon : float
        Privacy loss, at most.
    coordinates : int
        Length of the vector, at most.
    sensitivity : Fraction
        L1 distance of the true vectors of any two neighbours, at most.
    error : Fraction
        L1 distance between a true vector and the computed one, at most.
    whole : bool
        The vectors are of whole numbers, which are on the lattice: nothing is rounded.
    """

    step_log2: int
    scale: int
    epsilon: float
    coordinates: int
    sensitivity: Fraction
    error: Fraction = Fraction(0)
    whole: bool = False

    def __post_init__(self) -> None:
        if self.coordinates < 1 or self.sensitivity <= 0 or self.error < 0:
            raise ParameterError(
                "a calibration needs coordinates >= 1, sensitivity > 0, error >= 0"
            )
        if self.whole and (self.error or self.step_log2 > 0):
            raise ParameterError("whole numbers have no error, and a lattice that holds them all")
        rounded = 0 if self.whole else self.coordinates
        apart = _steps_apart(self.step_log2, rounded, self.sensitivity, self.error)
        if abs(self.step_log2) > MAX_STEP_LOG2 or self.scale > MAX_SCALE:
            raise ParameterError("the step or the scale of this calibration is out of range")
        _split(self.scale)
        if not Fraction(self.epsilon) * self.scale >= apart:
            raise ParameterError("the scale of this calibration is too small for its epsilon")

    @property
    def noise_scale(self) -> float:
        """The scale of the noise in real units: its mean absolute value."""
        return float(self._exact_noise_scale())

    @property
    def overhead(self) -> float:
        """How much more noise this is than ``sensitivity / epsilon``, as a share of it."""
        return float(self._exact_noise_scale() * Fraction(self.epsilon) / self.sensitivity - 1)

    def _exact_noise_scale(self) -> Fraction:
        return self.scale * Fraction(2) ** self.step_log2


def calibrate(
    *,
    coordinates: int,
    sensitivity: float | Fraction,
    epsilon: float | Fraction,
    error: float | Fraction = 0,
) -> Calibration:
    """Choose lattice and noise scale so that `add_laplace` is epsilon-private.

    Parameters
    ----------
    coordinates : int
        Length of the vector (all rows together, if the bound is about all of them together).
    sensitivity : float or Fraction
        Bound on the L1 distance between the vectors of two neighbours, taken at its exact value.
    epsilon : float or Fraction
        Privacy loss allowed for the whole vector, taken at its exact value and rounded down to
        a float.
    error : float or Fraction
        Proven bound on the L1 distance between the vector as computed and as defined.

    Returns
    -------
    Calibration
        With ``epsilon * scale >= (sensitivity + 2 * error) / step + coordinates``: rounding to
        the lattice moves two vectors apart by at most one step per coordinate.

    Raises
    ------
    ParameterError
        An argument is wrong, or ``coordinates / epsilon`` is beyond 3.7 * 10**19.

    Notes
    -----
    With ``error = 0`` the overhead is under 0.05 %, as long as ``coordinates / epsilon`` is
    below 9 * 10**15. Beyond, the lattice gets coarser: as private, but with more noise; see
    `Calibration.overhead`. An error costs its own share, ``2 * error / sensitivity``.

    Examples
    --------
    >>> calibration = calibrate(coordinates=1_000_000, sensitivity=1e-6, epsilon=0.5)
    >>> calibration.noise_scale >= 1e-6 / 0.5
    True
    >>> calibration.overhead < 0.0005
    True
    """
    n = check_int("coordinates", coordinates)
    sigma = _positive("sensitivity", sensitivity)
    wanted = _positive("epsilon", epsilon)
    eta = _number(error)
    if eta is None or eta < 0:
        raise ParameterError(f"error must be a number >= 0, got {error!r}")
    return _calibrate(n, sigma, wanted, eta)


def calibrate_whole(
    *, coordinates: int, sensitivity: int | Fraction, epsilon: float | Fraction
) -> Calibration:
    """Choose the noise for vectors of whole numbers: nothing is rounded before the noise.

    Parameters
    ----------
    coordinates, sensitivity, epsilon
        As for `calibrate`.

    Returns
    -------
    Calibration
        With ``epsilon * scale >= sensitivity / step``; its overhead is below 2**-24, for any
        number of coordinates.

    Examples
    --------
    >>> calibration = calibrate_whole(coordinates=10**9, sensitivity=2, epsilon=1)
    >>> calibration.noise_scale, calibration.overhead
    (2.0, 0.0)
    """
    n = check_int("coordinates", coordinates)
    sigma = _positive("sensitivity", sensitivity)
    rounded = _float_below(_positive("epsilon", epsilon))
    needed = sigma / Fraction(rounded)
    k = min(0, _floor_log2(needed) - (T_BITS - 1))
    if -k > MAX_STEP_LOG2 or needed > MAX_SCALE:
        raise ParameterError(f"epsilon {rounded:g} is out of range for whole numbers")
    steps = math.ceil(needed * 2**-k)
    a = max(steps.bit_length() - T_BITS, 0)
    return Calibration(
        step_log2=k,
        scale=-(-steps >> a) << a,
        epsilon=rounded,
        coordinates=n,
        sensitivity=sigma,
        whole=True,
    )


@lru_cache(maxsize=256)  # exact arithmetic, the same for all rows of a release
def _calibrate(n: int, sigma: Fraction, wanted: Fraction, eta: Fraction) -> Calibration:
    rounded = _float_below(wanted)
    exact_epsilon = Fraction(rounded)
    room = exact_epsilon * MAX_SCALE - n
    if room <= 0:
        raise ParameterError(
            f"coordinates / epsilon must be below {float(MAX_SCALE):.2g}, "
            f"got {n} coordinates and epsilon {rounded:g}"
        )
    distance = sigma + 2 * eta
    # Fine enough that rounding adds little noise and that t has all its T_BITS bits, but not finer
    # than the largest scale allows.
    k = min(
        _floor_log2(distance * ROUNDING_SHARE / n),
        _floor_log2(distance / exact_epsilon / 2 ** (T_BITS - 1)),
    )
    k = max(k, -_floor_log2(room / distance))
    if abs(k) > MAX_STEP_LOG2:
        raise ParameterError(
            f"a sensitivity near 2**{_floor_log2(sigma)} with epsilon {rounded:g} needs a lattice "
            f"step of 2**{k}, which is outside 2**-{MAX_STEP_LOG2} ... 2**{MAX_STEP_LOG2}"
        )
    needed = _steps_apart(k, n, sigma, eta) / exact_epsilon
    a = max(math.ceil(needed).bit_length() - T_BITS, 0)
    return Calibration(
        step_log2=k,
        scale=math.ceil(needed / 2**a) << a,
        epsilon=rounded,
        coordinates=n,
        sensitivity=sigma,
        error=eta,
    )


def add_laplace(
    values: NDArray[np.float64], calibration: Calibration, noise: NoiseSource
) -> NDArray[np.float64]:
    """Round a vector to the lattice and add discrete Laplace noise: the private release.

    Parameters
    ----------
    values : ndarray of float64, any shape
        The vector the calibration is about, all of it in one call: at most
        ``calibration.coordinates`` values. Where each of several rows has the sensitivity for
        itself, call once per row. NaN and infinities count as 0: an exception would reveal them.
    calibration : Calibration
    noise : NoiseSource
        Two words are used per value, in C order. Must not be used for anything else that is
        released; see `NoiseSource.derive`.

    Returns
    -------
    ndarray of float64
        Same shape, read-only, multiples of the lattice step (rounded to a float where they have
        more than 53 bits, which is a function of the multiple alone).

    Examples
    --------
    >>> calibration = calibrate(coordinates=3, sensitivity=1, epsilon=1)
    >>> noisy = add_laplace(np.array([5.0, 0.0, 0.0]), calibration, NoiseSource.secure())
    >>> bool((noisy == np.rint(noisy * 2**30) / 2**30).all())
    True
    """
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        raise ParameterError("values must be an array of float64")
    if not isinstance(calibration, Calibration):
        raise ParameterError("calibration must come from calibrate(...)")
    _check_source(noise)
    if values.size > calibration.coordinates:
        raise ParameterError(
            f"the noise is calibrated for {calibration.coordinates} coordinates, "
            f"got {values.size} values"
        )
    # Imported here: it loads the compiler.
    from edgeveil.privacy import _sampler

    T, a = _split(calibration.scale)
    flat = np.ascontiguousarray(values).reshape(-1)
    out = _sampler.add_noise(flat, T, a, calibration.step_log2, noise.stream()).reshape(
        values.shape
    )
    out.flags.writeable = False
    return out


def add_laplace_to_rows(
    rows: NDArray[np.float64], calibration: Calibration, noises: NoiseRows
) -> None:
    """Round every row to the lattice and add its noise, in place: several releases at once.

    After an error some rows have no noise: the caller must discard all of them.

    Parameters
    ----------
    rows : ndarray of float64 of shape (m, n)
        Vectors that the calibration is about, each by itself; as for `add_laplace`.
    calibration : Calibration
    noises : NoiseRows
        One stream for each row, used for nothing else.
    """
    check_rows(rows)
    if not isinstance(calibration, Calibration):
        raise ParameterError("calibration must come from calibrate(...)")
    if rows.shape[1] > calibration.coordinates:
        raise ParameterError(
            f"the noise is calibrated for {calibration.coordinates} coordinates, "
            f"got rows of {rows.shape[1]} values"
        )
    _check_streams(noises, len(rows))
    from edgeveil.privacy import _sampler

    T, a = _split(calibration.scale)
    for i, row in enumerate(rows):
        row[:] = _sampler.add_noise(row, T, a, calibration.step_log2, noises.row(i))


def check_rows(rows: Any) -> None:
    """Refuse (ParameterError) what noise cannot be added to in place.

    A masked array would keep numbers without noise under its mask.
    """
    fit = type(rows) is np.ndarray and rows.dtype == np.float64 and rows.ndim == 2
    if not fit or not rows.flags.c_contiguous or not rows.flags.writeable:
        raise ParameterError("rows must be a plain, writeable, contiguous table of float64")


def to_lattice(values: NDArray[np.float64], calibration: Calibration) -> NDArray[np.float64]:
    """The values as multiples of the lattice step, as they are rounded before the noise."""
    steps = np.where(np.isfinite(values), values, 0.0) * 2.0**-calibration.step_log2
    return np.asarray(np.rint(steps))


def discrete_laplace(scale: int, size: int, noise: NoiseSource) -> NDArray[np.int64]:
    """Exact draws of Z on the integers with P(Z = z) proportional to exp(-|z| / scale).

    Parameters
    ----------
    scale : int
        At most 2**55, and at most 25 significant bits (``T * 2**a`` with T < 2**25).
    size : int
        How many draws.
    noise : NoiseSource
        Two words are used per draw.

    Returns
    -------
    ndarray of int64
        A draw beyond int64 would be set to its end; even at the largest scale its probability
        is below exp(-255).

    Examples
    --------
    >>> discrete_laplace(3, 5, NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    T, a = _split(check_int("scale", scale))
    if scale > MAX_INTEGER_SCALE:
        raise ParameterError(f"scale must be at most 2**55, got {scale}")
    check_int("size", size, 0)
    _check_source(noise)
    from edgeveil.privacy import _sampler

    return _sampler.draw_integers(int(size), T, a, noise.stream())


def _steps_apart(
    step_log2: int, coordinates: int, sensitivity: Fraction, error: Fraction
) -> Fraction:
    """Largest L1 distance of two rounded vectors, in steps (Lemma 1)."""
    return (sensitivity + 2 * error) / Fraction(2) ** step_log2 + coordinates


def _split(scale: int) -> tuple[int, int]:
    """``scale = T * 2**a`` with T < 2**25 and the least a."""
    a = max(scale.bit_length() - T_BITS, 0)
    if scale < 1 or scale >> a << a != scale:
        raise ParameterError(f"scale must have at most {T_BITS} significant bits, got {scale}")
    return scale >> a, a


def _floor_log2(x: Fraction) -> int:
    """The largest k with 2**k <= x, for x > 0."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


def _number(value: Any) -> Fraction | None:
    """The exact value of a finite number; None for anything else."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    return None


def _positive(name: str, value: Any) -> Fraction:
    number = _number(value)
    if number is None or number <= 0:
        raise ParameterError(f"{name} must be a positive number, got {value!r}")
    return number


def _float_below(x: Fraction) -> float:
    """The largest float that is not above x: rounding must not increase epsilon."""
    try:
        nearest = float(x)
    except OverflowError:
        raise ParameterError("epsilon is too large for a float") from None
    below = nearest if Fraction(nearest) <= x else math.nextafter(nearest, 0.0)
    if below == 0.0:
        raise ParameterError("epsilon is too small for a float")
    return below


def _check_source(noise: Any) -> None:
    if not isinstance(noise, NoiseSource):
        raise ParameterError("noise must be a NoiseSource")


def _check_streams(noises: Any, rows: int) -> None:
    if not isinstance(noises, NoiseRows) or len(noises) != rows:
        raise ParameterError(f"{rows} rows need as many streams, from NoiseSource.rows")
