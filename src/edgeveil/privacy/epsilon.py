"""Epsilon as people write it.

0.1 means one tenth. The nearest double is a little more; taken at its binary value, ten releases
at 0.1 would not fit under a cap of 1. So prices and noise both use the decimal number that a float
prints as.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from edgeveil._internal.checks import positive


def check_epsilon(epsilon: float) -> float:
    """Refuse an epsilon that is not a positive finite number (or near the end of doubles)."""
    return positive("epsilon", epsilon)


@lru_cache(maxsize=1024, typed=True)  # a release asks thirty times, for two numbers
def exact_epsilon(epsilon: float) -> Fraction:
    """The decimal number that `epsilon` prints as.

    Examples
    --------
    >>> 10 * exact_epsilon(0.1) == 1
    True
    """
    return Fraction(repr(float(epsilon)))
