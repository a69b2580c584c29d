"""The exact discrete Laplace sampler: compiled fast path, exact rare path.

A draw is Z = +-G with G = 2**a * H + L, H = floor(T * E), E ~ Exp(1), and L on [0, 2**a) with
P(L = l) proportional to exp(-l / (2**a * T)). Then P(Z = z) is proportional to exp(-|z| / t) with
t = 2**a * T (docs/theory/noise.md, Theorem 3). Each draw owns two words of the key stream:

    first word    bits 63..12  first 52 bits of a uniform U, E = -ln U      bit 0  sign
    second word   bits 63..40  first 24 bits of a uniform V, which accepts L if V < exp(-L / t)
                  bits a-1..0  L                                            (a <= 40)

`exact_draw` is the definition. The kernels compute the same wherever the two words decide the
draw by a wide margin, and leave the others, *undecided*, to `exact_draw`. So the floating-point
logarithm decides nothing by itself, and the result does not depend on machine or compiler.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numba import types
from numpy.typing import NDArray

from edgeveil._internal.compiled import compiled, inlined

PREFIX_BITS = 52
ACCEPT_BITS = 24
CHUNK = 1 << 13  # draws at a time: their words, values and results stay in the L2 cache

# Error of T * E that the kernel allows for, as a share of T * (1 + E): sixteen times the proven
# bound (Lemma 5).
MARGIN = 2.0**-45

Bits = Callable[[int], int]


class Stream(Protocol):
    """What the sampler needs of a key stream (`_key_stream.KeyStream`)."""

    def take(self, count: int) -> tuple[int, NDArray[np.uint64]]: ...

    def further_bits(self, position: int) -> Bits: ...


# --- The definition, exact -------------------------------------------------------------------


def exact_draw(first: int, second: int, T: int, a: int, bits: Bits) -> tuple[int, int, bool]:
    """Decide one draw with rigorous bounds, taking more bits where two words are not enough.

    Returns
    -------
    tuple of (int, int, bool)
        H, L and whether Z is negative.
    """
    while True:
        high = _floor_of_exponential(T, first >> (64 - PREFIX_BITS), PREFIX_BITS, bits)
        low = second & ((1 << a) - 1)
        while not _accepts(low, T << a, second >> (64 - ACCEPT_BITS), ACCEPT_BITS, bits):
            second = bits(64)
            low = second & ((1 << a) - 1)
        negative = bool(first & 1)
        if high or low or not negative:
            return high, low, negative
        first, second = bits(64), bits(64)  # reject -0: zero must not be drawn twice as often


def _floor_of_exponential(T: int, prefix: int, count: int, bits: Bits) -> int:
    """floor(-T ln U) for the uniform U whose first ``count`` bits are ``prefix``."""
    while True:
        if prefix:
            # U lies in [prefix, prefix + 1) / 2**count.
            least = max(_scaled_log(T, prefix + 1, count, decimal.ROUND_FLOOR), 0)
            if least == _scaled_log(T, prefix, count, decimal.ROUND_CEILING):
                return least
        prefix, count = prefix << 64 | bits(64), count + 64


def _scaled_log(T: int, numerator: int, count: int, rounding: str) -> int:
    """Floor of a bound on -T ln(numerator / 2**count): from below or above, as ``rounding`` says.

    ``Decimal.ln`` is correctly rounded, so the next number on the safe side is a bound.
    """
    context = _context(count, rounding)
    # m / 2**c = m 5**c / 10**c: the constructor is exact, whatever the context.
    uniform = decimal.Decimal(f"{numerator * 5**count}E-{count}")
    minus_log = context.ln(uniform).copy_negate()
    if rounding == decimal.ROUND_FLOOR:
        bound = context.next_minus(minus_log)
    else:
        bound = context.next_plus(minus_log)
    return math.floor(context.multiply(bound, decimal.Decimal(T)))


def _context(count: int, rounding: str) -> decimal.Context:
    """Decimal arithmetic much finer than 2**-count, independent of the caller's settings."""
    return decimal.Context(
        prec=count // 3 + 30, rounding=rounding, Emin=-999999, Emax=999999, clamp=0, traps=[]
    )


def _accepts(low: int, t: int, prefix: int, count: int, bits: Bits) -> bool:
    """Whether V < exp(-low / t) for the uniform V whose first ``count`` bits are ``prefix``."""
    if low == 0:
        return True
    while True:
        up, down = _context(count, decimal.ROUND_CEILING), _context(count, decimal.ROUND_FLOOR)
        # ``Decimal.exp`` is correctly rounded for the (rounded) quotient.
        least = down.next_minus(down.exp(down.divide(decimal.Decimal(-low), decimal.Decimal(t))))
        most = up.next_plus(up.exp(up.divide(decimal.Decimal(-low), decimal.Decimal(t))))
        if Fraction(prefix + 1, 1 << count) <= Fraction(least):
            return True
        if Fraction(prefix, 1 << count) >= Fraction(most):
            return False
        prefix, count = prefix << 64 | bits(64), count + 64


