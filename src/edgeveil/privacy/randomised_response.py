"""Randomised response on a long row of bits: samples the positions of the flipped bits.

Each bit is flipped independently with probability q >= 1 / (1 + e^epsilon), q <= 1/2, which is
epsilon-private for a change of one bit (docs/theory/edge-flipping.md). Gaps between flips are
exactly geometric, so memory grows with the number of flips and not with the number of bits.
"""

from __future__ import annotations

import decimal
import math

import numpy as np
import numpy.typing as npt

from edgeveil.privacy.epsilon import check_epsilon
from edgeveil.privacy.noise import NoiseSource, discrete_laplace

_BITS = 25  # significant bits of the gap's scale, as `discrete_laplace` takes them
_LARGEST_SCALE = 2**55
# Below this the flips are fair coins (q = 1/2, which protects perfectly): a scale of 25 bits
# cannot represent such an epsilon.
_FAIR_COIN_BELOW = 1e-5


def flip_scale(epsilon: float) -> tuple[int, int]:
    """Scale T / 2^b of the gaps: the chance to keep a bit is exp(-2^b / T).

    Rounded down, that is towards more flipping: 1 - exp(-2^b / T) >= 1 / (1 + e^epsilon).
    """
    with decimal.localcontext() as context:
        context.prec = 60
        exact = 1 / (1 + (-decimal.Decimal(repr(epsilon))).exp()).ln() if epsilon < 100 else None
        if exact is None or exact >= _LARGEST_SCALE:
            return _LARGEST_SCALE, 0
        exact *= 1 - decimal.Decimal(10) ** -40  # covers the rounding of exp and ln
        shift = _BITS - 1 - math.floor(math.log2(exact))
        if shift >= 0:
            return int(exact * 2**shift), shift
        return int(exact / 2**-shift) << -shift, 0


def flipped_positions(total: int, epsilon: float, noise: NoiseSource) -> npt.NDArray[np.int64]:
    """Sorted positions of the flipped bits among 0 .. total-1; `epsilon` is the loss of one bit."""
    epsilon = check_epsilon(epsilon)
    if epsilon < _FAIR_COIN_BELOW:
        bits = np.unpackbits(noise.words(-(-total // 64)).view(np.uint8), count=total)
        return np.flatnonzero(bits)
    scale, shift = flip_scale(epsilon)
    expected = total / (1 + math.exp(min(epsilon, 700)))
    parts: list[npt.NDArray[np.int64]] = []
    at = -1
    while at < total:
        draws = discrete_laplace(scale, int(min(2.2 * expected, 1 << 22)) + 64, noise)
        # Given Z >= 0, Z is geometric: P(Z >= k) = exp(-k / scale). Divided by 2^b and rounded
        # down it is the number of bits kept before the next flip.
        gaps = draws[draws >= 0] >> shift
        # A gap beyond the end is cut, so that the sum fits into 64 bits.
        positions = at + np.cumsum(np.minimum(gaps, total) + 1)
        at = int(positions[-1]) if len(positions) else at
        parts.append(positions[positions < total])
    return np.concatenate(parts)