def lattice_sum(value: float, noise: int, a: int, step_log2: int) -> float:
    """Round ``value`` to the lattice and add ``noise`` steps: what the kernel does, in integers.

    The result is a function of the *sum* alone, also where it is rounded to a float.
    """
    steps = value * 2.0**-step_log2 if math.isfinite(value) else 0.0
    limit = _limit(step_log2)
    total = round(min(max(steps, -limit), limit)) + noise
    high, low = divmod(total, 1 << a)
    return (float(high) * 2.0**a + float(low)) * 2.0**step_log2 + 0.0


def _limit(step_log2: int) -> float:
    """Where values are clipped, in steps: neither the steps nor the values overflow a float."""
    return 2.0 ** (1000 - max(step_log2, 0))


# --- The same, compiled ----------------------------------------------------------------------

_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_TWO52 = np.uint64(0x4330000000000000)  # the bits of 2**52: or-ing an integer below adds it
_CENTRE = np.uint64(0x3FE6A09E00000000)  # the bits of a float just below sqrt(1/2)
_U1 = np.uint64(1)
_EXPONENT = np.uint64(52)
_BEYOND = np.uint64(2047)
_SIGN_SIDE = np.uint64(64 - PREFIX_BITS)
_ACCEPT_SIDE = np.uint64(64 - ACCEPT_BITS)
_LN2 = math.log(2.0)
_SERIES = tuple(2.0 / (2 * k + 1) for k in range(9))

# No fastmath: the proof counts roundings. error_model numpy: no branch before a division.


def _decide_(first: Any, second: Any, scale: Any) -> Any:
    """One draw from two words: H, L, sign as +-1.0, and whether `exact_draw` must decide."""
    T, low_mask, accept, margin = scale
    prefix = first >> _SIGN_SIDE
    # U's lower end, u = prefix / 2**52, exactly; u = z * 2**k with z in [0.7071, 1.4143).
    u = np.float64(np.uint64(prefix | _ONE).view(np.float64) - 1.0)
    k_biased = (u.view(np.uint64) - _CENTRE + _ONE) >> _EXPONENT
    z = np.uint64(u.view(np.uint64) - (k_biased << _EXPONENT) + _ONE).view(np.float64)
    k = np.uint64(k_biased | _TWO52).view(np.float64) - (2.0**52 + 1023.0)
    # ln z = 2 artanh s, s = (z - 1) / (z + 1), by its series.
    s = (z - 1.0) / (z + 1.0)
    q = s * s
    p = _SERIES[8]
    p = p * q + _SERIES[7]
    p = p * q + _SERIES[6]
    p = p * q + _SERIES[5]
    p = p * q + _SERIES[4]
    p = p * q + _SERIES[3]
    p = p * q + _SERIES[2]
    p = p * q + _SERIES[1]
    p = p * q + _SERIES[0]
    e = -(k * _LN2 + s * p)
    # -ln U lies in (e - 1/prefix, e], up to the error of e; and 1/prefix < 2**(1 - k - 52).
    width = np.uint64((_BEYOND - k_biased) << _EXPONENT).view(np.float64) * 2.0**-52
    slack = T * ((e + 1.0) * margin)
    high = np.floor(T * e - slack - T * width)
    undecided = (high != np.floor(T * e + slack)) | (prefix == 0)
    undecided |= (second >> _ACCEPT_SIDE) >= accept
    low = np.uint64((second & low_mask) | _TWO52).view(np.float64) - 2.0**52
    negative = (first & _U1) != 0
    undecided |= negative & (high == 0.0) & (low == 0.0)
    return high, low, (-1.0 if negative else 1.0), undecided


def _fill_integers_(words: Any, scale: Any, a: Any, out: Any, undecided: Any) -> bool:
    """OUT ``out``, ``undecided`` (n,): draws. IN ``words`` (2n,), ``scale``: from `scale_of`.

    Returns whether any draw is undecided.
    """
    some = False
    for i in range(out.size):
        high, low, sign, undecided[i] = _decide(words[2 * i], words[2 * i + 1], scale)
        # Invariant: high <= 52 ln 2 T < 2**31, so 2**a * high + low < 2**63 for a <= 31.
        magnitude = (np.int64(high) << a) + np.int64(low)
        out[i] = -magnitude if sign < 0.0 else magnitude
        some |= undecided[i]
    return some


def _fill_noisy_(
    words: Any, scale: Any, values: Any, lattice: Any, out: Any, undecided: Any
) -> bool:
    """OUT ``out`` (n,): IN ``values`` (n,) on the lattice plus draws. Else as `_fill_integers_`.

    ``lattice`` is from `lattice_of`.
    With block = 2**a, value = (y_high * block + y_low) steps and noise = +-(high * block + low)
    steps, the sum is (y_high +- high + carry) * block + rest, 0 <= rest < block. All of it is
    exact but the outermost additions, which round exact numbers that are functions of the sum.
    """
    per_step, step, block, per_block, limit = lattice
    some = False
    for i in range(out.size):
        high, low, sign, undecided[i] = _decide(words[2 * i], words[2 * i + 1], scale)
        value = values[i]
        if not abs(value) < np.inf:  # NaN, +-inf
            value = 0.0
        y = np.rint(min(max(value * per_step, -limit), limit))
        y_high = np.floor(y * per_block)
        below = (y - y_high * block) + sign * low
        carry = np.floor(below * per_block)
        total = (y_high + (sign * high + carry)) * block + (below - carry * block)
        out[i] = total * step + 0.0  # never -0: the sign of a zero would tell how it came about
        some |= undecided[i]
    return some


_words_t = types.Array(types.uint64, 1, "C", readonly=True)
_values_t = types.Array(types.float64, 1, "C", readonly=True)
_undecided_t = types.boolean[::1]
_scale_t = types.Tuple((types.float64, types.uint64, types.uint64, types.float64))
_lattice_t = types.UniTuple(types.float64, 5)
_decide = inlined(_decide_)
_fill_integers = compiled(
    _fill_integers_,
    types.boolean(_words_t, _scale_t, types.int64, types.int64[::1], _undecided_t),
)
_fill_noisy = compiled(
    _fill_noisy_,
    types.boolean(_words_t, _scale_t, _values_t, _lattice_t, types.float64[::1], _undecided_t),
)

Scale = tuple[float, np.uint64, np.uint64, float]
Lattice = tuple[float, float, float, float, float]


def scale_of(T: int, a: int, margin: float) -> Scale:
    """T as a float, exact; the mask of L; the bound below which V's prefix accepts; the margin.

    Prefixes of V below the bound accept whatever L is: 1 - 1/T <= 1 - L/t <= exp(-L/t).
    """
    accept = (T - 1 << ACCEPT_BITS) // T if a else 1 << ACCEPT_BITS
    return float(T), np.uint64((1 << a) - 1), np.uint64(accept), margin


def lattice_of(a: int, step_log2: int) -> Lattice:
    """Steps per unit, the step, the block 2**a, blocks per step, and the limit of values."""
    return 2.0**-step_log2, 2.0**step_log2, 2.0**a, 2.0**-a, _limit(step_log2)


def _run(
    kernel: Callable[[NDArray[np.uint64], slice, NDArray[np.bool_]], bool],
    decide: Callable[[int, int, int, bool], None],
    size: int,
    T: int,
    a: int,
    stream: Stream,
) -> None:
    """Chunk by chunk: words, kernel, then ``decide(index, H, L, negative)`` for undecided draws."""
    undecided = np.empty(min(CHUNK, size), dtype=np.bool_)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        position, words = stream.take(2 * count)
        if not kernel(words, slice(start, start + count), undecided[:count]):
            continue
        for i in np.flatnonzero(undecided[:count]).tolist():
            # A draw's further bits depend on its position in the stream, not on the chunks.
            bits = stream.further_bits(position + 2 * i)
            draw = exact_draw(int(words[2 * i]), int(words[2 * i + 1]), T, a, bits)
            decide(start + i, *draw)


def draw_integers(
    size: int, T: int, a: int, stream: Stream, margin: float = MARGIN
) -> NDArray[np.int64]:
    """``size`` draws with scale T * 2**a, T < 2**25, a <= 30. A larger margin changes nothing."""
    out, scale = np.empty(size, dtype=np.int64), scale_of(T, a, margin)
    largest = np.iinfo(np.int64).max

    def kernel(words: NDArray[Any], part: slice, undecided: NDArray[np.bool_]) -> bool:
        return bool(_fill_integers(words, scale, a, out[part], undecided))

    def decide(index: int, high: int, low: int, negative: bool) -> None:
        magnitude = min((high << a) + low, largest)
        out[index] = -magnitude if negative else magnitude

    _run(kernel, decide, size, T, a, stream)
    return out


def add_noise(
    values: NDArray[np.float64],
    T: int,
    a: int,
    step_log2: int,
    stream: Stream,
    margin: float = MARGIN,
) -> NDArray[np.float64]:
    """IN ``values`` (n,), contiguous: on the lattice plus draws of scale T * 2**a steps."""
    out, scale = np.empty(values.size, dtype=np.float64), scale_of(T, a, margin)
    lattice = lattice_of(a, step_log2)

    def kernel(words: NDArray[Any], part: slice, undecided: NDArray[np.bool_]) -> bool:
        return bool(_fill_noisy(words, scale, values[part], lattice, out[part], undecided))

    def decide(index: int, high: int, low: int, negative: bool) -> None:
        magnitude = (high << a) + low
        out[index] = lattice_sum(
            float(values[index]), -magnitude if negative else magnitude, a, step_log2
        )

    _run(kernel, decide, values.size, T, a, stream)
    return out
